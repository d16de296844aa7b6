"""What one transactional id's history says about open data."""

import pytest

from tests.tools.coordinator_rows import exported, record, tombstone
from tests.tools.judged_cases import OPEN, asked
from txn_analysis.coordinator.history import (
    ABORT,
    COMMIT,
    Decision,
    EndMarker,
    current_transaction,
    left_over,
    runs_of,
    written_by_ms,
)
from txn_analysis.coordinator.view import CoordinatorView, view_of
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.logic import UNBOUNDED_MS

DATA = asked(OPEN._replace(last_marker_ms=1_000, first_appended_after_ms=1_000))


def view(history: list[StateRecord], skew_ms: int = 0) -> CoordinatorView:
    """What this history says of the open data of the proof table, whose producer was last marked at 1,000."""
    return view_of(history, DATA, (), skew_ms)


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
        pytest.param([record("Ongoing", 10), record("Ongoing", 20, epoch=4)], (10, 4), id="the-last-epoch-counts"),
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
            False,
            True,
            id="rotated-from-this-producer-id",
        ),
        pytest.param(
            [record("Ongoing", 10, producer_id=6, next_producer_id=7)], False, True, id="rotates-to-this-producer-id"
        ),
        pytest.param([record("Ongoing", 10), record("CompleteCommit", 20)], False, False, id="ended"),
        pytest.param([record("Ongoing", 10), tombstone(20)], False, False, id="removed"),
    ],
)
def test_what_the_coordinator_lists(history: list[StateRecord], is_listed: bool, is_live: bool) -> None:
    known = view(history)
    assert (known.is_listed, known.is_producer_live) == (is_listed, is_live)


def test_a_tombstone_is_something_that_was_recorded() -> None:
    assert view([record("CompleteCommit", 10), tombstone(99)]).recorded_ms == 99


def test_what_was_recorded_under_another_producer_id_counts_for_the_id() -> None:
    """KIP-890: where a producer id rotates, the Complete record of its last transaction runs under the next one."""
    assert view([record("Empty", 10), record("Empty", 99, producer_id=8)]).recorded_ms == 99


def test_the_decision_on_the_current_transaction_is_no_earlier_one() -> None:
    history = [record("Ongoing", 5_000), record("PrepareCommit", 6_000)]
    assert not view(history).without_marker.is_any


def test_an_earlier_decision_that_the_log_has_no_marker_of_is_known_while_the_id_goes_on() -> None:
    history = [record("PrepareCommit", 1_500), record("CompleteCommit", 1_501), record("PrepareCommit", 6_000)]
    assert view(history).without_marker.commit is not None


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([record("PrepareCommit", 10), record("CompleteCommit", 11)], [10, 11], id="a-dump-prints-it"),
        pytest.param(
            exported(record("PrepareCommit", 10), record("CompleteCommit", 10)),
            [10, UNBOUNDED_MS],
            id="the-last-complete-record-of-an-export-has-the-time-of-the-decision",
        ),
        pytest.param(
            exported(record("PrepareCommit", 10), record("CompleteCommit", 10), record("Ongoing", 900)),
            [10, 900, 900],
            id="it-was-written-before-the-next-record-of-its-id",
        ),
        pytest.param([record("CompleteCommit", 10), tombstone(90)], [10, 90], id="a-tombstone-has-only-its-batch"),
    ],
)
def test_when_a_record_was_written_at_the_latest(history: list[StateRecord], expected: list[int]) -> None:
    assert written_by_ms(history) == expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        pytest.param(record("Empty", 10, epoch=0), None, id="a-new-id-has-no-past"),
        pytest.param(record("Empty", 10, epoch=1), 10, id="another-instance-came-before"),
        pytest.param(record("Empty", 10, epoch=0, previous_producer_id=6), 10, id="it-rotated-from-another"),
        pytest.param(record("Ongoing", 10, epoch=0), 10, id="it-is-in-the-middle-of-its-work"),
        pytest.param(record("CompleteCommit", 10, epoch=0), UNBOUNDED_MS, id="a-complete-record-says-not-when"),
    ],
)
def test_the_gap_before_the_first_record_of_an_id_in_an_export(first: StateRecord, expected: int | None) -> None:
    assert view(exported(first)).export_gap_ms == expected


def test_a_marker_repeats_the_one_right_before_it() -> None:
    commit, abort = EndMarker(1, COMMIT, 10, 3, 5), EndMarker(2, ABORT, 20, 3, 5)
    again = abort._replace(offset=3, at_ms=30, has_data=False)
    assert [run.markers for run in runs_of([commit, abort, again])] == [(commit,), (abort, again)]


def test_a_marker_without_a_time_serves_a_decision_of_its_kind() -> None:
    assert left_over([Decision(10, COMMIT, 11, 11)], [EndMarker(1, COMMIT, None, 3, 5)], 0) == []
