"""How many bytes the value of a state record takes in the log, computed from what a decoder printed of it.

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

from txn_analysis.read.dump.forms import RECORD
from txn_analysis.read.dump.line_form import REST_OF_LINE, any_text
from txn_analysis.read.state.forms import KEY, PAYLOAD, TEXT_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from txn_analysis.kafka.transactions import TopicPartition

PLAIN, FLEXIBLE = 0, 1
"""The versions of a value."""

NEXT_VERSION_BYTES = 1 << 16
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
_PRODUCER_ID_BYTES = 8
# The tagged fields of a value: its name in JSON, the default that is not written, its bytes.
_TAGGED = (
    ("previousProducerId", -1, 8),
    ("nextProducerId", -1, 8),
    ("clientTransactionVersion", 0, 2),
    ("nextProducerEpoch", -1, 2),
)
# Decoders that print text leave these fields out, so that any of them may have been written.
_KNOWN_TAGS_BYTES = frozenset(
    sum(_TAG_HEAD_BYTES + size for _, _, size in chosen)
    for count in range(len(_TAGGED) + 1)
    for chosen in combinations(_TAGGED, count)
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
        # Brokers write the partitions of a topic together.
        topics = Counter(partition.topic for partition in partitions).items()
        spare_bytes, after = value_bytes - _flexible_bytes(topics), None
        versions = _text_versions(topics, value_bytes, spare_bytes) & self._versions
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


def are_of_known_fields(spare_bytes: int) -> bool:
    """Tagged fields that this version knows can have so many bytes; those of a newer Kafka need not be there."""
    return spare_bytes in _KNOWN_TAGS_BYTES


def can_hold_producer_id(spare_bytes: int) -> bool:
    """Fields that are not read, and have so many bytes, may hold a producer id."""
    return spare_bytes >= _PRODUCER_ID_BYTES


def _text_versions(topics: Collection[tuple[str, int]], value_bytes: int, spare_bytes: int) -> set[int]:
    """The versions in which such a value can have this size.

    Without partitions the size of version 0 would be that of version 1 with one empty field, which no type of Kafka's
    is written as.
    """
    is_plain = value_bytes == _plain_bytes(topics)
    is_flexible = spare_bytes == 0 or (spare_bytes >= LEAST_FIELD_BYTES and (bool(topics) or not is_plain))
    if is_plain:
        return {PLAIN, FLEXIBLE} if is_flexible else {PLAIN}
    return {FLEXIBLE} if is_flexible else set()


def _next_version(text: bytes) -> int | None:
    """The version of the first value without partitions in a text; None where there is none."""
    found = _UNLISTED.search(text)
    value_bytes = int(found["value_bytes"]) if found else 0
    return min(_text_versions((), value_bytes, value_bytes - _flexible_bytes(())), default=None)


def _versions_between(before: int | None, after: int | None) -> set[int]:
    if after == PLAIN and before != FLEXIBLE:
        return {PLAIN}
    return {FLEXIBLE} if before == FLEXIBLE and after != PLAIN else {PLAIN, FLEXIBLE}


def json_value_bytes(data: dict[str, Any], *, is_flexible: bool) -> int:
    """The size of a value that was printed as JSON, without tagged fields that this version does not know."""
    topics = [(entry["topic"], len(entry["partitionIds"])) for entry in data["transactionPartitions"] or ()]
    if not is_flexible:
        return _plain_bytes(topics)
    tags_bytes = sum(_TAG_HEAD_BYTES + size for name, default, size in _TAGGED if data.get(name, default) != default)
    return _flexible_bytes(topics) + tags_bytes


def _plain_bytes(topics: Iterable[tuple[str, int]]) -> int:
    listed = (_STRING_BYTES + len(topic) + _ARRAY_BYTES + _PARTITION_BYTES * count for topic, count in topics)
    return _FIXED_BYTES + _ARRAY_BYTES + sum(listed)


def _flexible_bytes(topics: Iterable[tuple[str, int]]) -> int:
    """The size without tagged fields; their number takes a byte, of a value and of each topic in it."""
    sizes = [
        _compact_bytes(len(topic)) + len(topic) + _compact_bytes(count) + _PARTITION_BYTES * count + 1
        for topic, count in topics
    ]
    return _FIXED_BYTES + _compact_bytes(len(sizes)) + sum(sizes) + 1


def _compact_bytes(length: int) -> int:
    """Bytes of a length in the compact form, one more than it as an unsigned varint; that of null takes one as well."""
    return max(1, -(-(length + 1).bit_length() // 7))
