"""What stands between batch lines in a deep dump: end markers, and record lines that must be proven.

A record line is its batch's own where the batch prints exactly as many as it counts, their offsets rise inside the
batch, and what is printed of key and value fills the sizes that the line states (kafka-formats.md, 1.5). No key, value
or header leaves this module; it only measures them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.kafka.batch_format import END_MARKERS, MARKER_VALUE_BYTES
from txn_analysis.read.dump.field_reader import read_alike
from txn_analysis.read.dump.forms import MARKER_FORMS
from txn_analysis.read.dump.proof.record_sizes import read_heads
from txn_analysis.read.dump.proof.record_walk import BatchRange, measure_lines, measure_records
from txn_analysis.read.dump.record_expressions import MARKER_LINE
from txn_analysis.read.dump.regions import Regions

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.read.dump.batch_lines import Candidates
    from txn_analysis.read.dump.lines import Lines

NOT_PRINTED = -1
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Markers:
    """What the record line right after each control batch line says.

    `word` is COMMIT, ABORT or the name of another control type, None where it is not printed or not believed;
    `coordinator_epoch` is -1 where it is not printed. `is_read`: there is a word.
    """

    word: Array
    coordinator_epoch: Array
    is_read: Array


def read_markers(lines: Lines, batches: Candidates) -> Markers:
    """The end markers of batches, one entry for each batch.

    A marker is believed only in a control batch of one record, with that batch's offset, a key of 4 bytes and, for an
    end marker, a value of 6 (kafka-formats.md, 1.5, rule 6).
    """
    words = np.full(len(batches), None, object)
    epochs = np.full(len(batches), NOT_PRINTED, np.int64)
    is_read = np.zeros(len(batches), bool)
    rows = np.flatnonzero(batches.columns["is_control"] & (batches.columns["record_count"] == 1))
    rows = rows[batches.line[rows] + 1 < len(lines.starts)]
    rows = rows[lines.starts[batches.line[rows] + 1] == lines.stops[batches.line[rows]]]
    rows = rows[lines.is_record_line(batches.line[rows] + 1)]
    index = batches.line[rows] + 1
    alike = read_alike(lines.data, lines.starts[index], lines.ends[index], MARKER_FORMS)
    if alike is not None:
        read, fits = alike
        kept = fits & (read["offset"] == batches.columns["base_offset"][rows])
        words[rows[kept]] = np.array(END_MARKERS, object)[read["marker"][kept]]
        epochs[rows[kept]] = read["coordinator_epoch"][kept]
        is_read[rows[kept]] = True
        rows = rows[~fits]
    if len(rows):
        found = _read_any_markers(lines, batches, rows)
        words[found.rows], epochs[found.rows], is_read[found.rows] = found.word, found.coordinator_epoch, True
    return Markers(words, epochs, is_read)


class _Believed(NamedTuple):
    rows: Array
    word: Array
    coordinator_epoch: Array


def _read_any_markers(lines: Lines, batches: Candidates, rows: Array) -> _Believed:
    """The believed ones of any control batches that have a record line, by the regular expression."""
    read = pc.extract_regex(lines.taken(batches.line[rows] + 1), MARKER_LINE.decode())
    rows = rows[np.asarray(pc.is_valid(read), bool)]
    offset, value, value28, marker, epoch, other = (pc.cast(f, pa.string()) for f in read.drop_null().flatten())
    sizes = pc.binary_join_element_wise(value, value28, "")
    epoch = pc.cast(pc.if_else(pc.equal(epoch, ""), str(NOT_PRINTED), epoch), pa.int64())
    own_offset = pc.cast(pa.array(batches.columns["base_offset"][rows]), pa.string())
    is_believed = pc.and_(pc.equal(offset, own_offset), pc.less_equal(epoch, _INT32_MAX))
    is_believed = pc.and_(is_believed, pc.or_(pc.equal(marker, ""), pc.equal(sizes, str(MARKER_VALUE_BYTES))))
    kept = np.asarray(is_believed, bool)
    word = pc.if_else(pc.equal(marker, ""), other, marker).to_numpy(zero_copy_only=False)
    return _Believed(rows[kept], word[kept], epoch.to_numpy()[kept])


@dataclass(frozen=True)
class Proven:
    """What is proven of each batch's text.

    `text_bytes` is the length of its line and of its own record lines; `record_lines` is their number, -1 where the
    slice prints no record line at all, or the batch does not say how many it has.
    """

    text_bytes: Array
    record_lines: Array


@dataclass(frozen=True)
class OwnRecords:
    """Whether the text under each batch line is as many record lines as it counts, with offsets that rise inside it.

    `is_whole`: they also fill their sizes. `is_credible`: they do, or something explains why not.
    """

    regions: Regions
    is_whole: Array
    is_credible: Array


def own_records(lines: Lines, batches: Candidates) -> OwnRecords:
    """Judges the text under all batch lines at once, as far as a record is one line."""
    regions = Regions.of(lines, batches)
    is_plain = regions.is_plain(np.maximum(batches.columns["record_count"], 0))
    count = np.where(is_plain, regions.record_count, 0)
    batch = np.repeat(np.arange(len(batches)), count)
    is_whole, is_credible = is_plain.copy(), is_plain.copy()
    if len(batch):
        first_row = np.cumsum(count) - count  # of each batch, among the lines that are judged
        index = np.arange(len(batch)) - first_row[batch] + regions.first_record[batch]
        is_control = np.asarray(batches.columns["is_control"], bool)[batch]
        heads = read_heads(lines, regions.records[index], is_control)
        before = np.append(-1, heads.offset[:-1])
        before[first_row[count > 0]] = batches.columns["base_offset"][count > 0] - 1
        is_inside = (heads.offset > before) & (heads.offset <= batches.columns["last_offset"][batch])
        is_whole[batch[~(is_inside & (heads.is_filled | is_control))]] = False
        is_credible[batch[~(is_inside & (heads.is_credible | is_control))]] = False
    return OwnRecords(regions, is_whole, is_credible)


def prove_records(lines: Lines, batches: Candidates, markers: Markers, own: OwnRecords) -> Proven:
    """Decides how much of the text under each batch line is its records.

    The usual case, one line a record and all of them whole, is decided in `own`. Where text of a record holds
    newlines, the record lines' own key and value sizes decide, record by record.
    """
    regions, count = own.regions, np.maximum(batches.columns["record_count"], 0).astype(np.int64)
    is_control = np.asarray(batches.columns["is_control"], bool)
    is_read = ~is_control | markers.is_read | (count == 0)
    is_proven = own.is_credible & is_read
    text_bytes = regions.start - lines.starts[batches.line] + np.where(is_proven, regions.length, 0)
    found = np.where(is_proven, count, 0)
    for k in np.flatnonzero(~is_proven & ~is_control & (regions.length > 0) & (count > 0)).tolist():
        start, stop, batch = int(regions.start[k]), int(regions.stop[k]), BatchRange.of(batches, k)
        measured = measure_records(lines.data, start, stop, batch)
        if measured.record_count < batch.record_count:
            measured = max(measured, measure_lines(lines.data[start:stop], batch), key=lambda m: m.record_count)
        text_bytes[k] += measured.length
        found[k] = measured.record_count
    if not (regions.length > 0).any():
        found[:] = NOT_PRINTED
    found[batches.columns["record_count"] < 0] = NOT_PRINTED
    return Proven(text_bytes, found)
