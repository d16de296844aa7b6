"""A producer snapshot in the middle of a log, beside what the log itself says there: compared, and learned from.

Where files are missing below it, or compaction removed the batches that it was made of, the snapshot knows what the log
does not. Else both say the same, or one of them is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.log.producer_entry import first_known

if TYPE_CHECKING:
    from txn_analysis.log.producer_entry import OpenTransaction, ProducerEntry
    from txn_analysis.log.producer_state import ProducerState
    from txn_analysis.log.snapshots import Snapshot, SnapshotEntry


class Difference(NamedTuple):
    """What a snapshot says of a producer otherwise than the log."""

    producer_id: int
    what: str
    in_snapshot: int | None
    in_log: int | None


def meet(state: ProducerState, snapshot: Snapshot) -> list[Difference]:
    """Compare the state of a log with a snapshot of this very offset, and let it learn what the log did not show.

    Returns:
        The disagreements; none where both agree. A producer that the snapshot no longer has is no disagreement while
        nothing of it is open: brokers forget idle producers.
    """
    found = []
    for entry in snapshot.rows:
        found += [differs] if (differs := difference(state, entry)) else []
        _learn(state, entry)
    in_snapshot = {entry.producer_id for entry in snapshot.rows}
    for known in state.entries.values():
        if known.open is None or known.producer_id in in_snapshot:
            continue
        if _is_gone(state, known.open):
            known.open = None
        else:
            found.append(Difference(known.producer_id, "open start", None, known.open.start_offset))
    if not found and state.has_batches:
        state.witnesses.append(f"snapshot {snapshot.offset} agrees with the batches below it")
    return found


def difference(state: ProducerState, said: SnapshotEntry) -> Difference | None:
    """What a snapshot says of one producer otherwise than the log; None where they agree, or it knows more."""
    if _knows_all(state, said):
        return None
    entry, start = state.entries.get(said.producer_id), said.current_txn_start_offset
    if entry is None:
        return None if state.has_holes or start is None else Difference(said.producer_id, "open start", start, None)
    if _is_other_epoch(state, entry, said):
        return Difference(said.producer_id, "producer epoch", said.producer_epoch, entry.producer_epoch)
    if _is_other_coordinator_epoch(state, entry, said):
        return Difference(said.producer_id, "coordinator epoch", said.coordinator_epoch, entry.coordinator_epoch)
    if _is_other_start(state, entry, start):
        ours = entry.open.start_offset if entry.open else None
        return Difference(said.producer_id, "open start", start, ours)
    return None


def _learn(state: ProducerState, said: SnapshotEntry) -> None:
    """Take over what the log did not show of one producer, up to what differs."""
    entry = state.entries.get(said.producer_id)
    if _knows_all(state, said):
        state.load_snapshot([said], is_adjacent=True)
        return
    if entry is None or _is_other_epoch(state, entry, said):
        return
    entry.producer_epoch = said.producer_epoch
    if _is_other_coordinator_epoch(state, entry, said):
        return
    if _is_coordinator_epoch_new(state, entry, said):
        entry.take_snapshot_epoch(said)
    entry.last_sequence = first_known(said.last_sequence, entry.last_sequence)
    entry.last_timestamp_ms = first_known(said.last_timestamp_ms, entry.last_timestamp_ms)
    if entry.open is not None and not _is_other_start(state, entry, said.current_txn_start_offset):
        _learn_start(state, entry, entry.open, said.current_txn_start_offset)


def _learn_start(state: ProducerState, entry: ProducerEntry, txn: OpenTransaction, start: int | None) -> None:
    if start is None:
        entry.open = None
        return
    if start != txn.start_offset:
        txn.record_count = txn.size_bytes = txn.hidden_record_count = txn.hidden_bytes = None
        txn.start_offset, txn.first_after_ms = start, None
        txn.first_before_ms = first_known(state.first_moment_behind(start), txn.first_before_ms)
    txn.is_start_exact = True


def _knows_all(state: ProducerState, said: SnapshotEntry) -> bool:
    """The log cannot say what the snapshot says of a producer: it counts in all."""
    entry, start = state.entries.get(said.producer_id), said.current_txn_start_offset
    txn = entry.open if entry else None
    ours = txn.start_offset if txn else None
    if start != ours and (_is_before_gap(state, start) or _is_before_gap(state, ours)):
        return True
    if start != ours and txn is not None and _is_taken(state, txn, start):
        return True
    return entry is None and not state.is_start_known


def _is_other_epoch(state: ProducerState, entry: ProducerEntry, said: SnapshotEntry) -> bool:
    theirs, ours = said.producer_epoch, entry.producer_epoch
    return theirs != ours and not _knows_more(state, theirs, ours)


def _is_coordinator_epoch_new(state: ProducerState, entry: ProducerEntry, said: SnapshotEntry) -> bool:
    is_unknown = entry.coordinator_epoch_basis == "unknown"
    return is_unknown or _knows_more(state, said.coordinator_epoch, entry.coordinator_epoch)


def _is_other_coordinator_epoch(state: ProducerState, entry: ProducerEntry, said: SnapshotEntry) -> bool:
    """Without one, the broker forgot the producer since that marker: it was idle, or the log start moved on."""
    is_known_or_none = said.coordinator_epoch in {None, entry.coordinator_epoch}
    return not is_known_or_none and not _is_coordinator_epoch_new(state, entry, said)


def _is_other_start(state: ProducerState, entry: ProducerEntry, start: int | None) -> bool:
    """Another transaction is open, and nothing that is missing explains it."""
    txn = entry.open
    if txn is None:
        return start is not None and not state.has_holes
    if start is None:
        return not _is_deleted(state, txn)
    return start != txn.start_offset and not _is_start_lost(state, txn, start)


def _is_start_lost(state: ProducerState, txn: OpenTransaction, start: int) -> bool:
    """The log lacks the batches between the start in the snapshot and its own; or the broker's log starts behind it."""
    is_compacted_away = state.last_hole_offset is not None and state.last_hole_offset >= start
    is_earlier = start < txn.start_offset and (is_compacted_away or not txn.is_start_exact)
    return is_earlier or txn.start_offset < min(start, state.log_start_offset)


def _is_gone(state: ProducerState, txn: OpenTransaction) -> bool:
    """Nothing of it need be left, so that a snapshot without its producer is right."""
    is_missing = _is_before_gap(state, txn.start_offset) or _is_deleted(state, txn)
    return is_missing or _is_taken(state, txn, None)


def _is_taken(state: ProducerState, txn: OpenTransaction, start: int | None) -> bool:
    """Compaction may have taken all that the log had of it, with its end marker: a newer snapshot knows another start.

    What is left of a transaction keeps its end marker, and the cleaner passes nothing that is open.
    """
    below, is_left = txn.known_from, state.left_below.get(txn.producer_id, -1) >= txn.start_offset
    if is_left or below is None or state.last_hole_offset is None or state.last_hole_offset < below:
        return False
    if start is None:
        return txn.last_offset is None or txn.last_offset < below
    return start >= below


def _is_deleted(state: ProducerState, txn: OpenTransaction) -> bool:
    """All of it is below the log start."""
    return txn.last_offset is not None and txn.last_offset < state.log_start_offset


def _is_before_gap(state: ProducerState, offset: int | None) -> bool:
    return offset is not None and state.last_gap_offset is not None and offset <= state.last_gap_offset


def _knows_more(state: ProducerState, theirs: int | None, ours: int | None) -> bool:
    is_thinned = state.has_holes or state.last_gap_offset is not None
    return is_thinned and theirs is not None and (ours is None or theirs > ours)
