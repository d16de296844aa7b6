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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, Columns, known_of, numbers_of, rows_at
from txn_analysis.kafka.names import DESCRIBED
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.log.producer_entries import BASIS, Cell, Row, first_known, or_else
from txn_analysis.tables import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.log.partition_log import PartitionLog
    from txn_analysis.log.producer_entries import OpenTransaction, ProducerStateEntry
    from txn_analysis.log.producer_state import ProducerStateManager
    from txn_analysis.log.segments import SectionKey
    from txn_analysis.tables.inputs import InputSection


class StatedProducer(Row):
    """One producer, as a snapshot or an answer to DescribeProducers states it; see `tables.PRODUCER_SNAPSHOTS`."""

    snapshot_offset = Cell[int]()
    producer_id = Cell[int]()
    producer_epoch = Cell[int]()
    coordinator_epoch = Cell["int | None"]()
    current_txn_start_offset = Cell["int | None"]()
    last_timestamp_ms = Cell["int | None"]()
    last_sequence = Cell["int | None"]()
    last_offset = Cell["int | None"]()


Stated = Mapping["SectionKey", Columns]
"""By section what it states, as columns: one row is one producer, see `StatedProducer`."""
STATED_COLUMNS = StatedProducer.names()
NOTHING_STATED = dict.fromkeys(STATED_COLUMNS, np.zeros(0, np.int64))


@dataclass(frozen=True)
class Snapshot:
    """One producer snapshot file, which states everything below `offset`."""

    offset: int
    capture_rank: int
    columns: Columns


def snapshots_of(sections: Iterable[InputSection], stated: Stated) -> list[Snapshot]:
    """The snapshots of some sections with what they state; by offset, the newest capture's last."""
    snapshots = [Snapshot(s.file_base_offset, s.capture_rank, stated.get(s.key, NOTHING_STATED)) for s in sections]
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


def reconcile_snapshot(state: ProducerStateManager, snapshot: Snapshot) -> list[str]:
    """Compare the state of a log with a snapshot of the same offset, and take over what the log did not show.

    Returns what the two state otherwise of a producer, in words.

    A producer that the snapshot no longer has is no disagreement while nothing of it is open: brokers forget idle
    producers.
    """
    differences = []
    is_other = ~_take_over_same(state, snapshot.columns)
    others = [StatedProducer(snapshot.columns, row) for row in np.flatnonzero(is_other).tolist()]
    is_lacking = np.zeros(len(is_other), bool)
    is_lacking[is_other] = [_is_only_in_snapshot(state, row) for row in others]
    for row in others:
        differences += [differs] if (differs := _disagreement(state, row)) else []
        _take_over(state, row)
    if is_lacking.any():
        state.load_from_snapshot(rows_at(snapshot.columns, is_lacking), is_adjacent=True)
    for entry, txn in state.entries.with_open(but=snapshot.columns["producer_id"]):
        if _may_be_gone(state, txn):
            entry.end()
        else:
            differences.append(_differs(entry.producer_id, "open start", None, txn.txn_start_offset))
    if not differences and state.has_batches:
        state.witnesses.append(f"snapshot {snapshot.offset} agrees with the batches below it")
    return differences


def _take_over_same(state: ProducerStateManager, stated: Columns) -> Array:
    """Take over what the log did not show of producers whose epoch and open start both state alike: most, all at once.

    Returns which rows were taken over; one that states another coordinator epoch than the log is not.
    """
    entries, row = state.entries, state.entries.rows(stated["producer_id"])
    known, start = rows_at(entries.columns, row), stated["current_txn_start_offset"]
    is_unknown, epoch = known["basis"] == BASIS["unknown"], stated["coordinator_epoch"]
    is_same: Array = entries.is_known[row] & (stated["producer_epoch"] == known["producer_epoch"])
    is_same &= entries.opened["txn_start_offset"][row] == start
    is_same &= is_unknown | (epoch == NONE) | (epoch == known["coordinator_epoch"])
    entries.take_epochs_of_snapshot(row[is_same & is_unknown], epoch[is_same & is_unknown])
    for name in ("last_sequence", "last_timestamp_ms"):
        entries.columns[name][row[is_same]] = or_else(stated[name], known[name])[is_same]
    entries.opened["is_txn_start_exact"][row[is_same & (start != NONE)]] = True
    return is_same


