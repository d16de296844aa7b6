"""Fold: batches of contiguous text become pieces, inside the task that holds them.

A piece keeps, of each producer, the fragment before its first end marker (which may continue an earlier piece), the
fragment after its last one (which may go on in a later piece), and the transactions in between. Rules of Kafka's
`ProducerStateManager`: transactions are keyed by producer id alone, and any COMMIT or ABORT marker ends them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.ingest.sections import BROKER_WRITTEN_TOPICS
from txn_analysis.reconstruct.arrays import NONE, Array, lists, max_of, nearest, nullable
from txn_analysis.reconstruct.fragments import Rows, fragments_of, producers_of
from txn_analysis.reconstruct.transaction_rows import ended_rows
from txn_analysis.tables import LOG_PIECES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txn_analysis.reconstruct.segments import SectionKey

_NO_CUTS: Mapping[SectionKey, Sequence[int]] = MappingProxyType({})
FOLD_COLUMNS = (
    "ingest_id",
    "input_id",
    "section_index",
    "topic",
    "partition",
    "base_offset",
    "last_offset",
    "record_count",
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "is_transactional",
    "is_control",
    "marker",
    "coordinator_epoch",
    "position",
    "size_bytes",
    "max_timestamp_ms",
    "timestamp_type",
    "leader_epoch",
    "crc",
    "is_valid",
    "is_contested",
    "may_be_header_keys",
    "record_line_count",
    "text_start_bytes",
    "text_bytes",
)
_SECTION = ("ingest_id", "input_id", "section_index", "topic", "partition")
_PLACE = (*_SECTION, "first_position")
_DIGESTED = (
    "base_offset",
    "last_offset",
    "record_count",
    "producer_id",
    "producer_epoch",
    "leader_epoch",
    "crc",
    "is_control",
)


class Folded(NamedTuple):
    """Rows of `log_pieces`, and rows of `ended_transactions` in the same order of pieces."""

    pieces: pa.RecordBatch
    transactions: pa.RecordBatch


def fold(batches: pa.Table, cuts: Mapping[SectionKey, Sequence[int]] = _NO_CUTS) -> Folded:
    """The pieces of some batches, and the transactions that are whole inside one.

    Args:
        batches: rows of `log_batches` (FOLD_COLUMNS) of any number of sections. Wherever they do not follow one
            another, by position and by offset, a new piece begins.
        cuts: by input and section, the offsets at which pieces must end as well, so that producer snapshots and
            copies of the partition can be compared there (`copies.cuts_of`).
    """
    batches = _in_text_order(batches)
    rows = _rows(batches, cuts)
    fragments = fragments_of(rows)
    arrays = _places(batches, rows) | _facts(rows) | {"producers": producers_of(rows, fragments)}
    schema = LOG_PIECES.arrow_schema
    pieces = pa.RecordBatch.from_arrays([arrays[f.name].cast(f.type) for f in schema], schema=schema)
    piece = pa.array(fragments.piece[fragments.whole])
    place = {name: pieces[name].take(piece) for name in _PLACE}
    return Folded(pieces, ended_rows(place, fragments.columns(fragments.whole)))


def _in_text_order(batches: pa.Table) -> pa.Table:
    is_one_section = all(pc.all(pc.equal(batches[n], batches[n][0])).as_py() for n in ("input_id", "section_index"))
    if is_one_section and (np.diff(batches["text_start_bytes"].to_numpy()) > 0).all():
        return batches  # as a task has them that reads them
    return batches.sort_by([(name, "ascending") for name in ("input_id", "section_index", "text_start_bytes")])


def _rows(batches: pa.Table, cuts: Mapping[SectionKey, Sequence[int]]) -> Rows:
    numbers = {
        name: pc.fill_null(batches[name].cast(pa.int64()), NONE).to_numpy()
        for name in FOLD_COLUMNS
        if pa.types.is_integer(batches.schema.field(name).type)
    }
    # A checksum that was not looked at decides nothing.
    flags = {
        n: pc.fill_null(batches[n], True).to_numpy()
        for n in ("is_transactional", "is_control", "is_valid", "is_contested", "may_be_header_keys")
    }
    is_other_control = pc.fill_null(pc.invert(pc.is_in(batches["marker"], pa.array(["COMMIT", "ABORT"]))), False)
    is_other_control = pc.and_(is_other_control, pc.is_valid(batches["marker"])).to_numpy()
    is_append_time = pc.fill_null(pc.equal(batches["timestamp_type"], "LogAppendTime"), False).to_numpy()
    is_append_time |= pc.is_in(batches["topic"], pa.array(BROKER_WRITTEN_TOPICS)).to_numpy()
    has_producer = numbers["producer_id"] != NONE
    flags["is_marker"] = flags["is_control"] & has_producer & ~is_other_control & (numbers["record_count"] > 0)
    flags["is_data"] = flags["is_transactional"] & ~flags["is_control"] & has_producer
    flags["is_moment"] = (flags["is_marker"] | is_append_time) & (numbers["max_timestamp_ms"] != NONE)
    starts = _piece_starts(batches, numbers, cuts)
    marker = batches["marker"].to_numpy()
    return Rows(numbers | flags | {"marker": marker}, np.cumsum(starts) - 1, np.flatnonzero(starts))


def _piece_starts(batches: pa.Table, numbers: Mapping[str, Array], cuts: Mapping[SectionKey, Sequence[int]]) -> Array:
    section = batches["input_id"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    index, base = numbers["section_index"], numbers["base_offset"]
    new_section = np.ones(len(section), bool)
    new_section[1:] = (section[1:] != section[:-1]) | (index[1:] != index[:-1])
    starts = new_section.copy()
    starts[1:] |= numbers["position"][1:] != (numbers["position"] + numbers["size_bytes"])[:-1]
    starts[1:] |= base[1:] <= numbers["last_offset"][:-1]
    firsts = np.flatnonzero(new_section)
    for first, stop in zip(firsts, np.append(firsts[1:], len(starts)), strict=True) if cuts else ():
        key = (batches["input_id"][int(first)].as_py(), int(index[first]))
        rows = first + np.searchsorted(base[first:stop], np.asarray(cuts.get(key, ()), np.int64))
        starts[rows[rows < stop]] = True
    return starts


def _places(batches: pa.Table, rows: Rows) -> dict[str, pa.Array]:
    first = pa.array(rows.first_row)
    return {name: batches[name].take(first).combine_chunks() for name in _SECTION}


def _facts(rows: Rows) -> dict[str, pa.Array]:
    first, last = rows.first_row, np.append(rows.first_row[1:], len(rows.piece)) - 1
    inside = np.ones(len(rows.piece), bool)
    inside[first] = False
    before = np.arange(len(rows.piece)) - 1
    is_hole = inside & (rows["base_offset"] > rows["last_offset"][before] + 1)
    moment = np.where(rows["is_moment"], rows["max_timestamp_ms"], NONE)
    positive = np.where(rows["max_timestamp_ms"] > 0, rows["max_timestamp_ms"], NONE)
    records = np.where(rows["is_control"] | (rows["record_count"] < 0), 0, rows["record_count"])
    marker_seen = np.where(rows["is_marker"], np.where(rows["coordinator_epoch"] != NONE, 1, 0), NONE)
    printed = max_of(marker_seen, first)
    lacks_lines = (rows["record_line_count"] != NONE) & (rows["record_line_count"] < rows["record_count"])
    return {
        "first_position": pa.array(rows["position"][first]),
        "end_position": pa.array((rows["position"] + rows["size_bytes"])[last]),
        "first_offset": pa.array(rows["base_offset"][first]),
        "last_offset": pa.array(rows["last_offset"][last]),
        "text_start_bytes": pa.array(rows["text_start_bytes"][first]),
        "text_end_bytes": pa.array((rows["text_start_bytes"] + rows["text_bytes"])[last]),
        "text_gaps": _text_gaps(rows, inside),
        "last_hole_offset": nullable(max_of(np.where(is_hole, rows["base_offset"] - 1, NONE), first)),
        "last_invalid_offset": nullable(max_of(np.where(rows["is_valid"], NONE, rows["last_offset"]), first)),
        "contested_offset": _first_base_offset(rows, rows["is_contested"]),
        "doubtful_offset": _first_base_offset(rows, rows["may_be_header_keys"]),
        "lacking_batch_count": pa.array(np.add.reduceat(lacks_lines.astype(np.int64), first)),
        "lacking_offset": _first_base_offset(rows, lacks_lines),
        "is_marker_printed": pa.array(printed > 0, mask=printed == NONE),
        "record_count": pa.array(np.add.reduceat(records, first)),
        "size_bytes": pa.array(np.add.reduceat(rows["size_bytes"], first)),
        "first_moment_ms": nullable(rows.moments[1][first]),
        "last_moment_ms": nullable(rows.moments[0][last]),
        "max_moment_ms": nullable(max_of(moment, first)),
        "last_timestamp_ms": nullable(nearest(positive, positive != NONE, rows.piece)[0][last]),
        "max_timestamp_ms": nullable(max_of(positive, first)),
        "first_leader_epoch": nullable(rows["leader_epoch"][first]),
        "leader_epoch": nullable(max_of(rows["leader_epoch"], first)),
        "content_digest": pa.array(np.add.reduceat(_digest(rows), first).view(np.int64)),
    }


def _first_base_offset(rows: Rows, is_wanted: Array) -> pa.Array:
    """Smallest base offset of the wanted batches of each piece; NULL without any."""
    negated = max_of(np.where(is_wanted, -rows["base_offset"], NONE), rows.first_row)
    return nullable(np.where(negated == NONE, NONE, -negated))


def _text_gaps(rows: Rows, inside: Array) -> pa.Array:
    before = np.arange(len(rows.piece)) - 1
    end_before = (rows["text_start_bytes"] + rows["text_bytes"])[before]
    gap = np.flatnonzero(inside & (rows["text_start_bytes"] > end_before))
    spans = pa.StructArray.from_arrays(
        [pa.array(end_before[gap]), pa.array((rows["text_start_bytes"] - end_before)[gap])],
        ["offset_bytes", "length_bytes"],
    )
    return lists(spans, rows.piece[gap], len(rows.first_row))


def _digest(rows: Rows) -> Array:
    """A digest of each batch's own content, independent of where and by which tool it was dumped."""
    mixed = np.full(len(rows.piece), 0x9E3779B97F4A7C15, np.uint64)
    for name in _DIGESTED:
        mixed = (mixed ^ rows[name].astype(np.int64).view(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed
