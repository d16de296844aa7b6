"""The end of a dump that may be text of a record: header keys are printed raw, and no printed size measures them.

A client can close the list of its header keys itself and print the batch lines that would follow. Where a true batch
follows, two lines claim its position; at the end of the last segment nothing contradicts it. What speaks against it is
that the batch before must have held all of that text, and that the text must end with what is left of its record.
"""

from __future__ import annotations

import lzma
import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.kafka.batch_format import CODECS
from txn_analysis.read.dump.forms import RECORD
from txn_analysis.read.dump.proof.record_rest import Form, content_proof, shown_records
from txn_analysis.read.dump.proof.record_sizes import REPLACED
from txn_analysis.read.dump.proof.record_walk import BatchRange

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.batch_lines import Candidates
    from txn_analysis.read.dump.lines import Lines
    from txn_analysis.read.dump.proof.record_lines import OwnRecords
    from txn_analysis.read.dump.proof.record_rest import Shown
    from txn_analysis.read.inputs.planned_input import Section
    from txn_analysis.read.inputs.text import Text

_BATCH_HEADER_BYTES = 61
_PLAIN = CODECS.index("none")
_OFFSET = re.compile(b"(?m)^" + RECORD.part("offset").bounded("offset") + b" ")
# How much better than ours a client's compression may be: than LZMA, and than the faster zlib.
_THAN_LZMA, _THAN_ZLIB = 0.8, 0.5
_LZMA = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
# Up to here the text behind each batch is compressed by itself; beyond, a shorter end of it stands for it.
_EACH_BYTES = 1 << 15
_LONGEST_BYTES = 1 << 22


def may_be_header_keys(
    text: Text, section: Section, start: int, lines: Lines, batches: Candidates, own: OwnRecords
) -> Array:
    """Which batches of a slice may stand inside the header keys of a record before them.

    Where that record is in the slice's last batch, and the section goes on, that batch stands for those behind it. A
    batch has room for what its own records leave: keys and values have printed sizes. What contradicts the text from
    outside of this file is asked where files are linked.

    Args:
        text: the input.
        section: its section.
        start: where the slice begins in the text.
        lines: the slice.
        batches: the batches of the slice, in text order.
        own: what stands under each of them.
    """
    doubtful = np.zeros(len(batches), bool)
    left = section.text_end_bytes - start - own.regions.stop  # text behind each batch
    room = batches.columns["size"] - _BATCH_HEADER_BYTES
    is_plain = batches.columns["codec"] == _PLAIN
    is_possible = (left > 0) & ~np.asarray(batches.columns["is_control"], bool) & (own.regions.length > 0)
    is_possible &= ~is_plain | (left < len(REPLACED) * room)
    if not is_possible.any():
        return doubtful
    end = _end_of(text, section)
    is_possible &= is_plain | end.fits(left, room, is_possible & ~is_plain)
    proof = content_proof(lines, batches, own)
    for row in np.flatnonzero(is_possible).tolist():
        shown = shown_records(lines, BatchRange.of(batches, row), own, row)
        room_bytes = int(room[row]) if is_plain[row] else None
        form = Form(proof[1] if proof and proof[0] < row else None, ends_torn=bool(section.torn_bytes))
        if end.can_be_hidden(int(left[row]), room_bytes, shown, form):
            doubtful[row if row == len(batches) - 1 else row + 1 :] = True
            break
    return doubtful


class _End:
    """The end of a section's text: what a record could leave there, and how few bytes of it could print that much."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._zlib_bytes: dict[int, int] = {}

    def can_be_hidden(self, left: int, room_bytes: int | None, shown: Shown, form: Form) -> bool:
        """Whether the last `left` bytes can be header keys, and the rest, of a record before them.

        Args:
            left: as many bytes of the section's text.
            room_bytes: what the records of that record's batch have room for; None where that is known to suffice.
            shown: the records that the text before shows of the batch.
            form: what the dump prints.
        """
        start = max(0, len(self._data) - left)
        ways = [(len(self._data), shown.at_end)]
        # Where other records of the batch are printed behind that record, its own text ends before them.
        if (own_line := self._next_own_line(start, shown.batch)) is not None:
            ways.append((own_line, shown.before_others))
        for stop, hiding in ways:
            has_room = room_bytes is None or self._least_bytes(left, start, stop) < room_bytes - hiding.bytes_taken
            rest = self._data[start:stop].removesuffix(b"\n")
            if has_room and form.can_end(rest, hiding.sizes, is_whole=left <= len(self._data)):
                return True
        return False

    def _next_own_line(self, start: int, batch: BatchRange) -> int | None:
        """Where the first record line behind `start` with an offset of the batch begins."""
        if batch.record_count > 1:
            for line in _OFFSET.finditer(self._data, start):
                if batch.base_offset <= int(line[1]) <= batch.last_offset:
                    return line.start()
        return None

    def _least_bytes(self, left: int, start: int, stop: int) -> int:
        """The fewest bytes that are printed as the last `left` ones up to `stop`: U+FFFD stands for one or more."""
        unseen = max(0, left - len(self._data))
        replaced = self._data.count(REPLACED, start, stop)
        return stop - start - (len(REPLACED) - 1) * replaced + unseen // len(REPLACED)

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
