"""Fragments: each producer's batches of one piece, cut at its own end markers.

Rules of Kafka's `ProducerStateManager`: transactions are keyed by producer id alone, and any COMMIT or ABORT marker
ends them, whatever its epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from txn_analysis.reconstruct.arrays import NONE, Array, at, lists, max_of, next_index, nullable, previous_index, sum_of
from txn_analysis.reconstruct.transaction_rows import packed_fragments
from txn_analysis.tables import LOG_PIECES


@dataclass(frozen=True)
class Rows:
    """Batches in text order as arrays; `piece` is the ordinal of the piece each one belongs to."""

    columns: dict[str, Array]
    piece: Array
    first_row: Array

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]


@dataclass(frozen=True)
class Fragments:
    """Stretches of one producer's batches in one piece that end at its end marker or at the piece's end."""

    producer_id: Array
    piece: Array
    is_lead: Array
    is_tail: Array
    arrays: dict[str, Array]

    def columns(self, index: Array) -> dict[str, pa.Array]:
        """What is known of some fragments, by name."""
        values = self.arrays | {"producer_id": self.producer_id}
        return {
            name: pa.array(v[index], pa.string()) if v.dtype == object else nullable(v[index])
            for name, v in values.items()
        }

    def struct(self, index: Array, kind: pa.StructType, *, absent: Array | None = None) -> pa.Array:
        """Some fragments as structs of `kind`; NULL where `absent`."""
        columns = self.columns(index)
        fields = [columns[f.name].cast(f.type) for f in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=None if absent is None else pa.array(absent))


def fragments_of(rows: Rows) -> tuple[Fragments, dict[str, Array]]:
    """The fragments of all pieces, and what is known of each producer at the end of each piece."""
    is_marker, is_other = rows["is_marker"], ~rows["is_control"]
    kept = np.flatnonzero((rows["producer_id"] != NONE) & (is_marker | is_other))
    order = kept[np.lexsort((kept, rows["producer_id"][kept], rows.piece[kept]))]
    opens_group = np.ones(len(order), bool)
    piece, producer = rows.piece[order], rows["producer_id"][order]
    opens_group[1:] = (piece[1:] != piece[:-1]) | (producer[1:] != producer[:-1])
    opens = opens_group.copy()
    opens[1:] |= is_marker[order][:-1]
    first, group_first = np.flatnonzero(opens), np.flatnonzero(opens_group)
    last, group_last = np.append(first[1:], len(order)) - 1, np.append(group_first[1:], len(order)) - 1
    if not len(order):
        first = last = group_first = group_last = np.array([], np.int64)
    arrays = _fragment_arrays(rows, order, first, last)
    fragments = Fragments(producer[first], piece[first], opens_group[first], np.isin(last, group_last), arrays)
    return fragments, _groups(rows, order, group_first, group_last)


def _fragment_arrays(rows: Rows, order: Array, first: Array, last: Array) -> dict[str, Array]:
    is_data = rows["is_data"][order]
    place = np.arange(len(order))
    start = max_of(np.where(is_data, -place, NONE), first)
    start = at(order, np.where(start == NONE, NONE, -start))
    final = max_of(np.where(is_data, place, NONE), first)
    final = at(order, final)
    end = np.where(rows["is_marker"][order[last]], order[last], NONE) if len(order) else last
    moment = np.where(rows["is_moment"], rows["max_timestamp_ms"], NONE)
    hidden_records, hidden_bytes = _from_row_on(rows, start)
    return {
        "start_offset": at(rows["base_offset"], start),
        "first_epoch": at(rows["producer_epoch"], start),
        "max_epoch": max_of(np.where(is_data, rows["producer_epoch"][order], NONE), first),
        "last_offset": at(rows["last_offset"], final),
        "last_sequence": at(rows["last_sequence"], final),
        "record_count": sum_of(np.where(is_data, np.maximum(rows["record_count"][order], 0), 0), first),
        "size_bytes": sum_of(np.where(is_data, rows["size_bytes"][order], 0), first),
        "last_timestamp_ms": at(rows["max_timestamp_ms"], final),
        "first_before_ms": at(moment, next_index(rows["is_moment"], start, rows.piece)),
        "last_after_ms": at(moment, previous_index(rows["is_moment"], final, rows.piece)),
        "last_before_ms": at(moment, next_index(rows["is_moment"], final, rows.piece)),
        "hidden_record_count": hidden_records,
        "hidden_bytes": hidden_bytes,
        "end_offset": at(rows["base_offset"], end),
        "end_marker": _words_at(rows["marker"], end),
        "end_timestamp_ms": at(rows["max_timestamp_ms"], end),
        "end_epoch": at(rows["producer_epoch"], end),
        "end_coordinator_epoch": at(rows["coordinator_epoch"], end),
    }


def _words_at(words: Array, row: Array) -> Array:
    found = np.full(len(row), None, object)
    found[row != NONE] = words[row[row != NONE]]
    return found


def _from_row_on(rows: Rows, start: Array) -> tuple[Array, Array]:
    """Data records and bytes of the whole piece from each row on, whoever wrote them."""
    stop = np.append(rows.first_row[1:], len(rows.piece))
    out = []
    for values in (
        np.where(rows["is_control"] | (rows["record_count"] < 0), 0, rows["record_count"]),
        rows["size_bytes"],
    ):
        total = np.append(0, np.cumsum(values))
        known = np.where(start == NONE, 0, start)
        out.append(np.where(start == NONE, 0, total[stop[rows.piece[known]]] - total[known]) if len(start) else start)
    return out[0], out[1]


def _groups(rows: Rows, order: Array, first: Array, last: Array) -> dict[str, Array]:
    place = np.arange(len(order))
    final_row = order[last] if len(order) else last
    first_row = order[first] if len(order) else first
    marker = max_of(np.where(rows["is_marker"][order], place, NONE), first)
    marker_row = at(order, marker)
    changes = _epoch_changes(rows, order, first)
    data = max_of(np.where(~rows["is_control"][order], place, NONE), first)
    # A change of epoch clears the cached batches (`ProducerStateEntry.maybeUpdateProducerEpoch`).
    is_cached = at(changes, data) == at(changes, last)
    return {
        "producer_id": rows["producer_id"][final_row],
        "piece": rows.piece[final_row],
        "first_batch_epoch": rows["producer_epoch"][first_row],
        "is_one_epoch": at(changes, first) == at(changes, last),
        "producer_epoch": rows["producer_epoch"][final_row],
        "last_sequence": np.where(is_cached, at(rows["last_sequence"], at(order, data)), NONE),
        "last_timestamp_ms": rows["max_timestamp_ms"][final_row],
        "marker_offset": at(rows["base_offset"], marker_row),
        "marker_timestamp_ms": at(rows["max_timestamp_ms"], marker_row),
        "marker_coordinator_epoch": at(rows["coordinator_epoch"], marker_row),
    }


def _epoch_changes(rows: Rows, order: Array, first: Array) -> Array:
    """Running count of epoch changes along each producer's batches."""
    epoch = rows["producer_epoch"][order]
    is_change = np.zeros(len(order), bool)
    is_change[1:] = epoch[1:] != epoch[:-1]
    is_change[first] = False
    return np.cumsum(is_change)


