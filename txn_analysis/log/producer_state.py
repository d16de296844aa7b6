"""What a broker keeps of each producer of a partition, rebuilt from pieces and snapshots in offset order.

Mirrors Kafka's `ProducerStateManager`: an entry per producer id, one open transaction per entry, closed by any end
marker of that producer id whatever its epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from txn_analysis.log.producer_entry import EndedTransaction, OpenTransaction, ProducerEntry, first_known

if TYPE_CHECKING:
    from txn_analysis.log.pieces import Fragment, LogPiece, ProducerEdges
    from txn_analysis.log.snapshots import SnapshotEntry


@dataclass
class ProducerState:
    """All entries of one partition while its log is followed.

    `is_start_known` says that nothing before the first piece can matter: the log begins there, or a snapshot stands
    for what is below. `last_gap_offset` is the last offset that no file holds, so far, `last_hole_offset` the last one
    without a batch inside what the files hold: compaction took it. `log_start_offset` is where the broker said that the
    log begins: one that loads its state anew reads nothing below, though the files hold it. `left_below` is by producer
    the last offset of data without an end marker below the snapshot with which all begins.
    """

    is_start_known: bool
    log_start_offset: int = 0
    left_below: dict[int, int] = field(default_factory=dict)
    entries: dict[int, ProducerEntry] = field(default_factory=dict)
    ended: list[EndedTransaction] = field(default_factory=list)
    last_moment_ms: int | None = None
    last_gap_offset: int | None = None
    last_hole_offset: int | None = None
    has_batches: bool = False
    witnesses: list[str] = field(default_factory=list)
    _recalled: dict[int, ProducerEdges] = field(default_factory=dict)
    _first_moments: list[tuple[int, int]] = field(default_factory=list)

    @property
    def has_holes(self) -> bool:
        """Compaction has been at work."""
        return self.last_hole_offset is not None

    def load_snapshot(self, rows: list[SnapshotEntry], *, is_adjacent: bool) -> None:
        """Begin with the state that a producer snapshot holds; not adjacent means that batches are missing after it."""
        for row in rows:
            entry = self._entry(row.producer_id)
            entry.producer_epoch, entry.last_sequence = row.producer_epoch, row.last_sequence
            entry.last_timestamp_ms = row.last_timestamp_ms
            if is_adjacent:
                entry.take_snapshot_epoch(row)
            entry.open = None
            if row.current_txn_start_offset is not None:
                entry.open = OpenTransaction(
                    row.producer_id,
                    row.current_txn_start_offset,
                    is_start_exact=is_adjacent,
                    first_epoch=None,
                    max_epoch=row.producer_epoch,
                    last_offset=row.last_offset,
                    last_sequence=row.last_sequence,
                    last_timestamp_ms=row.last_timestamp_ms,
                    first_before_ms=self.first_moment_behind(row.current_txn_start_offset),
                    known_from=row.snapshot_offset,
                )

    def apply(self, piece: LogPiece) -> None:
        """Follow the log through one more piece."""
        touched = {p.producer_id for p in piece.producers if p.lead.start_offset is not None}
        self._bound_by_moments(piece, touched)
        self.has_batches = True
        self.last_hole_offset = first_known(piece.last_hole_offset, self.last_hole_offset)
        for producer in piece.producers:
            self._apply_producer(producer)
        self.last_moment_ms = first_known(piece.last_moment_ms, self.last_moment_ms)
        if piece.first_moment_ms is not None:
            self._first_moments.append((piece.first_offset, piece.first_moment_ms))

    def first_moment_behind(self, start_offset: int) -> int | None:
        """The first moment so far behind a start that is in no file: what bounds it from above."""
        return next((ms for first_offset, ms in self._first_moments if first_offset > start_offset), None)

    def _bound_by_moments(self, piece: LogPiece, touched: set[int]) -> None:
        """Any broker-clock moment of this piece comes after what earlier pieces left open."""
        for entry in self.entries.values():
            if entry.open is None:
                continue
            entry.open.first_before_ms = first_known(entry.open.first_before_ms, piece.first_moment_ms)
            if entry.producer_id not in touched:
                entry.open.last_before_ms = first_known(entry.open.last_before_ms, piece.first_moment_ms)
            if entry.open.hidden_record_count is not None and entry.open.hidden_bytes is not None:
                entry.open.hidden_record_count += piece.record_count
                entry.open.hidden_bytes += piece.size_bytes

    def _apply_producer(self, producer: ProducerEdges) -> None:
        entry = self._entry(producer.producer_id)
        lead, tail = producer.lead, producer.tail
        if lead.start_offset is not None:
            if entry.open:
                entry.open.extend(lead, self.last_moment_ms)
            else:
                entry.open = self._opened(entry, lead, lead.start_offset, is_exact=self._is_exact(entry))
        is_lead_end = lead.start_offset is None and lead.end_offset is not None and entry.open is not None
        entry.take_bare_markers(producer, is_lead_end=is_lead_end)
        if lead.end_offset is not None:
            self._end(entry, lead, lead.end_offset)
        if producer.ended_offset is not None:
            newest = (producer.ended_last_timestamp_ms, producer.ended_coordinator_epoch)
            entry.has_ended(*newest, producer.max_ended_coordinator_epoch)
        if tail is not None and tail.start_offset is not None and tail.end_offset is None:
            entry.open = self._opened(entry, tail, tail.start_offset, is_exact=True)
        if producer.marker_offset is not None:
            entry.take_marker(producer)
            entry.log_marker_offset = producer.marker_offset
            entry.hold_marker(producer.marker_offset)
        # Markers alone leave the last data batch cached, unless they change the epoch.
        is_same_epoch = producer.is_one_epoch and producer.first_batch_epoch == entry.producer_epoch
        if producer.last_sequence is not None or not is_same_epoch:
            entry.last_sequence = producer.last_sequence
        entry.producer_epoch = producer.producer_epoch
        entry.last_timestamp_ms = producer.last_timestamp_ms

    def _entry(self, producer_id: int) -> ProducerEntry:
        if producer_id not in self.entries:
            is_whole = self.is_start_known and self.last_gap_offset is None and not self.has_holes
            basis = "none_seen" if is_whole else "unknown"
            self.entries[producer_id] = ProducerEntry(producer_id, coordinator_epoch_basis=basis)
            recalled = self._recalled.get(producer_id)
            if recalled is not None:
                self.entries[producer_id].take_marker(recalled)
                self.entries[producer_id].hold_marker(recalled.marker_offset)
        return self.entries[producer_id]

    def _is_exact(self, entry: ProducerEntry) -> bool:
        """Nothing that no file holds could have begun it earlier; compaction passes nothing that is open."""
        gap = self.last_gap_offset
        is_ended_before = entry.held_marker_offset > (-1 if gap is None else gap)
        return is_ended_before or (self.is_start_known and gap is None)

    def _opened(self, entry: ProducerEntry, fragment: Fragment, start: int, *, is_exact: bool) -> OpenTransaction:
        opened = OpenTransaction(entry.producer_id, start, is_start_exact=is_exact, record_count=0, size_bytes=0)
        opened.extend(fragment, self.last_moment_ms)
        opened.first_after_ms = first_known(fragment.first_after_ms, self.last_moment_ms)
        opened.first_before_ms = fragment.first_before_ms
        opened.hidden_record_count = fragment.hidden_record_count
        opened.hidden_bytes = fragment.hidden_bytes
        return opened

    def _end(self, entry: ProducerEntry, fragment: Fragment, offset: int) -> None:
        if entry.open:
            epoch = fragment.end_coordinator_epoch
            self.ended.append(
                EndedTransaction(
                    entry.open, offset, fragment.end_marker, fragment.end_timestamp_ms, fragment.end_epoch, epoch
                )
            )
            entry.has_ended(entry.open.last_timestamp_ms, epoch, epoch)
        entry.open = None

    def recall(self, pieces: list[LogPiece]) -> None:
        """Learn of end markers that compaction has removed here since another copy was made."""
        for producer in (p for piece in pieces for p in piece.producers):
            if producer.marker_offset is not None:
                self._recalled[producer.producer_id] = producer
                self._recall_marker(producer, producer.marker_offset)

    def _recall_marker(self, producer: ProducerEdges, offset: int) -> None:
        entry = self.entries.get(producer.producer_id)
        if entry is None:
            return
        entry.hold_marker(offset)
        if entry.open and offset < entry.open.start_offset:
            entry.open.is_start_exact |= self._is_exact(entry)
        if entry.coordinator_epoch_basis == "unknown" and (entry.marker_offset or -1) < offset:
            entry.take_marker(producer)

    def name_open(self, rows: list[SnapshotEntry], offset: int) -> None:
        """A snapshot at which a file begins names what is open there: whatever is missing below has not ended it."""
        for row in rows:
            txn = self.entries[row.producer_id].open if row.producer_id in self.entries else None
            if txn is not None and txn.start_offset == row.current_txn_start_offset:
                txn.named_at_offset = offset
