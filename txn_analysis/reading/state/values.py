"""What a record of `__transaction_state` says, as tools print it in JSON, and how many bytes it takes in the log.

A value outside of Kafka's own field ranges is refused as a whole: half a value would be evidence that nobody wrote. So
is one that no longer fits the size that its record line prints: its text was altered on its way. Tagged fields of a
newer Kafka are read over: what they say is unknown, and the record says so (`may_list_more`, `may_name_more`).

Version 0 has lengths of fixed size, version 1 (KIP-890, transaction.version 1 on) has compact ones and tagged fields,
which are written only where they are not the default. A tool prints no tagged field that it does not know: a value of
version 1 has *spare bytes* then, which a newer Kafka's fields explain, however many they are but one. Source:
TransactionLogValue.json and TransactionLog, Kafka 0.11 to 4.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from txn_analysis.columns.arrays import ABSENT, known
from txn_analysis.columns.values import Json
from txn_analysis.kafka.names import ID_MAX_BYTES, LAST_TIME_MS, java_hash
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.reading.grammar.forms import KEY, KEY_HEAD_BYTES, PAYLOAD, TOMBSTONE
from txn_analysis.tables.logs import StateRecord

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

PLAIN, FLEXIBLE = 0, 1
"""The versions of a value."""
_FIXED_BYTES = 2 + 8 + 2 + 4 + 1 + 8 + 8
"""Version, producer id and epoch, timeout, status; the times of the last update and of the start."""
_STRING_BYTES, _ARRAY_BYTES, _PARTITION_BYTES = 2, 4, 4
LEAST_FIELD_BYTES = 2
"""Of a tagged field: its number and its length, if it is empty."""
PRODUCER_ID_BYTES = 8
TAGGED_BYTES = {name: (default, LEAST_FIELD_BYTES + size) for name, (default, size) in TAGGED_FIELDS.items()}
"""Of each tagged field what is not written, and the bytes that any other value takes."""
_NOT_JSON = "not the JSON of a transaction state record"
MISFIT = "the value's text does not fit its size"


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


class ReadStateRecord(StateRecord):
    """A row of `transaction_states` as it is read: first its place, then its id, then what it says."""

    __slots__ = ()

    def with_key(self, transactional_id: str | None) -> ReadStateRecord:
        """The same record that cannot be read, of this id, where its key was read to the byte."""
        hashed = None if transactional_id is None else java_hash(transactional_id)
        return self._replace(transactional_id=transactional_id, transactional_id_hash=hashed)

    def with_value(self, transactional_id: str, value: TransactionLogValue | None) -> ReadStateRecord:
        """The record at this place, as it was understood; a value that is None is a tombstone."""
        understood = self.with_key(transactional_id)._replace(is_undecodable=False)
        if value is None:
            return understood._replace(is_tombstone=True, topic_partitions=())
        return understood._replace(**value)


def plain_bytes(topics: Iterable[tuple[str, int]]) -> int:
    """The size of a value in version 0, by its topics and how many partitions it has of each."""
    listed = (_STRING_BYTES + len(topic) + _ARRAY_BYTES + _PARTITION_BYTES * count for topic, count in topics)
    return _FIXED_BYTES + _ARRAY_BYTES + sum(listed)


def flexible_bytes(topics: Iterable[tuple[str, int]]) -> int:
    """The same in version 1, without tagged fields; their number takes a byte, of a value and of each topic in it."""
    sizes = [
        _compact_bytes(len(topic)) + len(topic) + _compact_bytes(count) + _PARTITION_BYTES * count + 1
        for topic, count in topics
    ]
    return _FIXED_BYTES + _compact_bytes(len(sizes)) + sum(sizes) + 1


def _compact_bytes(length: int) -> int:
    """Bytes of a length in the compact form, one more than it as an unsigned varint; that of null takes one as well."""
    return max(1, -(-(length + 1).bit_length() // 7))


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
        raise BadValueError(_NOT_JSON)
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
        raise BadValueError(_NOT_JSON)
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
        raise BadValueError(_NOT_JSON)
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


def json_content(content: bytes, key_bytes: int, value_bytes: int) -> tuple[str, TransactionLogValue | None]:
    """Id and value from ` key: {…} payload: {…}` and its newline, whose record line prints these sizes.

    Raises:
        BadValueError: it is not what the tool prints of a state record of these sizes.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BadValueError(_NOT_JSON) from None
    transactional_id, at = json_key(text, key_bytes)
    try:
        return transactional_id, _dumped_value(text[at:-1], value_bytes)
    except BadValueError as problem:
        problem.transactional_id = transactional_id
        raise


def json_key(text: str, key_bytes: int) -> tuple[str, int]:
    """The id from ` key: {…}`, whose record line prints this size, and where the key ends in the text.

    Raises:
        BadValueError: it is not the key of a state record of this size.
    """
    try:
        key, end = JSON_DECODER.raw_decode(text, len(KEY))
    except (ValueError, RecursionError):  # no JSON, endless digits, or nested without end
        raise BadValueError(_NOT_JSON) from None
    record_type, key_data = fields_of(key, "type", "data")
    if record_type != "0":
        raise BadValueError(_NOT_JSON)
    transactional_id = json_id(key_data)
    if key_bytes != KEY_HEAD_BYTES + id_bytes(transactional_id):
        raise BadValueError("the id does not fill the record's key")
    return transactional_id, end


def _dumped_value(payload: str, value_bytes: int) -> TransactionLogValue | None:
    if payload == (PAYLOAD + TOMBSTONE).decode():
        return None
    try:
        value, end = JSON_DECODER.raw_decode(payload, len(PAYLOAD))
    except (ValueError, RecursionError):
        raise BadValueError(_NOT_JSON) from None
    if not payload.startswith(PAYLOAD.decode()) or end != len(payload):
        raise BadValueError(_NOT_JSON)
    version, data = fields_of(value, "version", "data")
    if version not in ("0", "1"):
        raise BadValueError("a value version that is not known")
    is_flexible = version == "1"
    value = json_value(data, is_flexible=is_flexible)
    spare_bytes = value_bytes - _json_bytes(data, is_flexible=is_flexible)
    if spare_bytes == 0 and not value["may_list_more"]:
        return value
    fields = unknown_names(data, is_flexible=is_flexible)
    if not is_flexible or spare_bytes < LEAST_FIELD_BYTES * max(len(fields), 1):
        raise BadValueError(MISFIT)
    return value | {"may_list_more": True, "may_name_more": spare_bytes >= PRODUCER_ID_BYTES}


def _json_bytes(data: Mapping[str, Json], *, is_flexible: bool) -> int:
    """The size of a value that was printed as JSON, without tagged fields that this version does not know."""
    topics = json_topics(data[JSON_PARTITIONS])
    if not is_flexible:
        return plain_bytes(topics)
    tags_bytes = sum(size for name, (default, size) in TAGGED_BYTES.items() if data.get(name, default) != default)
    return flexible_bytes(topics) + tags_bytes


def json_topics(listed: Any) -> Collection[tuple[str, int]]:
    """How many partitions of each topic are in a list in JSON; null is an empty one."""
    return [(entry["topic"], len(entry["partitionIds"])) for entry in listed or ()]