def _disagreement(state: ProducerStateManager, row: StatedProducer) -> str | None:
    """What a snapshot states of one producer otherwise than the log; None where they agree, or it states more."""
    if _is_only_in_snapshot(state, row):
        return None
    entry, start = state.entries.get(row.producer_id), row.current_txn_start_offset
    if entry is None:
        return None if state.has_holes or start is None else _differs(row.producer_id, "open start", start, None)
    if _is_other_epoch(state, entry, row):
        return _differs(row.producer_id, "producer epoch", row.producer_epoch, entry.producer_epoch)
    if _is_other_coordinator_epoch(state, entry, row):
        return _differs(row.producer_id, "coordinator epoch", row.coordinator_epoch, entry.coordinator_epoch)
    if _is_other_start(state, entry, start):
        in_log = entry.open.txn_start_offset if entry.open else None
        return _differs(row.producer_id, "open start", start, in_log)
    return None


def _differs(producer_id: int, what: str, in_snapshot: int | None, in_log: int | None) -> str:
    return f"producer {producer_id}: {what} is {in_snapshot} there and {in_log} in the log"


def _take_over(state: ProducerStateManager, row: StatedProducer) -> None:
    """Take over what the log did not show of one producer, up to the first disagreement."""
    entry = state.entries.get(row.producer_id)
    if entry is None or _is_only_in_snapshot(state, row) or _is_other_epoch(state, entry, row):
        return
    entry.producer_epoch = row.producer_epoch
    if _is_other_coordinator_epoch(state, entry, row):
        return
    if _is_coordinator_epoch_new(state, entry, row):
        state.entries.take_epochs_of_snapshot(np.array([entry.row]), numbers_of([row.coordinator_epoch]))
    entry.last_sequence = first_known(row.last_sequence, entry.last_sequence)
    entry.last_timestamp_ms = first_known(row.last_timestamp_ms, entry.last_timestamp_ms)
    txn, start = entry.open, row.current_txn_start_offset
    if txn is None or _is_other_start(state, entry, start):
        return
    if start is None:
        entry.end()
        return
    if start != txn.txn_start_offset:
        txn.record_count = txn.size_bytes = txn.hidden_record_count = txn.hidden_bytes = None
        txn.txn_start_offset, txn.first_appended_after_ms = start, None
        txn.first_appended_before_ms = first_known(state.first_moment_after(start), txn.first_appended_before_ms)
    txn.is_txn_start_exact = True


def _is_only_in_snapshot(state: ProducerStateManager, row: StatedProducer) -> bool:
    """The log lacks the batches that would say what the snapshot states of a producer, so all of the row counts."""
    entry, start = state.entries.get(row.producer_id), row.current_txn_start_offset
    txn = entry.open if entry else None
    in_log = txn.txn_start_offset if txn else None
    if start != in_log and (_is_before_gap(state, start) or _is_before_gap(state, in_log)):
        return True
    if start != in_log and txn is not None and _may_be_compacted(state, txn, start):
        return True
    return entry is None and not state.is_start_known


def _is_other_epoch(state: ProducerStateManager, entry: ProducerStateEntry, row: StatedProducer) -> bool:
    return row.producer_epoch != entry.producer_epoch and not _is_newer(state, row.producer_epoch, entry.producer_epoch)


def _is_coordinator_epoch_new(state: ProducerStateManager, entry: ProducerStateEntry, row: StatedProducer) -> bool:
    is_unknown = entry.basis == BASIS["unknown"]
    return is_unknown or _is_newer(state, row.coordinator_epoch, entry.coordinator_epoch)


def _is_other_coordinator_epoch(state: ProducerStateManager, entry: ProducerStateEntry, row: StatedProducer) -> bool:
    """Without one, the broker forgot the producer since that marker: it was idle, or the log start moved on."""
    is_same_or_none = row.coordinator_epoch in {None, entry.coordinator_epoch}
    return not is_same_or_none and not _is_coordinator_epoch_new(state, entry, row)


