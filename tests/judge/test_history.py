"""What one transactional id's history says about open data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.judge.cases import OPEN
from txn_analysis.judge.coordinator_view import CoordinatorView, view_of
from txn_analysis.judge.history import current_transaction
from txn_analysis.judge.records import StateRecord

ORDERS_0 = (("orders", 0),)
DATA = replace(OPEN, last_marker_ms=1_000)


def record(
    state: str, at_ms: int, *, producer_id: int | None = 7, epoch: int = 3, start_ms: int | None = None, **changes: Any
) -> StateRecord:
    """A record of the id `billing`, in a transaction on orders-0 while one is in progress."""
    known: dict[str, Any] = {
        "transactional_id": "billing",
        "state_partition": 2,
        "state": state,
        "is_tombstone": False,
        "producer_id": producer_id,
        "previous_producer_id": None,
        "next_producer_id": None,
        "producer_epoch": epoch,
        "timeout_ms": 60_000,
        "topic_partitions": ORDERS_0 if state in {"Ongoing", "PrepareCommit", "PrepareAbort"} else (),
        "last_update_ms": at_ms,
        "recorded_ms": at_ms,
        "start_ms": start_ms,
        "client_transaction_version": None,
    }
    return StateRecord(**known | changes)


def tombstone(at_ms: int) -> StateRecord:
    gone: dict[str, Any] = dict.fromkeys(("state", "producer_id", "producer_epoch", "timeout_ms", "last_update_ms"))
    return record("Empty", at_ms)._replace(is_tombstone=True, **gone)


def view(history: list[StateRecord], skew_ms: int = 0) -> CoordinatorView:
    """What this history says of the open data of the proof table, whose producer was last marked at 1,000."""
    return view_of(history, DATA, skew_ms)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([record("Ongoing", 10, start_ms=5)], (5, 3), id="the-json-form-prints-the-start"),
        pytest.param(
            [record("Empty", 1), record("Ongoing", 10), record("Ongoing", 20)],
            (10, 3),
            id="the-first-ongoing-stands-for-it",
        ),
        pytest.param(
            [record("Ongoing", 1), record("CompleteCommit", 2), record("Ongoing", 10)],
            (10, 3),
            id="an-older-transaction-does-not",
        ),
        pytest.param(
            [record("Ongoing", 10), record("PrepareAbort", 20, epoch=4)],
            (10, 3),
            id="a-prepare-record-raises-the-epoch",
        ),
        pytest.param(
            [record("PrepareAbort", 20, epoch=4)], (None, None), id="compaction-left-the-prepare-record-alone"
        ),
        pytest.param([record("CompleteAbort", 20)], (None, None), id="nothing-in-progress"),
    ],
)
def test_the_current_transaction(history: list[StateRecord], expected: tuple[int | None, int | None]) -> None:
    assert current_transaction(history) == expected


@pytest.mark.parametrize(
    ("history", "is_listed", "is_live"),
    [
        pytest.param([record("Ongoing", 10)], True, True, id="ongoing"),
        pytest.param([record("PrepareCommit", 10)], True, True, id="commit-pending"),
        pytest.param([record("Ongoing", 10, topic_partitions=())], False, True, id="ongoing-elsewhere"),
        pytest.param([record("Ongoing", 10, producer_id=8)], False, False, id="under-another-producer-id"),
        pytest.param(
            [record("Ongoing", 10, producer_id=8, previous_producer_id=7)],
            True,
            True,
            id="rotated-from-this-producer-id",
        ),
        pytest.param(
            [record("Ongoing", 10, producer_id=6, next_producer_id=7)], True, True, id="rotates-to-this-producer-id"
        ),
        pytest.param([record("Ongoing", 10), record("CompleteCommit", 20)], False, False, id="ended"),
        pytest.param([record("Ongoing", 10), tombstone(20)], False, False, id="removed"),
    ],
)
def test_what_the_coordinator_lists(history: list[StateRecord], is_listed: bool, is_live: bool) -> None:
    known = view(history)
    assert (known.is_listed, known.is_producer_live) == (is_listed, is_live)


@pytest.mark.parametrize(
    ("prepared_ms", "skew_ms", "expected"),
    [
        pytest.param(999, 0, False, id="before-the-last-marker"),
        pytest.param(1_000, 0, False, id="with-the-last-marker"),
        pytest.param(1_001, 0, True, id="after-the-last-marker"),
        pytest.param(501, 500, True, id="within-the-skew-of-the-last-marker"),
        pytest.param(500, 500, False, id="at-the-skew"),
    ],
)
def test_a_prepare_record_since_the_last_marker(prepared_ms: int, skew_ms: int, expected: bool) -> None:
    history = [record("PrepareCommit", prepared_ms), record("CompleteCommit", 5_000)]
    assert view(history, skew_ms).has_prepare_since_marker is expected


def test_without_any_marker_every_prepare_record_counts() -> None:
    history = [record("PrepareCommit", 1), record("CompleteCommit", 5_000)]
    assert view_of(history, replace(OPEN, last_marker_ms=None), 0).has_prepare_since_marker


@pytest.mark.parametrize(
    ("prepared_ms", "now", "expected"),
    [
        pytest.param(1_500, "Ongoing", False, id="within-the-skew-it-may-be-the-decision-of-that-marker"),
        pytest.param(1_501, "Ongoing", True, id="later-its-own-marker-is-not-in-the-log"),
        pytest.param(1_501, "PrepareCommit", True, id="while-the-next-one-is-decided-as-well"),
    ],
)
def test_a_transaction_that_ended_after_the_log_was_copied(prepared_ms: int, now: str, expected: bool) -> None:
    history = [record("PrepareCommit", prepared_ms), record("CompleteCommit", 5_000), record(now, 6_000)]
    assert view(history, 500).was_ended_after_log is expected


def test_the_decision_on_the_current_transaction_is_no_earlier_one() -> None:
    history = [record("Ongoing", 5_000), record("PrepareCommit", 6_000)]
    assert view(history, 500).was_ended_after_log is False


def test_a_prepare_record_of_another_partition_does_not_count() -> None:
    history = [record("PrepareCommit", 2_000, topic_partitions=(("orders", 1),))]
    assert view(history).has_prepare_since_marker is False


def test_a_tombstone_is_something_that_was_recorded() -> None:
    assert view([record("CompleteCommit", 10), tombstone(99)]).recorded_after_ms == 99


def test_records_of_another_producer_id_are_not() -> None:
    assert view([record("Empty", 10), record("Empty", 99, producer_id=8)]).recorded_after_ms == 10
