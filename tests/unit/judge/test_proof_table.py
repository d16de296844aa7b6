"""The proof table: for each rule just below, at and just above its bound, and each pair of rules that can both match.

Changing an expectation here changes a verdict: it needs a line in the changelog and a reason.
"""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.judged_cases import NOW_MS, Case
from tests.unit.judge import proof_of_absence, proof_of_the_listed
from txn_analysis.judge.finding import finding_of
from txn_analysis.judge.rules import RULES, Rule
from txn_analysis.judge.words import WORDS
from txn_analysis.logic import both, either, no
from txn_analysis.verdict import Verdict

CASES = (
    *proof_of_absence.HANGING,
    *proof_of_the_listed.CASES,
    *proof_of_absence.CASES[len(proof_of_absence.HANGING) :],
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_rule_that_fires(case: Case) -> None:
    assert case.judged().rule.name == case.rule


def test_inconclusive_says_what_is_missing_and_the_others_what_they_rest_on() -> None:
    for case in CASES:
        judged = case.judged()
        is_inconclusive = judged.rule.verdict is Verdict.INCONCLUSIVE
        assert bool(judged.words.missing_in(judged.case)) == is_inconclusive, case.name
        assert is_inconclusive or judged.words.evidence_in(judged.case), case.name


def test_every_rule_before_says_why_it_does_not_hold() -> None:
    for case in CASES:
        judged = case.judged()
        asked = finding_of(judged, "RUN", "FINDING", None).rules_asked
        until = RULES[: RULES.index(judged.rule) + 1]
        assert [told.rule for told in asked if told.has_fired] == [case.rule], case.name
        assert [told.has_fired for told in asked] == [rule.holds_for(judged.case) for rule in until], case.name
        assert all(told.reason for told in asked), case.name


def test_every_verdict_says_what_would_change_it() -> None:
    for case in CASES:
        judged = case.judged()
        assert judged.words.would_change_in(judged.case), case.name


def test_no_two_cases_tell_the_same_story() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == {rule.name for rule in RULES}


def test_the_order_and_verdicts_are_the_contracts() -> None:
    assert [(rule.name, rule.verdict.value) for rule in RULES] == [
        ("evidence_broken", "inconclusive"),
        ("stale_data_in_live_transaction", "suspect"),
        ("not_late", "in_progress"),
        ("clock_not_credible", "inconclusive"),
        ("state_does_not_fit", "inconclusive"),
        ("commit_marker_missing", "suspect"),
        ("marker_overdue", "suspect"),
        ("marker_pending_commit", "coordinated"),
        ("marker_pending_abort", "coordinated"),
        ("coordinator_overdue", "suspect"),
        ("in_coordinator", "coordinated"),
        ("state_older_than_log", "inconclusive"),
        ("log_may_end_early", "inconclusive"),
        ("state_incomplete", "inconclusive"),
        ("commit_may_be_missing", "inconclusive"),
        ("unknown_producer", "hanging"),
        ("partition_not_in_transaction", "hanging"),
        ("no_rule", "inconclusive"),
    ]


def test_every_rule_has_its_words_in_the_contracts_order() -> None:
    assert [*WORDS] == [rule.name for rule in RULES]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_rule_whose_condition_cannot_be_decided_does_not_hold(verdict: Verdict) -> None:
    undecided = Rule(lambda _: None, verdict)
    assert not undecided.holds_for(Case("the story itself", "").judged().case)


@given(st.lists(st.sampled_from([True, False, None]), min_size=1))
def test_what_is_unknown_neither_accuses_nor_acquits(conditions: list[bool | None]) -> None:
    """Kleene's logic: an answer is given only if it is the same however the unknown ones turn out."""
    known = [[True, False] if c is None else [c] for c in conditions]
    for ours, pythons in ((both, all), (either, any)):
        answers = {pythons(choice) for choice in product(*known[:8])}
        assert ours(*conditions[:8]) == (answers.pop() if len(answers) == 1 else None)
    assert [no(c) for c in (True, False, None)] == [False, True, None]


@pytest.mark.parametrize(
    ("timestamp_ms", "basis"),
    [(0, "broker_clock"), (1, "last_timestamp"), (NOW_MS, "last_timestamp"), (NOW_MS + 1, "broker_clock")],
)
def test_a_timestamp_is_credible_if_it_is_positive_and_not_later_than_the_copy(timestamp_ms: int, basis: str) -> None:
    assert Case("", "", open={"last_timestamp_ms": timestamp_ms}).judged().case.lateness_basis == basis
