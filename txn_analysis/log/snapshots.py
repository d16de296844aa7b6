"""What brokers wrote of all producers of a partition: producer snapshots, and answers to DescribeProducers.

Kafka's `ProducerStateManager` loads the newest snapshot and replays the log from there. A snapshot in the middle of a
log is compared with the log. Where files are missing below it, or compaction removed the batches that it was made of,
it holds what the log does not; else both say the same, or one of them is wrong.

An answer to DescribeProducers stands beside a log that was fetched: it is what the leader kept at one moment. All
batches below `answered_from` were in the log at that moment. Of what lies below the first offset that was fetched the
answer says three things for certain. A transaction that it lists as open from below that offset was open there. No
other one that was open there is still open without an end marker among the batches that were fetched. The coordinator
epoch is that of the producer's last end marker, where the fetched batches hold none. Epochs, times and sequences are
those of the moment of the answer, not of that offset; the batches that are replayed upon them say them again. What the
answer proves and what not: decision 0097.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, known, numbers_named
from txn_analysis.columns.compiled import compiled
from txn_analysis.kafka.names import DESCRIBED
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.log.partition_log import PartitionLog
from txn_analysis.log.producer_state import NONE_SEEN, SNAPSHOT, UNKNOWN, LogSoFar, ProducerStateManager, or_else
from txn_analysis.log.segments import SectionKey
from txn_analysis.tables import Problem
from txn_analysis.tables.inputs import InputSection

STATED = numbers_named(
    *("snapshot_offset", "producer_id", "producer_epoch", "coordinator_epoch", "current_txn_start_offset"),
    *("last_timestamp_ms", "last_sequence", "last_offset"),
)
"""What a snapshot, or an answer to DescribeProducers, states of one producer; see `tables.PRODUCER_SNAPSHOTS`."""
Stated = Mapping["SectionKey", Array]
"""By section what it states, by field of STATED: one row is one producer."""
NOTHING_STATED = np.empty(0, STATED)
_SAME, _ONLY_IN_SNAPSHOT, _PRODUCER_EPOCH, _COORDINATOR_EPOCH, _OPEN_START = range(5)
_WORDS = {
    _PRODUCER_EPOCH: ("producer epoch", "producer_epoch"),
    _COORDINATOR_EPOCH: ("coordinator epoch", "coordinator_epoch"),
    _OPEN_START: ("open start", "current_txn_start_offset"),
}
_EPOCHS = ("producer_epoch", "coordinator_epoch")
_PYTHON_US = 5  # for each producer of a snapshot
_PYTHON_US_OF_OPEN = 0.2  # for each other one


@dataclass(frozen=True)
class Snapshot:
    """One producer snapshot file, which states everything below `offset`; of a dump some may not be understood."""

    offset: int
    capture_rank: int
    stated: Array
    unread_bytes: int = 0


def snapshots_of(sections: Iterable[InputSection], stated: Stated) -> list[Snapshot]:
    """The snapshots of some sections with what they state; by offset, the newest capture's last."""
    snapshots = [
        Snapshot(s.file_base_offset, s.capture_rank, stated.get(s.key, NOTHING_STATED), s.torn_bytes) for s in sections
    ]
    return sorted(snapshots, key=by_offset)


def by_offset(snapshot: Snapshot) -> tuple[int, int]:
    """The order of snapshots; of one offset, the newest capture's last."""
    return snapshot.offset, -snapshot.capture_rank


def base_snapshot(log: PartitionLog, snapshots: list[Snapshot]) -> Snapshot | None:
    """The snapshot from which the log is replayed: the newest one at or below its first batch; None without one.

    A snapshot right above a gap replaces all that is older.

    Args:
        log: the log.
        snapshots: sorted by `by_offset`.
    """
    first = log.first_offset
    gap_end = max(log.after_gap, default=None)
    if gap_end is not None:
        exact = [s for s in snapshots if log.after_gap[gap_end] < s.offset <= gap_end]
        if exact:
            return exact[-1]
    below = (s for s in snapshots if first is None or s.offset <= first)
    return max(below, key=by_offset, default=None)


@compiled
def _is_newer(in_snapshot: int, in_log: int, log: LogSoFar) -> bool:
    """The snapshot states a larger epoch than the log, from which batches are missing."""
    return in_snapshot > in_log and (log.last_hole_offset != NONE or log.last_gap_offset != NONE)


@compiled
def _is_below_log_start(txn: Any, log: LogSoFar) -> bool:
    is_below: bool = NONE != txn["last_offset"] < log.log_start_offset
    return is_below


@compiled
def _is_before_gap(offset: int, log: LogSoFar) -> bool:
    return offset != NONE and offset <= log.last_gap_offset


