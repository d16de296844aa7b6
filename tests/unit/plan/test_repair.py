from typing import Any

import pytest

from tests.tools import report_rows as rows
from tests.tools.cases import cases
from tests.tools.coordinator_rows import record
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.plan.repair import (
    After,
    Before,
    Outcome,
    Recommended,
    Repair,
    SeenEnded,
    SeenPartition,
    outcome_of,
)
from txn_analysis.settings import Settings
from txn_analysis.tables import Finding

HOUR_MS = rows.HOUR_MS
(PLANNED,) = abort_plan(
    [rows.finding(coordinator_epoch=4, coordinator_epoch_basis="marker")], Settings(), rows.AS_OF_MS
)
RECORD = Recommended(**PLANNED.model_dump(include=set(Recommended._fields)))
BEFORE = Before(RECORD, last_offset=156, last_stable_offset=155, as_of_ms=rows.AS_OF_MS)
MARKER_MS = rows.AS_OF_MS + HOUR_MS


def ended(**columns: Any) -> SeenEnded:
    """The recommended transaction, ended as recommended an hour after the copy."""
    return SeenEnded(
        topic="orders",
        partition=2,
        producer_id=RECORD.producer_id,
        txn_start_offset=155,
        last_offset=156,
        outcome="ABORT",
        end_offset=171,
        end_timestamp_ms=MARKER_MS,
        producer_epoch=3,
        end_producer_epoch=3,
        coordinator_epoch=4,
    )._replace(**columns)


def still_open(**columns: Any) -> Finding:
    """The recommended transaction, open as before."""
    return rows.finding(**columns)


def decision(**columns: Any) -> StateRecord:
    """The coordinator's record that it would abort a transaction with this partition, just before the marker."""
    known: dict[str, Any] = {
        "state": "PrepareAbort",
        "producer_id": RECORD.producer_id,
        "topic_partitions": (("orders", 2),),
    }
    return record("PrepareAbort", MARKER_MS - 5)._replace(recorded_ms=None, **known | columns)


def after(*, health: dict[str, Any] | None = None, max_clock_skew_ms: int = 0, **seen: Any) -> Outcome:
    seen_there = SeenPartition("run-2", "orders", 2, True, 0, 190, None, 190)._replace(**health or {})
    found = {"findings": (), "ended": (), "history": ()} | seen
    return outcome_of(BEFORE, After(seen_there, max_clock_skew_ms=max_clock_skew_ms, **found))


def test_marker_as_recommended_is_a_repair() -> None:
    outcome = after(ended=(ended(),))
    assert outcome.repair is Repair.REPAIRED
    assert (outcome.marker_offset, outcome.marker_ms) == (171, MARKER_MS)
    assert (outcome.last_stable_offset_before, outcome.last_stable_offset_after) == (155, 190)


@cases(
    "marker history why",
    {
        "a commit": ({"outcome": "COMMIT"}, (), "commits"),
        "an epoch raised by timeout or fencing": ({"end_producer_epoch": 4}, (), "producer epoch 4"),
        "a later coordinator": ({"coordinator_epoch": 5}, (), "coordinator epoch 5"),
        "a decision on this partition": ({}, (decision(),), "PrepareAbort"),
        "the other decision": ({}, (decision(state="PrepareCommit"),), "PrepareCommit"),
        "under a rotated id": ({}, (decision(producer_id=1, previous_producer_id=RECORD.producer_id),), "Prepare"),
    },
)
def test_marker_of_the_coordinator_is_told_from_a_repair(
    marker: dict[str, Any], history: tuple[StateRecord, ...], why: str
) -> None:
    outcome = after(ended=(ended(**marker),), history=history)
    assert (outcome.repair, outcome.marker_offset) == (Repair.ENDED_BY_COORDINATOR, 171)
    assert why in outcome.why


