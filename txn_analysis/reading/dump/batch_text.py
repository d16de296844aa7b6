"""What stands under each batch line of a deep dump: its own records, its end marker, and lines that are none of them.

Where a record is one line without content, as in dumps without payloads, many batches are judged at once by the
compiled reader. All others are walked record by record. No key, value or header leaves this module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from txn_analysis.kafka.names import CONTROL_KEY_BYTES, END_MARKERS, INT32_MAX, MARKER_VALUE_BYTES
from txn_analysis.reading.dump.records import BatchRange, Walk, walk_records
from txn_analysis.reading.grammar.field_reader import NO_FORM, read_lines
from txn_analysis.reading.grammar.forms import BARE_RECORD_FORMS, END_MARKER, MARKER_FORMS, OTHER_CONTROL
from txn_analysis.reading.grammar.line_form import either
from txn_analysis.reading.grammar.lines import Candidates, Lines, read_head
from txn_analysis.reading.grammar.noise import noise_end, others_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.columns.arrays import Array

NOT_PRINTED = -1
_MARKER = re.compile(
    rb"\]"
    + either(
        END_MARKER.bounded("marker", "coordinator_epoch", coordinator_epoch=rb"-1|\d{1,10}"),
        OTHER_CONTROL.bounded("control_type"),
    )
)
"""What stands behind the header keys of a control record, which has none."""


class Regions(NamedTuple):
    """The text under each batch line, up to the next one; the arrays are parallel.

    `first_record` is the first of its record lines among all of the slice. `is_plain`: it is exactly as many record
    lines as its batch counts, one line each.
    """

    line_start: Array  # of the batch line itself
    start: Array
    stop: Array
    first_record: Array
    is_plain: Array

    @classmethod
    def of(cls, lines: Lines, candidates: Candidates) -> Regions:
        """The regions of some batch lines."""
        line_start, start = lines.starts[candidates.line], lines.stops[candidates.line]
        stop = np.append(line_start[1:], len(lines.data))
        record_start = lines.starts[lines.record_lines]
        first, behind = np.searchsorted(record_start, start), np.searchsorted(record_start, stop)
        total = np.append(0, np.cumsum(lines.stops[lines.record_lines] - record_start))
        is_plain = (total[behind] - total[first] == stop - start) & (
            behind - first == candidates.columns["record_count"]
        )
        return cls(line_start, start, stop, first, is_plain)


def _read_markers(lines: Lines, batches: Candidates) -> tuple[Array, Array, Array]:
    """`BatchText.marker` and `coordinator_epoch` of some batches, and which of them have a marker.

    A marker is believed only in a control batch of one record, with that batch's offset, a key of 4 bytes and, for an
    end marker, a value of 6 (kafka-formats.md, 1.5, rule 6).
    """
    words = np.full(len(batches), None, object)
    epochs = np.full(len(batches), NOT_PRINTED, np.int64)
    is_read = np.zeros(len(batches), bool)
    rows = np.flatnonzero(batches.columns["is_control"] & (batches.columns["record_count"] == 1))
    rows = rows[batches.line[rows] + 1 < len(lines.starts)]
    index = batches.line[rows] + 1
    is_next = lines.is_record_line(index) & _are(noise_end, lines.data, lines.stops[index - 1], lines.starts[index])
    rows, index = rows[is_next], index[is_next]
    offsets = batches.columns["base_offset"][rows]
    fits = np.zeros(len(rows), bool)
    if many := read_lines(lines.data, lines.starts[index], lines.ends[index], MARKER_FORMS):
        read, fits = many[0], many[1] != NO_FORM
        kept = fits & (read["offset"] == offsets)
        words[rows[kept]] = np.array(END_MARKERS, object)[read["marker"][kept]]
        epochs[rows[kept]] = read["coordinator_epoch"][kept]
        is_read[rows[kept]] = True
    for k in np.flatnonzero(~fits).tolist():
        if (one := _read_marker(lines.text(int(index[k])), int(offsets[k]))) is not None:
            words[rows[k]], epochs[rows[k]], is_read[rows[k]] = *one, True
    return words, epochs, is_read


def _read_marker(line: bytes, offset: int) -> tuple[str, int] | None:
    head = read_head(line, 0, len(line))
    printed = _MARKER.fullmatch(line, head.end) if head else None
    if head is None or printed is None or head.offset != offset:
        return None
    if head.key_bytes != CONTROL_KEY_BYTES or head.value_bytes < 0 or b" sequence: -1 headerKeys: []" not in line:
        return None
    if printed["marker"] is None:
        return printed["control_type"].decode(), NOT_PRINTED
    epoch = int(printed["coordinator_epoch"])
    return (
        (printed["marker"].decode(), epoch) if head.value_bytes == MARKER_VALUE_BYTES and epoch <= INT32_MAX else None
    )


@dataclass(frozen=True)
class BatchText:
    """The text under each batch line of a slice, of those that stand in no other record; the arrays are parallel.

    Attributes:
        batches: the batch lines.
        marker: what the record line right after a control batch's line says: COMMIT, ABORT or the name of another
            control type; None where it is not printed or not believed.
        coordinator_epoch: of the marker; -1 where it is not printed.
        end: behind the own records of each, as far as they are proven.
        record_count: how many records these are.
        reach: how far they may go on; behind the slice where nothing says so.
        has_more: more record lines follow them.
        is_inside: the line stands in a record of another one that is itself not proven to be the tool's.
        claims: lines that stand in records, and claim a place at or before that of the record. Where the record is
            forged, they are the segment's own.
        prints_records: some record line stands in the slice, or other text that may be of a record.
    """

    batches: Candidates
    marker: Array
    coordinator_epoch: Array
    end: Array
    record_count: Array
    reach: Array
    has_more: Array
    is_inside: Array
    claims: Candidates
    prints_records: bool


def _are(end_of: Callable[[bytes, int, int], int], data: bytes, start: Array, stop: Array) -> Array:
    """Of stretches of whole lines which are nothing but what `end_of` goes over; an empty one is."""
    is_nothing_else: Array = start == stop
    for k in np.flatnonzero(~is_nothing_else).tolist():
        is_nothing_else[k] = end_of(data, int(start[k]), int(stop[k])) == stop[k]
    return is_nothing_else


def whole_texts(lines: Lines, candidates: Candidates) -> BatchText:
    """Each line's text is all up to the next one, whatever stands there."""
    end = np.append(lines.starts[candidates.line[1:]], len(lines.data))
    count, no = np.zeros(len(candidates), np.int64), np.zeros(len(candidates), bool)
    none = candidates.take(np.flatnonzero(no))
    marker, epoch, _ = _read_markers(lines, candidates)
    return BatchText(candidates, marker, epoch, end, count, end, no, no, none, prints_records=False)


