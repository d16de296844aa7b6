"""Batches of a decoded `__transaction_state` dump whose text is as usual: many records at once, as columns.

A batch is as usual where as many record lines as it counts, and nothing else, stand between its line and the next
batch's, each of a record that fits its sizes. Only of these it is certain that the reader of one record at a time
(`decoded_dump`) says the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, Array
from txn_analysis.kafka.names import LAST_TIME_MS
from txn_analysis.kafka.record_batch import NO_BYTES
from txn_analysis.reading.dump.scan import Slice
from txn_analysis.reading.grammar.field_reader import read_lines
from txn_analysis.reading.grammar.forms import KEY_HEAD_BYTES
from txn_analysis.reading.grammar.lines import Regions
from txn_analysis.reading.state.records import IS_TEXT, IS_TOMBSTONE, UNREAD, StateColumns, offsets_leave_gaps
from txn_analysis.reading.state.text_records import DUMPED, RECORD_US, columns_of
from txn_analysis.reading.state.text_values import TextSizes, left_open

_BATCH_COLUMNS = {
    "batch_base_offset": "base_offset",
    "batch_last_offset": "last_offset",
    "leader_epoch": "leader_epoch",
}
_MOST_SIZE = 10**10  # a size is printed in fewer digits than this has
_FEW, _MANY = 16, 1 << 16


class ReadBatches(NamedTuple):
    """Some batches that were taken: rows of their records, and what the next batch is held against."""

    rows: pa.RecordBatch
    end_bytes: int
    last_batch: dict[str, int]
    last_offset: int | None


@dataclass
class PlainBatches:
    """The batches of a slice, and which of them are as usual.

    Attributes:
        first_bytes: where in the input the slice begins.
        partition: of the state.
        columns: all its record lines.
        batches: the columns of its batch lines.
        start: the first byte of each batch's line, in the slice.
        stop: the byte after its last record.
        first_record: the first of its records.
        is_usual: whether it is as usual.
        run_stop: the first batch behind it that does not follow it, as usual, without a break.
    """

    first_bytes: int
    partition: int
    columns: StateColumns
    batches: dict[str, Array]
    start: Array
    stop: Array
    first_record: Array
    is_usual: Array
    run_stop: Array
    _most: int = _FEW

    @classmethod
    def of(cls, text_slice: Slice, partition: int) -> Self | None:
        """The batches of a slice; None where so few are read sooner one by one."""
        lines, candidates = text_slice.lines, text_slice.candidates
        starts, ends = lines.starts[lines.record_lines], lines.ends[lines.record_lines]
        read = read_lines(lines.data, starts, ends, DUMPED.lines, plain_us=RECORD_US)
        if read is None:
            return None
        columns = columns_of(lines.data, starts, *read, DUMPED.kinds)
        batches, regions = dict(candidates.columns), Regions.of(lines, candidates)
        is_usual = regions.is_plain & (batches["magic"] == 2)
        is_usual &= batches["is_valid"] & ~batches["is_control"]
        is_usual &= _has_good_records(columns, batches, regions.first_record)
        is_usual[-1] &= lines.data.endswith(b"\n")
        start, stop = regions.line_start, regions.stop
        follows = batches["base_offset"][1:] > batches["last_offset"][:-1]
        breaks = np.append(np.flatnonzero(~(follows & is_usual[1:])), len(start) - 1)
        run_stop = breaks[np.searchsorted(breaks, np.arange(len(start)))] + 1
        return cls(text_slice.start, partition, columns, batches, start, stop, regions.first_record, is_usual, run_stop)

    def next_batches(
        self, at_bytes: int, sizes: TextSizes, end_offset: int, last_offset: int | None, *, has_lost: bool
    ) -> ReadBatches | None:
        """The next batches, as far as they are as usual; None where the first one is not.

        Args:
            at_bytes: where in the input its line begins.
            sizes: of the values in the text form before it; taken on.
            end_offset: the last offset of what was read before it.
            last_offset: that of the last record before it.
            has_lost: a record before it was not read.
        """
        first = int(np.searchsorted(self.start, at_bytes - self.first_bytes))
        is_there = first < len(self.start) and self.start[first] == at_bytes - self.first_bytes
        if not is_there or not self.is_usual[first] or self.batches["base_offset"][first] <= end_offset:
            return None
        stop = min(first + self._most, int(self.run_stop[first]))
        stop, spare = self._up_to_ambiguous(first, stop, sizes)
        self._most = _FEW if stop - first < self._most else min(2 * self._most, _MANY)
        if stop == first:
            return None
        count = self.batches["record_count"][first:stop]
        row, row_stop = int(self.first_record[first]), int(self.first_record[stop - 1] + count[-1])
        offset = self.columns.read["offset"][row:row_stop]
        of_batch = {name: np.repeat(self.batches[column][first:stop], count) for name, column in _BATCH_COLUMNS.items()}
        place = {
            "ordinal": self.columns.read["start"][row:row_stop] + self.first_bytes,
            "state_partition": self.partition,
            "offset": offset,
            "recorded_ms": np.maximum(self.columns.read["timestamp"][row:row_stop], ABSENT),
            "is_after_gap": offsets_leave_gaps(offset, last_offset, has_lost=has_lost),
        }
        last = {name: int(values[stop - 1]) for name, values in self.batches.items()}
        end = int(self.stop[stop - 1]) + self.first_bytes
        last_offset = int(offset[-1]) if len(offset) else last_offset
        return ReadBatches(self.columns.rows(row, row_stop, place | of_batch | spare), end, last, last_offset)

    def _up_to_ambiguous(self, first: int, stop: int, sizes: TextSizes) -> tuple[int, dict[str, Array]]:
        """Up to which batch the sizes of the text form's values are sure, and what these leave open."""
        row, row_stop = (
            int(self.first_record[first]),
            int(self.first_record[stop - 1] + self.batches["record_count"][stop - 1]),
        )
        rows = slice(row, row_stop)
        values = np.flatnonzero(self.columns.read.kind[rows] == IS_TEXT)
        if not len(values):
            return stop, {}
        value_bytes = self.columns.read["value_bytes"][rows][values]
        plain, flexible = (size[rows][values] for size in self.columns.value_bytes)
        spare, is_sure, version = sizes.of_many(value_bytes, plain, flexible, self.columns.is_listed[rows][values])
        if not is_sure.all():
            unsure = row + values[np.argmin(is_sure)]
            stop = int(np.searchsorted(self.first_record[first:stop], unsure, "right")) - 1 + first
            row_stop = int(self.first_record[stop])
        is_sure_value = values < row_stop - row
        if not is_sure_value.any():
            return stop, {}
        sizes.go_on_behind(int(version[is_sure_value][-1]))
        return stop, _left_open(spare[is_sure_value], values[is_sure_value], row_stop - row)


