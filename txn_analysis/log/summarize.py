"""Batches become summaries of batch ranges, in the task that reads them.

A summary keeps for each producer the part of a transaction before its first end marker, which may continue an earlier
range, the part after its last one, which may go on in a later range, and the transactions that are whole in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import NONE, Array, at, lists, max_of, nullable, of_types
from txn_analysis.kafka.names import END_MARKERS, LOG_APPEND_TIME, TIMES, is_brokers_time, is_brokers_topic
from txn_analysis.log.producer_appends import Nearest, Rows, producers_of, transaction_parts_of
from txn_analysis.log.segments import UNCUT, Cuts
from txn_analysis.log.transactions import ended_rows
from txn_analysis.tables import LOG_BATCHES, LOG_PIECES
from txn_analysis.tables.batches import Batches, BatchPlace

_MAY_END = np.array([None, *END_MARKERS], object)  # a shallow dump does not say what a control batch is
_BEYOND = np.iinfo(np.int64).max  # no batch begins there
SUMMARIZED_COLUMNS = tuple(n for n in LOG_BATCHES.names if n not in {"base_sequence", "delete_horizon_ms", "codec"})
_DOUBTS = ("is_contested", "may_be_header_keys")
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


class BatchSummaries(NamedTuple):
    """Rows of `log_pieces`, and rows of `ended_transactions` in the same order of batch ranges.

    `part` is the ordinal of the part that each range is of, `part_of_transaction` that of each transaction.
    """

    pieces: pa.RecordBatch
    transactions: pa.RecordBatch
    part: Array
    part_of_transaction: Array


def summarize_parts(parts: Sequence[Batches], cuts: Sequence[Cuts]) -> BatchSummaries:
    """Summaries of the ranges of some batches, and the transactions that are whole inside one range.

    The costs are mostly the same however few batches there are: many small parts are summed up in one call.

    Args:
        parts: batches of one section each. A new range begins with each part, and where batches do not follow one
            another by position and by offset.
        cuts: for each part, where ranges must end as well, so that producer snapshots and copies of the partition can
            be compared there, and what two parts of a text claim can be left out (`copies.cuts_of`).
    """
    rows, part = _rows(parts, cuts)
    appends = transaction_parts_of(rows)
    schema = LOG_PIECES.arrow_schema
    place = {
        name: pa.array([getattr(p.place, name) for p in parts], schema.field(name).type).take(pa.array(part))
        for name in BatchPlace._fields
    }
    arrays = place | _facts(rows) | {"producers": producers_of(rows, appends)}
    pieces = pa.RecordBatch.from_arrays(of_types((arrays[f.name] for f in schema), schema), schema=schema)
    of_range = appends.batch_range[appends.whole]
    lies = {name: pieces[name].take(pa.array(of_range)) for name in (*place, "first_position")}
    return BatchSummaries(pieces, ended_rows(lies, appends.columns(appends.whole)), part, part[of_range])


def _rows(parts: Sequence[Batches], cuts: Sequence[Cuts]) -> tuple[Rows, Array]:
    """The batches of all parts, and the ordinal of the part that each range is of."""
    columns = {name: values for name, values in parts[0].columns.items() if name in SUMMARIZED_COLUMNS}
    if len(parts) > 1:
        columns = {name: np.concatenate([p.columns[name] for p in parts]) for name in columns}
    part = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    is_control, has_producer = columns["is_control"], columns["producer_id"] != NONE
    by_broker = is_brokers_time(
        is_control=is_control,
        is_append_time=columns["timestamp_type"] == TIMES.index(LOG_APPEND_TIME),
        is_brokers_topic=np.array([is_brokers_topic(p.place.topic) for p in parts])[part],
    )
    is_marker = is_control & has_producer & (columns["record_count"] > 0)
    controls = np.flatnonzero(is_marker)
    is_marker[controls] = np.isin(columns["marker"][controls], _MAY_END)
    derived = {
        "is_marker": is_marker,
        "is_data": columns["is_transactional"] & ~is_control & has_producer,
        "is_moment": by_broker & (columns["max_timestamp_ms"] != NONE),
        "data_record_count": np.where(is_control, 0, np.maximum(columns["record_count"], 0)),
    }
    starts = _range_starts(columns, part, cuts)
    first = np.flatnonzero(starts)
    return Rows({**columns, **derived}, np.cumsum(starts) - 1, first), part[first]


def _range_starts(columns: Mapping[str, Array], part: Array, cuts: Sequence[Cuts]) -> Array:
    position, base = columns["position"], columns["base_offset"]
    starts = np.ones(len(base), bool)
    starts[1:] = position[1:] != (position + columns["size_bytes"])[:-1]
    starts[1:] |= base[1:] <= columns["last_offset"][:-1]
    starts[1:] |= part[1:] != part[:-1]
    for name in _DOUBTS:  # what may be text of a client is a range of its own, which counts or not
        starts[1:] |= columns[name][1:] != columns[name][:-1]
    for number, cut in enumerate(cuts):
        if cut != UNCUT:
            first, end = np.searchsorted(part, [number, number + 1])
            last_byte = position[first:end] + columns["size_bytes"][first:end] - 1
            for bounds, values in ((cut.offsets, base[first:end]), (cut.positions, last_byte)):
                passed = np.searchsorted(np.asarray(bounds, np.int64), values, "right")
                starts[first + 1 : end] |= passed[1:] != passed[:-1]
    return starts


def _facts(rows: Rows) -> dict[str, pa.Array]:
    first, last = rows.first_row, np.append(rows.first_row[1:], len(rows.batch_range)) - 1
    inside = np.ones(len(rows.batch_range), bool)
    inside[first] = False
    row = np.arange(len(rows.batch_range))
    is_hole = inside & (rows["base_offset"] > rows["last_offset"][row - 1] + 1)
    is_doubted = rows["is_contested"] | rows["may_be_header_keys"]
    moment = np.where(rows["is_moment"] & ~is_doubted, rows["max_timestamp_ms"], NONE)
    epoch, empty_offset = rows["leader_epoch"], np.where(rows["record_count"] == 0, rows["last_offset"], NONE)
    positive = np.where(rows["max_timestamp_ms"] > 0, rows["max_timestamp_ms"], NONE)
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
        # A checksum that was not looked at decides nothing.
        "last_invalid_offset": nullable(max_of(np.where(rows["is_valid"] == 0, rows["last_offset"], NONE), first)),
        "last_empty_offset": nullable(max_of(empty_offset, first)),
        "contested_offset": _first_base_offset(rows, rows["is_contested"]),
        "doubtful_offset": _first_base_offset(rows, rows["may_be_header_keys"]),
        "lacking_batch_count": pa.array(np.add.reduceat(lacks_lines.astype(np.int64), first)),
        "lacking_offset": _first_base_offset(rows, lacks_lines),
        "is_marker_printed": pa.array(printed > 0, mask=printed == NONE),
        "record_count": pa.array(np.add.reduceat(rows["data_record_count"], first)),
        "size_bytes": pa.array(np.add.reduceat(rows["size_bytes"], first)),
        "first_moment_ms": nullable(rows.moments.after(first)),
        "last_moment_ms": nullable(rows.moments.before(last)),
        "max_moment_ms": nullable(max_of(moment, first)),
        "last_timestamp_ms": nullable(at(positive, max_of(np.where(positive != NONE, row, NONE), first))),
        "max_timestamp_ms": nullable(max_of(positive, first)),
        "first_leader_epoch": nullable(Nearest(epoch, epoch != NONE, rows.batch_range).after(first)),
        "leader_epoch": nullable(max_of(epoch, first)),
        "first_epoch_fall_offset": _first_epoch_fall(rows),
        "content_digest": pa.array(np.add.reduceat(_digest(rows), first).view(np.int64)),
    }


def _first_base_offset(rows: Rows, is_wanted: Array) -> pa.Array:
    """Smallest base offset of the wanted batches of each range; NULL without any."""
    smallest = np.minimum.reduceat(np.where(is_wanted, rows["base_offset"], _BEYOND), rows.first_row)
    return pa.array(smallest, mask=smallest == _BEYOND)


def _first_epoch_fall(rows: Rows) -> pa.Array:
    """Base offset of the first batch of each range whose leader epoch is below an earlier one's; NULL without any."""
    epoch, fall_offset = rows["leader_epoch"], np.full(len(rows.first_row), NONE, np.int64)
    may_fall = np.flatnonzero((epoch[1:] < epoch[:-1]) & (rows.batch_range[1:] == rows.batch_range[:-1]))
    for number in np.unique(rows.batch_range[may_fall]).tolist():  # none, in a log that one topic wrote
        start, stop = np.searchsorted(rows.batch_range, [number, number + 1])
        epochs = epoch[start:stop]
        falls = np.flatnonzero((epochs != NONE) & (epochs < np.maximum.accumulate(epochs)))
        if len(falls):
            fall_offset[number] = rows["base_offset"][start + falls[0]]
    return nullable(fall_offset)


def _text_gaps(rows: Rows, inside: Array) -> pa.Array:
    before = np.arange(len(rows.batch_range)) - 1
    end_before = (rows["text_start_bytes"] + rows["text_bytes"])[before]
    gap = np.flatnonzero(inside & (rows["text_start_bytes"] > end_before))
    spans = pa.StructArray.from_arrays(
        [pa.array(end_before[gap]), pa.array((rows["text_start_bytes"] - end_before)[gap])],
        ["offset_bytes", "length_bytes"],
    )
    return lists(spans, rows.batch_range[gap], len(rows.first_row))


def _digest(rows: Rows) -> Array:
    """A digest of each batch's own content, independent of where and by which tool it was dumped."""
    mixed = np.full(len(rows.batch_range), 0x9E3779B97F4A7C15, np.uint64)
    for name in _DIGESTED:
        mixed = (mixed ^ rows[name].astype(np.int64).view(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed
