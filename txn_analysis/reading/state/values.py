"""What a record of `__transaction_state` says, in each form that Kafka's tools print it.

Shared by dumps and console exports. A value outside of Kafka's own field ranges is refused as a whole: half a value
would be evidence that nobody wrote. Tagged fields of a newer Kafka are read over: what they say is unknown, and the
record says so (`may_list_more`, `may_name_more`). Source: TransactionLogValue.json and TransactionLog, Kafka 0.11 to
4.4.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from txn_analysis.columns.arrays import ABSENT, known
from txn_analysis.kafka.names import ID_MAX_BYTES, LAST_TIME_MS
from txn_analysis.kafka.transactions import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.columns.values import Json

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
STATUS = "transactionStatus"
"""The state in a value's JSON: its number; from the tools of 4.4 on its name (KAFKA-20712), or digits of a number that
they have no name for.
"""
PRINTED_STATES = (*STATES, *map(str, range(len(STATES))))
"""The strings that may stand for a state, in the order of their numbers: all names, and all numbers as digits."""
_INT16_MAX, _INT32_MAX, _INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1

_TOPIC_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")

# The numbers of a value's JSON: name -> (column, smallest, largest).
_FIELDS = {
    "producerId": ("producer_id", ABSENT, _INT64_MAX),
    "previousProducerId": ("previous_producer_id", ABSENT, _INT64_MAX),
    "nextProducerId": ("next_producer_id", ABSENT, _INT64_MAX),
    "producerEpoch": ("producer_epoch", ABSENT, _INT16_MAX),
    "nextProducerEpoch": ("next_producer_epoch", ABSENT, _INT16_MAX),
    "transactionTimeoutMs": ("timeout_ms", 0, _INT32_MAX),
    STATUS: ("status", 0, len(STATES) - 1),
    "transactionLastUpdateTimestampMs": ("last_update_ms", ABSENT, LAST_TIME_MS),
    "transactionStartTimestampMs": ("start_ms", ABSENT, LAST_TIME_MS),
    "clientTransactionVersion": ("client_transaction_version", ABSENT, _INT16_MAX),
}
TAGGED_FIELDS = {
    "previousProducerId": (ABSENT, 8),
    "nextProducerId": (ABSENT, 8),
    "clientTransactionVersion": (0, 2),
    "nextProducerEpoch": (ABSENT, 2),
}
"""Those of them that are tagged, by the numbers of their tags: what is not written, and the bytes of the others."""
JSON_NUMBERS = tuple(_FIELDS)
_NO_COLUMNS = {"next_producer_epoch", "status"}  # nothing asks for the first one; the column `state` has names
NUMBER_COLUMNS = {column: name for name, (column, *_) in _FIELDS.items() if column not in _NO_COLUMNS}
"""The name in JSON of each column that is a number."""
JSON_PARTITIONS = "transactionPartitions"
_PRINTED = {JSON_PARTITIONS, *_FIELDS}
_FIELD_NAME = re.compile("[a-z][a-zA-Z0-9]*")  # of Kafka's message definitions, as JSON has it
_RANGES = {column: (low, high) for column, low, high in _FIELDS.values()}


def number_bounds(name: str) -> tuple[int, int]:
    """The smallest and the largest number that a field can have, by its name in JSON; ABSENT may stand for none."""
    return _FIELDS[name][1:]


class BadValueError(ValueError):
    """A value that Kafka would not write; the message says what is wrong with it, never what it holds.

    `transactional_id` is whose record it is, where its key was read to the byte.
    """

    transactional_id: str | None = None


TransactionLogValue = dict[str, Any]
"""What the value of a record says, by the columns of `transaction_states`; under the name of Kafka's schema."""


def text_value(printed: re.Match[bytes], partitions: bytes, start_ms: bytes | None = None) -> TransactionLogValue:
    """A value from the fields of a text form, by their names, and its joined list of partitions.

    Raises:
        BadValueError: unknown state, a number out of range, or no proper list of partitions.
    """
    state = printed["state"].decode()
    if state not in STATES:
        raise BadValueError("unknown transaction state")
    texts = {name: printed[name] for name in ("producer_id", "producer_epoch", "timeout_ms", "last_update_ms")}
    texts |= {} if start_ms is None else {"start_ms": start_ms}
    numbers = {name: _in_range(name, text) for name, text in texts.items()}
    return {**numbers, "state": state, "topic_partitions": text_partitions(partitions)}


