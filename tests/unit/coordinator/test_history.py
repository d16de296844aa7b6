"""What one transactional id's history says about open data."""

from tests.tools.cases import cases
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


@cases(
    "history expected",
    {
        "the-json-form-prints-the-start": ([record("Ongoing", 10, start_ms=5)], (5, 3)),
        "the-first-ongoing-stands-for-it": (
            [record("Empty", 1), record("Ongoing", 10), record("Ongoing", 20)],
            (10, 3),
        ),
        "an-older-transaction-does-not": (
            [record("Ongoing", 1), record("CompleteCommit", 2), record("Ongoing", 10)],
            (10, 3),
        ),
        "the-last-epoch-counts": ([record("Ongoing", 10), record("Ongoing", 20, epoch=4)], (10, 4)),
        "a-prepare-record-raises-the-epoch": ([record("Ongoing", 10), record("PrepareAbort", 20, epoch=4)], (10, 3)),
        "compaction-left-the-prepare-record-alone": ([record("PrepareAbort", 20, epoch=4)], (None, None)),
        "nothing-in-progress": ([record("CompleteAbort", 20)], (None, None)),
    },
)
def test_the_current_transaction(history: list[StateRecord], expected: tuple[int | None, int | None]) -> None:
    assert current_transaction(history) == expected


@cases(
    "history is_listed is_live",
    {
        "ongoing": ([record("Ongoing", 10)], True, True),
        "commit-pending": ([record("PrepareCommit", 10)], True, True),
        "ongoing-elsewhere": ([record("Ongoing", 10, topic_partitions=())], False, True),
        "under-another-producer-id": ([record("Ongoing", 10, producer_id=8)], False, False),
        "rotated-from-this-producer-id": ([record("Ongoing", 10, producer_id=8, previous_producer_id=7)], False, True),
        "rotates-to-this-producer-id": ([record("Ongoing", 10, producer_id=6, next_producer_id=7)], False, True),
        "ended": ([record("Ongoing", 10), record("CompleteCommit", 20)], False, False),
        "removed": ([record("Ongoing", 10), tombstone(20)], False, False),
    },
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


@cases(
    "history expected",
    {
        "a-dump-prints-it": ([record("PrepareCommit", 10), record("CompleteCommit", 11)], [10, 11]),
        "the-last-complete-record-of-an-export-has-the-time-of-the-decision": (
            exported(record("PrepareCommit", 10), record("CompleteCommit", 10)),
            [10, UNBOUNDED_MS],
        ),
        "it-was-written-before-the-next-record-of-its-id": (
            exported(record("PrepareCommit", 10), record("CompleteCommit", 10), record("Ongoing", 900)),
            [10, 900, 900],
        ),
        "a-tombstone-has-only-its-batch": ([record("CompleteCommit", 10), tombstone(90)], [10, 90]),
    },
)
def test_when_a_record_was_written_at_the_latest(history: list[StateRecord], expected: list[int]) -> None:
    assert written_by_ms(history) == expected


@cases(
    "first expected",
    {
        "a-new-id-has-no-past": (record("Empty", 10, epoch=0), None),
        "another-instance-came-before": (record("Empty", 10, epoch=1), 10),
        "it-rotated-from-another": (record("Empty", 10, epoch=0, previous_producer_id=6), 10),
        "it-is-in-the-middle-of-its-work": (record("Ongoing", 10, epoch=0), 10),
        "a-complete-record-says-not-when": (record("CompleteCommit", 10, epoch=0), UNBOUNDED_MS),
    },
)
def test_the_gap_before_the_first_record_of_an_id_in_an_export(first: StateRecord, expected: int | None) -> None:
    assert view(exported(first)).export_gap_ms == expected


def test_a_marker_repeats_the_one_right_before_it() -> None:
    commit, abort = EndMarker(1, COMMIT, 10, 3, 5), EndMarker(2, ABORT, 20, 3, 5)
    again = abort._replace(offset=3, at_ms=30, has_data=False)
    assert [run.markers for run in runs_of([commit, abort, again])] == [(commit,), (abort, again)]


def test_a_marker_without_a_time_serves_a_decision_of_its_kind() -> None:
    assert left_over([Decision(10, COMMIT, 11, 11)], [EndMarker(1, COMMIT, None, 3, 5)], 0) == []
