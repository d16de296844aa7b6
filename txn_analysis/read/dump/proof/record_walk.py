"""Walks the records under a batch line by the sizes that each record line states, as their texts may hold anything.

A size is bytes of the record. Bytes that are no UTF-8 are printed as U+FFFD: its 3 bytes stand for 1 to 3 of the
record, so that a text is never shorter than its size says, and longer by at most 2 for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from txn_analysis.read.dump.forms import BATCH_LINE_START, LEGACY_BATCH_LINE_START, RECORD_LINE_START
from txn_analysis.read.dump.proof.record_sizes import KEY, PAYLOAD, REPLACED, is_encoded_otherwise
from txn_analysis.read.dump.record_expressions import RECORD_PREFIX

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from txn_analysis.read.dump.batch_lines import Candidates

_MAX_HEADER_ENDS = 256  # how many `]` of a record's header keys are tried as their end
_HEADER_KEYS_BYTES = 1 << 16
_LINE_STARTS = (BATCH_LINE_START, RECORD_LINE_START, LEGACY_BATCH_LINE_START)


@dataclass(frozen=True)
class BatchRange:
    """The offsets and the number of records that a batch line states."""

    base_offset: int
    last_offset: int
    record_count: int

    @classmethod
    def of(cls, batches: Candidates, row: int) -> BatchRange:
        """What the batch line of one row states."""
        names = ("base_offset", "last_offset", "record_count")
        return cls(*(int(batches.columns[name][row]) for name in names))


@dataclass(frozen=True)
class Measured:
    """A stretch of text that reads as records: its length in bytes, and how many they are.

    `reach` is the length of all text that may belong to them: as far as replaced bytes leave it open, or as the first
    record that could not be read states it.
    """

    length: int
    record_count: int
    reach: int


def measure_records(
    data: bytes,
    start: int,
    stop: int,
    batch: BatchRange,
    *,
    has_header_keys: bool = True,
    hides_in_headers: bool = False,
) -> Measured:
    """The longest prefix of `data[start:stop]` that reads as up to the batch's count of records, each by its sizes.

    Header keys have no printed size: only with `hides_in_headers` they may hold lines that begin like a batch line.
    Brokers write none (`has_header_keys`), so that their list ends with the first `]`.
    """
    most_ends = _MAX_HEADER_ENDS if has_header_keys else 1
    at, reach, before = start, start, batch.base_offset - 1
    for found in range(batch.record_count):
        match = RECORD_PREFIX.match(data, at, stop)
        if not match or not before < int(match["offset"]) <= batch.last_offset:
            return Measured(at - start, found, max(at, reach) - start)
        sizes = stated_sizes(match)
        closes = _header_ends(data, match.end(), _headers_stop(data, match.end(), stop, hides_in_headers), most_ends)
        ends = next((e for close in closes if (e := _record_ends(data, close, stop, sizes))), [])
        if not ends:
            return Measured(at - start, found, _least_reach(data, match.end(), stop, sizes, most_ends) - start)
        at, reach, before = ends[0], max(reach, ends[-1]), int(match["offset"])
    return Measured(at - start, batch.record_count, reach - start)


def stated_sizes(head: re.Match[bytes]) -> tuple[int, int]:
    """Bytes of key and value that the head of a record line states (RECORD_PREFIX); -1 for none."""
    return int(head["key_bytes"] or head["key_bytes28"]), int(head["value_bytes"] or head["value_bytes28"])


def measure_lines(text: bytes, batch: BatchRange) -> Measured:
    """All of `text` where a tool replaced bytes of it, and it holds exactly as many record lines as the batch counts.

    Sizes measure nothing there. The offsets of these lines must rise inside the batch, wherever the lines stand.
    """
    starts = [0, *(at + 1 for at in _places(text, b"\n" + RECORD_LINE_START, batch.record_count))]
    heads = [RECORD_PREFIX.match(text, start) for start in starts]
    offsets = [int(head["offset"]) for head in heads if head]
    in_order = [batch.base_offset - 1, *offsets, batch.last_offset + 1]
    is_whole = len(offsets) == len(starts) == batch.record_count and text.endswith(b"\n")
    if is_whole and all(a < b for a, b in pairwise(in_order)) and is_encoded_otherwise(text):
        return Measured(len(text), batch.record_count, len(text))
    return Measured(0, 0, 0)


def _places(text: bytes, needle: bytes, at_most: int) -> Iterator[int]:
    found = text.find(needle)
    for _ in range(at_most):
        if found < 0:
            return
        yield found
        found = text.find(needle, found + 1)


def _headers_stop(data: bytes, start: int, stop: int, hides_lines: bool) -> int:
    found = -1 if hides_lines else data.find(b"\n" + BATCH_LINE_START, start, min(stop, start + _HEADER_KEYS_BYTES))
    return found if found >= 0 else stop


def _header_ends(data: bytes, start: int, stop: int, at_most: int) -> Iterator[int]:
    """Places right after each `]` that may close the header keys, which are printed raw."""
    stop = min(stop, start + _HEADER_KEYS_BYTES)
    for _ in range(at_most):
        close = data.find(b"]", start, stop)
        if close < 0:
            return
        start = close + 1
        yield start


def _record_ends(data: bytes, at: int, stop: int, sizes: tuple[int, int]) -> list[int]:
    """Where the record can end, newline included, if key and value fill their sizes; empty if they do not."""
    bare = at
    for label, size in zip((KEY, PAYLOAD), sizes, strict=True):
        if size >= 0 and data.startswith(label, at, stop):
            at += len(label) + size
    if data.startswith(b"\n", at, stop):
        return [at + 1]
    if data.startswith(b"\n", bare, stop):
        return [bare + 1]
    return _ends_of_replaced(data, bare, stop, sizes)


def _ends_of_replaced(data: bytes, content: int, stop: int, sizes: tuple[int, int]) -> list[int]:
    """The ends that replaced bytes leave open, each before a line that the tool could print next."""
    labels = [label for label, size in zip((KEY, PAYLOAD), sizes, strict=True) if size >= 0]
    if not labels or not data.startswith(labels[0], content, stop):
        return []
    stated = sum(len(label) for label in labels) + sum(max(size, 0) for size in sizes)
    if data.find(REPLACED, content, min(stop, content + stated + len(REPLACED))) < 0:
        return []
    ends, replaced, counted = [], 0, content
    newline = data.find(b"\n", content + stated, stop)
    while newline >= 0:
        replaced += data.count(REPLACED, counted, newline)  # up to a newline, which cuts none of them in two
        counted = newline
        if newline - content - 2 * replaced > stated:
            break
        if newline + 1 == stop or data.startswith(_LINE_STARTS, newline + 1):
            ends.append(newline + 1)
        newline = data.find(b"\n", newline + 1, stop)
    return ends


def _least_reach(data: bytes, headers: int, stop: int, sizes: tuple[int, int], most_ends: int) -> int:
    """How far a record reaches at least that prints key or value, if its tool printed them as text.

    Behind `stop` where its header keys do not end, or end in too many ways.
    """
    closes = list(_header_ends(data, headers, stop, most_ends))
    if len(closes) in {0, _MAX_HEADER_ENDS}:
        return stop + 1
    printed = [close for close in closes if data.startswith((KEY, PAYLOAD), close)]
    return min(printed) + sum(max(size, 0) for size in sizes) if printed else headers
