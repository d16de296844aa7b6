"""Scan: byte ranges of dumped segments become batches, inside the tasks that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.kafka.batch_format import TIMESTAMP_TYPES
from txn_analysis.kafka.batches import Batches, times
from txn_analysis.kafka.topics import BROKER_WRITTEN_TOPICS, GROUP_TOPIC
from txn_analysis.read.dump.batch_lines import COLUMNS, Candidates, read_batch_lines
from txn_analysis.read.dump.forms import BATCH_LINE_START
from txn_analysis.read.dump.group_lines import read_group_lines
from txn_analysis.read.dump.lines import Lines
from txn_analysis.read.dump.position_chain import follow_chain
from txn_analysis.read.dump.proof.header_keys import may_be_header_keys
from txn_analysis.read.dump.proof.inside_records import all_outside, outside_records
from txn_analysis.read.dump.proof.record_lines import Proven, own_records, prove_records, read_markers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.inputs.planned_input import ScanRange
    from txn_analysis.read.inputs.text import Text

MAX_TAIL_BYTES = 32 << 20  # the records of one batch, decompressed, that a task reads beyond its range
_LOOK_AHEAD_BYTES = 1 << 20
_NAMED_OTHERWISE = ("size", "max_timestamp", "timestamp_type", "delete_horizon", "magic")
_NO_TIMESTAMP_TYPE = TIMESTAMP_TYPES.index("NoTimestampType")


def scan_range(text: Text, part: ScanRange, ingest_id: str) -> Batches | None:
    """The batches whose lines begin in this range of a section's body; None where none does.

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
    end = _next_batch_line(text, part.end, min(section.text_end_bytes, part.end + MAX_TAIL_BYTES))
    lines = Lines.of(text.read(start, end))
    found = read_batch_lines(lines)
    if not len(found):
        return None
    # The records of a decoded section are proven, and counted, where they are decoded.
    is_decoded = section.kind == "state"
    ends_segment = end == section.text_end_bytes
    own = None if is_decoded else own_records(lines, found)
    has_header_keys = section.topic not in BROKER_WRITTEN_TOPICS
    limits = {"starts_segment": is_first, "ends_segment": ends_segment, "has_header_keys": has_header_keys}
    standing = outside_records(lines, found, own, **limits) if own else all_outside(found)
    chain = follow_chain(standing.batches, lines.starts[standing.batches.line], starts_segment=is_first)
    batches = standing.batches.take(chain.chosen)
    markers = read_markers(lines, batches)
    if own and len(batches) < len(found):
        own = own_records(lines, batches)
    proven = prove_records(lines, batches, markers, own) if own else _whole_regions(lines, batches)
    may_be_text = np.zeros(len(batches), bool)
    if own and has_header_keys:
        may_be_text = may_be_header_keys(text, section, start, lines, batches, own)
    is_contested = chain.is_contested | standing.is_contested(chain.chosen, ends_segment=ends_segment)
    columns = {
        "is_contested": is_contested,
        "may_be_header_keys": may_be_text,
        "text_start_bytes": lines.starts[batches.line] + start,
        "text_bytes": proven.text_bytes,
        "record_line_count": proven.record_lines,
        "marker": markers.word,
        "coordinator_epoch": markers.coordinator_epoch,
    }
    groups = read_group_lines(lines, batches, own.regions) if own and section.topic == GROUP_TOPIC else None
    return Batches(part.place(ingest_id), columns | _batch_columns(batches.columns), groups)


def _next_batch_line(text: Text, at: int, limit: int) -> int:
    """The first place at or after `at` where a line begins like a batch line; `limit` where none does before it."""
    needle = b"\n" + BATCH_LINE_START
    at -= 1  # the newline before a line that begins exactly at `at`
    while at < limit:
        window = text.read(at, min(at + _LOOK_AHEAD_BYTES + len(needle), limit))
        found = window.find(needle)
        if found >= 0:
            return at + found + 1
        at += _LOOK_AHEAD_BYTES
    return limit


def _whole_regions(lines: Lines, batches: Candidates) -> Proven:
    bounds = np.append(lines.starts[batches.line], len(lines.data))
    return Proven(np.diff(bounds), np.full(len(batches), ABSENT, np.int64))


def _batch_columns(read: Mapping[str, Array]) -> dict[str, Array]:
    columns = {name: read[name] for name in COLUMNS if name not in _NAMED_OTHERWISE}
    has_no_type = read["timestamp_type"] == _NO_TIMESTAMP_TYPE
    return columns | {
        "size_bytes": read["size"],
        "max_timestamp_ms": times(read["max_timestamp"]),
        "timestamp_type": np.where(has_no_type, ABSENT, read["timestamp_type"]),
        "delete_horizon_ms": times(read["delete_horizon"]),
    }
