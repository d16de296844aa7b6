"""Scan: byte ranges of logs' sections become batches, inside the tasks that hold them.

kafka-dump-log prints payloads, keys and header keys raw, so any line can be forged. What cannot be forged without a
trace is the chain: a segment's first batch is at position 0, and each next one where the one before it ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from txn_analysis.columns.arrays import ABSENT, Array
from txn_analysis.kafka.batch_headers import Held
from txn_analysis.kafka.names import BROKER_WRITTEN_TOPICS, GROUP_TOPIC, STATE, TIMESTAMP_TYPES
from txn_analysis.reading.dump.doubt import Chain, may_be_header_keys, may_be_in_records, noise_ends
from txn_analysis.reading.dump.records import BatchText, read_batch_text
from txn_analysis.reading.grammar.forms import BATCH_LINE_START
from txn_analysis.reading.grammar.lines import COLUMNS, Candidates, Lines, read_batch_lines, read_markers
from txn_analysis.reading.log_dir.group_records import read_group_lines
from txn_analysis.reading.text.section import ScanRange, times
from txn_analysis.reading.text.text import Text
from txn_analysis.tables.batches import Batches

MAX_TAIL_BYTES = 32 << 20  # the records of one batch, decompressed, that a task reads beyond its range
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


def scan_range(text: Text | Held, part: ScanRange) -> Batches | None:
    """The batches whose lines begin in this range of a section's body; None where none does."""
    text_slice = read_slice(text, part)
    return None if text_slice is None else scan_slice(text, part, text_slice)


def read_slice(text: Text | Held, part: ScanRange) -> Slice | None:
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


def scan_slice(text: Text | Held, part: ScanRange, own_text: Slice) -> Batches:
    """The batches of a range's text."""
    section, start, lines, candidates = part.section, own_text.start, own_text.lines, own_text.candidates
    is_first, ends_segment = part.start == section.text_start_bytes, own_text.end == section.text_end_bytes
    has_header_keys = section.topic not in BROKER_WRITTEN_TOPICS
    limits = {"starts_segment": is_first, "ends_segment": ends_segment, "has_header_keys": has_header_keys}
    # The records of a decoded section are proven, and counted, where they are decoded.
    is_decoded = section.kind == STATE
    under = _whole_texts(lines, candidates) if is_decoded else read_batch_text(lines, candidates, **limits)
    rows, is_contested = follow_chain(under.batches, under.claims, starts_segment=is_first)
    batches, end, may_be_text = under.batches.take(rows), under.end[rows], np.zeros(len(rows), bool)
    line_start, read = lines.starts[batches.line], batches.columns
    stop = np.append(line_start[1:], len(lines.data))
    if not is_decoded:
        chain = Chain(text, section, start, lines, under, rows, batches, stop)
        if under.prints_records:
            is_contested |= may_be_in_records(lines, under, ends_segment=ends_segment)[rows]
            may_be_text = may_be_header_keys(chain) if has_header_keys else may_be_text
        end, has_stopped = noise_ends(chain, is_contested | may_be_text)
        may_be_text |= has_stopped
    is_counted = (read["record_count"] >= 0) & under.prints_records
    columns = as_printed(read) | {
        "is_contested": is_contested,
        "may_be_header_keys": may_be_text,
        "text_start_bytes": line_start + start,
        "text_bytes": np.minimum(end, stop) - line_start,
        "record_line_count": np.where(is_counted, under.record_count[rows], ABSENT),
        "marker": under.marker[rows],
        "coordinator_epoch": under.coordinator_epoch[rows],
    }
    groups = read_group_lines(lines, batches) if section.topic == GROUP_TOPIC and not is_decoded else None
    return Batches(part.place, columns, groups)


def as_printed(read: Mapping[str, Array]) -> dict[str, Array]:
    """The columns that a batch line itself prints."""
    has_no_type = read["timestamp_type"] == _NO_TIMESTAMP_TYPE
    return {name: read[name] for name in COLUMNS if name not in _NAMED_OTHERWISE} | {
        "size_bytes": read["size"],
        "max_timestamp_ms": times(read["max_timestamp"]),
        "timestamp_type": np.where(has_no_type, ABSENT, read["timestamp_type"]),
        "delete_horizon_ms": times(read["delete_horizon"]),
    }