def read_batch_text(
    lines: Lines, candidates: Candidates, *, starts_segment: bool, ends_segment: bool, has_header_keys: bool
) -> BatchText:
    """Reads what stands under the lines of a slice that look like batch lines, and leaves out those that are text.

    Args:
        lines: the slice.
        candidates: its lines that look like batch lines.
        starts_segment: the slice begins where the segment's body does.
        ends_segment: the slice ends where the segment's body does.
        has_header_keys: its records may have some; those that brokers write have none.
    """
    regions = Regions.of(lines, candidates)
    line_start, start, stop, *_ = regions
    count = np.maximum(candidates.columns["record_count"], 0).astype(np.int64)
    is_control = np.asarray(candidates.columns["is_control"], bool)
    marker, coordinator_epoch, is_marker = _read_markers(lines, candidates)
    is_bare = _are_bare(lines, candidates, regions)
    end, record_count = np.where(is_bare, stop, start), np.where(is_bare, count, 0)
    marked = np.flatnonzero(is_marker)
    end[marked], record_count[marked] = lines.stops[candidates.line[marked] + 1], 1
    is_kept = np.ones(len(candidates), bool)
    is_inside, is_claim = np.zeros(len(candidates), bool), np.zeros(len(candidates), bool)
    position = candidates.columns["position"]
    # Up to the first one whose records are not read to their end, each line is proven by the one before it.
    is_proven = starts_segment
    walks: dict[int, Walk] = {}
    asked = np.flatnonzero(~is_bare & ~is_control & (stop > start) & (count > 0))
    stated = (candidates.columns[name][asked].tolist() for name in BatchRange._fields)
    for k, first, next_line, *of_batch in zip(
        asked.tolist(), start[asked].tolist(), stop[asked].tolist(), *stated, strict=True
    ):
        if not is_kept[k]:
            continue
        walk = walk_records(lines.data, first, len(lines.data), BatchRange(*of_batch), has_header_keys=has_header_keys)
        walks[k] = walk
        if walk.end > next_line:
            behind = int(np.searchsorted(line_start, walk.end))
            if is_proven:
                is_kept[k + 1 : behind] = False
                is_claim[k + 1 : behind] = position[k + 1 : behind] < position[k] + candidates.columns["size"][k]
            else:
                is_inside[k + 1 : behind] = True
        if walk.reach > len(lines.data) and not ends_segment:
            is_inside[k] = True
        is_proven = is_proven and len(walk.records) == of_batch[-1]
    reach, has_more = end.copy(), np.zeros(len(candidates), bool)
    # Where most records do not fill their sizes a decoder printed them, and sizes say nothing of the others either.
    is_filled = [record.is_filled for walk in walks.values() for record in walk.records]
    is_decoded = sum(is_filled) * 2 < len(is_filled)
    for k, walk in walks.items():
        records = walk.records if is_decoded else walk.records[: walk.filled_count]
        end[k], record_count[k] = records[-1].end if records else start[k], len(records)
        reach[k], has_more[k] = walk.reach, walk.has_more
    kept = np.flatnonzero(is_kept)
    return BatchText(
        candidates.take(kept),
        marker=marker[kept],
        coordinator_epoch=coordinator_epoch[kept],
        end=end[kept],
        record_count=record_count[kept],
        reach=reach[kept],
        has_more=has_more[kept],
        is_inside=is_inside[kept],
        claims=candidates.take(np.flatnonzero(is_claim)),
        prints_records=len(lines.record_lines) > 0 or not _are(others_end, lines.data, start, stop).all(),
    )


def _are_bare(lines: Lines, candidates: Candidates, regions: Regions) -> Array:
    """Under which batch lines nothing stands but as many lines of records without content as the batch counts, with
    offsets that rise inside it.
    """
    is_bare: Array = regions.is_plain & ~np.asarray(candidates.columns["is_control"], bool)
    counts = np.where(is_bare, candidates.columns["record_count"], 0)
    if not counts.any():
        return is_bare
    batch, first_row = np.repeat(np.arange(len(candidates)), counts), np.cumsum(counts) - counts
    index = lines.record_lines[np.arange(len(batch)) - first_row[batch] + regions.first_record[batch]]
    alike = read_lines(lines.data, lines.starts[index], lines.ends[index], BARE_RECORD_FORMS)
    if alike is None:
        is_bare &= counts == 0
        return is_bare
    read, form = alike
    before = np.append(-1, read["offset"][:-1])
    before[first_row[counts > 0]] = candidates.columns["base_offset"][counts > 0] - 1
    is_own = (
        (form != NO_FORM) & (read["offset"] > before) & (read["offset"] <= candidates.columns["last_offset"][batch])
    )
    is_bare[batch[~is_own]] = False
    return is_bare