def _is_other_start(state: ProducerStateManager, entry: ProducerStateEntry, start: int | None) -> bool:
    """Another transaction is open than in the snapshot, and no missing batch explains it."""
    txn = entry.open
    if txn is None:
        return start is not None and not state.has_holes
    if start is None:
        return not _is_below_log_start(state, txn)
    if start == txn.txn_start_offset:
        return False
    is_compacted = state.last_hole_offset is not None and state.last_hole_offset >= start
    is_earlier = start < txn.txn_start_offset and (is_compacted or not txn.is_txn_start_exact)
    return not is_earlier and txn.txn_start_offset >= min(start, state.log_start_offset)


def _may_be_gone(state: ProducerStateManager, txn: OpenTransaction) -> bool:
    """Nothing of it need be left in the broker's log, so that a snapshot without its producer is right."""
    is_missing = _is_before_gap(state, txn.txn_start_offset) or _is_below_log_start(state, txn)
    return is_missing or _may_be_compacted(state, txn, None)


def _may_be_compacted(state: ProducerStateManager, txn: OpenTransaction, start: int | None) -> bool:
    """Compaction may have removed the rest of it with its end marker, as a newer snapshot states another start.

    What compaction leaves of a transaction keeps its end marker, and the cleaner stops at what is open.
    """
    below, is_left = txn.snapshot_offset, state.open_below_base.get(txn.producer_id, -1) >= txn.txn_start_offset
    if is_left or below is None or state.last_hole_offset is None or state.last_hole_offset < below:
        return False
    if start is None:
        return txn.last_offset is None or txn.last_offset < below
    return start >= below


def _is_below_log_start(state: ProducerStateManager, txn: OpenTransaction) -> bool:
    return txn.last_offset is not None and txn.last_offset < state.log_start_offset


def _is_before_gap(state: ProducerStateManager, offset: int | None) -> bool:
    return offset is not None and state.last_gap_offset is not None and offset <= state.last_gap_offset


def _is_newer(state: ProducerStateManager, in_snapshot: int | None, in_log: int | None) -> bool:
    """The snapshot states a larger epoch than the log, from which batches are missing."""
    is_missing = state.has_holes or state.last_gap_offset is not None
    return is_missing and in_snapshot is not None and (in_log is None or in_snapshot > in_log)


@dataclass(frozen=True)
class DescribedProducers:
    """One answer.

    Attributes:
        first_offset: the first one that was fetched.
        answered_from: the high watermark before it was asked for.
        capture_rank: of the capture that it is in; 0 is the one that is judged.
        columns: as answered.
    """

    first_offset: int
    answered_from: int
    capture_rank: int
    columns: Columns

    def as_snapshot(self) -> Snapshot:
        """What it says of all that lies below the first offset that was fetched."""
        start = self.columns["current_txn_start_offset"]
        open_below = np.where(start < self.first_offset, start, NONE)
        columns = self.columns | {"current_txn_start_offset": open_below}
        return Snapshot(self.first_offset, self.capture_rank, columns)

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
        stated = (known_of(self.columns[name]) for name in ("producer_id", "current_txn_start_offset"))
        answered = dict(zip(*stated, strict=True))
        for entry, txn in state.entries.with_open():
            # What began behind the answer is in none; what began before, and has no end marker, was open then.
            if txn.txn_start_offset >= self.answered_from:
                continue
            start = answered.get(entry.producer_id)
            is_earlier = start is not None and start < txn.txn_start_offset and not txn.is_txn_start_exact
            if start != txn.txn_start_offset and not is_earlier:
                yield _answer_differs(entry.producer_id, start, txn.txn_start_offset)
        for producer_id, start in answered.items():
            if start is None or start >= end_offset:
                continue
            known = state.entries.get(producer_id)
            is_open = known is not None and known.open is not None and known.open.txn_start_offset <= start
            if not is_open and (known is None or (known.log_marker_offset or -1) < start):
                yield _answer_differs(producer_id, start, None)


def _answer_differs(producer_id: int, in_answer: int | None, in_log: int | None) -> str:
    return f"producer {producer_id}: open start is {in_answer} there and {in_log} in the log"


def described_of(sections: Iterable[InputSection], stated: Stated) -> list[DescribedProducers]:
    """The answers of some sections with what they state."""
    return [
        DescribedProducers(s.file_base_offset, int(s.stated), s.capture_rank, stated.get(s.key, NOTHING_STATED))
        for s in sections
        if s.kind == DESCRIBED and s.stated is not None
    ]
