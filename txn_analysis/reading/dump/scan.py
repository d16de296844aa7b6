"""Scan: byte ranges of logs' sections become batches, inside the tasks that hold them.

Of small sections there may be thousands, and what an array operation costs by itself is more than what the batches of
one cost: many texts, or segments, are read as one set of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array, rows_at, together
from txn_analysis.kafka.names import BINARY_GRAMMARS, BROKER_WRITTEN_TOPICS, GROUP_TOPIC, LOG, TIMESTAMP_TYPES
from txn_analysis.reading.dump.batch_text import read_batch_text, whole_texts
from txn_analysis.reading.dump.doubt import (
    Chain,
    are_linked,
    follow_chain,
    may_be_header_keys,
    may_be_in_records,
    noise_ends,
)
from txn_analysis.reading.grammar.forms import BATCH_LINE_START, RECORD_LINE_START
from txn_analysis.reading.grammar.lines import (
    COLUMNS,
    Candidates,
    Lines,
    plausible,
    read_batch_lines,
    read_run_of_batches,
)
from txn_analysis.reading.log_dir.group_records import read_group_lines
from txn_analysis.reading.log_dir.segment import is_small_segment, scan_small_segments
from txn_analysis.tables.batches import Batches, times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from txn_analysis.reading.text.section import ScanRange
    from txn_analysis.reading.text.text import Text

    ReadTogether = Callable[[Sequence[tuple[ScanRange, bytes]]], Iterator[Batches | ScanRange]]

MAX_TAIL_BYTES = 32 << 20  # the records of one batch, decompressed, that a task reads beyond its range
_SMALL_BYTES = 256 << 10
_LOOK_AHEAD_BYTES = 64 << 10
_NEEDLE = b"\n" + BATCH_LINE_START
_NAMED_OTHERWISE = ("size", "max_timestamp", "timestamp_type", "delete_horizon", "magic")
_NO_TIMESTAMP_TYPE = TIMESTAMP_TYPES.index("NoTimestampType")


@dataclass(frozen=True)
class Slice:
    """The text of one range of a section's body: [start, end) of the input, its lines, and those that are batches'."""

    start: int
    end: int
    lines: Lines
    candidates: Candidates


def scan_range(text: Text, part: ScanRange) -> Batches | None:
    """The batches whose lines begin in this range of a section's body; None where none does."""
    text_slice = read_slice(text, part)
    return None if text_slice is None else scan_slice(text, part, text_slice)


def read_slice(text: Text, part: ScanRange) -> Slice | None:
    """The text that belongs to a range of a section's body; None where no batch line is in it.

    A range owns whole batches: it begins at the first batch line at or after its start and ends before the first one
    at or after its end, so that a batch, its record lines and its end marker are always read by the same task. Text
    without any batch line that lies more than MAX_TAIL_BYTES behind a range is read by no task, and so not proven.
    """
    section = part.section
    is_first = part.start == section.text_start_bytes
    last_line_end = min(part.end + len(BATCH_LINE_START), section.text_end_bytes)
    start = part.start if is_first else _next_batch_line(text, part.start, last_line_end)
    if start >= part.end:
        return None
    end = part.end
    if end < section.text_end_bytes:
        end = _next_batch_line(text, end, min(section.text_end_bytes, end + MAX_TAIL_BYTES))
    lines = Lines.of(text.read(start, end))
    candidates = read_batch_lines(lines)
    return Slice(start, end, lines, candidates) if len(candidates) else None


def places_of(part: ScanRange) -> list[tuple[int, int]]:
    """Where `read_slice` reads, in its order, if the next batch line is near."""
    section = part.section
    edges = (part.start, section.text_start_bytes), (part.end, section.text_end_bytes)
    looks = [(at - 1, at - 1 + _LOOK_AHEAD_BYTES + len(_NEEDLE)) for at, end in edges if at != end]
    return [*looks, (part.start, min(part.end + _LOOK_AHEAD_BYTES, section.text_end_bytes))]


def scan_slice(text: Text, part: ScanRange, own_text: Slice) -> Batches:
    """The batches of a range's text."""
    section, start, lines, candidates = part.section, own_text.start, own_text.lines, own_text.candidates
    is_first = part.start == section.text_start_bytes
    ends_segment = own_text.end == section.text_end_bytes
    has_header_keys = section.topic not in BROKER_WRITTEN_TOPICS
    limits = {"starts_segment": is_first, "ends_segment": ends_segment, "has_header_keys": has_header_keys}
    # The records of a decoded section are proven, and counted, where they are decoded.
    is_decoded = section.kind == "state"
    under = whole_texts(lines, candidates) if is_decoded else read_batch_text(lines, candidates, **limits)
    rows, is_contested = follow_chain(under.batches, under.claims, starts_segment=is_first)
    chain = Chain(text, section, start, lines, under, rows)
    may_be_text = np.zeros(len(rows), bool)
    if under.prints_records:
        is_contested |= may_be_in_records(lines, under, ends_segment=ends_segment)[rows]
        if has_header_keys:
            may_be_text = may_be_header_keys(chain)
    end, has_stopped = noise_ends(chain, is_contested | may_be_text)
    may_be_text |= has_stopped
    line_start, read = lines.starts[chain.batches.line], chain.batches.columns
    is_counted = (read["record_count"] >= 0) & under.prints_records
    columns = _as_printed(read) | {
        "is_contested": is_contested,
        "may_be_header_keys": may_be_text,
        "text_start_bytes": line_start + start,
        "text_bytes": np.minimum(end, chain.stop) - line_start,
        "record_line_count": np.where(is_counted, under.record_count[rows], ABSENT),
        "marker": under.marker[rows],
        "coordinator_epoch": under.coordinator_epoch[rows],
    }
    groups = read_group_lines(lines, chain.batches) if section.topic == GROUP_TOPIC and not is_decoded else None
    return Batches(part.place, columns, groups)


