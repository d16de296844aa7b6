"""The physical lines of a slice of a dump."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from txn_analysis.ingest.grammar import BATCH_LINE_START, LEGACY_BATCH_LINE_START, RECORD_LINE_START

Array = np.ndarray[Any, np.dtype[Any]]

_NEWLINE = 10
_STARTS = (BATCH_LINE_START, RECORD_LINE_START, LEGACY_BATCH_LINE_START)
_WORD_BYTES = 8  # no start is shorter
_SPLIT_BYTES = 4 << 20


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
        raw = np.frombuffer(data, np.uint8)
        none = np.empty(0, np.int64)
        found = [(none, none, none.astype(np.int8))]
        next_start = 0
        for at in range(0, len(data) + 1, _SPLIT_BYTES):
            stop = min(at + _SPLIT_BYTES, len(data))
            ends = np.flatnonzero(raw[at:stop] == _NEWLINE) + at
            if stop == len(data) and data and not data.endswith(b"\n"):
                ends = np.append(ends, len(data))
            if not len(ends):
                continue
            starts = np.append(next_start, ends[:-1] + 1)
            next_start = int(ends[-1]) + 1
            kept, kinds = _kinds(raw, starts)
            found.append((starts[kept], ends[kept], kinds))
        return cls(data, *[np.concatenate(column) for column in zip(*found, strict=True)])

    @cached_property
    def stops(self) -> Array:
        """The byte after each line, its newline included."""
        stops: Array = np.minimum(self.ends + 1, len(self.data))
        return stops

    @cached_property
    def batch_lines(self) -> Array:
        """Indexes of the lines that begin like a batch line."""
        return np.flatnonzero(self.kinds == _STARTS.index(BATCH_LINE_START))

    @cached_property
    def legacy_batch_lines(self) -> Array:
        """Indexes of the lines that begin like a batch line of message formats 0 and 1."""
        return np.flatnonzero(self.kinds == _STARTS.index(LEGACY_BATCH_LINE_START))

    @cached_property
    def record_lines(self) -> Array:
        """Indexes of the lines that begin like a record line."""
        return np.flatnonzero(self.kinds == _STARTS.index(RECORD_LINE_START))

    def is_record_line(self, index: Array) -> Array:
        """Whether the lines at `index` begin like record lines."""
        is_record: Array = self.kinds[index] == _STARTS.index(RECORD_LINE_START)
        return is_record

    def taken(self, index: Array) -> pa.LargeBinaryArray:
        """The lines at `index`, which ascends, newlines included, as an Arrow column."""
        bounds = np.empty(2 * len(index), np.int64)  # of each line, and of what is left out before the next one
        bounds[0::2], bounds[1::2] = self.starts[index], self.stops[index]
        if (bounds[1:-1:2] == bounds[2::2]).all():
            return _column(self.data, np.append(bounds[0::2], bounds[-1:]), len(index))
        with_gaps = _column(self.data, bounds, len(bounds) - 1)
        return with_gaps.take(pa.array(np.arange(0, len(bounds) - 1, 2)))

    def joined(self, index: Array) -> bytes:
        """The lines at `index`, which ascends, newlines included, one after another."""
        is_all = (self.stops[index] - self.starts[index]).sum() == len(self.data)
        return self.data if is_all else bytes_of(self.taken(index))

    def text(self, line: int) -> bytes:
        """One line without its newline."""
        return self.data[self.starts[line] : self.ends[line]]


def bytes_of(lines: pa.LargeBinaryArray) -> bytes:
    """All bytes of an Arrow column without NULLs, one value after another."""
    if not len(lines):
        return b""
    _, bounds, data = lines.buffers()
    first, *_, last = np.frombuffer(bounds, np.int64, len(lines) + 1, lines.offset * 8)[[0, -1]].tolist()
    joined: bytes = data.slice(first, last - first).to_pybytes()
    return joined


def _column(data: bytes, bounds: Array, count: int) -> pa.LargeBinaryArray:
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def _kinds(raw: Array, starts: Array) -> tuple[Array, Array]:
    """Which of the lines that start at `starts` are kept, and their kinds."""
    is_long = np.searchsorted(starts, len(raw) - _WORD_BYTES, "right")
    if not is_long:
        return np.empty(0, np.int64), np.empty(0, np.int8)
    heads = np.lib.stride_tricks.sliding_window_view(raw, _WORD_BYTES)[starts[:is_long]].view(np.uint64)[:, 0]
    kinds = np.full(len(heads), -1, np.int8)
    for kind, prefix in enumerate(_STARTS):
        word = np.frombuffer(prefix, np.uint64, 1)[0]
        kinds[_starting_with(raw, starts, np.flatnonzero(heads == word), prefix)] = kind
    kept = np.flatnonzero(kinds >= 0)
    return kept, kinds[kept]


def _starting_with(raw: Array, starts: Array, found: Array, prefix: bytes) -> Array:
    """Of the lines `found`, whose first word is that of `prefix`, those that begin with all of it."""
    found = found[starts[found] + len(prefix) <= len(raw)]
    for k in range(_WORD_BYTES, len(prefix)):
        found = found[raw[starts[found] + k] == prefix[k]]
    return found
