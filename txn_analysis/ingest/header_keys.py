"""The end of a dump that may be text of a record: header keys are printed raw, and no printed size measures them.

A client can close the list of its header keys itself and print the batch lines that would follow. Where a true batch
follows, two lines claim its position; at the end of the last segment nothing contradicts it. What speaks against it is
that the batch before must have held all of that text, and that the text must end with what is left of its record.
"""

from __future__ import annotations

import lzma
import re
import zlib
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.ingest.batch_lines import read_batch_line
from txn_analysis.ingest.grammar import CODECS, MARKER_LINE, RECORD_PREFIX
from txn_analysis.ingest.record_walk import stated_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.ingest.batch_lines import Candidates
    from txn_analysis.ingest.line_form import Array
    from txn_analysis.ingest.lines import Lines
    from txn_analysis.ingest.plan import Section
    from txn_analysis.ingest.text import Text

_BATCH_HEADER_BYTES = 61
_PLAIN = CODECS.index("none")
_LAST_LINE_BYTES = 4096
_TIMESTAMP = re.compile(rb"(?:CreateTime|LogAppendTime): (\d+)")
# How much better than ours a client's compression may be: than LZMA, and than the faster zlib.
_THAN_LZMA, _THAN_ZLIB = 0.8, 0.5
_LZMA = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
# Up to here the text behind each batch is compressed by itself; beyond, a shorter end of it stands for it.
_EACH_BYTES = 1 << 15
_LONGEST_BYTES = 1 << 22


def may_be_header_keys(text: Text, section: Section, start: int, lines: Lines, batches: Candidates) -> Array:
    """Which batches of a slice may stand inside the header keys of a record before them.

    Where that record is in the slice's last batch, and the section goes on, that batch stands for those behind it.

    Args:
        text: the input.
        section: its section.
        start: where the slice begins in the text.
        lines: the slice.
        batches: the batches of the slice, in text order.
    """
    doubtful = np.zeros(len(batches), bool)
    stop = np.append(lines.starts[batches.line[1:]], len(lines.data))
    left = section.text_end_bytes - start - stop  # text behind each batch
    room = batches.columns["size"] - _BATCH_HEADER_BYTES
    is_plain = batches.columns["codec"] == _PLAIN
    is_possible = (left > 0) & ~np.asarray(batches.columns["is_control"], bool) & (stop > lines.stops[batches.line])
    is_possible &= ~is_plain | (left < room)
    if not is_possible.any():
        return doubtful
    end = _end_of(text, section)
    if end.is_whole:
        return doubtful
    is_possible &= is_plain | end.fits(left, room, is_possible & ~is_plain)
    for row in np.flatnonzero(is_possible).tolist():
        region = lines.data[lines.stops[batches.line[row]] : stop[row]]
        if not is_plain[row] or left[row] < room[row] - sum(_record_sizes(region)):
            doubtful[row if row == len(batches) - 1 else row + 1 :] = True
            break
    return doubtful


class _End:
    """The end of a section's text, and how short compression could make it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._zlib_bytes: dict[int, int] = {}

    @cached_property
    def is_whole(self) -> bool:
        """The last line is whole, so that nothing of a record before it is left at its end.

        What is left is `]`, and key and payload where they are printed.
        """
        line = self._data[-_LAST_LINE_BYTES:].removesuffix(b"\n").rpartition(b"\n")[2]
        read = pc.extract_regex(pa.array([line], pa.binary()), MARKER_LINE.decode())
        return read_batch_line(line) is not None or bool(pc.struct_field(read, "marker")[0].as_py())

    def fits(self, left: Array, room: Array, is_asked: Array) -> Array:
        """Whether the last `left` bytes of the section could be compressed into less than `room`; for those asked."""
        can = is_asked.copy()
        for row in np.flatnonzero(is_asked & (left <= _EACH_BYTES)).tolist():
            behind = self._data[-int(left[row]) :]
            can[row] = len(lzma.compress(behind, lzma.FORMAT_RAW, filters=_LZMA)) * _THAN_LZMA < room[row]
        length = _EACH_BYTES
        while length <= _LONGEST_BYTES and (can & (left > length)).any():
            can &= (left <= length) | (self._compressed(length) * _THAN_ZLIB < room)
            length *= 2
        return can

    def _compressed(self, length: int) -> int:
        if length not in self._zlib_bytes:
            self._zlib_bytes[length] = len(zlib.compress(self._data[-length:]))
        return self._zlib_bytes[length]


# A task reads the ranges of a section one after another; to read the end of a compressed input is to read all of it.
@lru_cache(maxsize=1)
def _end_of(text: Text, section: Section) -> _End:
    start = max(section.text_start_bytes, section.text_end_bytes - _LONGEST_BYTES)
    return _End(text.read(start, section.text_end_bytes))


def _record_sizes(region: bytes) -> Iterator[int]:
    """Bytes of each record that is printed under a batch line, without header keys (`DefaultRecord.sizeInBytes`)."""
    first: tuple[int, int] | None = None
    for head in RECORD_PREFIX.finditer(region):
        key, value = stated_sizes(head)
        time = _TIMESTAMP.search(head[0])
        place = (int(time[1]) if time else 0, int(head["offset"]))
        first = first or place
        deltas = (place[0] - first[0], place[1] - first[1])
        # Attributes and the number of headers take a byte each.
        body = 2 + sum(map(_varint_bytes, (*deltas, key, value))) + max(key, 0) + max(value, 0)
        yield body + _varint_bytes(body)


def _varint_bytes(value: int) -> int:
    """Length of Kafka's zig-zag variable-length integer (`ByteUtils.sizeOfVarlong`)."""
    zigzag = (value << 1) ^ (value >> 63)
    return max(1, -(-zigzag.bit_length() // 7))
