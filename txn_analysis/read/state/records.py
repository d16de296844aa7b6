"""A record of `__transaction_state` as it was read: a row of `transaction_states`, whose comments say what each is."""

from __future__ import annotations

from typing import NamedTuple

from txn_analysis.columns.arrays import known
from txn_analysis.kafka.topics import java_hash
from txn_analysis.kafka.transactions import TopicPartition  # noqa: TC001 `fields_of` reads the annotations


class BatchPlace(NamedTuple):
    """Which batch a record stands in; all None where none is printed, or none was read."""

    batch_base_offset: int | None
    batch_last_offset: int | None
    leader_epoch: int | None


class RecordPlace(NamedTuple):
    """Where a record stands; its last columns are those of its `BatchPlace`."""

    ordinal: int
    state_partition: int | None
    offset: int | None
    recorded_ms: int | None
    is_after_gap: bool | None
    batch_base_offset: int | None
    batch_last_offset: int | None
    leader_epoch: int | None


class TransactionLogValue(NamedTuple):
    """What the value of a record says; under the name of Kafka's schema.

    The last two say what tagged fields leave open that are of a newer Kafka, or that were not printed; None without.
    """

    state: str
    producer_id: int | None
    previous_producer_id: int | None
    next_producer_id: int | None
    producer_epoch: int | None
    timeout_ms: int | None
    topic_partitions: tuple[TopicPartition, ...]
    last_update_ms: int | None
    start_ms: int | None
    client_transaction_version: int | None
    may_list_more: bool | None = None
    may_name_more: bool | None = None


class ReadStateRecord(NamedTuple):
    """One record: its `RecordPlace`, its id, and its `TransactionLogValue`; it lacks only which input it is of.

    A tombstone lists no partitions. An undecodable record says nothing but its id, where its key was read to the byte;
    else it may be of any id.
    """

    ordinal: int
    state_partition: int | None
    offset: int | None
    recorded_ms: int | None
    is_after_gap: bool | None
    batch_base_offset: int | None
    batch_last_offset: int | None
    leader_epoch: int | None
    transactional_id: str | None
    transactional_id_hash: int | None
    is_tombstone: bool
    is_undecodable: bool
    state: str | None = None
    producer_id: int | None = None
    previous_producer_id: int | None = None
    next_producer_id: int | None = None
    producer_epoch: int | None = None
    timeout_ms: int | None = None
    topic_partitions: tuple[TopicPartition, ...] | None = None
    last_update_ms: int | None = None
    start_ms: int | None = None
    client_transaction_version: int | None = None
    may_list_more: bool | None = None
    may_name_more: bool | None = None


NO_BATCH = BatchPlace(None, None, None)


def batch_place(base_offset: int, last_offset: int, leader_epoch: int) -> BatchPlace:
    """Where the batch of a record stands, from the numbers of its header."""
    return BatchPlace(base_offset, last_offset, known(leader_epoch))


def state_record(place: RecordPlace, transactional_id: str, value: TransactionLogValue | None) -> ReadStateRecord:
    """A record that was understood; a value that is None is a tombstone."""
    hashed = java_hash(transactional_id)
    if value is None:
        return ReadStateRecord(*place, transactional_id, hashed, True, False, topic_partitions=())
    return ReadStateRecord._make((*place, transactional_id, hashed, False, False, *value))


def undecodable_record(place: RecordPlace, transactional_id: str | None = None) -> ReadStateRecord:
    """A record that exists but could not be read; its id where its key could."""
    hashed = None if transactional_id is None else java_hash(transactional_id)
    return ReadStateRecord(*place, transactional_id, hashed, is_tombstone=False, is_undecodable=True)
