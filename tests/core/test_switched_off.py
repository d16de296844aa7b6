"""The proof is worth something: it finds every rule that is switched off, and every bound that is moved, on purpose.

A mutant is a function of the judge with a few words of it changed. Each must make some story, or some line of a proof
table, fail; one whose words are not there any more has to be told anew.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.coordinator import test_decisions, test_fit, test_state_chain, test_state_coverage
from tests.core import test_no_wrong_abort as stories
from tests.judge import test_proof_table
from txn_analysis.coordinator import (
    chain,
    fit,
    history,
    marker_checks,
    producer_bounds,
    view,
)
from txn_analysis.judge import fact_finding, judgement, rules
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.judge.rules.rule import Rule

Tests = tuple["Callable[..., None]", ...]

ABORTED: Tests = (stories.test_it_is_not_aborted,)
STORIES: Tests = (*ABORTED, stories.test_it_hangs_for_ever, stories.test_a_healthy_producer_is_not_suspect)
TABLE: Tests = (test_proof_table.test_the_rule_that_fires,)
DECIDED: Tests = (
    test_decisions.test_what_was_decided,
    test_decisions.test_what_counts_as_its_marker,
    test_decisions.test_one_marker_serves_one_decision,
    test_decisions.test_which_decisions_matter,
)
FITTING: Tests = (
    test_fit.test_a_decision_confirms_its_marker,
    test_fit.test_what_confirms_a_marker,
    test_fit.test_which_markers_speak,
    test_fit.test_what_contradicts_the_state_for_a_known_id,
    test_fit.test_what_contradicts_the_state_for_a_producer_that_nobody_knows,
    test_fit.test_what_a_console_export_contradicts,
    test_fit.test_what_contradicts_the_state_for_an_unknown_producer_of_version_2,
    test_fit.test_where_nothing_hangs_since_the_state_may_be_anothers,
    test_fit.test_what_confirms_a_marker_surely,
    test_fit.test_a_state_that_is_empty_in_places_says_nothing_unless_it_was_copied_last,
    test_fit.test_a_marker_that_is_later_than_the_state,
    test_fit.test_for_whom_it_counts,
)
CHAINED: Tests = (
    test_state_chain.test_a_gap_ends_with_the_batch_behind_it,
    test_state_chain.test_where_the_leader_of_the_state_changed,
    test_state_chain.test_a_rise_may_touch_the_data,
    test_state_chain.test_a_complete_record_without_its_prepare,
    test_state_coverage.test_a_hole_counts_where_it_can_hide_what_came_since_a_marker,
)


def rows_of(test: Callable[..., None]) -> list[dict[str, Any]]:
    """The arguments of a parametrized test, line by line."""
    (mark,) = (m for m in getattr(test, "pytestmark", ()) if m.name == "parametrize")
    names, is_one = mark.args[0], isinstance(mark.args[0], str)
    lines = [getattr(line, "values", (line,) if is_one else line) for line in mark.args[1]]
    return [dict(zip((names,) if is_one else names, line, strict=True)) for line in lines]


def is_found_by(tests: Tests) -> bool:
    """Some line of some test fails."""
    return any(_fails(test, row) for test in tests for row in rows_of(test))


def _fails(test: Callable[..., None], row: dict[str, Any]) -> bool:
    try:
        test(**row)
    except AssertionError:
        return True
    return False


def switch_off(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(rules, "RULES", tuple(rule for rule in rules.RULES if rule.name != name))


def test_the_proof_as_it_is_fails_nowhere() -> None:
    assert not is_found_by((*STORIES, *TABLE, *DECIDED, *FITTING, *CHAINED))


@pytest.mark.parametrize("rule", rules.RULES[:-1], ids=lambda rule: rule.name)
def test_a_rule_that_is_switched_off_is_found(monkeypatch: pytest.MonkeyPatch, rule: Rule) -> None:
    switch_off(monkeypatch, rule.name)
    assert is_found_by(TABLE)


GUARDS = [
    rule.name
    for rule in rules.RULES[:-1]
    if rule.verdict is Verdict.INCONCLUSIVE or rule.name == "commit_marker_missing"
]


# `state_incomplete` catches these as well: a state that does not fit, or ends before the data, is contradicted, or it
# surely confirms no marker that is as late as the data.
TWICE = {"clock_not_credible", "state_does_not_fit", "state_older_than_log"}


@pytest.mark.parametrize("name", [name for name in GUARDS if name not in TWICE])
def test_without_a_guard_an_acknowledged_commit_or_a_live_transaction_is_planned(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    switch_off(monkeypatch, name)
    told = [story for story, rule in stories.NOT_ABORTED.values() if rule == name]
    assert any(story().answer().plan for story in told)


class Mutant(NamedTuple):
    """A function of the judge, the words of it that are changed, and what they become."""

    function: Any
    words: str
    become: str


def getter(holder: type, name: str) -> Any:
    """The function behind a property."""
    return vars(holder)[name].fget


def cached(holder: type, name: str) -> Any:
    """The function behind a property that is made once."""
    return vars(holder)[name].func


MUTANTS: dict[str, tuple[Mutant, Tests]] = {
    "a marker just before its decision": (
        Mutant(history.Decision.is_served_by, "self.prepared_ms - max_clock_skew_ms", "self.prepared_ms"),
        DECIDED,
    ),
    "a marker just after its decision was completed": (
        Mutant(history.Decision.is_served_by, "<= last_ms", "< last_ms"),
        DECIDED,
    ),
    "a marker of any kind serves": (
        Mutant(history.Decision.is_served_by, "{None, self.kind}", "{None, run.kind}"),
        DECIDED,
    ),
    "a marker serves every decision that it fits": (
        Mutant(
            history.left_over,
            "del waiting[served]",
            "waiting = [d for d in waiting if not d.is_served_by(run, max_clock_skew_ms)]",
        ),
        DECIDED,
    ),
    "repetitions serve as well": (
        Mutant(history.MarkerRun.is_continued_by, "is_alike and not marker.has_data", "False"),
        DECIDED,
    ),
    "decisions of any age matter": (Mutant(history.that_matter, "d.prepared_ms >= since_ms", "d"), STORIES),
    "clocks are taken as equal where decisions matter": (
        Mutant(history.that_matter, "first_appended_after_ms - skew_ms", "first_appended_after_ms"),
        DECIDED,
    ),
    "the first Prepare record's time holds": (
        Mutant(
            history.decisions_of,
            "waiting[record.state, frozenset(record.topic_partitions)] = place",
            "waiting.setdefault((record.state, frozenset(record.topic_partitions)), place)",
        ),
        DECIDED,
    ),
    "a decision under the previous producer id is none": (
        Mutant(history.decides, "(record.producer_id, record.previous_producer_id)", "(record.producer_id,)"),
        DECIDED,
    ),
    "an export's Complete record was written when it was decided": (
        Mutant(history.written_by_ms, "if record.recorded_ms is not None or not record.is_completed", "if record"),
        STORIES,
    ),
    "a commit is lost although its marker may still come": (
        Mutant(fact_finding.loss_of, "commit.settled_ms <= last_ms - skew_ms", "commit.settled_ms <= last_ms"),
        TABLE,
    ),
    "an abort is over although its marker may still come": (
        Mutant(fact_finding.loss_of, "d.settled_ms <= last_ms - skew_ms", "d.settled_ms <= last_ms"),
        TABLE,
    ),
    "gaps just before the data do not count": (
        Mutant(fact_finding._gaps_since_written, "ms >= since_ms", "ms > since_ms"),
        TABLE,
    ),
    "gaps of any age count": (Mutant(fact_finding._gaps_since_written, "ms >= since_ms", "ms"), TABLE),
    "gaps just before the last end marker do not count": (
        Mutant(fact_finding.hidden_in, "ms >= since_ms", "ms > since_ms"),
        TABLE,
    ),
    "gaps hide nothing": (
        Mutant(fact_finding.hidden_in, "(end_ms,) if end_ms is not None and counts else ()", "()"),
        ABORTED,
    ),
    "rises hide nothing": (Mutant(fact_finding.hidden_in, "own.chain.rises", "()"), ABORTED),
    "an inexact start is taken for exact": (
        Mutant(fact_finding._doubts, "if not is_exact and case.known", "if None and case.known"),
        ABORTED,
    ),
    "a rise just before the data does not count": (
        Mutant(chain.Rise.may_touch, "+ max_clock_skew_ms >= first_ms", "+ max_clock_skew_ms > first_ms"),
        CHAINED,
    ),
    "a rise just behind the data does not count": (
        Mutant(chain.Rise.may_touch, "- max_clock_skew_ms <= last_ms", "- max_clock_skew_ms < last_ms"),
        CHAINED,
    ),
    "the oldest gap counts": (
        Mutant(chain._gap_end_ms, "_largest(", "(lambda ends, _: min(ends.tolist(), default=None))("),
        CHAINED,
    ),
    "what is gone before the first batch is no gap": (
        Mutant(chain._holes, "np.append(0, ", "np.append(batches.base_offset[:1], "),
        CHAINED,
    ),
    "a decision is looked for in the minute before": (
        Mutant(producer_bounds._kept_ms, "gap_end_ms + DECIDED_WITHIN_MS", "gap_end_ms"),
        FITTING,
    ),
    "the minute is a millisecond shorter": (
        Mutant(marker_checks._Check._said_of_known, "at_ms > self._bound", "at_ms >= self._bound"),
        FITTING,
    ),
    "the state reaches past a marker without an allowance": (
        Mutant(producer_bounds.bounds_of, "reached_ms - skew_ms", "reached_ms"),
        FITTING,
    ),
    "a marker confirms without an allowance": (
        Mutant(cached(marker_checks._Check, "_confirms"), "prepared_ms[of] - skew_ms", "prepared_ms[of]"),
        FITTING,
    ),
    "a marker confirms however late": (
        Mutant(cached(marker_checks._Check, "_confirms"), "completed_ms[of] + skew_ms", "completed_ms[of] * 0 + EVER"),
        FITTING,
    ),
    "version 2 does not excuse": (
        Mutant(
            marker_checks._Check._said_of_unknown,
            "self.markers.is_of_version_2[self.markers.producer[own]] | (epoch < 0)",
            "(epoch < 0)",
        ),
        FITTING,
    ),
    "a coordinator above every leader is excused": (
        Mutant(marker_checks._Check._said_of_unknown, "np.where(is_ahead, _AGAINST, if_compacted)", "if_compacted"),
        FITTING,
    ),
    "a state that confirms nothing is believed": (
        Mutant(fit.Fit.doubts, "(sums.is_unsure or self.is_partial) and not is_confirmed", "False"),
        (*FITTING, *ABORTED),
    ),
    "a decision that hung for hours confirms surely": (
        Mutant(cached(marker_checks._Check, "_is_sure"), "np.minimum(stop_ms, prepared_ms[of] + within_ms)", "stop_ms"),
        FITTING,
    ),
    "what a state confirms of before the data is enough": (
        Mutant(fit.Fit.doubts, "sums.sure_ms >= since_ms", "True"),
        FITTING,
    ),
    "contradictions of others do not matter": (
        Mutant(fit.Fit.doubts, "[sums.against.first, sums.unprinted]", "[sums.unprinted]"),
        FITTING,
    ),
    "expired ids contradict": (
        Mutant(
            marker_checks._Check._said_of_unknown,
            "at_ms < (NEVER if state.known_since_ms is None else state.known_since_ms)",
            "at_ms < NEVER",
        ),
        FITTING,
    ),
    "as many as are confirmed are too many": (
        Mutant(
            getter(fit.Fit, "misfits"),
            "against.marker_count <= self.sums.confirmed_count",
            "against.marker_count < self.sums.confirmed_count",
        ),
        FITTING,
    ),
    "a contradiction counts for its producer alone": (
        Mutant(fit.Fit.against, "own or self.sums.against.first", "own"),
        (*FITTING, *ABORTED),
    ),
    "a commit is later than the state without an allowance": (
        Mutant(producer_bounds.bounds_of, "EVER) + skew_ms", "EVER)"),
        FITTING,
    ),
    "a disproved word counts": (Mutant(judgement.Judge.believing, "without(settings, untrue)", "settings"), ABORTED),
    "late is at the bound": (
        Mutant(fact_finding._lateness, "more(quiet_ms, bound_ms)", "more(quiet_ms, bound_ms - 1)"),
        TABLE,
    ),
    "the state reaches without an allowance": (
        Mutant(fact_finding._state_reach, "plus(before_ms, settings.max_clock_skew_ms)", "before_ms"),
        TABLE,
    ),
    "overdue is asked of --as-of": (
        Mutant(fact_finding._state_reach, "if settings.state_copied_last else end_ms", "if known else end_ms"),
        TABLE,
    ),
    "a word moves the state's end back": (
        Mutant(fact_finding._state_reach, "latest(end_ms, case.moments.as_of_ms)", "case.moments.as_of_ms"),
        TABLE,
    ),
    "the log reaches without an allowance": (
        Mutant(fact_finding._log_reach, "minus(last_ms, settings.max_clock_skew_ms)", "last_ms"),
        TABLE,
    ),
    "how far evidence reaches is asked of --as-of": (
        Mutant(getter(fact_finding.Moments, "reach_ms"), "latest(self.as_of_ms, self.newest_ms)", "self.as_of_ms"),
        (*TABLE, *ABORTED),
    ),
    "how far evidence reaches is asked of the clocks alone": (
        Mutant(getter(fact_finding.Moments, "reach_ms"), "latest(self.as_of_ms, self.newest_ms)", "self.newest_ms"),
        TABLE,
    ),
    "orphans are no sign of a rotation": (Mutant(fact_finding._log_reach, "*case.state.orphans_ms", "*()"), TABLE),
    "the last end marker bounds nothing": (
        Mutant(getter(fact_finding.Case, "since_ms"), "self.opened.last_marker_ms", "None"),
        STORIES,
    ),
    "a state that was made again is whole": (Mutant(fact_finding._gaps, "ms < before_ms", "ms"), ABORTED),
    "of two ids one that runs counts before one that changed": (
        Mutant(view.best_of, "v.is_listed), v.changed_ms", "v.is_listed), v.runs_under_producer_id, v.changed_ms"),
        ABORTED,
    ),
    "data is older than its transaction without an allowance": (
        Mutant(
            fact_finding._against_transaction,
            "plus(opened.first_appended_before_ms, settings.max_clock_skew_ms)",
            "opened.first_appended_before_ms",
        ),
        TABLE,
    ),
}


@pytest.mark.cluster  # all stories for each bound
@pytest.mark.parametrize("name", MUTANTS)
def test_a_bound_that_is_moved_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (function, words, become), tests = MUTANTS[name]
    monkeypatch.setattr(function, "__code__", _mutated(function, words, become))
    assert is_found_by(tests)


def _mutated(function: Any, words: str, become: str) -> Any:
    source = textwrap.dedent(inspect.getsource(function))
    assert words in source, "the words are not there any more"
    made: dict[str, Any] = {}
    exec(compile(source.replace(words, become), "a mutant", "exec"), dict(function.__globals__), made)
    (mutant,) = made.values()
    return (getattr(mutant, "fget", None) or getattr(mutant, "func", mutant)).__code__
