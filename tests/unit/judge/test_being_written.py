"""A transaction that is written while its log is copied, and whose client writes event time.

By its client's clock it is hours old when it is a second old. It is listed, and it is no question. What only looks so
young stays one.
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.tools.cases import cases
from tests.tools.judged_cases import (
    ALL_SEEN,
    HEALTH,
    HOLDER,
    KNOWN,
    LATE_MS,
    MINUTE_MS,
    NOW_MS,
    OPEN,
    SKEW_MS,
    Case,
    with_partition,
)
from txn_analysis.coordinator.coverage import StateEvidence
from txn_analysis.coordinator.partition_count import GIVEN, StateCount
from txn_analysis.judge import case as judged_case
from txn_analysis.judge.case import Moments
from txn_analysis.judge.copied import Copied
from txn_analysis.judge.finding import finding_of
from txn_analysis.judge.judgement import judgement_of
from txn_analysis.judge.outcome import Outcome, outcome_of
from txn_analysis.judge.warning_steps import near_bound
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.text import iso_utc
from txn_analysis.verdict import Verdict

TWO_HOURS_MS = 120 * MINUTE_MS
SECOND_MS = 1_000
BEGAN_MS = NOW_MS - SECOND_MS
HERE = TopicPartition("orders", 0)

# The log was copied a second after the transaction began; the coordinator had decided it when the state was copied.
EVENT_TIME = Case(
    "event-time",
    "log_may_end_early",
    open={
        "last_timestamp_ms": NOW_MS - TWO_HOURS_MS,
        "first_appended_after_ms": BEGAN_MS,
        "first_appended_before_ms": None,
        "appended_after_ms": BEGAN_MS,
        "appended_before_ms": None,
    },
    health={"last_moment_ms": BEGAN_MS},
    known={"recorded_ms": NOW_MS + SECOND_MS, "changed_ms": NOW_MS + SECOND_MS, "without_marker": KNOWN.without_marker},
    settings={"as_of_ms": NOW_MS, "state_copied_last": True},
)
NOT_WHOLE = replace(EVENT_TIME, rule="evidence_broken", open=EVENT_TIME.open | {"evidence_gaps": ("a torn tail",)})


def but(case: Case, *, moved: dict[str, Any] | None = None, **changes: Any) -> Case:
    return replace(case, open=case.open | (moved or {}), **changes)


def outcome(case: Case) -> Outcome:
    judged = case.judged()
    assert judged.verdict is Verdict.INCONCLUSIVE, judged.rule.name
    return outcome_of([judged], has_state=True)


def test_what_was_written_while_it_was_copied_is_no_question() -> None:
    assert outcome(NOT_WHOLE) is Outcome.CLEAN


def test_it_is_listed_and_says_so() -> None:
    judged = NOT_WHOLE.judged()
    found = finding_of(judged, "run", "finding", None)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("it is young, whatever its client's clock says" in fact for fact in found.evidence)


def test_its_cause_is_a_transaction_in_progress() -> None:
    cause = NOT_WHOLE.judged().cause
    assert cause is not None
    assert (cause.name, cause.confidence) == ("transaction_in_progress", "possible")


def test_who_asks_for_the_inconclusive_gets_it() -> None:
    judged = NOT_WHOLE.judged()
    assert outcome_of([judged], has_state=True, fail_on=Verdict.INCONCLUSIVE) is Outcome.FINDINGS


def test_it_is_no_early_warning_either() -> None:
    near = but(EVENT_TIME, moved={"last_timestamp_ms": NOW_MS - LATE_MS + MINUTE_MS}).judged()
    assert near.late_by_ms == -MINUTE_MS
    assert near_bound([near]) == []


# What only looks so young.


def test_a_transaction_that_is_written_to_each_night_began_long_ago() -> None:
    """A client that never adds the partition appends event time at 01:55; the audit is at 02:00."""
    march = but(NOT_WHOLE, moved={"first_appended_after_ms": NOW_MS - 90 * 24 * 60 * MINUTE_MS})
    assert outcome(march) is Outcome.COULD_NOT_TELL


def test_a_cluster_that_stands_still_does_not_date_its_copy() -> None:
    """Without --as-of the newest moment counts as that of the copy, and stands still as well."""
    still = but(NOT_WHOLE, settings={"state_copied_last": True})
    assert outcome(still) is Outcome.COULD_NOT_TELL


@pytest.mark.parametrize(("copied_ms", "expected"), [(-1, Outcome.CLEAN), (0, Outcome.COULD_NOT_TELL)])
def test_where_nothing_dates_the_copy_it_says_which_moment_settles_it(copied_ms: int, expected: Outcome) -> None:
    young_before_ms = BEGAN_MS + LATE_MS - SKEW_MS
    undated = but(NOT_WHOLE, settings={"state_copied_last": True})
    asked = finding_of(undated.judged(), "run", "finding", None).missing_evidence[-1]
    when = iso_utc(young_before_ms)
    assert asked == f"or the moment of the copy (--as-of), if that was before {when}: it is too young to be judged then"
    at_ms = young_before_ms + copied_ms
    assert outcome(but(undated, as_of_ms=at_ms, settings=undated.settings | {"as_of_ms": at_ms})) is expected


@cases(
    "case",
    {
        "it-is-known": NOT_WHOLE,
        "it-began-too-long-ago": but(
            NOT_WHOLE,
            moved={"first_appended_after_ms": NOW_MS - LATE_MS + SKEW_MS},
            settings={"state_copied_last": True},
        ),
        "nothing-dates-its-start": but(
            NOT_WHOLE, moved={"is_txn_start_exact": False}, settings={"state_copied_last": True}
        ),
        "it-is-not-late": but(NOT_WHOLE, moved={"last_timestamp_ms": NOW_MS}, settings={"state_copied_last": True}),
    },
)
def test_the_moment_of_the_copy_is_asked_for_where_it_settles_something_alone(case: Case) -> None:
    assert not any("--as-of" in one for one in finding_of(case.judged(), "run", "finding", None).missing_evidence)


def test_a_clock_that_jumped_ahead_makes_nothing_young() -> None:
    jumped = but(NOT_WHOLE, moved={"first_appended_after_ms": NOW_MS + 4 * 365 * 24 * 60 * MINUTE_MS})
    assert outcome(jumped) is Outcome.COULD_NOT_TELL


def test_an_early_word_makes_nothing_young() -> None:
    early = but(NOT_WHOLE, as_of_ms=NOW_MS - 1, settings=NOT_WHOLE.settings | {"as_of_ms": NOW_MS - 1})
    assert outcome(early) is Outcome.COULD_NOT_TELL


@cases(
    "moved",
    {
        "no-moment-before-it": {"first_appended_after_ms": None},
        "its-first-batch-may-be-gone": {"is_txn_start_exact": False},
    },
)
def test_a_start_that_no_clock_dates_is_not_young(moved: dict[str, Any]) -> None:
    assert outcome(but(NOT_WHOLE, moved=moved)) is Outcome.COULD_NOT_TELL


@pytest.mark.parametrize(
    ("age_ms", "expected"),
    [(LATE_MS - SKEW_MS - 1, Outcome.CLEAN), (LATE_MS - SKEW_MS, Outcome.COULD_NOT_TELL)],
)
def test_it_is_younger_than_the_bound_by_any_clock(age_ms: int, expected: Outcome) -> None:
    assert outcome(but(NOT_WHOLE, moved={"first_appended_after_ms": NOW_MS - age_ms})) is expected


# A manifest dates the copy where nobody says when it was made.


def by_manifest(copied_ms: int, last_moment_ms: int = BEGAN_MS) -> Outcome:
    case = but(NOT_WHOLE, settings={"state_copied_last": True})
    state = StateEvidence(list(ALL_SEEN), StateCount(4, GIVEN))
    evidence = judged_case.Case(
        OPEN._replace(**case.open),
        HEALTH._replace(last_moment_ms=last_moment_ms),
        KNOWN,
        state,
        case.run_settings(),
        Moments(NOW_MS, NOW_MS),
        copied=Copied(1, copied_ms={HERE: copied_ms}),
    )
    return outcome_of([judgement_of(evidence)], has_state=True)


def test_a_brokers_manifest_dates_the_copy() -> None:
    assert by_manifest(BEGAN_MS + SECOND_MS) is Outcome.CLEAN
    assert by_manifest(BEGAN_MS + LATE_MS) is Outcome.COULD_NOT_TELL


def test_a_manifest_by_a_clock_that_was_behind_dates_nothing() -> None:
    assert by_manifest(BEGAN_MS, last_moment_ms=BEGAN_MS + SKEW_MS + 1) is Outcome.COULD_NOT_TELL


def test_an_order_that_manifests_do_not_prove_is_missing_where_the_state_may_end_before_the_data_alone() -> None:
    ahead = Case("ahead", "state_older_than_log", open={"max_producer_epoch": 4})
    both = (
        ahead.judged().case,
        Case("behind", "state_older_than_log", partitions=with_partition(HOLDER, last_moment_ms=1)).judged().case,
    )
    missing = [finding_of(judgement_of(replace(c, copied=Copied(1))), "RUN", "ID", None).missing_evidence for c in both]
    assert [any("proves the order" in each for each in one) for one in missing] == [False, True]


# What is not late, and holds the last stable offset for months.


def test_what_is_in_progress_says_since_when_it_holds_the_last_stable_offset() -> None:
    case = Case(
        "busy",
        "not_late",
        open={"last_timestamp_ms": NOW_MS - MINUTE_MS, "first_appended_before_ms": NOW_MS - TWO_HOURS_MS},
    )
    found = finding_of(case.judged(), "run", "finding", None)
    assert found.verdict is Verdict.IN_PROGRESS
    assert any("holds the last stable offset since" in fact for fact in found.evidence)