@compiled
def _may_be_compacted(entry: Any, txn: Any, start: int, log: LogSoFar) -> bool:
    """Compaction may have removed the rest of it with its end marker, as a newer snapshot states another start.

    What compaction leaves of a transaction keeps its end marker, and the cleaner stops at what is open.
    """
    below = txn["snapshot_offset"]
    is_left = entry["open_below_offset"] >= txn["txn_start_offset"]
    if is_left or below == NONE or log.last_hole_offset < below:
        return False
    is_removed: bool = txn["last_offset"] < below if start == NONE else start >= below
    return is_removed


@compiled
def _is_only_in_snapshot(entry: Any, txn: Any, start: int, log: LogSoFar) -> bool:
    """The log lacks the batches that would say what the snapshot states of a producer, so all of the row counts."""
    in_log = txn["txn_start_offset"]
    if start != in_log and (_is_before_gap(start, log) or _is_before_gap(in_log, log)):
        return True
    if in_log not in (start, NONE) and _may_be_compacted(entry, txn, start, log):
        return True
    return entry["basis"] == NONE and not log.is_start_known


@compiled
def _is_other_start(txn: Any, start: int, log: LogSoFar) -> bool:
    """Another transaction is open than in the snapshot, and no missing batch explains it."""
    in_log = txn["txn_start_offset"]
    if start == in_log:
        return False
    if in_log == NONE:
        return log.last_hole_offset == NONE
    if start == NONE:
        return not _is_below_log_start(txn, log)
    is_earlier = start < in_log and (log.last_hole_offset >= start or txn["is_txn_start_exact"] != 1)
    return not is_earlier and in_log >= min(start, log.log_start_offset)


@compiled
def _take_over(entry: Any, txn: Any, row: Any, first_moment_ms: int, log: LogSoFar) -> int:
    """Take over what the log did not show of one producer, up to what the snapshot states otherwise; returns that."""
    start, epoch = row["current_txn_start_offset"], row["coordinator_epoch"]
    if entry["basis"] == NONE:
        return _OPEN_START if _is_other_start(txn, start, log) else _SAME
    if row["producer_epoch"] != entry["producer_epoch"]:
        if not _is_newer(row["producer_epoch"], entry["producer_epoch"], log):
            return _PRODUCER_EPOCH
        entry["producer_epoch"] = row["producer_epoch"]
    if entry["basis"] == UNKNOWN or _is_newer(epoch, entry["coordinator_epoch"], log):
        entry["coordinator_epoch"] = epoch
        entry["basis"] = NONE_SEEN if epoch == NONE else SNAPSHOT
    elif epoch not in (NONE, entry["coordinator_epoch"]):
        # Without one, the broker forgot the producer since that marker: it was idle, or the log start moved on.
        return _COORDINATOR_EPOCH
    entry["last_sequence"] = or_else(row["last_sequence"], entry["last_sequence"])
    entry["last_timestamp_ms"] = or_else(row["last_timestamp_ms"], entry["last_timestamp_ms"])
    if _is_other_start(txn, start, log):
        return _OPEN_START
    if start == NONE or txn["txn_start_offset"] == NONE:
        txn["txn_start_offset"] = NONE
        return _SAME
    if start != txn["txn_start_offset"]:
        txn["record_count"] = txn["size_bytes"] = txn["hidden_record_count"] = txn["hidden_bytes"] = NONE
        txn["txn_start_offset"] = start
        txn["first_timestamp_ms"] = txn["first_appended_after_ms"] = NONE
        txn["first_appended_before_ms"] = or_else(first_moment_ms, txn["first_appended_before_ms"])
    txn["is_txn_start_exact"] = 1
    return _SAME


@compiled
def _reconcile(
    entries: Any, opened: Any, stated: Any, rows: Array, first_moments_ms: Array, log: LogSoFar, differing: Array
) -> None:
    """Compare a snapshot with the log, and note of each producer that it states what differs."""
    for place in range(len(rows)):
        entry, txn, row = entries[rows[place]], opened[rows[place]], stated[place]
        if _is_only_in_snapshot(entry, txn, row["current_txn_start_offset"], log):
            differing[place] = _ONLY_IN_SNAPSHOT
        else:
            differing[place] = _take_over(entry, txn, row, first_moments_ms[place], log)


@compiled
def _end_unstated(entries: Any, opened: Any, is_stated: Array, log: LogSoFar, is_left: Array) -> None:
    """End what is open of producers that a snapshot does not state, where nothing of it need be left in the log."""
    for row in range(len(opened)):
        txn = opened[row]
        if txn["txn_start_offset"] == NONE or is_stated[row]:
            continue
        is_missing = _is_before_gap(txn["txn_start_offset"], log) or _is_below_log_start(txn, log)
        if is_missing or _may_be_compacted(entries[row], txn, NONE, log):
            txn["txn_start_offset"] = NONE
        else:
            is_left[row] = True