def _next_batch_line(text: Text | Held, at: int, limit: int) -> int:
    """The first place at or after `at` where a line begins like a batch line; `limit` where none does before it."""
    at -= 1  # the newline before a line that begins exactly at `at`
    while at < limit:
        window = text.read(at, min(at + _LOOK_AHEAD_BYTES + len(_NEEDLE), limit))
        newline = window.find(_NEEDLE)
        if newline >= 0:
            return at + newline + 1
        at += _LOOK_AHEAD_BYTES
    return limit


def _whole_texts(lines: Lines, candidates: Candidates) -> BatchText:
    """Each line's text is all up to the next one, whatever stands there."""
    end = np.append(lines.starts[candidates.line[1:]], len(lines.data))
    count, no = np.zeros(len(candidates), np.int64), np.zeros(len(candidates), bool)
    none = candidates.take(np.flatnonzero(no))
    marker, epoch, _ = read_markers(lines, candidates)
    return BatchText(candidates, marker, epoch, end, count, end, no, no, none, prints_records=False)


def follow_chain(candidates: Candidates, claims: Candidates, *, starts_segment: bool) -> tuple[Array, Array]:
    """The lines that make up one slice of a segment, as indexes in file order, and which of these are contested.

    Lines are taken forwards: of those behind one, the next that begins where its batch ends. Where none does, the chain
    resumes at the next plausible line, and the break shows in the positions. A slice that does not start its segment
    does not know where the chain enters it: at its first line, unless the longest run of linked lines contradicts that.
    A line is contested where one that was left out, or one of other `claims`, claims some of its place. Nothing a
    client wrote can precede a segment's first batch, so that one is beyond doubt.
    """
    position, end = candidates.columns["position"], candidates.columns["position"] + candidates.columns["size"]
    base, last = candidates.columns["base_offset"], candidates.columns["last_offset"]
    is_linked = are_linked(candidates)
    chosen = np.arange(len(candidates))
    if is_linked.all() and not len(claims):
        return chosen, np.zeros(len(candidates), bool)
    if not is_linked.all():
        starts = np.append(0, np.flatnonzero(~is_linked) + 1)
        longest = int(starts[np.argmax(np.diff(np.append(starts, len(candidates))))])
        enters = starts_segment or (position[longest] >= end[0] and base[longest] > last[0])
        columns = (values.tolist() for values in (position, end, base, last))
        chosen = np.array(_followed(*columns, first=0 if enters else longest), np.int64)
    others = np.setdiff1d(np.arange(len(candidates)), chosen, assume_unique=True)
    claimed = np.concatenate([position[others], claims.columns["position"]])
    claimed_end = claimed + np.concatenate([candidates.columns["size"][others], claims.columns["size"]])
    change = np.zeros(len(chosen) + 1, np.int64)
    np.add.at(change, np.searchsorted(end[chosen], claimed, "right"), 1)
    np.add.at(change, np.searchsorted(position[chosen], claimed_end), -1)
    is_contested = np.cumsum(change[:-1]) > 0
    is_contested[0] &= not starts_segment
    return chosen, is_contested


def are_linked(candidates: Candidates) -> Array:
    """Of each line but the last whether the next one's batch follows its own, by position and by offset."""
    c = candidates.columns
    linked: Array = c["position"][1:] == (c["position"] + c["size"])[:-1]
    return linked & (c["base_offset"][1:] > c["last_offset"][:-1])


def _followed(position: list[int], end: list[int], base: list[int], last: list[int], *, first: int) -> list[int]:
    by_position: dict[int, list[int]] = {}
    for row, at in enumerate(position):
        by_position.setdefault(at, []).append(row)
    chosen, looked_at = [first], first
    while True:
        row = chosen[-1]
        linked = by_position.get(end[row], [])
        later = linked[bisect_right(linked, row) :]
        following = next((other for other in later if base[other] > last[row]), None)
        looked_at = max(looked_at, row)
        while following is None:  # ends grow from row to row, so that nothing is looked at twice
            looked_at += 1
            if looked_at == len(position):
                return chosen
            if position[looked_at] > end[row] and base[looked_at] > last[row]:
                following = looked_at
        chosen.append(following)
