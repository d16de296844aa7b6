"""What a record of `__transaction_state` says, in each form that Kafka's tools print it.

Shared by dumps and console exports. A value outside of Kafka's own field ranges is refused as a whole: half a value
would be evidence that nobody wrote. Source: TransactionLogValue.json and TransactionLog, Kafka 0.11 to 4.3.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.kafka.batch_format import LAST_TIME_MS
from txn_analysis.kafka.state_partition import java_hash

if TYPE_CHECKING:
    from txn_analysis.read.inputs.window import Row

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
ID_MAX_BYTES = 2**15 - 1
_INT16_MAX, _INT32_MAX, _INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1

_TOPIC_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")

_NO_VALUE: Row = {
    "state": None,
    "producer_id": None,
    "previous_producer_id": None,
    "next_producer_id": None,
    "producer_epoch": None,
    "timeout_ms": None,
    "topic_partitions": None,
    "last_update_ms": None,
    "start_ms": None,
    "client_transaction_version": None,
}
# The fields of a value's JSON: name -> (column, smallest, largest, default); a default of None means always printed.
_FIELDS: dict[str, tuple[str, int, int, int | None]] = {
    "producerId": ("producer_id", ABSENT, _INT64_MAX, None),
    "previousProducerId": ("previous_producer_id", ABSENT, _INT64_MAX, ABSENT),
    "nextProducerId": ("next_producer_id", ABSENT, _INT64_MAX, ABSENT),
    "producerEpoch": ("producer_epoch", ABSENT, _INT16_MAX, None),
    "nextProducerEpoch": ("next_producer_epoch", ABSENT, _INT16_MAX, ABSENT),
    "transactionTimeoutMs": ("timeout_ms", 0, _INT32_MAX, None),
    "transactionStatus": ("status", 0, len(STATES) - 1, None),
    "transactionLastUpdateTimestampMs": ("last_update_ms", ABSENT, LAST_TIME_MS, None),
    "transactionStartTimestampMs": ("start_ms", ABSENT, LAST_TIME_MS, None),
    "clientTransactionVersion": ("client_transaction_version", ABSENT, _INT16_MAX, ABSENT),
}
_PARTITIONS = "transactionPartitions"
_RANGES = {column: (low, high) for column, low, high, _ in _FIELDS.values()}


# The columns that say which batch a record stands in, where that is not known.
NO_BATCH: Row = {"batch_base_offset": None, "batch_last_offset": None, "leader_epoch": None}


class BadValueError(ValueError):
    """A value that Kafka would not write; the message says what is wrong with it, never what it holds."""


def batch_place(base_offset: int, last_offset: int, leader_epoch: int) -> Row:
    """Where the batch of a record stands, in columns of `transaction_states`."""
    return {
        "batch_base_offset": base_offset,
        "batch_last_offset": last_offset,
        "leader_epoch": None if leader_epoch == ABSENT else leader_epoch,
    }


def state_row(place: Row, transactional_id: str, value: Row | None) -> Row:
    """A row of `transaction_states`: where the record stands, its id, and its value (None for a tombstone)."""
    content = value if value is not None else _NO_VALUE | {"topic_partitions": []}
    return (
        place
        | {
            "transactional_id": transactional_id,
            "transactional_id_hash": java_hash(transactional_id),
            "is_tombstone": value is None,
            "is_undecodable": False,
        }
        | content
    )


def undecodable_row(place: Row) -> Row:
    """A row for a record that exists but could not be read: it may be of any id."""
    unknown = {
        "transactional_id": None,
        "transactional_id_hash": None,
        "is_tombstone": False,
        "is_undecodable": True,
    }
    return place | unknown | _NO_VALUE


def text_value(fields: dict[str, bytes]) -> Row:
    """A value from the fields of a text form, named as the columns; `partitions` is the joined list.

    Raises:
        BadValueError: unknown state, a number out of range, or no proper list of partitions.
    """
    state = fields["state"].decode()
    if state not in STATES:
        raise BadValueError("unknown transaction state")
    numbers = {name: _in_range(name, int(fields[name])) for name in _RANGES.keys() & fields.keys()}
    return (
        _NO_VALUE
        | numbers
        | {"state": state, "topic_partitions": _listed(fields["partitions"].decode(errors="replace"))}
    )


def _listed(text: str) -> list[Row]:
    pairs = []
    for name in re.split(", ?", text) if text else []:
        match = _TOPIC_PARTITION.fullmatch(name)
        if not match:
            raise BadValueError("not a list of topic partitions")
        pairs.append((match[1], int(match[2])))
    return _partitions(pairs)


def _partitions(pairs: list[tuple[str, int]]) -> list[Row]:
    if len(set(pairs)) < len(pairs) or any(t in {".", ".."} or not 0 <= p <= _INT32_MAX for t, p in pairs):
        raise BadValueError("not a list of topic partitions")
    return [{"topic": topic, "partition": partition} for topic, partition in sorted(pairs)]


def _in_range(column: str, value: int) -> int | None:
    low, high = _RANGES[column]
    if not low <= value <= high:
        raise BadValueError(f"{column} is out of range")
    return None if value == ABSENT else value


class _Refused:
    """Stands for JSON that Kafka does not write: a repeated name, a fraction, NaN."""

    def __init__(self, *_: object) -> None:
        pass


def _object(pairs: list[tuple[str, Any]]) -> object:
    named = dict(pairs)
    return named if len(named) == len(pairs) else _Refused()


# Integers stay exact; what is refused does not stop the decoder, so that the end of the object is still found.
JSON_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_Refused, parse_constant=_Refused)


def fields_of(value: Any, *names: str) -> tuple[Any, ...]:
    """The members of a JSON object that has exactly these names.

    Raises:
        BadValueError: no object, or one with other names.
    """
    if type(value) is not dict or value.keys() != set(names):
        raise BadValueError("not the JSON of a transaction state record")
    return tuple(value[name] for name in names)


def json_id(data: Any) -> str:
    """The transactional id from the `data` of a key.

    Raises:
        BadValueError: no id, one longer than Kafka's strings, or no text (half of a surrogate pair).
    """
    (transactional_id,) = fields_of(data, "transactionalId")
    if not isinstance(transactional_id, str) or id_bytes(transactional_id) > ID_MAX_BYTES:
        raise BadValueError("not a transactional id")
    return transactional_id


def id_bytes(transactional_id: str) -> int:
    """Length of an id in the log, in bytes.

    Raises:
        BadValueError: half of a surrogate pair, which no encoder writes.
    """
    try:
        return len(transactional_id.encode())
    except UnicodeEncodeError:
        raise BadValueError("not a transactional id") from None


def json_value(data: Any) -> Row:
    """A value from its `data`, versions 0 and 1, tagged fields included.

    Raises:
        BadValueError: other fields than Kafka's, or one out of its range.
    """
    if type(data) is not dict or not data.keys() <= {_PARTITIONS, *_FIELDS} or _PARTITIONS not in data:
        raise BadValueError("not the JSON of a transaction state record")
    row = dict(_NO_VALUE)
    for name, (column, _, _, default) in _FIELDS.items():
        value = data.get(name, default)
        if type(value) is not int:
            raise BadValueError(f"{column} is not a whole number")
        row[column] = _in_range(column, value)
    del row["next_producer_epoch"]
    row["state"] = STATES[row.pop("status")]
    row["topic_partitions"] = _json_partitions(data[_PARTITIONS])
    return row


def _json_partitions(listed: Any) -> list[Row]:
    pairs: list[tuple[str, int]] = []
    for entry in _list(listed if listed is not None else []):
        topic, partitions = fields_of(entry, "topic", "partitionIds")
        is_topic = isinstance(topic, str) and _TOPIC.fullmatch(topic)
        if not is_topic or any(type(partition) is not int for partition in _list(partitions)):
            raise BadValueError("not a list of topic partitions")
        pairs += [(topic, partition) for partition in partitions]
    return _partitions(pairs)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadValueError("not a list of topic partitions")
    return value
