"""The physical lines of a slice of a dump."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from txn_analysis.read.dump.field_reader import index_lines
from txn_analysis.read.dump.forms import LINE_STARTS

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array

_BATCH, _RECORD, _LEGACY_BATCH = range(3)
_KEPT = re.compile(rb"(?m)^" + LINE_STARTS.fields[0].value.pattern + rb"[^\n]*")


@dataclass(frozen=True)
class Lines:
    """The physical lines of a slice that begin like a batch or record line, in file order.

    `starts` and `ends` are byte offsets in `data`, newline excluded; `kinds` tell which it is. Other lines
    are not kept, so that a slice of nothing but newlines costs no memory beyond its own bytes.
    """

    data: bytes
    starts: Array
    ends: Array
    kinds: Array

    @classmethod
    def of(cls, data: bytes) -> Lines:
        """Split at newlines only; the last line may lack one."""
        found, at = index_lines(data, LINE_STARTS) or ([], 0)
        parts = (*found, _index_by_pattern(data, at))
        return cls(data, *[np.concatenate(column) for column in zip(*parts, strict=True)])

    @cached_property
    def stops(self) -> Array:
        """The byte after each line, its newline included."""
        stops: Array = np.minimum(self.ends + 1, len(self.data))
        return stops

    @cached_property
    def batch_lines(self) -> Array:
        """Indexes of the lines that begin like a batch line."""
        return np.flatnonzero(self.kinds == _BATCH)

    @cached_property
    def legacy_batch_lines(self) -> Array:
        """Indexes of the lines that begin like a batch line of message formats 0 and 1."""
        return np.flatnonzero(self.kinds == _LEGACY_BATCH)

    @cached_property
    def record_lines(self) -> Array:
        """Indexes of the lines that begin like a record line."""
        return np.flatnonzero(self.kinds == _RECORD)

    def is_record_line(self, index: Array) -> Array:
        """Whether the lines at `index` begin like record lines."""
        is_record: Array = self.kinds[index] == _RECORD
        return is_record

    def taken(self, index: Array) -> pa.LargeBinaryArray:
        """The lines at `index`, which ascends, newlines included, as an Arrow column."""
        return slices(self.data, self.starts[index], self.stops[index])

    def text(self, line: int) -> bytes:
        """One line without its newline."""
        return self.data[self.starts[line] : self.ends[line]]


def slices(data: bytes, starts: Array, stops: Array) -> pa.LargeBinaryArray:
    """Some stretches of a text, which lie apart and in order, as an Arrow column."""
    if not len(starts):
        return pa.array([], pa.large_binary())
    bounds = np.empty(2 * len(starts), np.int64)  # of each stretch, and of what is left out before the next one
    bounds[0::2], bounds[1::2] = starts, stops
    if (bounds[1:-1:2] == bounds[2::2]).all():
        return _column(data, np.append(bounds[0::2], bounds[-1:]), len(starts))
    with_gaps = _column(data, bounds, len(bounds) - 1)
    return with_gaps.take(pa.array(np.arange(0, len(bounds) - 1, 2)))


def _column(data: bytes, bounds: Array, count: int) -> pa.LargeBinaryArray:
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def _index_by_pattern(data: bytes, at: int) -> tuple[Array, Array, Array]:
    """The lines from `at` on, which is where one begins."""
    words = LINE_STARTS.fields[0].value.words
    found = [(*line.span(), words.index(line[1].decode())) for line in _KEPT.finditer(data, at)]
    starts, ends, kinds = np.array(found or np.empty((0, 3)), np.int64).T
    return starts, ends, kinds.astype(np.int8)
