"""Scenarios of Kafka's own tests under their names, as requests to a whole log.

`ProducerStateManagerTest`, `UnifiedLogTest` and `LogCleanerTest` of Kafka; the first one's work without a log, and are
told here by what a client, a coordinator or a fetcher would have to send. The last ones are what random requests to
brokers have found.
"""

from tests.proof.kafka.log.requests import BEGAN_MS, SEGMENT_BYTES, Step, Story, data, do, empty, marker

_COMPACT = {"cleanup.policy": "compact", "delete.retention.ms": "1000"}
_COMMIT_KEY = "\x00\x00\x00\x01"  # version 0, type 1: the key of a COMMIT marker's record
_LATE_AFTER_MS = 900_000 + 300_000


def _skip_empty_transactions() -> tuple[Step, ...]:
    commit, abort = marker(1, commit=True), marker(1, commit=False)
    keys = ("a", "b", "c", "d")
    return (data(1, *keys), commit, commit, abort, data(1, *keys), abort, abort, data(1, "a", "b"))


def _mixed() -> tuple[Step, ...]:
    return data(137, "a", "b", "c", epoch=5), data(-1, "g", "h", "i"), data(983, "d", "e", "f", epoch=5)


def _first_of_two_ended() -> tuple[Step, ...]:
    return *_mixed(), marker(137, epoch=5, commit=False)


def _completed_of_three() -> tuple[Step, ...]:
    return data(1), data(2), data(3), marker(1, commit=True), marker(3, commit=True)


def _late(*more: Step) -> tuple[Step, ...]:
    later_ms = BEGAN_MS + 500
    two = (data(39, epoch=2), do("wait", ms=500), data(57, epoch=9, at_ms=later_ms))
    return *two, do("wait", ms=_LATE_AFTER_MS - 500 + 1), *more


def _below_log_start(to: float, *, segments: bool) -> tuple[Step, ...]:
    five = ("a", "b", "c", "d", "e")
    begun = (data(1, *five), data(-1, "a", "b", "c"), do("roll"), data(1, *five))
    return *begun, do("delete", at=to, segments=segments)


def _two_passes() -> tuple[Step, ...]:
    return do("clean"), do("wait", ms=2000), do("clean")


def _commit_marker_of_empty_batch() -> tuple[Step, ...]:
    first = (data(1, "2", "3"), do("roll"), data(2, "2", "3"), marker(2, commit=True), do("roll"))
    second = (data(-1, "2"), data(-1, "3"), marker(1, commit=True), do("roll"), *_two_passes())
    return *first, *second, data(2, "1"), marker(2, commit=True), do("roll"), *_two_passes()


def _keys_like_markers() -> tuple[Step, ...]:
    first = (data(1, "1", leader_epoch=5), marker(1, commit=True, leader_epoch=5))
    return *first, data(2, _COMMIT_KEY, leader_epoch=5), marker(2, commit=True, leader_epoch=5), do("roll"), do("clean")


def _taken_with_its_end_marker() -> tuple[Step, ...]:
    """A snapshot saw the first transaction of producer 1 open; the next one stands where it has ended."""
    first = (data(2, "z"), marker(2, commit=True), data(1, "a"), do("roll"))
    second = (marker(1, commit=True), data(3, "b"), data(3, "c"), data(3, "d"), do("roll"))
    third = (data(1, "a"), marker(1, commit=True), marker(3, commit=True), do("roll"))
    later = (do("wait", ms=2000), data(-1, "x"), do("roll"), do("clean"))
    return *first, *second, *third, do("clean"), *later, *later


SCENARIOS = (
    Story("testSkipEmptyTransactions", _skip_empty_transactions()),
    Story("testLastStableOffsetCompletedTxn", _completed_of_three()),
    Story("testLastStableOffsetCompletedTxn-all", (*_completed_of_three(), marker(2, commit=True))),
    Story("testHasLateTransaction-notYet", _late()[:-1]),
    Story("testHasLateTransaction-first", _late()),
    Story("testHasLateTransaction-second", _late(do("wait", ms=500), marker(39, epoch=2, commit=True))),
    Story(
        "testHasLateTransaction-none",
        _late(do("wait", ms=500), marker(39, epoch=2, commit=True), marker(57, epoch=9, commit=True)),
    ),
    Story(
        "testProducersWithOngoingTransactionsDontExpire",
        (data(1, epoch=5), data(2, epoch=5), marker(2, epoch=5, commit=True), do("wait", ms=86_400_001)),
    ),
    Story("testProducerStateAfterFencingAbortMarker", (data(1), marker(1, epoch=1, commit=False))),
    Story("testAppendEmptyControlBatch", (data(1), empty(1, control=True), empty(23423, control=True))),
    Story("testLastStableOffsetWithMixedProducerData", _mixed()),
    Story("testLastStableOffsetWithMixedProducerData-aborted", _first_of_two_ended()),
    Story(
        "testLastStableOffsetWithMixedProducerData-committed",
        (*_first_of_two_ended(), marker(983, epoch=5, commit=True)),
    ),
    Story(
        "testAbortedTransactionSpanningMultipleSegments",
        (
            data(137, "a", "b", "c", epoch=5),
            do("roll"),
            data(137, "d", "e", "f", epoch=5),
            marker(137, epoch=5, commit=False),
        ),
    ),
    Story(
        "testLastStableOffsetDoesNotExceedLogStartOffsetMidSegment",
        _below_log_start(5 / 13 + 0.001, segments=False),
    ),
    Story(
        "testLastStableOffsetDoesNotExceedLogStartOffsetAfterSegmentDeletion",
        _below_log_start(8 / 13 + 0.001, segments=True),
    ),
    Story("testCommitMarkerRetentionWithEmptyBatch", _commit_marker_of_empty_batch(), _COMPACT),
    Story("testCleaningWithKeysConflictingWithTxnMarkerKeys", _keys_like_markers(), _COMPACT),
    Story("takenWithItsEndMarker", _taken_with_its_end_marker(), _COMPACT | {SEGMENT_BYTES: "300"}),
)