def producers_of(rows: Rows, fragments: Fragments, groups: dict[str, Array]) -> pa.Array:
    """The `producers` column of `log_pieces`: one list per piece."""
    lead, tail = np.flatnonzero(fragments.is_lead), np.flatnonzero(fragments.is_tail)
    kind = LOG_PIECES.arrow_schema.field("producers").type.value_type
    values = {name: nullable(groups[name]) for name in groups if name not in {"piece", "is_one_epoch"}}
    values["is_one_epoch"] = pa.array(groups["is_one_epoch"], pa.bool_())
    values["lead"] = fragments.struct(lead, _arrow(kind, "lead"))
    values["tail"] = fragments.struct(tail, _arrow(kind, "tail"), absent=fragments.is_lead[tail])
    edges = pa.StructArray.from_arrays([values[f.name].cast(f.type) for f in kind], fields=list(kind))
    return lists(edges, groups["piece"], len(rows.first_row))


def transactions_of(rows: Rows, fragments: Fragments) -> pa.Array:
    """The `transactions` column of `log_pieces`: what follows its producer's own marker and ends in the same piece."""
    is_whole = (
        ~fragments.is_lead & (fragments.arrays["end_offset"] != NONE) & (fragments.arrays["start_offset"] != NONE)
    )
    index = np.flatnonzero(is_whole)
    bounds = np.searchsorted(fragments.piece[index], np.arange(len(rows.first_row) + 1))
    found = packed_fragments(fragments.columns(index), zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    return pa.array(found, pa.binary())


def _arrow(kind: pa.StructType, name: str) -> pa.StructType:
    return kind.field(name).type
