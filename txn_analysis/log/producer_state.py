"""What a broker keeps of each producer of a partition, rebuilt in offset order from batch ranges and snapshots.

Follows Kafka's `ProducerStateManager` and `ProducerStateEntry`: an entry for each producer id, at most one open
transaction in it, which any end marker of that producer id ends, whatever its epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from txn_analysis.log.transactions import ended_transaction, whole_transaction

if TYPE_CHECKING:
    from txn_analysis.kafka.transactions import TopicPartition
    from txn_analysis.tables import (
        BareMarker,
        BatchRangeSummary,
        ProducerAppendInfo,
        SnapshotEntry,
        Transaction,
        TransactionPart,
    )


@dataclass
class OpenTransaction:
    """A transaction with data after its producer's last end marker, as far as the log has been replayed.

    Fields are named as columns of `transactions`; the `hidden_...` ones count the log from its start on, whoever wrote
    it. `listed_at_offset` is the offset of the newest snapshot at the start of a file that lists it as open,
    `snapshot_offset` that of the snapshot its start was taken from; None where the log itself holds the start.
    """

    producer_id: int
    txn_start_offset: int
    is_txn_start_exact: bool
    first_producer_epoch: int | None = None
    max_producer_epoch: int | None = None
    last_offset: int | None = None
    last_sequence: int | None = None
    record_count: int | None = None
    size_bytes: int | None = None
    last_timestamp_ms: int | None = None
    first_appended_after_ms: int | None = None
    first_appended_before_ms: int | None = None
    appended_after_ms: int | None = None
    appended_before_ms: int | None = None
    hidden_record_count: int | None = None
    hidden_bytes: int | None = None
    listed_at_offset: int | None = None
    snapshot_offset: int | None = None

    def extend(self, part: TransactionPart, moment_before_ms: int | None) -> None:
        """Add the data of a later part; `moment_before_ms` is the last moment before its range, None without one."""
        self.first_producer_epoch = first_known(self.first_producer_epoch, part.first_epoch)
        self.max_producer_epoch = max(e for e in (self.max_producer_epoch, part.max_epoch, 0) if e is not None)
        self.last_offset, self.last_sequence = part.last_offset, part.last_sequence
        self.last_timestamp_ms = part.last_timestamp_ms
        self.appended_after_ms = first_known(part.last_after_ms, moment_before_ms)
        self.appended_before_ms = part.last_before_ms
        if self.record_count is not None:
            self.record_count += part.record_count
        if self.size_bytes is not None:
            self.size_bytes += part.size_bytes


@dataclass
class ProducerStateEntry:
    """What a broker keeps of one producer on one partition (`DescribeProducers`), and where it was taken from.

    Attributes:
        marker_offset: of the end marker that states the coordinator epoch.
        log_marker_offset: of the last end marker in the log itself.
        any_marker_offset: of the last end marker in any copy of the log; -1 without one.
        bare_markers: end markers with no data of the producer since the marker before.
    """

    producer_id: int
    producer_epoch: int | None = None
    last_sequence: int | None = None
    last_timestamp_ms: int | None = None
    coordinator_epoch: int | None = None
    coordinator_epoch_basis: str = "unknown"
    marker_offset: int | None = None
    any_marker_offset: int = -1
    log_marker_offset: int | None = None
    marker_timestamp_ms: int | None = None
    open: OpenTransaction | None = None
    previous_last_timestamp_ms: int | None = None
    ended_coordinator_epoch: int | None = None
    max_ended_coordinator_epoch: int | None = None
    bare_markers: list[BareMarker] = field(default_factory=list)

    @property
    def has_coordinator_epoch_fallen(self) -> bool:
        """The end marker of its newest ended transaction has a lower coordinator epoch than an earlier one's."""
        newest, largest = self.ended_coordinator_epoch, self.max_ended_coordinator_epoch
        return newest is not None and largest is not None and newest < largest

    def add_ended(self, last_timestamp_ms: int | None, epoch: int | None, max_epoch: int | None) -> None:
        """Add transactions that ended: what the newest one states, and the largest coordinator epoch of all of them."""
        self.previous_last_timestamp_ms, self.ended_coordinator_epoch = last_timestamp_ms, epoch
        largest = self.max_ended_coordinator_epoch
        if max_epoch is not None and (largest is None or max_epoch > largest):
            self.max_ended_coordinator_epoch = max_epoch

    def take_epoch_of_marker(self, appends: ProducerAppendInfo) -> None:
        """Take the coordinator epoch from the producer's last end marker of a batch range."""
        self.marker_offset = appends.marker_offset
        self.marker_timestamp_ms = appends.marker_timestamp_ms
        self.coordinator_epoch = appends.marker_coordinator_epoch
        self.coordinator_epoch_basis = "unknown" if self.coordinator_epoch is None else "marker"

    def take_epoch_of_snapshot(self, row: SnapshotEntry) -> None:
        """Take the coordinator epoch from a snapshot; without one, no marker of the producer was on the partition."""
        self.coordinator_epoch = row.coordinator_epoch
        self.coordinator_epoch_basis = "none_seen" if self.coordinator_epoch is None else "snapshot"