def _as_printed(read: Mapping[str, Array]) -> dict[str, Array]:
    """The columns that a batch line itself prints."""
    has_no_type = read["timestamp_type"] == _NO_TIMESTAMP_TYPE
    return {name: read[name] for name in COLUMNS if name not in _NAMED_OTHERWISE} | {
        "size_bytes": read["size"],
        "max_timestamp_ms": times(read["max_timestamp"]),
        "timestamp_type": np.where(has_no_type, ABSENT, read["timestamp_type"]),
        "delete_horizon_ms": times(read["delete_horizon"]),
    }


def _is_small_dump(part: ScanRange) -> bool:
    """Whether a range is all of a small section, as `_scan_small_dumps` reads it."""
    section = part.section
    is_whole = part.start == section.text_start_bytes and part.end == section.text_end_bytes
    return is_whole and part.end - part.start <= _SMALL_BYTES and section.kind == LOG and section.topic != GROUP_TOPIC


def _is_shallow(text: bytes) -> bool:
    """Whether no record line follows the first line of a section's body."""
    return not text.startswith(RECORD_LINE_START, text.find(b"\n") + 1)


def _scan_small_dumps(read: Sequence[tuple[ScanRange, bytes]]) -> Iterator[Batches | ScanRange]:
    """The batches of some small sections, as `scan_range` finds them in each; one with more than batch lines is left.

    Where a section is nothing but lines of batches that follow each other, no line of it can be a client's.

    Args:
        read: each section with the text of its body; all together no more than a megabyte.
    """
    while read:
        run, ends = read_run_of_batches(b"".join(text for _, text in read))
        line_start = np.append(0, ends + 1)
        starts = np.append(0, np.cumsum([len(text) for _, text in read]))
        first = np.searchsorted(line_start, starts)
        is_read = (starts[1:] <= line_start[-1]) & (line_start[first[:-1] - len(line_start)] == starts[:-1])
        count = 0 if len(plausible(run)) < len(run) else int(np.argmin(np.append(is_read, False)))
        yield from _of_small(read[:count], run, line_start, first.tolist())
        # What is left begins with something else; where nothing was read, few lines are read sooner one by one.
        stop = count + 1 if count else len(read)
        yield from (part for part, _ in read[count:stop])
        read = read[stop:]


def _of_small(
    read: Sequence[tuple[ScanRange, bytes]], run: Candidates, line_start: Array, first: Sequence[int]
) -> Iterator[Batches | ScanRange]:
    """The batches of sections whose texts are nothing but lines of a run; a section whose batches are no chain is left.

    Args:
        read: the sections.
        run: the lines.
        line_start: where each begins in all texts together, and behind the last one where it ends.
        first: the first line of each section, and of what follows.
    """
    is_other, nothing = ~are_linked(run), np.zeros(len(run), bool)
    columns = _as_printed(run.columns) | {
        "is_contested": nothing,
        "may_be_header_keys": nothing,
        "text_bytes": np.diff(line_start),
        "record_line_count": np.full(len(run), ABSENT),
        "marker": np.full(len(run), None, object),
        "coordinator_epoch": np.full(len(run), ABSENT, np.int64),
    }
    for (part, _), start, stop in zip(read, first, first[1:], strict=False):
        if start == stop or is_other[start : stop - 1].any():
            yield part
            continue
        rows = slice(start, stop)
        in_text = line_start[rows] - line_start[start] + part.start
        columns_of_range = rows_at(columns, rows) | {"text_start_bytes": in_text}
        yield Batches(part.place, columns_of_range)


def _next_batch_line(text: Text, at: int, limit: int) -> int:
    """The first place at or after `at` where a line begins like a batch line; `limit` where none does before it."""
    at -= 1  # the newline before a line that begins exactly at `at`
    while at < limit:
        window = text.read(at, min(at + _LOOK_AHEAD_BYTES + len(_NEEDLE), limit))
        newline = window.find(_NEEDLE)
        if newline >= 0:
            return at + newline + 1
        at += _LOOK_AHEAD_BYTES
    return limit


TOGETHER_BYTES = 1 << 20


class SmallSections:
    """Those of one task, as they come.

    Attributes:
        left: sections that are to be read one by one, as something about them is unusual.
    """

    def __init__(self) -> None:
        self.left: list[ScanRange] = []
        self._waiting: dict[ReadTogether, list[tuple[ScanRange, bytes]]] = {
            _scan_small_dumps: [],
            scan_small_segments: [],
        }
        self._waiting_bytes = 0

    def takes(self, text: Text, part: ScanRange) -> bool:
        """Whether a range of a section of a log is all of a small one, which is read now and understood later."""
        is_broker_file = part.section.grammar in BINARY_GRAMMARS
        if not (is_small_segment(part) if is_broker_file else _is_small_dump(part)):
            return False
        data = text.read(part.start, part.end)
        if len(data) < part.end - part.start or not (is_broker_file or _is_shallow(data)):
            return False
        self._waiting[scan_small_segments if is_broker_file else _scan_small_dumps].append((part, data))
        self._waiting_bytes += len(data)
        return True

    def batches(self, *, is_end: bool = False) -> Iterator[Batches]:
        """The batches of sections that were taken, once there are enough of them; of all at the end."""
        if self._waiting_bytes <= TOGETHER_BYTES and not is_end:
            return
        for read_together, waiting in self._waiting.items():
            for group in together(waiting, lambda each: len(each[1]), TOGETHER_BYTES):
                for batches in read_together(group):
                    if isinstance(batches, Batches):
                        yield batches
                    else:
                        self.left.append(batches)
            waiting.clear()
        self._waiting_bytes = 0