@cases(
    "changed",
    {
        "another partition": {"topic_partitions": (("orders", 1),)},
        "before the first capture": {"last_update_ms": rows.AS_OF_MS - 1},
        "after the marker": {"last_update_ms": MARKER_MS + 1},
        "another producer": {"producer_id": 1},
        "before the producer id was used": {"producer_id": 1, "next_producer_id": RECORD.producer_id},
        "not a decision": {"state": "CompleteAbort"},
    },
)
def test_other_records_of_the_coordinator_leave_it_a_repair(changed: dict[str, Any]) -> None:
    assert after(ended=(ended(),), history=(decision(**changed),)).repair is Repair.REPAIRED


def abort_just_before_the_late_data() -> tuple[SeenEnded, StateRecord]:
    """The transaction after whose abort the data came, all of it within the second before the copy."""
    decided_ms = rows.AS_OF_MS - 110
    marker = ended(txn_start_offset=151, last_offset=153, end_offset=154, end_timestamp_ms=decided_ms + 2)
    return marker, decision(last_update_ms=decided_ms)


def test_the_decision_to_abort_what_came_before_the_data_leaves_it_a_repair() -> None:
    marker, decided = abort_just_before_the_late_data()
    of_both_captures = (decided, decided)
    outcome = after(ended=(ended(), marker), history=of_both_captures, max_clock_skew_ms=1000)
    assert (outcome.repair, outcome.marker_offset) == (Repair.REPAIRED, 171)


@pytest.mark.parametrize("later_ms", [400, HOUR_MS - 5])
def test_a_decision_without_a_marker_of_its_own_is_the_coordinators(later_ms: int) -> None:
    marker, decided = abort_just_before_the_late_data()
    later = decision(last_update_ms=rows.AS_OF_MS + later_ms)
    outcome = after(ended=(ended(), marker), history=(decided, later), max_clock_skew_ms=1000)
    assert outcome.repair is Repair.ENDED_BY_COORDINATOR


def test_data_of_a_newer_epoch_that_was_aborted_with_it_leaves_it_a_repair() -> None:
    assert after(ended=(ended(producer_epoch=5, end_producer_epoch=5),)).repair is Repair.REPAIRED


def test_marker_of_a_shallow_dump_is_a_repair_that_says_what_is_unknown() -> None:
    outcome = after(ended=(ended(outcome="ended", end_producer_epoch=None, coordinator_epoch=None),))
    assert outcome.repair is Repair.REPAIRED
    assert "does not say which" in outcome.why


def test_open_transaction_still_hangs_whatever_the_verdict_is_now() -> None:
    outcome = after(findings=(still_open(verdict="inconclusive", rule="state_incomplete"),))
    assert (outcome.repair, outcome.marker_offset) == (Repair.STILL_HANGING, None)
    assert outcome.why == "no end marker up to offset 190; now inconclusive (state_incomplete)"


def test_open_transaction_counts_before_an_earlier_one_that_ended() -> None:
    earlier = ended(txn_start_offset=100, last_offset=101, end_offset=110)
    assert after(findings=(still_open(),), ended=(earlier,)).repair is Repair.STILL_HANGING


def test_later_transaction_of_the_same_producer_is_another_one() -> None:
    later = still_open(txn_start_offset=180, last_offset=181)
    assert after(findings=(later,), ended=(ended(),)).repair is Repair.REPAIRED


@cases(
    "seen why",
    {
        "not in the capture": ({"health": {"is_in_capture": False}}, "no file of orders-2"),
        "a log that is not whole": (
            {"findings": (still_open(rule="evidence_broken", missing_evidence=["a hole at 160"]),)},
            "a hole at 160",
        ),
        "data and marker are deleted": ({"health": {"log_start_offset": 188}}, "begins at offset 188"),
    },
)
def test_what_the_capture_cannot_show_is_not_covered(seen: dict[str, Any], why: str) -> None:
    outcome = after(**seen)
    assert (outcome.repair, outcome.repair.is_done) == (Repair.NOT_COVERED, False)
    assert why in outcome.why


def test_partition_that_nothing_is_known_of_is_not_covered() -> None:
    assert outcome_of(BEFORE, After(None, (), (), (), 0)).repair is Repair.NOT_COVERED