def text_partitions(listed: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of a text form's list, without its brackets, sorted.

    Raises:
        BadValueError: it is no such list.
    """
    text, pairs = listed.decode(errors="replace"), []
    for name in re.split(", ?", text) if text else []:
        match = _TOPIC_PARTITION.fullmatch(name)
        if not match:
            raise BadValueError("not a list of topic partitions")
        pairs.append(TopicPartition(match[1], int(match[2])))
    return sorted_partitions(pairs)


def is_topic_name(topic: object) -> bool:
    """Whether something is a name of such characters as topics have."""
    return isinstance(topic, str) and _TOPIC.fullmatch(topic) is not None


def sorted_partitions(pairs: list[TopicPartition]) -> tuple[TopicPartition, ...]:
    """The partitions of a list, whose topics have proper names, sorted.

    Raises:
        BadValueError: one is there twice, or has a name or a number that Kafka does not give.
    """
    if len(set(pairs)) < len(pairs) or any(t in {".", ".."} or not 0 <= p <= _INT32_MAX for t, p in pairs):
        raise BadValueError("not a list of topic partitions")
    return tuple(sorted(pairs))


def _in_range(column: str, printed: bytes) -> int | None:
    low, high = _RANGES[column]
    value = int(printed)
    if not low <= value <= high:
        raise BadValueError(f"{column} is out of range")
    return known(value)


class _Refused:
    """Stands for JSON that Kafka does not write: a repeated name, NaN."""

    def __init__(self, *_: object) -> None:
        pass


def _object(pairs: list[tuple[str, Any]]) -> object:
    named = dict(pairs)
    return named if len(named) == len(pairs) else _Refused()


# Integers stay exact; what is refused does not stop the decoder, so that the end of the object is still found.
JSON_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_Refused)


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


def unknown_names(data: Mapping[str, Json], *, is_flexible: bool) -> frozenset[str]:
    """The tagged fields of a value's JSON that this version does not know: those of a newer Kafka.

    Args:
        data: the members of the value.
        is_flexible: it is of version 1; version 0 has no tagged fields.

    Raises:
        BadValueError: a name that no field of Kafka has, a name that is repeated within one, or any in version 0.
    """
    unknown = frozenset(data.keys() - _PRINTED)
    is_plain = is_flexible or not (unknown or data.keys() & TAGGED_FIELDS.keys())
    if not is_plain or not all(_FIELD_NAME.fullmatch(name) and _is_proper(data[name]) for name in unknown):
        raise BadValueError("not the JSON of a transaction state record")
    return unknown


def _is_proper(value: Any) -> bool:
    """Nothing in it is refused."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, _Refused):
            return False
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return True


def json_value(data: Any, *, is_flexible: bool) -> TransactionLogValue:
    """A value from its `data`, version 1 or 0, tagged fields included.

    Where it has some of a newer Kafka, its list may have been changed by them, and they may hold a producer id.

    Raises:
        BadValueError: other fields than Kafka's, or one out of its range.
    """
    if type(data) is not dict or JSON_PARTITIONS not in data:
        raise BadValueError("not the JSON of a transaction state record")
    is_newer = bool(unknown_names(data, is_flexible=is_flexible)) or None
    numbers = _numbers(data)
    columns = {column: known(numbers[column]) for column in NUMBER_COLUMNS}
    listed = {"state": STATES[numbers["status"]], "topic_partitions": json_partitions(data[JSON_PARTITIONS])}
    return {**columns, **listed, "may_list_more": is_newer, "may_name_more": is_newer}


def _numbers(data: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of a value by their columns; ABSENT stands for none."""
    numbers = {}
    for name, (column, low, high) in _FIELDS.items():
        value = data.get(name, ABSENT if name in TAGGED_FIELDS else None)
        if name == STATUS and isinstance(value, str):
            value = _state_number(value)
        if type(value) is not int:
            raise BadValueError(f"{column} is not a whole number")
        if not low <= value <= high:
            raise BadValueError(f"{column} is out of range")
        numbers[column] = value
    return numbers


def _state_number(printed: str) -> int:
    if printed not in PRINTED_STATES:
        raise BadValueError("unknown transaction state")
    return PRINTED_STATES.index(printed) % len(STATES)


def json_partitions(listed: Any) -> tuple[TopicPartition, ...]:
    """The partitions of a JSON list, or of null for none, sorted.

    Raises:
        BadValueError: it is no such list.
    """
    pairs: list[TopicPartition] = []
    for entry in _list(listed if listed is not None else []):
        topic, partitions = fields_of(entry, "topic", "partitionIds")
        if not is_topic_name(topic) or any(type(partition) is not int for partition in _list(partitions)):
            raise BadValueError("not a list of topic partitions")
        pairs += [TopicPartition(topic, partition) for partition in partitions]
    return sorted_partitions(pairs)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadValueError("not a list of topic partitions")
    return value
