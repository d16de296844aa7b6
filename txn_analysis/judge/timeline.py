"""The timeline of one transaction: what its partition's log holds around it, and what the coordinator recorded."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.kafka.transactions import StateRecord

Row = dict[str, Any]


def timeline(batches: list[Row], records: Sequence[StateRecord], producer_id: int) -> list[Row]:
    """Events in log order; the coordinator's records stand before the first later broker's time in the log.

    Between two broker times in the log nothing tells which came first, a batch or a record of the coordinator.

    Args:
        batches: rows of `log_batches` of the partition: those of the transaction, and markers around it.
        records: of its transactional id, in the order of their partition.
        producer_id: whose transaction it is.

    Returns:
        Events with `at_ms` and `clock` (`broker` or `client`), `offset` (None for the coordinator's), `kind`, `text`.
    """
    log = [_log_event(b, producer_id) for b in sorted(batches, key=lambda b: int(b["base_offset"]))]
    waiting = deque(_coordinator_event(r) for r in records)
    events: list[Row] = []
    for event in log:
        while event["clock"] == "broker" and waiting and (waiting[0]["at_ms"] or 0) <= event["at_ms"]:
            events.append(waiting.popleft())
        events.append(event)
    return [*events, *waiting]


def _log_event(batch: Row, producer_id: int) -> Row:
    is_own = batch["producer_id"] == producer_id
    whose = "its" if is_own else f"another producer's ({batch['producer_id']})"
    if batch["is_control"]:
        what = f"{whose} end marker: {batch['marker'] or 'COMMIT or ABORT'}, epoch {batch['producer_epoch']}"
        epoch = batch["coordinator_epoch"]
        text = what if epoch is None else f"{what}, coordinator epoch {epoch}"
    else:
        last = batch["last_offset"]
        span = f"offset {last}" if last == batch["base_offset"] else f"offsets {batch['base_offset']} to {last}"
        text = f"data, {span}, {batch['record_count']} records, epoch {batch['producer_epoch']}"
    is_broker = bool(batch["is_control"]) or batch["timestamp_type"] == "LogAppendTime"
    return {
        "at_ms": batch["max_timestamp_ms"],
        "clock": "broker" if is_broker and batch["max_timestamp_ms"] is not None else "client",
        "offset": batch["base_offset"],
        "kind": "marker" if batch["is_control"] else "data",
        "text": text,
    }


def _coordinator_event(record: StateRecord) -> Row:
    if record.is_tombstone:
        text = "the transactional id is removed (tombstone)"
    else:
        listed = ", ".join(f"{topic}-{partition}" for topic, partition in record.topic_partitions)
        where = f" of {listed}" if listed else ""
        text = f"{record.state}{where}, producer id {record.producer_id}, epoch {record.producer_epoch}"
    return {"at_ms": record.moment_ms, "clock": "broker", "offset": None, "kind": "coordinator", "text": text}
