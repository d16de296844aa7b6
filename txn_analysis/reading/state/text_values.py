"""What a record of `__transaction_state` says in the text form, of dumps by tools up to 4.0 and of console exports.

It prints no version of a value and no tagged fields. Of a dump, whose record lines print sizes, these tell the version;
where a value is of version 1, fields that are not printed explain its spare bytes (see `values`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, known
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.reading.grammar.forms import KEY, PAYLOAD, RECORD, TEXT_VALUE
from txn_analysis.reading.grammar.line_form import REST_OF_LINE, any_text
from txn_analysis.reading.state.values import (
    FLEXIBLE,
    LEAST_FIELD_BYTES,
    NUMBER_COLUMNS,
    PLAIN,
    PRODUCER_ID_BYTES,
    STATES,
    TAGGED_BYTES,
    BadValueError,
    TransactionLogValue,
    flexible_bytes,
    number_bounds,
    plain_bytes,
    sorted_partitions,
)

NEXT_VERSION_BYTES = 1 << 16

_TOPIC_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})")
# A record of the text form whose value lists no partitions.
_UNLISTED = re.compile(
    RECORD.part("value_bytes").bounded("value_bytes", value_bytes=rb"\d{1,10}")
    + (b" " + any_text(400) + RECORD.label("header_keys").lstrip() + rb"\[\]" + KEY + REST_OF_LINE + PAYLOAD)
    + (TEXT_VALUE.part("producer_id", "state").loose() + TEXT_VALUE.label("partitions") + rb"\[\],")
)
# Decoders that print text leave these fields out, so that any of them may have been written.
_KNOWN_TAGS_BYTES = sorted(
    {
        sum(size for _, size in chosen)
        for count in range(len(TAGGED_BYTES) + 1)
        for chosen in combinations(TAGGED_BYTES.values(), count)
    }
)


@dataclass
class TextSizes:
    """Whether the values of one dump in the text form, which prints no version and no tagged fields, fit their sizes.

    A value without partitions tells its version by its size. Between two of one version, all others are of it as well:
    clusters are upgraded, and seldom downgraded.

    Attributes:
        can_be_flexible: the tool may be one that can read version 1 (3.4.1 and 3.5 on).
        before: the version of the last value without partitions.
    """

    can_be_flexible: bool
    before: int | None = None

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
        versions = _text_versions(topics, value_bytes) - (set() if self.can_be_flexible else {FLEXIBLE})
        if not partitions:
            self.before = min(versions, default=self.before)
        elif self.can_be_flexible and versions and self.before not in versions:
            after = _next_version(behind())
            versions &= _versions_between(self.before, after)
        if not versions:
            return None
        if PLAIN in versions and (versions == {PLAIN} or FLEXIBLE not in (self.before, after)):
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
            value without partitions, which `go_on_behind` needs when some were taken.
        """
        spare = value_bytes - in_version_1
        is_plain, is_flexible = _fits(value_bytes, in_version_0, in_version_1, is_listed)
        is_flexible &= self.can_be_flexible
        says = np.flatnonzero(~is_listed & (is_plain | is_flexible))
        versions = np.append(np.where(is_plain[says], PLAIN, FLEXIBLE), NONE if self.before is None else self.before)
        before = versions[np.searchsorted(says, np.arange(len(spare)), "right") - 1]
        is_sure = np.where(
            is_listed,
            (is_plain & (before == PLAIN))
            | (is_flexible & (before == FLEXIBLE))
            | (is_plain & ~is_flexible & (before == NONE)),
            is_plain | is_flexible,
        )
        return np.where(is_plain & (~is_flexible | (before != FLEXIBLE)), 0, spare), is_sure, before

    def go_on_behind(self, before: int) -> None:
        """Goes on behind some of many values; `before` is what `of_many` said beside the last of them."""
        self.before = None if before == NONE else before


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


def _in_range(column: str, printed: bytes) -> int | None:
    low, high = number_bounds(NUMBER_COLUMNS[column])
    value = int(printed)
    if not low <= value <= high:
        raise BadValueError(f"{column} is out of range")
    return known(value)


def topics_of(partitions: Collection[TopicPartition]) -> Collection[tuple[str, int]]:
    """How many partitions of each topic are in a list; brokers write those of a topic together."""
    return Counter(partition.topic for partition in partitions).items()
