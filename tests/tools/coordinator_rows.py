"""Records of the coordinator, one builder for each form that they take on their way.

All tell of the id `billing` with producer 7, and of the partition orders-0, unless a test says otherwise.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from txn_analysis.coordinator.history import EndMarker, History
from txn_analysis.coordinator.marker_columns import MARKERS
from txn_analysis.coordinator.partition_count import IdSums, sums_of_columns
from txn_analysis.coordinator.state_records import (
    OF_PRODUCER,
    STATES,
    by_id,
    by_producer_id,
    histories_in,
    histories_of,
)
from txn_analysis.kafka.transactions import LIVE, StateRecord, TopicPartition

Row = dict[str, Any]
TODAY, YESTERDAY = 0, 1
ORDERS_0 = (TopicPartition("orders", 0),)
TIMEOUT_MS = 60_000


def record(
    state: str, at_ms: int, *, producer_id: int | None = 7, epoch: int = 3, start_ms: int | None = None, **changes: Any
) -> StateRecord:
    """A record in the history of its id, in a transaction on orders-0 while one is in progress."""
    known: dict[str, Any] = {
        "transactional_id": "billing",
        "state_partition": 2,
        "state": state,
        "is_tombstone": False,
        "producer_id": producer_id,
        "previous_producer_id": None,
        "next_producer_id": None,
        "producer_epoch": epoch,
        "timeout_ms": TIMEOUT_MS,
        "topic_partitions": ORDERS_0 if state in LIVE else (),
        "last_update_ms": at_ms,
        "recorded_ms": at_ms,
        "start_ms": start_ms,
        "client_transaction_version": None,
        "leader_epoch": 5,
    }
    return StateRecord(**known | changes)


def tombstone(at_ms: int) -> StateRecord:
    """The removal of the id."""
    gone: dict[str, Any] = dict.fromkeys(("state", "producer_id", "producer_epoch", "timeout_ms", "last_update_ms"))
    return record("Empty", at_ms)._replace(is_tombstone=True, **gone)


def exported(*history: StateRecord) -> list[StateRecord]:
    """The same records as a console consumer prints them: without the times of their batches."""
    return [each._replace(recorded_ms=None, leader_epoch=None) for each in history]


def state_row(
    offset: int | None, *, rank: int = TODAY, state: str = "Empty", name: str = "billing", **changes: Any
) -> Row:
    """A record as it was read: alone in its batch, appended at ten times its offset; without offset of an export."""
    recorded_ms = None if offset is None else 10 * offset
    known: dict[str, Any] = {
        "ordinal": offset or 0,
        "offset": offset,
        "batch_base_offset": offset,
        "batch_last_offset": offset,
        "leader_epoch": 0,
        "recorded_ms": recorded_ms,
        "last_update_ms": recorded_ms,
        "capture_rank": rank,
        "transactional_id": name,
        "state": state,
    }
    alike = {"input_id": "input", "section_index": 0, "is_tombstone": False, "is_undecodable": False}
    return alike | {"state_partition": None if offset is None else 1} | known | changes


def table_row(
    offset: int, transactional_id: str, state: str | None, producer_id: int | None = 7, **changes: Any
) -> dict[str, Any]:
    """A record as a row of `transaction_states`, with its place in the history of its id; None is a tombstone."""
    return {
        "ingest_id": "ingest",
        "input_id": "input",
        "section_index": 0,
        "ordinal": offset,
        "state_partition": 1,
        "offset": offset,
        "recorded_ms": 1_000 + offset,
        "transactional_id": transactional_id,
        "is_tombstone": state is None,
        "is_undecodable": False,
        "state": state,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "timeout_ms": TIMEOUT_MS,
        "topic_partitions": list(ORDERS_0) if state == "Ongoing" else [],
        "last_update_ms": 1_000 + offset,
    } | changes


def states_of(*rows: Row) -> pa.Table:
    """Rows of the table as rows of `STATES`, all of one partition of the state."""
    kept = [{"audit": 0, "held_by": 1, "is_id_uncertain": False, "capture_rank": TODAY} | row for row in rows]
    listed = [{"topic_partitions": [*map(_listed, row.get("topic_partitions") or ())]} for row in rows]
    return pa.Table.from_pylist([row | own for row, own in zip(kept, listed, strict=True)], schema=STATES)


def _listed(where: tuple[str, int]) -> Row:
    return {"topic": where[0], "partition": where[1]}


def history_rows(*rows: Row) -> pa.Table:
    """Rows of the table as rows of `HISTORIES`."""
    states, none = states_of(*rows), np.zeros(len(rows), np.int64)
    return histories_of(states, none, by_id(states, none, none))


def read_histories(*rows: Row) -> dict[str, History]:
    """Rows of the table as the histories of their ids."""
    return {own[0].transactional_id: own for own in histories_in(history_rows(*rows)["history"])}


def of_producers_ids(*rows: Row) -> pa.Table:
    """Rows of the table as rows of `OF_PRODUCER`."""
    return pa.Table.from_batches(by_producer_id(iter(history_rows(*rows).to_batches())), OF_PRODUCER)


def known_of(producer_id: int, *histories: list[StateRecord]) -> pa.Table:
    """Histories of ids that have, or had, a producer id, as rows of `OF_PRODUCER`."""
    said = [{"audit": 0, "producer_id": producer_id, "history": [*map(_said, own)]} for own in histories]
    return pa.Table.from_pylist(said, schema=OF_PRODUCER)


def _said(record: StateRecord) -> Row:
    return record._asdict() | {"topic_partitions": [*map(_listed, record.topic_partitions)]}


def marker_rows(found: Mapping[int, Mapping[TopicPartition, Iterable[EndMarker]]]) -> pa.Table:
    """The end markers of some producers, as rows of `MARKERS`."""
    rows = [
        {"topic": where.topic, "partition": where.partition, "producer_id": producer_id, **marker._asdict()}
        for producer_id, places in found.items()
        for where, own in places.items()
        for marker in own
    ]
    return pa.Table.from_pylist(rows, schema=MARKERS)


def sums_of_ids(held: Iterable[tuple[int | None, int | None]]) -> IdSums:
    """What records say of the count of partitions: of each the hash of its id, and the partition that holds it."""
    known = [(hashed, partition) for hashed, partition in held if hashed is not None and partition is not None]
    hashes, partitions = np.array(known, np.int64).reshape(-1, 2).T
    return sums_of_columns(hashes, partitions)