def _left_open(spare_bytes: Array, values: Array, count: int) -> dict[str, Array]:
    """What tagged fields that were not printed leave open: columns of `count` records, of which some have values."""
    is_newer, names = left_open(spare_bytes)
    if not (is_newer | names).any():
        return {}
    may_list, may_name = np.full(count, ABSENT), np.full(count, ABSENT)
    may_list[values[is_newer]] = 1
    may_name[values] = np.where(is_newer | names, names, ABSENT)
    return {"may_list_more": may_list, "may_name_more": may_name}


def _has_good_records(columns: StateColumns, batches: dict[str, Array], first: Array) -> Array:
    """Whether each of a batch's records is one that fits its sizes and its place in the batch."""
    read, (plain, flexible) = columns.read, columns.value_bytes
    kind, offset, value_bytes = read.kind, read["offset"], read["value_bytes"]
    is_good = (kind != UNREAD) & (offset >= 0) & (read["timestamp"] <= LAST_TIME_MS)
    is_good &= read["key_bytes"] == KEY_HEAD_BYTES + read["id_stop"] - read["id_start"]
    expected = np.select([kind == IS_TOMBSTONE, kind == 0, kind == 1], [NO_BYTES, plain, flexible], value_bytes)
    is_good &= (value_bytes == expected) & (value_bytes < _MOST_SIZE) & ((kind == IS_TOMBSTONE) | (value_bytes >= 0))
    bad = np.append(0, np.cumsum(~is_good))
    falls = np.append(0, np.cumsum(np.append(False, offset[1:] <= offset[:-1])))
    count = np.where(batches["record_count"] <= len(kind) - first, batches["record_count"], 0)
    stop = first + count
    has_records = count > 0
    has_good = bad[stop] == bad[first]
    ends = np.append(offset, ABSENT)
    is_inside = (ends[first] >= batches["base_offset"]) & (ends[stop - 1] <= batches["last_offset"])
    is_inside &= falls[stop] == falls[np.minimum(first + 1, stop)]
    is_usual: Array = ~has_records | (has_good & is_inside)
    return is_usual