def reconcile_snapshot(state: ProducerStateManager, snapshot: Snapshot) -> list[str]:
    """Compare the state of a log with a snapshot of the same offset, and take over what the log did not show.

    Returns what the two state otherwise of a producer, in words.

    A producer that the snapshot no longer has is no disagreement while nothing of it is open: brokers forget idle
    producers.
    """
    entries, opened, stated = state.entries, state.opened, snapshot.stated
    rows, start = state.rows(stated["producer_id"]), stated["current_txn_start_offset"]
    differing = np.full(len(rows), _SAME)
    reconcile = _reconcile.for_work(len(rows) * _PYTHON_US)
    reconcile(entries, opened, stated, rows, state.first_moments_after(start), state.log, differing)
    in_log = {"current_txn_start_offset": opened["txn_start_offset"], **{name: entries[name] for name in _EPOCHS}}
    differences = []
    for place in np.flatnonzero(differing > _ONLY_IN_SNAPSHOT).tolist():
        what, name = _WORDS[int(differing[place])]
        values = stated[name][place], in_log[name][rows[place]]
        differences.append(_differs(stated["producer_id"][place], what, *values))
    if (differing == _ONLY_IN_SNAPSHOT).any():
        state.load_from_snapshot(stated[differing == _ONLY_IN_SNAPSHOT], is_adjacent=True)
    is_stated, is_left = np.zeros((2, len(opened)), bool)
    is_stated[rows] = True
    _end_unstated.for_work(len(opened) * _PYTHON_US_OF_OPEN)(entries, opened, is_stated, state.log, is_left)
    left = opened[is_left]
    differences += [_differs(t["producer_id"], "open start", NONE, t["txn_start_offset"]) for t in left]
    if not differences and state.has_batches:
        state.witnesses.append(f"snapshot {snapshot.offset} agrees with the batches below it")
    return differences


def _differs(producer_id: int, what: str, in_snapshot: int, in_log: int) -> str:
    return f"producer {producer_id}: {what} is {known(in_snapshot)} there and {known(in_log)} in the log"


@dataclass(frozen=True)
class DescribedProducers:
    """One answer.

    Attributes:
        first_offset: the first one that was fetched.
        answered_from: the high watermark before it was asked for.
        capture_rank: of the capture that it is in; 0 is the one that is judged.
        stated: as answered.
    """

    first_offset: int
    answered_from: int
    capture_rank: int
    stated: Array

    def as_snapshot(self) -> Snapshot:
        """What it says of all that lies below the first offset that was fetched."""
        stated = self.stated.copy()
        stated["current_txn_start_offset"][stated["current_txn_start_offset"] >= self.first_offset] = NONE
        return Snapshot(self.first_offset, self.capture_rank, stated)

    def problems(self, state: ProducerStateManager, end_offset: int | None) -> list[Problem]:
        """Where the replayed log says otherwise than the broker did.

        Args:
            state: at the end of the log.
            end_offset: of the log; None for an empty one.
        """
        reasons = self._differences(state, 0 if end_offset is None else end_offset)
        return [
            Problem(None, ProblemKind.SNAPSHOT_DISAGREES, f"described producers at {self.answered_from}, {reason}")
            for reason in reasons
        ]

    def _differences(self, state: ProducerStateManager, end_offset: int) -> Iterator[str]:
        producer_ids, starts = (self.stated[name] for name in ("producer_id", "current_txn_start_offset"))
        answered = dict(zip(producer_ids.tolist(), starts.tolist(), strict=True))
        # What began behind the answer is in none; what began before, and has no end marker, was open then.
        opened = state.opened[state.open_rows()]
        for txn in opened[opened["txn_start_offset"] < self.answered_from]:
            producer_id, in_log = int(txn["producer_id"]), int(txn["txn_start_offset"])
            start = answered.get(producer_id, NONE)
            is_earlier = NONE != start < in_log and not txn["is_txn_start_exact"]
            if start != in_log and not is_earlier:
                yield _differs(producer_id, "open start", start, in_log)
        rows = state.rows(producer_ids)
        start_in_log = state.opened["txn_start_offset"][rows]
        is_open = (start_in_log != NONE) & (start_in_log <= starts)
        is_ended = state.entries["log_marker_offset"][rows] >= starts
        is_seen = (starts != NONE) & (starts < end_offset)
        for place in np.flatnonzero(is_seen & ~is_open & ~is_ended).tolist():
            yield _differs(producer_ids[place], "open start", starts[place], NONE)


def described_of(sections: Iterable[InputSection], stated: Stated) -> list[DescribedProducers]:
    """The answers of some sections with what they state."""
    return [
        DescribedProducers(s.file_base_offset, int(s.stated), s.capture_rank, stated.get(s.key, NOTHING_STATED))
        for s in sections
        if s.kind == DESCRIBED and s.stated is not None
    ]
