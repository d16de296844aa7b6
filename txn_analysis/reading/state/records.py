"""Records of `__transaction_state` as they were read: rows of `transaction_states`, one by one or as whole columns.

What the compiled readers found is held against Kafka's bounds and sizes here. Nothing is refused by that: what is not
certain is left to the readers that take one record at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, Array, slices
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.reading.state.values import JSON_NUMBERS, NUMBER_COLUMNS, STATES, TAGGED_BYTES, number_bounds
from txn_analysis.reading.text.section import rows_read
from txn_analysis.tables import TRANSACTION_STATES

UNREAD, IS_TOMBSTONE, IS_TEXT = -2, -1, 2
"""What `ReadRecords.kind` is beside 0 and 1, the versions of a value."""
PLACE_COLUMNS = ("id_start", "id_stop", "list_start", "list_stop")
_LISTS = TRANSACTION_STATES.arrow_schema.field("topic_partitions").type
_INT32_SIGN, _UINT32 = 2**31, 2**32


@dataclass(frozen=True)
class ReadRecords:
    """Records of a text, as columns; of one that was not read only `kind` means something.

    Attributes:
        kind: the version of the value; IS_TEXT where none is printed, IS_TOMBSTONE, or UNREAD.
        id_hash: Java's hash of the id, without its sign.
        columns: by name: PLACE_COLUMNS, where id and list stand in the text; JSON_NUMBERS, those of the value, ABSENT
            where one is not printed; of texts also `start`, where the record begins, and what the prefix of a dump's
            record line says.
    """

    kind: Array
    id_hash: Array
    columns: Mapping[str, Array]

    def part(self, first: int, stop: int) -> ReadRecords:
        """Some of them that follow each other."""
        rows = slice(first, stop)
        columns = {name: values[rows] for name, values in self.columns.items()}
        return ReadRecords(self.kind[rows], self.id_hash[rows], columns)

    def __getitem__(self, name: str) -> Array:
        """A column."""
        return self.columns[name]


class PartitionList(NamedTuple):
    """A list of partitions, and the size of a value with it in each version, tagged fields not counted."""

    partitions: tuple[TopicPartition, ...] = ()
    plain_bytes: int = ABSENT
    flexible_bytes: int = ABSENT


ListReader = Callable[[bytes], PartitionList | None]
"""Reads a list of partitions; None where it is none."""


@dataclass(frozen=True)
class StateColumns:
    """Records of a text, as columns.

    Attributes:
        read: what was read of them; those that are not certain are UNREAD.
    """

    read: ReadRecords
    _data: bytes
    _lists: list[PartitionList]
    _list_of: Array

    @classmethod
    def of(cls, data: bytes, read: ReadRecords, list_readers: Mapping[int, ListReader]) -> Self:
        """What was read of a text or a segment, as far as it can be what Kafka wrote.

        Args:
            data: the bytes that it was read of.
            read: what was read; becomes UNREAD where it cannot be.
            list_readers: by `ReadRecords.kind` what reads a list of partitions, once for each different one.
        """
        kind = read.kind
        is_good = np.ones(len(kind), bool)
        for name in JSON_NUMBERS:
            low, high = number_bounds(name)
            is_good &= (read[name] >= low) & (read[name] <= high)
        lists, list_of = [PartitionList()], np.zeros(len(kind), np.int64)
        for value_kind, list_reader in list_readers.items():
            rows = np.flatnonzero((kind == value_kind) & is_good)
            texts = slices(data, read["list_start"][rows], read["list_stop"][rows]).dictionary_encode()
            read_lists = [_list_of(list_reader, text) for text in texts.dictionary.to_pylist()]
            codes = texts.indices.to_numpy()
            list_of[rows] = codes + len(lists)
            is_good[rows] = np.array([each is not None for each in read_lists], bool)[codes]
            lists += [each or PartitionList() for each in read_lists]
        kind[(kind != IS_TOMBSTONE) & ~is_good] = UNREAD
        return cls(read, data, lists, list_of)

    @cached_property
    def value_bytes(self) -> tuple[Array, Array]:
        """Of printed values the size in version 0, and in version 1 with the tagged fields that are printed."""
        plain, flexible = np.array([(each.plain_bytes, each.flexible_bytes) for each in self._lists])[self._list_of].T
        read = self.read
        tagged = sum(
            np.where((read[name] == default) | (read[name] == ABSENT), 0, size)
            for name, (default, size) in TAGGED_BYTES.items()
        )
        return plain, flexible + tagged

    @cached_property
    def is_listed(self) -> Array:
        """Which of them have partitions."""
        is_listed: Array = np.array([len(each.partitions) > 0 for each in self._lists])[self._list_of]
        return is_listed

    @cached_property
    def _partitions(self) -> pa.Array:
        return _list_column([each.partitions for each in self._lists])

    def rows(self, first: int, stop: int, beside: Mapping[str, Any]) -> pa.RecordBatch:
        """Rows as of `rows_read`; an UNREAD record is undecodable.

        Args:
            first: the first of them.
            stop: the one after the last.
            beside: columns that their text does not say: arrays where ABSENT is NULL, or one value for all.
        """
        read, count = self.read.part(first, stop), stop - first
        is_unread, is_value = read.kind == UNREAD, read.kind >= 0
        id_start, id_stop = read["id_start"], read["id_stop"]
        has_id = id_start != ABSENT
        ids = slices(self._data, id_start[has_id], id_stop[has_id]).cast(pa.large_string()).cast(pa.string())
        signed = np.where(read.id_hash >= _INT32_SIGN, read.id_hash - _UINT32, read.id_hash)
        columns = {
            "transactional_id": ids.take(pa.array(np.cumsum(has_id) - 1, mask=~has_id)),
            "transactional_id_hash": pa.array(signed, pa.int32(), ~has_id),
            "is_tombstone": pa.array(read.kind == IS_TOMBSTONE),
            "is_undecodable": pa.array(is_unread),
            "state": pa.array(STATES).take(pa.array(read["transactionStatus"], mask=~is_value)),
            "topic_partitions": self._partitions.take(pa.array(self._list_of[first:stop], mask=is_unread)),
        }
        numbers = {name: np.where(is_value, read[printed], ABSENT) for name, printed in NUMBER_COLUMNS.items()}
        return rows_read(TRANSACTION_STATES, count, {**columns, **numbers, **beside})


def offsets_leave_gaps(offset: Array, last_offset: int | None, *, has_lost: bool) -> Array:
    """The column `is_after_gap` of some records.

    Args:
        offset: of each record.
        last_offset: of the last one before them.
        has_lost: a record before them was not read.
    """
    is_after_gap: Array = (offset != np.append(ABSENT if last_offset is None else last_offset, offset[:-1]) + 1).astype(
        np.int64
    )
    if last_offset is None:
        is_after_gap[:1] = 1 if has_lost else ABSENT
    return is_after_gap


_SHORT_BYTES = 512


def _list_of(read: ListReader, text: bytes) -> PartitionList | None:
    """The list, which transactions that follow each other name again and again; long ones are not remembered."""
    return _remembered_list(read, text) if len(text) <= _SHORT_BYTES else read(text)


@lru_cache(maxsize=1 << 11)
def _remembered_list(read: ListReader, text: bytes) -> PartitionList | None:
    return read(text)


def _list_column(lists: list[tuple[TopicPartition, ...]]) -> pa.Array:
    every = [partition for listed in lists for partition in listed]
    partitions = pa.StructArray.from_arrays(
        [
            pa.array([each.topic for each in every], pa.string()),
            pa.array([each.partition for each in every], pa.int32()),
        ],
        fields=[*_LISTS.value_type],
    )
    ends = np.append(0, np.cumsum([len(listed) for listed in lists]))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), partitions, type=_LISTS)
