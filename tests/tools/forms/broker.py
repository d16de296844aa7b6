"""A second opinion: the broker's producer state of one partition, by the rules of Kafka's `ProducerStateManager`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.tools.forms.model import Batch


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction without end marker. Counts are None where a snapshot stands for a part of its data."""

    start_offset: int
    record_count: int | None = 0
    size_bytes: int | None = 0
    last_offset: int | None = None

    def plus(self, batch: Batch) -> OpenTransaction:
        """The transaction with one more data batch."""
        records = None if self.record_count is None else self.record_count + batch.record_count
        size = None if self.size_bytes is None else self.size_bytes + batch.size_bytes
        return OpenTransaction(self.start_offset, records, size, batch.last_offset)


@dataclass(frozen=True)
class EndedTransaction:
    """A transaction with its end marker; `last_stable_offset` is what the transaction index would say at an abort."""

    producer_id: int
    start_offset: int
    end_offset: int
    outcome: str
    record_count: int | None
    size_bytes: int | None
    last_stable_offset: int


@dataclass(frozen=True)
class ProducerEntry:
    """One producer as `describe-producers` prints it, with the batch part of its snapshot entry."""

    producer_epoch: int
    coordinator_epoch: int | None = None
    last_timestamp_ms: int | None = None
    txn: OpenTransaction | None = None
    last_sequence: int | None = None
    last_offset: int | None = None
    offset_delta: int = 0

    @property
    def txn_start_offset(self) -> int | None:
        """Where its open transaction begins; None if none is open."""
        return self.txn.start_offset if self.txn else None


@dataclass
class Partition:
    """Append batches in offset order; read the state at any time."""

    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    ended: list[EndedTransaction] = field(default_factory=list)
    end_offset: int = 0

    def append(self, batch: Batch) -> None:
        """Take one batch, as recovery does: nothing is refused."""
        self.end_offset = batch.last_offset + 1
        if batch.producer_id is None or batch.producer_epoch is None:
            return
        entry = self.producers.get(batch.producer_id, ProducerEntry(batch.producer_epoch))
        if batch.is_end_marker:
            self.producers[batch.producer_id] = self._after_marker(batch.producer_id, entry, batch)
        elif not batch.is_control:
            txn = entry.txn or (OpenTransaction(batch.base_offset) if batch.is_transactional else None)
            self.producers[batch.producer_id] = ProducerEntry(
                batch.producer_epoch,
                entry.coordinator_epoch,
                batch.max_timestamp_ms,
                txn.plus(batch) if txn and batch.is_transactional else txn,
                batch.last_sequence,
                batch.last_offset,
                batch.last_offset - batch.base_offset,
            )

    def _after_marker(self, producer_id: int, entry: ProducerEntry, marker: Batch) -> ProducerEntry:
        if entry.txn:
            others = [start for other, start in self.open_starts().items() if other != producer_id]
            stable = min(others, default=marker.base_offset + 1)
            start, records, size = entry.txn.start_offset, entry.txn.record_count, entry.txn.size_bytes
            outcome = str(marker.marker)
            self.ended.append(EndedTransaction(producer_id, start, marker.base_offset, outcome, records, size, stable))
        assert marker.producer_epoch is not None
        ended = replace(
            entry, coordinator_epoch=marker.coordinator_epoch, last_timestamp_ms=marker.max_timestamp_ms, txn=None
        )
        if marker.producer_epoch == entry.producer_epoch:
            return ended
        return replace(
            ended, producer_epoch=marker.producer_epoch, last_sequence=None, last_offset=None, offset_delta=0
        )

    def open_starts(self) -> dict[int, int]:
        """Start offset of each open transaction, by producer id."""
        return {producer: entry.txn.start_offset for producer, entry in self.producers.items() if entry.txn}

    @property
    def last_stable_offset(self) -> int:
        """The smallest open start, or the end of the log."""
        return min(self.open_starts().values(), default=self.end_offset)

    def snapshot(self) -> dict[int, ProducerEntry]:
        """What the broker writes when it rolls a segment here: counts are lost, order is by producer id."""
        return {
            producer: replace(entry, txn=entry.txn and OpenTransaction(entry.txn.start_offset, None, None))
            for producer, entry in sorted(self.producers.items())
        }


def replay(
    batches: Iterable[Batch],
    *,
    snapshot: Mapping[int, ProducerEntry] | None = None,
    from_offset: int = 0,
    below: int | None = None,
) -> Partition:
    """The state after the batches in [from_offset, below), on top of the snapshot at `from_offset`."""
    partition = Partition(dict(snapshot or {}), end_offset=from_offset)
    for batch in batches:
        if batch.base_offset >= from_offset and (below is None or batch.base_offset < below):
            partition.append(batch)
    return partition
