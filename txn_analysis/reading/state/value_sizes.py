"""How many bytes key and value of a state record take in the log, computed from what a decoder printed of them.

Text that was altered on its way no longer fits the size that its record line prints. Source: TransactionLogValue.json;
version 0 has lengths of fixed size, version 1 (KIP-890, transaction.version 1 on) has compact ones and tagged fields,
which are written only where they are not the default. A tool prints no tagged field that it does not know: a value of
version 1 has *spare bytes* then, which a newer Kafka's fields explain, however many they are but one.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from txn_analysis.columns.arrays import NONE, Array
from txn_analysis.reading.grammar.forms import KEY, KEY_HEAD_BYTES, PAYLOAD, RECORD, TEXT_VALUE, TOMBSTONE
from txn_analysis.reading.grammar.line_form import REST_OF_LINE, any_text
from txn_analysis.reading.state.values import (
    JSON_DECODER,
    JSON_PARTITIONS,
    TAGGED_FIELDS,
    BadValueError,
    fields_of,
    id_bytes,
    json_id,
    json_value,
    unknown_names,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from txn_analysis.columns.values import Json
    from txn_analysis.kafka.transactions import TopicPartition
    from txn_analysis.reading.state.values import TransactionLogValue

PLAIN, FLEXIBLE = 0, 1
"""The versions of a value."""

NEXT_VERSION_BYTES = 1 << 16
_NOT_JSON = "not the JSON of a transaction state record"
MISFIT = "the value's text does not fit its size"

# Version, producer id and epoch, timeout, status; the times of the last update and of the start.
# A record of the text form whose value lists no partitions.
_UNLISTED = re.compile(
    RECORD.part("value_bytes").bounded("value_bytes", value_bytes=rb"\d{1,10}")
    + (b" " + any_text(400) + RECORD.label("header_keys").lstrip() + rb"\[\]" + KEY + REST_OF_LINE + PAYLOAD)
    + (TEXT_VALUE.part("producer_id", "state").loose() + TEXT_VALUE.label("partitions") + rb"\[\],")
)
_FIXED_BYTES = 2 + 8 + 2 + 4 + 1 + 8 + 8
_STRING_BYTES, _ARRAY_BYTES, _PARTITION_BYTES = 2, 4, 4
_TAG_HEAD_BYTES = 2  # number and length of a tagged field
LEAST_FIELD_BYTES = _TAG_HEAD_BYTES
"""Of a tagged field: one that is empty."""
PRODUCER_ID_BYTES = 8
TAGGED_BYTES = {name: (default, _TAG_HEAD_BYTES + size) for name, (default, size) in TAGGED_FIELDS.items()}
"""Of each tagged field what is not written, and the bytes that any other value takes."""
# Decoders that print text leave these fields out, so that any of them may have been written.
_KNOWN_TAGS_BYTES = sorted(
    {
        sum(size for _, size in chosen)
        for count in range(len(TAGGED_BYTES) + 1)
        for chosen in combinations(TAGGED_BYTES.values(), count)
    }
)


class TextSizes:
    """Whether the values of one dump in the text form, which prints no version and no tagged fields, fit their sizes.

    A value without partitions tells its version by its size. Between two of one version, all others are of it as well:
    clusters are upgraded, and seldom downgraded.

    Args:
        can_be_flexible: the tool may be one that can read version 1 (3.4.1 and 3.5 on).
    """

    def __init__(self, *, can_be_flexible: bool) -> None:
        self._versions = {PLAIN, FLEXIBLE} if can_be_flexible else {PLAIN}
        self._before: int | None = None  # the version of the last value without partitions

    def spare_bytes(
        self, partitions: Collection[TopicPartition], value_bytes: int, behind: Callable[[], bytes]
    ) -> int | None:
        """How many bytes of the next value only tagged fields explain, none of which is printed.

        A value that fits version 0 to the byte is of version 0, unless one around it is of version 1.

        Args:
            partitions: its topic partitions.
            value_bytes: the size that its record line prints.
            behind: gives the text behind the record, NEXT_VERSION_BYTES of it.

        Returns:
            None where it cannot have this size.
        """
        topics = topics_of(partitions)
        spare_bytes, after = value_bytes - flexible_bytes(topics), None
        versions = _text_versions(topics, value_bytes) & self._versions
        if not partitions:
            self._before = min(versions, default=self._before)
        elif len(self._versions) > 1 and versions and self._before not in versions:
            after = _next_version(behind())
            versions &= _versions_between(self._before, after)
        if not versions:
            return None
        if PLAIN in versions and (versions == {PLAIN} or FLEXIBLE not in (self._before, after)):
            return 0
        return spare_bytes

    def of_many(
        self, value_bytes: Array, in_version_0: Array, in_version_1: Array, is_listed: Array
    ) -> tuple[Array, Array, Array]:
        """`spare_bytes` of values that follow each other, as far as the text behind them is not asked.

        Args:
            value_bytes: the sizes that their record lines print.
            in_version_0: their sizes in version 0.
            in_version_1: in version 1, without tagged fields.
            is_listed: they have topic partitions.

        Returns:
            The spare bytes; which of them are sure, up to the first that is not; and to each the version of the last
            value without partitions, `after` which of them is to be said when some were taken.
        """
        spare = value_bytes - in_version_1
        is_plain, is_flexible = _fits(value_bytes, in_version_0, in_version_1, is_listed)
        is_flexible &= FLEXIBLE in self._versions
        says = np.flatnonzero(~is_listed & (is_plain | is_flexible))
        versions = np.append(np.where(is_plain[says], PLAIN, FLEXIBLE), NONE if self._before is None else self._before)
        before = versions[np.searchsorted(says, np.arange(len(spare)), "right") - 1]
        is_sure = np.where(
            is_listed,
            (is_plain & (before == PLAIN))
            | (is_flexible & (before == FLEXIBLE))
            | (is_plain & ~is_flexible & (before == NONE)),
            is_plain | is_flexible,
        )
        return np.where(is_plain & (~is_flexible | (before != FLEXIBLE)), 0, spare), is_sure, before

    def after(self, before: int) -> None:
        """Goes on behind some of many values; `before` is what `of_many` said beside the last of them."""
        self._before = None if before == NONE else before


def left_open(spare_bytes: Any) -> tuple[Any, Any]:
    """What fields that were not printed leave open, of one size or of many: whether some are of a newer Kafka, as those
    that this version knows cannot have so many bytes; and whether one may hold a producer id.
    """
    return ~np.isin(spare_bytes, _KNOWN_TAGS_BYTES), spare_bytes >= PRODUCER_ID_BYTES


def _fits(value_bytes: Any, in_version_0: Any, in_version_1: Any, is_listed: Any) -> tuple[Any, Any]:
    """Whether a value can have its size in version 0, and whether in version 1; of one, or of whole columns.

    Without partitions the size of version 0 would be that of version 1 with one empty field, which no type of Kafka's
    is written as.
    """
    is_plain, spare_bytes = value_bytes == in_version_0, value_bytes - in_version_1
    has_fields = (spare_bytes >= LEAST_FIELD_BYTES) & (is_listed | (value_bytes != in_version_0))
    return is_plain, (spare_bytes == 0) | has_fields


def _text_versions(topics: Collection[tuple[str, int]], value_bytes: int) -> set[int]:
    """The versions in which such a value can have this size."""
    fits = _fits(value_bytes, plain_bytes(topics), flexible_bytes(topics), bool(topics))
    return {version for version, is_fit in zip((PLAIN, FLEXIBLE), fits, strict=True) if is_fit}


def _next_version(text: bytes) -> int | None:
    """The version of the first value without partitions in a text; None where there is none."""
    unlisted = _UNLISTED.search(text)
    value_bytes = int(unlisted["value_bytes"]) if unlisted else 0
    return min(_text_versions((), value_bytes), default=None)


def _versions_between(before: int | None, after: int | None) -> set[int]:
    if after == PLAIN and before != FLEXIBLE:
        return {PLAIN}
    return {FLEXIBLE} if before == FLEXIBLE and after != PLAIN else {PLAIN, FLEXIBLE}


def topics_of(partitions: Collection[TopicPartition]) -> Collection[tuple[str, int]]:
    """How many partitions of each topic are in a list; brokers write those of a topic together."""
    return Counter(partition.topic for partition in partitions).items()


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
        return transactional_id, _json_value(text[at:-1], value_bytes)
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


def _json_value(payload: str, value_bytes: int) -> TransactionLogValue | None:
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
