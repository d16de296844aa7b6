"""Reads the body of a section through a sliding window, and says which of its bytes were not understood."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from txn_analysis.kafka.batch_headers import Read

Record = TypeVar("Record")

WINDOW_BYTES = 4 << 20
# A record of `__transaction_state` is at most `message.max.bytes`, 1 MiB by default; its text is a few times that.
MAX_RECORD_BYTES = 16 << 20

CUT_SHORT = "the text ends inside a line"
LINE_TOO_LONG = "a line longer than any that Kafka's tools print"


@dataclass(frozen=True)
class Reject:
    """A span of an input's text that was not understood. Every byte of a body that is in no reject was parsed."""

    offset_bytes: int
    length_bytes: int
    reason: str

    @property
    def end_bytes(self) -> int:
        """The byte after it."""
        return self.offset_bytes + self.length_bytes


class RejectMerging:
    """Makes adjoining rejects of one reason one, also over several calls: garbage costs no row a line."""

    def __init__(self) -> None:
        self._pending: Reject | None = None

    def items(self, items: Iterable[Record | Reject]) -> Iterator[Record | Reject]:
        """Records at once, rejects as soon as no other one joins them; the last of these comes with `rest`."""
        for item in items:
            pending = self._pending
            if not isinstance(item, Reject):
                yield item
            elif pending and pending.end_bytes == item.offset_bytes and pending.reason == item.reason:
                length = pending.length_bytes + item.length_bytes
                self._pending = Reject(pending.offset_bytes, length, item.reason)
            else:
                yield from self.rest()
                self._pending = item

    def rest(self) -> Iterator[Reject]:
        """What may have been joined by later ones."""
        pending, self._pending = self._pending, None
        if pending:
            yield pending


def merged(items: Iterable[Record | Reject]) -> Iterator[Record | Reject]:
    """Records and rejects in their order, adjoining rejects of one reason as one."""
    merging = RejectMerging()
    yield from merging.items(items)
    yield from merging.rest()


class Window:
    """The unread part of a body; holds one window of it and the record that is being read, no more.

    All lengths count from the place that is read next, so that they stay right when the window moves on. `read` gives
    the bytes of the input from one place to another, or the first of them; none at its end.
    """

    def __init__(self, read: Read, start: int, end: int) -> None:
        self._read = read
        self._end = end
        self._data = b""
        self._at = 0
        self._data_start = start
        self._is_at_end_of_text = False

    @property
    def offset(self) -> int:
        """Byte offset in the input of what is read next."""
        return self._data_start + self._at

    @property
    def remaining(self) -> int:
        """Bytes from here to the end of the body."""
        return self._end - self.offset

    @property
    def buffered_bytes(self) -> int:
        """Bytes from here that can be seen without reading on."""
        return len(self._data) - self._at

    @property
    def is_last(self) -> bool:
        """Nothing of the body is left to be read from the input."""
        return self._is_at_end_of_text or self.buffered_bytes >= self.remaining

    def grow(self) -> bool:
        """Reads one more window; False where the body ends, or where what is held is longer than any record."""
        if self.is_last or self.buffered_bytes >= MAX_RECORD_BYTES:
            return False
        start = self._data_start + len(self._data)
        more = self._read(start, min(start + WINDOW_BYTES, self._end))
        self._is_at_end_of_text = not more
        self._data, self._data_start, self._at = self._data[self._at :] + more, self.offset, 0
        return bool(more)

    def need(self, length: int) -> None:
        """Reads on until `length` bytes are held, or the body ends."""
        while self.buffered_bytes < length and self.grow():
            pass

    def peek(self, start: int, end: int) -> bytes:
        """What is held of the bytes `start` to `end`."""
        return self._data[self._at + start : self._at + end]

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Where `needle` stands between `start` and `end` in what is held; -1 where it does not."""
        at = self._data.find(needle, self._at + start, self._at + end)
        return at - self._at if at >= 0 else -1

    def starts_with(self, prefix: bytes, start: int) -> bool:
        """Whether what is held has `prefix` at `start`."""
        return self._data.startswith(prefix, self._at + start)

    def line_end(self, start: int = 0) -> int:
        """Length up to and with the first newline at or after `start`; 0 where the body or the patience ends before."""
        searched = start
        while True:
            newline = self._data.find(b"\n", self._at + searched)
            if newline >= 0:
                return newline + 1 - self._at
            searched = max(start, self.buffered_bytes)
            if not self.grow():
                return 0

    def lines(self) -> bytes:
        """The whole lines that are held, of one window at least; empty where none ends in it."""
        self.need(WINDOW_BYTES)
        return self._data[self._at : self._data.rfind(b"\n", self._at) + 1]

    def advance(self, length: int) -> None:
        """Moves on."""
        self._at += length

    def move_to(self, offset: int) -> None:
        """Moves on to a byte of the input."""
        if offset <= self._data_start + len(self._data):
            self._at = offset - self._data_start
        else:
            self._data, self._data_start, self._at = b"", offset, 0

    def reject(self, length: int, reason: str) -> Reject:
        """Moves on past `length` bytes that were not understood."""
        rejected = Reject(self.offset, length, reason)
        self._at += length
        return rejected

    def reject_line(self, reason: str) -> Reject:
        """Moves on past the line that is next, however long; past the rest of the body where no newline follows."""
        length = self.line_end()
        if length:
            return self.reject(length, reason)
        start, is_cut = self.offset, self.is_last
        while not length and not self.is_last:
            self.advance(self.buffered_bytes)
            length = self.line_end()
        self.advance(length or self.remaining)
        return Reject(start, self.offset - start, CUT_SHORT if is_cut else LINE_TOO_LONG)

    def plain_lines(self, structure: re.Pattern[bytes]) -> int:
        """Length of the whole lines held here up to the next one where `structure` matches; that one may be the first.

        `structure` matches at the newline before such a line.
        """
        structure_at = structure.search(self._data, self._at)
        end = structure_at.start() if structure_at else self._data.rfind(b"\n", self._at)
        return max(0, end + 1 - self._at)

    def reject_rest(self, reason: str) -> Reject:
        """Moves to the end of the body."""
        start = self.offset
        self._data, self._data_start, self._at = b"", self._end, 0
        return Reject(start, self._end - start, reason)
