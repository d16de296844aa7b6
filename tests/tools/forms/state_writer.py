"""Renders records of `__transaction_state`: the decoder's text of every version, and both console formatters."""

import json
from collections.abc import Iterable

from tests.tools.forms.model import (
    MARKER_KEY_BYTES,
    Batch,
    History,
    Record,
    Segment,
    StateRecord,
    StateValue,
    TopicPartition,
    batch_bytes,
)

STATE_TOPIC = "__transaction_state"
STATE_CODES = {
    "Empty": 0,
    "Ongoing": 1,
    "PrepareCommit": 2,
    "PrepareAbort": 3,
    "CompleteCommit": 4,
    "CompleteAbort": 5,
    "Dead": 6,
    "PrepareEpochFence": 7,
}
NAMES_STATES = (4, 4)
"""The first version whose tools print the name of a state as JSON, in place of its number (KAFKA-20712)."""
Json = dict[str, object]


def decoded_text(record: StateRecord, version: tuple[int, int]) -> tuple[str, str]:
    """Key and payload as `--transaction-log-decoder` of that version prints them.

    Raises:
        ValueError: a tool before 2.5 dies on a tombstone.
    """
    if version >= (4, 1):
        return _json_text(record, is_state_named=version >= NAMES_STATES)
    prefix = "" if version < (2, 4) else "transaction_metadata::"
    value = record.value
    key = f"{prefix}transactionalId={record.transactional_id}"
    if value is None:
        if version < (2, 5):
            raise ValueError("a decoder before 2.5 ends with an exception at a tombstone")
        return key, "<DELETE>"
    payload = (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},state={value.state},"
        f"partitions={_partition_set(value.partitions, version)},txnLastUpdateTimestamp={value.last_update_ms},"
        f"txnTimeoutMs={value.timeout_ms}"
    )
    return key, payload


def _partition_set(partitions: Iterable[TopicPartition], version: tuple[int, int]) -> str:
    names = [f"{topic}-{partition}" for topic, partition in partitions]
    if version >= (2, 5):
        return f"[{','.join(names)}]"
    return f"{'Set' if version < (2, 4) else 'HashSet'}({', '.join(names)})"


def _json_text(record: StateRecord, *, is_state_named: bool) -> tuple[str, str]:
    key = _dumps({"type": "0", "data": {"transactionalId": record.transactional_id}})
    if record.value is None:
        return key, "<DELETE>"
    return key, _dumps(
        {"version": str(record.value.version), "data": value_json(record.value, is_state_named=is_state_named)}
    )


def value_json(value: StateValue, *, is_state_named: bool = False) -> Json:
    """The `data` of a value, fields in Kafka's order, tagged fields only where they are not the default."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in value.partitions:
        by_topic.setdefault(topic, []).append(partition)
    listed = [{"topic": topic, "partitionIds": ids} for topic, ids in by_topic.items()]
    data: Json = {
        "producerId": value.producer_id,
        "producerEpoch": value.producer_epoch,
        "transactionTimeoutMs": value.timeout_ms,
        "transactionStatus": value.state if is_state_named else STATE_CODES[value.state],
        "transactionPartitions": None if value.state == "Empty" else listed,
        "transactionLastUpdateTimestampMs": value.last_update_ms,
        "transactionStartTimestampMs": -1 if value.start_ms is None else value.start_ms,
    }
    if value.client_transaction_version:
        data["clientTransactionVersion"] = value.client_transaction_version
    return data


def _dumps(data: Json) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def console_text(records: Iterable[StateRecord], scala_set: str = "HashSet") -> str:
    """Kafka's old console formatter (0.11 to 3.9); `scala_set` is Set in Scala 2.12 builds."""
    lines: list[str] = []
    for record in records:
        name, value = record.transactional_id, record.value
        if value is None:
            lines.append(f"{name}::NULL\n")
            continue
        partitions = ", ".join(f"{topic}-{partition}" for topic, partition in value.partitions)
        lines.append(
            f"{name}::TransactionMetadata(transactionalId={name}, producerId={value.producer_id}, "
            f"producerEpoch={value.producer_epoch}, txnTimeoutMs={value.timeout_ms}, state={value.state}, "
            f"pendingState=None, topicPartitions={scala_set}({partitions}), "
            f"txnStartTimestamp={-1 if value.start_ms is None else value.start_ms}, "
            f"txnLastUpdateTimestamp={value.last_update_ms})\n"
        )
    return "".join(lines)


def console_json(records: Iterable[StateRecord], *, key_word: str = "type", is_state_named: bool = False) -> str:
    """Kafka's JSON console formatter: objects without anything between them; `key_word` is `version` in 3.9."""
    return "".join(
        _dumps(
            {
                "key": {key_word: 0, "data": {"transactionalId": record.transactional_id}},
                "value": record.value
                and {
                    "version": record.value.version,
                    "data": value_json(record.value, is_state_named=is_state_named),
                },
            }
        )
        for record in records
    )


def value_bytes(value: StateValue) -> int:
    """Size of a value in the log, by Kafka's `TransactionLogValue` schema."""
    by_topic: dict[str, int] = {}
    for topic, _ in value.partitions:
        by_topic[topic] = by_topic.get(topic, 0) + 1
    flexible = value.version > 0
    lengths = 3 if flexible else 6
    topics = sum(len(topic) + lengths + 4 * count for topic, count in by_topic.items())
    if not flexible:
        return 37 + topics
    return 35 + topics + (4 if value.client_transaction_version else 0)


def state_batch(offset: int, appended_ms: int, record: StateRecord, leader_epoch: int = 0) -> Batch:
    """The batch that a coordinator writes for one record, sizes as in the log."""
    key_bytes = len(record.transactional_id.encode()) + MARKER_KEY_BYTES
    content_bytes = None if record.value is None else value_bytes(record.value)
    written = Record(offset, appended_ms, key_bytes, content_bytes, state=record)
    return Batch(
        offset,
        offset,
        1,
        max_timestamp_ms=appended_ms,
        size_bytes=batch_bytes([(key_bytes, content_bytes)]),
        leader_epoch=leader_epoch,
        records=(written,),
    )


def state_history(partition: int, batches: Iterable[Batch]) -> History:
    """One partition of `__transaction_state` in one segment."""
    return History(STATE_TOPIC, partition, (Segment(0, tuple(batches)),))