@dataclass
class ProducerStateManager:
    """All entries of one partition while its log is replayed.

    Attributes:
        partition: which one.
        is_start_known: nothing before the first batch range can matter: the log begins there, or a snapshot covers all
            that is below.
        log_start_offset: as the broker's checkpoint states it: a broker that loads its state reads nothing below, even
            if the files hold it.
        open_below_base: by producer id, the last offset of data below the base snapshot that no end marker follows
            there.
        ended: transactions that span batch ranges, and ended.
        last_gap_offset: the last offset so far that no file holds.
        last_hole_offset: the last offset so far of a batch that compaction removed from inside a file.
    """

    partition: TopicPartition
    is_start_known: bool
    log_start_offset: int = 0
    open_below_base: dict[int, int] = field(default_factory=dict)
    entries: dict[int, ProducerStateEntry] = field(default_factory=dict)
    ended: list[Transaction] = field(default_factory=list)
    last_moment_ms: int | None = None
    last_gap_offset: int | None = None
    last_hole_offset: int | None = None
    has_batches: bool = False
    witnesses: list[str] = field(default_factory=list)
    _compacted_markers: dict[int, ProducerAppendInfo] = field(default_factory=dict)
    _first_moments: list[tuple[int, int]] = field(default_factory=list)

    @property
    def has_holes(self) -> bool:
        """Compaction removed batches."""
        return self.last_hole_offset is not None

    def load_from_snapshot(self, rows: list[SnapshotEntry], *, is_adjacent: bool) -> None:
        """Take over what a snapshot states of its producers; not adjacent: batches are missing right after it."""
        for row in rows:
            entry = self._entry(row.producer_id)
            entry.producer_epoch, entry.last_sequence = row.producer_epoch, row.last_sequence
            entry.last_timestamp_ms = row.last_timestamp_ms
            if is_adjacent:
                entry.take_epoch_of_snapshot(row)
            entry.open = None
            if row.current_txn_start_offset is not None:
                entry.open = OpenTransaction(
                    row.producer_id,
                    row.current_txn_start_offset,
                    is_txn_start_exact=is_adjacent,
                    max_producer_epoch=row.producer_epoch,
                    last_offset=row.last_offset,
                    last_sequence=row.last_sequence,
                    last_timestamp_ms=row.last_timestamp_ms,
                    first_appended_before_ms=self.first_moment_after(row.current_txn_start_offset),
                    snapshot_offset=row.snapshot_offset,
                )

    def apply(self, summary: BatchRangeSummary) -> None:
        """Replay the next batch range of the log."""
        self._bound_by_moments(summary)
        self.has_batches = True
        self.last_hole_offset = first_known(summary.last_hole_offset, self.last_hole_offset)
        for appends in summary.producers:
            self._update(appends)
        self.last_moment_ms = first_known(summary.last_moment_ms, self.last_moment_ms)
        if summary.first_moment_ms is not None:
            self._first_moments.append((summary.first_offset, summary.first_moment_ms))

    def first_moment_after(self, start_offset: int) -> int | None:
        """The first moment so far after an offset that no file holds: it was appended before. None without one."""
        return next((ms for first_offset, ms in self._first_moments if first_offset > start_offset), None)

    def _bound_by_moments(self, summary: BatchRangeSummary) -> None:
        """What earlier ranges left open was appended before any moment of this one."""
        extended = {p.producer_id for p in summary.producers if p.lead.start_offset is not None}
        moment_ms = summary.first_moment_ms
        for txn in filter(None, (entry.open for entry in self.entries.values())):
            txn.first_appended_before_ms = first_known(txn.first_appended_before_ms, moment_ms)
            if txn.producer_id not in extended:
                txn.appended_before_ms = first_known(txn.appended_before_ms, moment_ms)
            if txn.hidden_record_count is not None and txn.hidden_bytes is not None:
                txn.hidden_record_count += summary.record_count
                txn.hidden_bytes += summary.size_bytes

    def _update(self, appends: ProducerAppendInfo) -> None:
        entry = self._entry(appends.producer_id)
        lead, tail = appends.lead, appends.tail
        if lead.start_offset is not None:
            if entry.open:
                entry.open.extend(lead, self.last_moment_ms)
            elif lead.end_offset is None:
                entry.open = self._opened(entry.producer_id, lead, lead.start_offset, is_exact=self._is_exact(entry))
            else:
                self._add_whole(entry, lead)
        if appends.marker_offset is not None:
            # A first end marker without data before it here is no bare one if it ends what an earlier range left open.
            is_ending = lead.start_offset is None and lead.end_offset is not None and entry.open is not None
            entry.bare_markers += appends.bare_markers[1:] if is_ending else appends.bare_markers
        if lead.end_offset is not None:
            self._end(entry, lead)
        if appends.ended_offset is not None:
            newest = (appends.ended_last_timestamp_ms, appends.ended_coordinator_epoch)
            entry.add_ended(*newest, appends.max_ended_coordinator_epoch)
        if tail is not None and tail.start_offset is not None and tail.end_offset is None:
            entry.open = self._opened(entry.producer_id, tail, tail.start_offset, is_exact=True)
        if appends.marker_offset is not None:
            entry.take_epoch_of_marker(appends)
            entry.log_marker_offset = appends.marker_offset
            entry.any_marker_offset = max(entry.any_marker_offset, appends.marker_offset)
        # Markers alone leave the last data batch cached, unless they change the epoch.
        is_same_epoch = appends.is_one_epoch and appends.first_batch_epoch == entry.producer_epoch
        if appends.last_sequence is not None or not is_same_epoch:
            entry.last_sequence = appends.last_sequence
        entry.producer_epoch = appends.producer_epoch
        entry.last_timestamp_ms = appends.last_timestamp_ms

    def _entry(self, producer_id: int) -> ProducerStateEntry:
        if producer_id not in self.entries:
            is_whole = self.is_start_known and self.last_gap_offset is None and not self.has_holes
            entry = ProducerStateEntry(producer_id, coordinator_epoch_basis="none_seen" if is_whole else "unknown")
            self.entries[producer_id] = entry
            compacted = self._compacted_markers.get(producer_id)
            if compacted is not None and compacted.marker_offset is not None:
                entry.take_epoch_of_marker(compacted)
                entry.any_marker_offset = max(entry.any_marker_offset, compacted.marker_offset)
        return self.entries[producer_id]

    def _is_exact(self, entry: ProducerStateEntry) -> bool:
        """No missing batch can have begun it earlier; compaction removes nothing of what is open."""
        gap = self.last_gap_offset
        is_ended_before = entry.any_marker_offset > (-1 if gap is None else gap)
        return is_ended_before or (self.is_start_known and gap is None)

    def _opened(self, producer_id: int, part: TransactionPart, start: int, *, is_exact: bool) -> OpenTransaction:
        opened = OpenTransaction(producer_id, start, is_txn_start_exact=is_exact, record_count=0, size_bytes=0)
        opened.extend(part, self.last_moment_ms)
        opened.first_appended_after_ms = first_known(part.first_after_ms, self.last_moment_ms)
        opened.first_appended_before_ms = part.first_before_ms
        opened.hidden_record_count = part.hidden_record_count
        opened.hidden_bytes = part.hidden_bytes
        return opened

    def _add_whole(self, entry: ProducerStateEntry, part: TransactionPart) -> None:
        """Add a transaction that begins and ends in one batch range, as most do: no state between ranges has it."""
        is_exact = self._is_exact(entry)
        whole = whole_transaction(self.partition, entry.producer_id, part, self.last_moment_ms, is_exact=is_exact)
        self.ended.append(whole)
        entry.add_ended(part.last_timestamp_ms, part.end_coordinator_epoch, part.end_coordinator_epoch)

    def _end(self, entry: ProducerStateEntry, part: TransactionPart) -> None:
        if entry.open:
            self.ended.append(ended_transaction(self.partition, entry.open, part))
            epoch = part.end_coordinator_epoch
            entry.add_ended(entry.open.last_timestamp_ms, epoch, epoch)
        entry.open = None

    def add_compacted(self, summaries: list[BatchRangeSummary]) -> None:
        """Learn of end markers that another copy holds, and that compaction has removed from this one."""
        for appends in (p for summary in summaries for p in summary.producers):
            if appends.marker_offset is not None:
                self._compacted_markers[appends.producer_id] = appends
                entry = self.entries.get(appends.producer_id)
                if entry is not None:
                    self._add_compacted_marker(entry, appends, appends.marker_offset)

    def _add_compacted_marker(self, entry: ProducerStateEntry, appends: ProducerAppendInfo, offset: int) -> None:
        entry.any_marker_offset = max(entry.any_marker_offset, offset)
        if entry.open and offset < entry.open.txn_start_offset:
            entry.open.is_txn_start_exact |= self._is_exact(entry)
        if entry.coordinator_epoch_basis == "unknown" and (entry.marker_offset or -1) < offset:
            entry.take_epoch_of_marker(appends)

    def confirm_open(self, rows: list[SnapshotEntry], offset: int) -> None:
        """Note what a snapshot at the start of a file lists as open: nothing that is missing below has ended it."""
        for row in rows:
            txn = self.entries[row.producer_id].open if row.producer_id in self.entries else None
            if txn is not None and txn.txn_start_offset == row.current_txn_start_offset:
                txn.listed_at_offset = offset


def first_known(value: int | None, otherwise: int | None) -> int | None:
    """The value, or the other one where it is None."""
    return otherwise if value is None else value
