"""The timeline of one transaction: what its partition's log holds around it, and what the coordinator recorded."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.kafka.names import LOG_APPEND_TIME, is_brokers_time, is_brokers_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.kafka.transactions import StateRecord

BROKER, CLIENT = "broker", "client"


class LoggedBatch(NamedTuple):
    """One row of `log_batches`, as far as a timeline shows it."""

    topic: str
    base_offset: int
    last_offset: int
    record_count: int | None
    producer_id: int | None
    producer_epoch: int | None
    is_control: bool
    marker: str | None
    coordinator_epoch: int | None
    max_timestamp_ms: int | None
    timestamp_type: str | None

    @property
    def clock(self) -> str:
        """Whose clock wrote its timestamp; a client's where it has none."""
        is_brokers = is_brokers_time(
            is_control=self.is_control,
            is_append_time=self.timestamp_type == LOG_APPEND_TIME,
            is_brokers_topic=is_brokers_topic(self.topic),
        )
        return BROKER if is_brokers and self.max_timestamp_ms is not None else CLIENT


class Event(NamedTuple):
    """One event of a timeline; `offset` is None for a record of the coordinator, `clock` says whose time it is."""

    at_ms: int | None
    clock: str
    offset: int | None
    kind: str
    text: str


def timeline(batches: Iterable[LoggedBatch], records: Sequence[StateRecord], producer_id: int) -> list[Event]:
    """Events in log order; the coordinator's records stand before the first later broker's time in the log.

    Between two broker times in the log nothing tells which came first, a batch or a record of the coordinator.

    Args:
        batches: of the partition: those of the transaction, and markers around it.
        records: of its transactional id, in the order of their partition.
        producer_id: whose transaction it is.
    """
    log = [_log_event(batch, producer_id) for batch in sorted(batches, key=lambda batch: batch.base_offset)]
    waiting = deque(_coordinator_event(record) for record in records)
    events: list[Event] = []
    for event in log:
        while event.clock == BROKER and waiting and (waiting[0].at_ms or 0) <= (event.at_ms or 0):
            events.append(waiting.popleft())
        events.append(event)
    return [*events, *waiting]


def _log_event(batch: LoggedBatch, producer_id: int) -> Event:
    kind, text = ("marker", _marker(batch, producer_id)) if batch.is_control else ("data", _data(batch))
    return Event(batch.max_timestamp_ms, batch.clock, batch.base_offset, kind, text)


def _marker(batch: LoggedBatch, producer_id: int) -> str:
    whose = "its" if batch.producer_id == producer_id else f"another producer's ({batch.producer_id})"
    what = f"{whose} end marker: {batch.marker or 'COMMIT or ABORT'}, epoch {batch.producer_epoch}"
    return what if batch.coordinator_epoch is None else f"{what}, coordinator epoch {batch.coordinator_epoch}"


def _data(batch: LoggedBatch) -> str:
    first, last = batch.base_offset, batch.last_offset
    span = f"offset {last}" if last == first else f"offsets {first} to {last}"
    return f"data, {span}, {batch.record_count} records, epoch {batch.producer_epoch}"


def _coordinator_event(record: StateRecord) -> Event:
    if record.is_tombstone:
        text = "the transactional id is removed (tombstone)"
    else:
        listed = ", ".join(f"{topic}-{partition}" for topic, partition in record.topic_partitions)
        where = f" of {listed}" if listed else ""
        text = f"{record.state}{where}, producer id {record.producer_id}, epoch {record.producer_epoch}"
    return Event(record.moment_ms, BROKER, None, "coordinator", text)
