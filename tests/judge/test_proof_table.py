"""The proof table: for each rule just below, at and just above its bound, and each pair of rules that can both match.

Changing an expectation here changes a verdict: it needs a line in the changelog and a reason.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge.cases import (
    BOUND_MS,
    HOLDER,
    LATE_MS,
    MINUTE_MS,
    NOW_MS,
    SKEW_MS,
    UNKNOWN,
    WRITTEN_MS,
    Case,
    listed,
    with_partition,
)
from txn_analysis.judge.logic import both, either, no
from txn_analysis.judge.rules import RULES, asked
from txn_analysis.judge.verdicts import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.rules.rule import Rule

WEEK_MS = 604_800_000
GAP = ("offsets 3 to 5 are in no file",)
COPIED_LAST = {"state_copied_last": True}
NO_BOUND = {"appended_before_ms": None}

CASES = (
    Case("the story itself", "partition_not_in_transaction"),
    Case("nobody ever had the producer id", "unknown_producer", known=UNKNOWN),
    Case(
        "the id was removed",
        "partition_not_in_transaction",
        known={"state": "Tombstone", "runs_under_producer_id": False, "state_epoch": None},
    ),
    Case(
        "the id runs under another producer id",
        "partition_not_in_transaction",
        known={"runs_under_producer_id": False, "producer_id": 8, "state_epoch": None},
    ),
    Case(
        "in progress elsewhere",
        "partition_not_in_transaction",
        known={"state": "Ongoing", "is_producer_live": True},
    ),
    # evidence_broken comes before everything
    Case("gap in the log", "evidence_broken", open={"evidence_gaps": GAP}),
    Case("gap in the log, not late", "evidence_broken", open={"evidence_gaps": GAP, "last_timestamp_ms": NOW_MS}),
    Case(
        "gap in the log, commit pending", "evidence_broken", open={"evidence_gaps": GAP}, known=listed("PrepareCommit")
    ),
    # stale_data_in_live_transaction
    Case(
        "first append bounded 1 ms before the live transaction",
        "stale_data_in_live_transaction",
        known=listed("Ongoing", start_ms=BOUND_MS + SKEW_MS + 1),
    ),
    Case(
        "first append bounded at the live transaction's start",
        "in_coordinator",
        known=listed("Ongoing", start_ms=BOUND_MS + SKEW_MS),
    ),
    Case(
        "live transaction one epoch above the data",
        "stale_data_in_live_transaction",
        known=listed("Ongoing", txn_epoch=4),
    ),
    Case(
        "live transaction above the data, whose own one ended after the log was copied",
        "in_coordinator",
        known=listed("Ongoing", txn_epoch=4, was_ended_after_log=True),
    ),
    Case(
        "live transaction after the data, whose own one ended after the log was copied",
        "in_coordinator",
        known=listed("Ongoing", start_ms=BOUND_MS + SKEW_MS + 1, was_ended_after_log=True),
    ),
    Case("live transaction at the data's epoch", "in_coordinator", known=listed("Ongoing", txn_epoch=3)),
    Case(
        "stale data, not late",
        "stale_data_in_live_transaction",
        open={"last_timestamp_ms": NOW_MS},
        known=listed("Ongoing", txn_epoch=4),
    ),
    Case(
        "stale data, commit pending",
        "stale_data_in_live_transaction",
        known=listed("PrepareCommit", txn_epoch=4),
    ),
    Case(
        "stale data, coordinator overdue",
        "stale_data_in_live_transaction",
        known=listed("Ongoing", txn_epoch=4, timeout_ms=1),
    ),
    Case(
        "newer transaction that does not list the partition",
        "partition_not_in_transaction",
        known={"state": "Ongoing", "txn_epoch": 4, "state_epoch": 4},
    ),
    # not_late: strictly beyond the bound
    Case("idle 1 ms less than the bound", "not_late", open={"last_timestamp_ms": NOW_MS - LATE_MS + 1}),
    Case("idle exactly the bound", "not_late", open={"last_timestamp_ms": NOW_MS - LATE_MS}),
    Case(
        "idle 1 ms more than the bound",
        "partition_not_in_transaction",
        open={"last_timestamp_ms": NOW_MS - LATE_MS - 1},
    ),
    Case("not late, commit pending", "not_late", open={"last_timestamp_ms": NOW_MS}, known=listed("PrepareCommit")),
    Case("not late, state older", "not_late", open={"last_timestamp_ms": NOW_MS} | NO_BOUND),
    Case("last timestamp at the capture", "not_late", open={"last_timestamp_ms": NOW_MS}),
    # clocks: a timestamp after the capture, or none, is measured by the brokers
    Case(
        "client clock ahead, broker bound late", "partition_not_in_transaction", open={"last_timestamp_ms": NOW_MS + 1}
    ),
    Case(
        "client clock ahead, broker bound exactly the bound",
        "not_late",
        open={"last_timestamp_ms": NOW_MS + 1, "appended_before_ms": NOW_MS - LATE_MS},
    ),
    Case("no timestamp, broker bound late", "partition_not_in_transaction", open={"last_timestamp_ms": None}),
    Case("timestamp 0 is not credible", "not_late", open={"last_timestamp_ms": 0, "appended_before_ms": NOW_MS}),
    Case(
        "client clock ahead, no broker bound", "clock_not_credible", open={"last_timestamp_ms": NOW_MS + 1} | NO_BOUND
    ),
    Case(
        "no clock, commit pending",
        "clock_not_credible",
        open={"last_timestamp_ms": None} | NO_BOUND,
        known=listed("PrepareCommit"),
    ),
    Case("no moment of the capture", "clock_not_credible", as_of_ms=None),
    # markers that the coordinator owes
    Case("commit pending", "marker_pending_commit", known=listed("PrepareCommit")),
    Case(
        "commit pending exactly the bound",
        "marker_pending_commit",
        known=listed("PrepareCommit", update_ms=NOW_MS - LATE_MS),
    ),
    Case(
        "commit pending 1 ms longer",
        "marker_overdue",
        known=listed("PrepareCommit", update_ms=NOW_MS - LATE_MS - 1),
    ),
    Case("abort pending", "marker_pending_abort", known=listed("PrepareAbort", update_ms=NOW_MS - LATE_MS)),
    Case(
        "abort pending 1 ms longer",
        "marker_overdue",
        known=listed("PrepareAbort", update_ms=NOW_MS - LATE_MS - 1),
    ),
    Case(
        "commit pending, update time unknown",
        "marker_pending_commit",
        known=listed("PrepareCommit", update_ms=None),
    ),
    Case(
        "commit pending, state older",
        "marker_pending_commit",
        open=NO_BOUND,
        known=listed("PrepareCommit", update_ms=NOW_MS),
    ),
    # the coordinator's own timeout
    Case("in the coordinator", "in_coordinator", known=listed("Ongoing")),
    Case(
        "at its timeout and 5 minutes",
        "in_coordinator",
        known=listed("Ongoing", start_ms=NOW_MS - 360 * MINUTE_MS, timeout_ms=355 * MINUTE_MS),
    ),
    Case(
        "1 ms past its timeout and 5 minutes",
        "coordinator_overdue",
        known=listed("Ongoing", start_ms=NOW_MS - 360 * MINUTE_MS - 1, timeout_ms=355 * MINUTE_MS),
    ),
    Case(
        "a two-phase commit is never overdue",
        "in_coordinator",
        known=listed("Ongoing", start_ms=1, timeout_ms=2**31 - 1),
        open={"first_appended_before_ms": None},
    ),
    Case("in the coordinator, start unknown", "in_coordinator", known=listed("Ongoing", start_ms=None)),
    # state_older_than_log
    Case("nothing bounds the data", "state_older_than_log", open=NO_BOUND),
    Case(
        "nothing bounds the data, state copied last",
        "partition_not_in_transaction",
        open=NO_BOUND,
        settings=COPIED_LAST,
    ),
    Case(
        "state reaches the data's bound",
        "partition_not_in_transaction",
        partitions=with_partition(HOLDER, moment_ms=BOUND_MS + SKEW_MS),
    ),
    Case(
        "state ends 1 ms before the data's bound",
        "state_older_than_log",
        partitions=with_partition(HOLDER, moment_ms=BOUND_MS + SKEW_MS - 1),
    ),
    Case(
        "state ends before, state copied last",
        "partition_not_in_transaction",
        partitions=with_partition(HOLDER, moment_ms=1),
        settings=COPIED_LAST,
    ),
    Case("another partition ends before", "partition_not_in_transaction", partitions=with_partition(0, moment_ms=1)),
    Case(
        "unknown producer, any partition ends before",
        "state_older_than_log",
        known=UNKNOWN,
        partitions=with_partition(0, moment_ms=1),
    ),
    Case(
        "unknown producer, a partition never speaks",
        "state_older_than_log",
        known=UNKNOWN,
        partitions=with_partition(0, moment_ms=None),
    ),
    Case("data one epoch above the state", "state_older_than_log", open={"max_producer_epoch": 4}),
    Case(
        "data one epoch above the state, state copied last",
        "state_older_than_log",
        open={"max_producer_epoch": 4},
        settings=COPIED_LAST,
    ),
    # log_may_end_early
    Case(
        "prepared since the marker, recorded later than the log",
        "log_may_end_early",
        known={"has_prepare_since_marker": True, "recorded_after_ms": NOW_MS - SKEW_MS + 1},
    ),
    Case(
        "prepared since the marker, recorded at the log's end",
        "partition_not_in_transaction",
        known={"has_prepare_since_marker": True, "recorded_after_ms": NOW_MS - SKEW_MS},
    ),
    Case("recorded later, history whole", "partition_not_in_transaction", known={"recorded_after_ms": NOW_MS}),
    Case(
        "recorded later, history has a gap",
        "log_may_end_early",
        known={"recorded_after_ms": NOW_MS},
        partitions=with_partition(HOLDER, gap_ms=NOW_MS),
    ),
    Case(
        "recorded later, gap before the last marker",
        "partition_not_in_transaction",
        known={"recorded_after_ms": NOW_MS},
        partitions=with_partition(HOLDER, gap_ms=WRITTEN_MS - 10_000 - SKEW_MS - 1),
    ),
    Case(
        "recorded later, gap at the last marker",
        "log_may_end_early",
        known={"recorded_after_ms": NOW_MS},
        partitions=with_partition(HOLDER, gap_ms=WRITTEN_MS - 10_000 - SKEW_MS),
    ),
    Case(
        "recorded later, any gap and no marker",
        "log_may_end_early",
        open={"last_marker_ms": None},
        known={"recorded_after_ms": NOW_MS},
        partitions=with_partition(HOLDER, gap_ms=1),
    ),
    Case(
        "no broker clock in the partition, prepared",
        "log_may_end_early",
        health={"last_moment_ms": None},
        known={"has_prepare_since_marker": True},
    ),
    Case(
        "nothing waives it",
        "log_may_end_early",
        known={"has_prepare_since_marker": True, "recorded_after_ms": NOW_MS},
        settings=COPIED_LAST | {"transaction_state_complete": True},
    ),
    Case(
        "a console export has gaps",
        "log_may_end_early",
        known={"recorded_after_ms": NOW_MS},
        partitions=with_partition(HOLDER, is_console=True),
    ),
    Case(
        "a complete console export has none after the id's first record",
        "partition_not_in_transaction",
        known={"recorded_after_ms": NOW_MS, "first_recorded_ms": WRITTEN_MS - 10_001 - SKEW_MS},
        partitions=with_partition(HOLDER, is_console=True),
        settings={"transaction_state_complete": True},
    ),
    Case(
        "a complete console export may lack what compaction removed before the id's first record",
        "log_may_end_early",
        known={"recorded_after_ms": NOW_MS, "first_recorded_ms": WRITTEN_MS - 10_000 - SKEW_MS},
        partitions=with_partition(HOLDER, is_console=True),
        settings={"transaction_state_complete": True},
    ),
    Case(
        "a complete console export, and the producer has no end marker",
        "log_may_end_early",
        open={"last_marker_ms": None},
        known={"recorded_after_ms": NOW_MS},
        partitions=with_partition(HOLDER, is_console=True),
        settings={"transaction_state_complete": True},
    ),
    Case(
        "unknown producer, log ends at the expiration",
        "unknown_producer",
        known=UNKNOWN,
        health={"last_moment_ms": NOW_MS - WEEK_MS},
    ),
    Case(
        "unknown producer, log ends 1 ms before it",
        "log_may_end_early",
        known=UNKNOWN,
        health={"last_moment_ms": NOW_MS - WEEK_MS - 1},
    ),
    Case(
        "unknown producer, no broker clock, credible batch",
        "unknown_producer",
        known=UNKNOWN,
        health={"last_moment_ms": None},
    ),
    Case(
        "unknown producer, no clock at all",
        "log_may_end_early",
        known=UNKNOWN,
        health={"last_moment_ms": None, "last_credible_timestamp_ms": None},
    ),
    # state_incomplete
    Case("the id's partition is broken", "state_incomplete", partitions=with_partition(HOLDER, problems=["broken"])),
    Case("the id's partition has a hole", "state_incomplete", partitions=with_partition(HOLDER, holes=["hole"])),
    Case(
        "the id's partition has a hole, waived",
        "partition_not_in_transaction",
        partitions=with_partition(HOLDER, holes=["hole"]),
        settings={"transaction_state_complete": True},
    ),
    Case(
        "the id's partition is broken, not waived",
        "state_incomplete",
        partitions=with_partition(HOLDER, problems=["broken"]),
        settings={"transaction_state_complete": True},
    ),
    Case(
        "another partition is broken", "partition_not_in_transaction", partitions=with_partition(0, problems=["broken"])
    ),
    Case(
        "unknown producer, any partition is broken",
        "state_incomplete",
        known=UNKNOWN,
        partitions=with_partition(0, problems=["broken"]),
    ),
    Case(
        "unknown producer, any partition has a hole",
        "state_incomplete",
        known=UNKNOWN,
        partitions=with_partition(0, holes=["hole"]),
    ),
    Case("state of another cluster", "state_incomplete", misfits=("not one producer",)),
    Case(
        "unknown producer, state of another cluster", "state_incomplete", known=UNKNOWN, misfits=("not one producer",)
    ),
    Case(
        "state older and incomplete",
        "state_older_than_log",
        open=NO_BOUND,
        partitions=with_partition(HOLDER, problems=["broken"]),
    ),
    Case(
        "log ends early and state incomplete",
        "log_may_end_early",
        known={"recorded_after_ms": NOW_MS, "has_prepare_since_marker": True},
        partitions=with_partition(HOLDER, problems=["broken"]),
    ),
    # nothing matches
    Case("a listed state that no rule knows", "no_rule", known=listed("PrepareEpochFence")),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_rule_that_fires(case: Case) -> None:
    assert case.judged().rule.name == case.rule


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_inconclusive_says_what_is_missing_and_the_others_what_they_rest_on(case: Case) -> None:
    judged = case.judged()
    is_inconclusive = judged.rule.verdict is Verdict.INCONCLUSIVE
    assert bool(judged.rule.missing_in(judged.facts)) == is_inconclusive
    assert is_inconclusive or judged.rule.evidence_in(judged.facts)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_rule_before_says_why_it_does_not_hold(case: Case) -> None:
    told = list(asked(case.judged().facts))
    assert [rule.name for rule, holds, _ in told if holds] == [case.rule]
    assert all(because for _, _, because in told)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_verdict_says_what_would_change_it(case: Case) -> None:
    judged = case.judged()
    assert judged.rule.would_change_in(judged.facts)


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
        ("marker_overdue", "suspect"),
        ("marker_pending_commit", "coordinated"),
        ("marker_pending_abort", "coordinated"),
        ("coordinator_overdue", "suspect"),
        ("in_coordinator", "coordinated"),
        ("state_older_than_log", "inconclusive"),
        ("log_may_end_early", "inconclusive"),
        ("state_incomplete", "inconclusive"),
        ("unknown_producer", "hanging"),
        ("partition_not_in_transaction", "hanging"),
        ("no_rule", "inconclusive"),
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_found_by_its_name(rule: Rule) -> None:
    assert rule.when.__module__ == f"txn_analysis.judge.rules.{rule.name}"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_rule_whose_condition_cannot_be_decided_does_not_hold(verdict: Verdict) -> None:
    undecided = replace(RULES[0], verdict=verdict, when=lambda _: None)
    assert not undecided.holds_for(Case("the story itself", "").judged().facts)


@given(st.lists(st.sampled_from([True, False, None]), min_size=1))
def test_what_is_unknown_neither_accuses_nor_acquits(conditions: list[bool | None]) -> None:
    """Kleene's logic: an answer is given only if it is the same however the unknown ones turn out."""
    known = [[True, False] if c is None else [c] for c in conditions]
    for ours, pythons in ((both, all), (either, any)):
        answers = {pythons(choice) for choice in product(*known[:8])}
        assert ours(*conditions[:8]) == (answers.pop() if len(answers) == 1 else None)
    assert [no(c) for c in (True, False, None)] == [False, True, None]
