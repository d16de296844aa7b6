"""Each producer's appends in one batch range, cut into parts of transactions at its end markers.

As Kafka's `ProducerStateManager` does: a transaction is keyed by producer id alone, and any COMMIT or ABORT marker ends
it, whatever its epoch. One pass over the batches, which keeps for each producer only what is open. A group is what one
producer appended in one batch range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import NONE, Array, at, lists, max_of, nullable, numbers, of_types, rows_at
from txn_analysis.columns.compiled import compiled
from txn_analysis.tables import LOG_PIECES

_GROUP_COLUMNS = ("first_row", "last_row", "marker_row", "data_row", "changes", "changes_at_data", "lead", "tail")
_FIRST, _LAST, _MARKER, _DATA, _CHANGES, _CHANGES_AT_DATA, _LEAD, _TAIL = range(len(_GROUP_COLUMNS))
_PART_COLUMNS = ("group", "start_row", "final_row", "end_row", "max_epoch", "record_count", "size_bytes")
_GROUP, _START, _FINAL, _END, _MAX_EPOCH, _RECORDS, _BYTES = range(len(_PART_COLUMNS))
_PYTHON_US = 4  # for each row
_OPEN_RANGE, _OPEN_GROUP, _OPEN_PART = range(3)
_ABORT = "ABORT"
_NOT_NUMBERS = frozenset({"is_one_epoch", "lead", "tail"})
_END_OF_PART = {
    "offset": "end_offset",
    "marker": "end_marker",
    "timestamp_ms": "end_timestamp_ms",
    "producer_epoch": "end_epoch",
    "coordinator_epoch": "end_coordinator_epoch",
}
"""By field of `tables.BareMarker`, the field of a part that says the same."""


class Nearest:
    """Finds, from any row, the nearest of some wanted rows in the same piece."""

    def __init__(self, values: Array, is_wanted: Array, piece: Array) -> None:
        """`piece` is the ordinal of each row's piece; it never falls."""
        self._values, self._is_wanted, self._piece = values, is_wanted, piece
        self._wanted = np.append(np.flatnonzero(is_wanted), NONE)  # found at -1 as well, and so before the first one
        self._count = np.cumsum(is_wanted)  # how many are wanted up to each row

    def before(self, row: Array) -> Array:
        """The values of the wanted rows at or before some rows; NONE where there is none, or no such row."""
        return self._value(row, self._count[row] - 1)

    def after(self, row: Array) -> Array:
        """The values of the wanted rows at or after some rows; NONE where there is none, or no such row."""
        return self._value(row, self._count[row] - self._is_wanted[row])

    def _value(self, row: Array, place: Array) -> Array:
        nearest = self._wanted[place]
        is_there = (row != NONE) & (nearest != NONE) & (self._piece[nearest] == self._piece[row])
        return np.where(is_there, self._values[nearest], NONE)


@dataclass(frozen=True)
class Trace:
    """Where groups and parts of transactions begin and end, in the order of their first rows; NONE is no such row.

    Attributes:
        groups: the first and last row of each, its last end marker and its last row of data, how often the producer's
            epoch changed, also up to that row of data, its first part and its last one.
        parts: the group of each, its first and last row of transactional data, its end marker, and of its data the
            largest producer epoch, the records and the bytes.
    """

    groups: dict[str, Array]
    parts: dict[str, Array]


class _Batches(NamedTuple):
    """The batches in text order: the ordinals of their batch ranges and producers, and some of their columns."""

    batch_range: Array
    code: Array
    is_data: Array
    is_marker: Array
    is_control: Array
    producer_epoch: Array
    record_count: Array
    size_bytes: Array


class _Found(NamedTuple):
    """What is open of each producer while its batches are followed, and what `Trace` holds."""

    state: Array
    groups: Array
    parts: Array


def trace(rows: Mapping[str, Array], batch_range: Array) -> Trace:
    """Find groups and parts of transactions.

    Args:
        rows: the columns of batches in text order.
        batch_range: the ordinal of each batch's range; it never falls.
    """
    producer = rows["producer_id"]
    is_kept = (producer != NONE) & (rows["is_marker"] | ~rows["is_control"])
    known = pc.dictionary_encode(pa.array(producer, mask=~is_kept))
    code = numbers(known.indices, NONE)
    most = int(is_kept.sum())
    groups = np.empty((most, len(_GROUP_COLUMNS)), np.int64)
    parts = np.empty((most, len(_PART_COLUMNS)), np.int64)
    state = np.full((len(known.dictionary), 3), NONE, np.int64)
    follow = _follow.for_work(most * _PYTHON_US)
    batches = _Batches(batch_range, code, *(rows[name] for name in _Batches._fields[2:]))
    group_count, part_count = follow(batches, _Found(state, groups, parts))
    return Trace(
        dict(zip(_GROUP_COLUMNS, groups[:group_count].T.copy(), strict=True)),
        dict(zip(_PART_COLUMNS, parts[:part_count].T.copy(), strict=True)),
    )


@compiled
def _follow(batches: _Batches, traced: _Found) -> tuple[int, int]:
    """Fill `found`, and return how many groups and parts there are."""
    batch_range, code, is_data, is_marker, is_control, epoch, record_count, size_bytes = batches
    state, groups, parts = traced
    group_count = part_count = 0
    for row in range(len(code)):
        producer = code[row]
        if producer == NONE:
            continue
        if state[producer, _OPEN_RANGE] != batch_range[row]:
            state[producer, _OPEN_RANGE] = batch_range[row]
            state[producer, _OPEN_GROUP] = group_count
            state[producer, _OPEN_PART] = NONE
            groups[group_count] = NONE
            groups[group_count, _FIRST] = groups[group_count, _LAST] = row
            groups[group_count, _CHANGES], groups[group_count, _LEAD] = 0, part_count
            group_count += 1
        group = state[producer, _OPEN_GROUP]
        if epoch[row] != epoch[groups[group, _LAST]]:
            groups[group, _CHANGES] += 1
        groups[group, _LAST] = row
        if not is_control[row]:
            groups[group, _DATA] = row
            groups[group, _CHANGES_AT_DATA] = groups[group, _CHANGES]
        if state[producer, _OPEN_PART] == NONE:
            state[producer, _OPEN_PART] = groups[group, _TAIL] = part_count
            parts[part_count] = NONE
            parts[part_count, _GROUP] = group
            parts[part_count, _RECORDS] = parts[part_count, _BYTES] = 0
            part_count += 1
        part = state[producer, _OPEN_PART]
        if is_data[row]:
            if parts[part, _START] == NONE:
                parts[part, _START] = row
            parts[part, _FINAL] = row
            parts[part, _MAX_EPOCH] = max(parts[part, _MAX_EPOCH], epoch[row])
            parts[part, _RECORDS] += max(record_count[row], 0)
            parts[part, _BYTES] += size_bytes[row]
        if is_marker[row]:
            groups[group, _MARKER] = row
            parts[part, _END] = row
            state[producer, _OPEN_PART] = NONE
    return group_count, part_count


@dataclass(frozen=True)
class Rows:
    """Columns of batches in text order.

    Attributes:
        columns: by name.
        batch_range: the ordinal of each batch's range.
        first_row: of each batch range.
    """

    columns: dict[str, Array]
    batch_range: Array
    first_row: Array

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @cached_property
    def moments(self) -> Nearest:
        """The moments of the broker's clock."""
        return Nearest(self["max_timestamp_ms"], self["is_moment"], self.batch_range)


@dataclass(frozen=True)
class TransactionParts:
    """What producers wrote up to their end markers, or to the end of a batch range: see `tables.TransactionPart`.

    Attributes:
        batch_range: of each.
        arrays: by name of its field; NONE where it is not known.
        groups: sorted by batch range and producer id, by field of `tables.ProducerAppendInfo`. `lead` and `tail` are
            the first and the last part of each, which can be the same one.
        whole: the parts that are whole transactions, sorted by group: they follow an end marker of their producer and
            end with one, all in one batch range.
        bare: the parts that are an end marker without data, sorted by group.
        bare_group: the group of each of those.
    """

    batch_range: Array
    arrays: dict[str, Array]
    groups: dict[str, Array]
    whole: Array
    bare: Array
    bare_group: Array

    def columns(self, index: Array) -> dict[str, pa.Array]:
        """What is known of some parts, by name."""
        return {
            name: pa.array(v[index], pa.string()) if v.dtype == object else nullable(v[index])
            for name, v in self.arrays.items()
        }


def transaction_parts_of(rows: Rows) -> TransactionParts:
    """The parts of all batch ranges."""
    traced = trace(rows.columns, rows.batch_range)
    groups, part_rows = traced.groups, traced.parts
    batch_range = rows.batch_range[groups["first_row"]]
    order = np.lexsort((rows["producer_id"][groups["first_row"]], batch_range))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    is_whole = (part_rows["end_row"] != NONE) & (part_rows["start_row"] != NONE)
    is_whole[groups["lead"]] = False
    whole, whole_group = _by_group(is_whole, rank[part_rows["group"]])
    bare, bare_group = _by_group(
        (part_rows["end_row"] != NONE) & (part_rows["start_row"] == NONE), rank[part_rows["group"]]
    )
    arrays = _part_arrays(rows, part_rows, groups)
    ended = _newest_ended(arrays, whole, whole_group, len(order))
    ended["last_commit_offset"] = _last_commits(arrays, rank[part_rows["group"]], len(order))
    return TransactionParts(
        batch_range=batch_range[part_rows["group"]],
        arrays=arrays,
        groups=_groups(rows, rows_at(groups, order)) | ended,
        whole=whole,
        bare=bare,
        bare_group=bare_group,
    )


def _by_group(is_wanted: Array, group: Array) -> tuple[Array, Array]:
    """The wanted parts sorted by their groups, and those groups."""
    wanted = np.flatnonzero(is_wanted)
    wanted = wanted[np.argsort(group[wanted], kind="stable")]
    return wanted, group[wanted]


def _last_commits(arrays: dict[str, Array], group: Array, group_count: int) -> Array:
    """Of each group the offset of its last end marker that is a COMMIT, or whose kind is not printed."""
    commits = np.flatnonzero((arrays["end_offset"] != NONE) & (arrays["end_marker"] != _ABORT))
    last = np.full(group_count, NONE, np.int64)
    last[group[commits]] = arrays["end_offset"][commits]  # of those of one group the last stays
    return last


def _newest_ended(arrays: dict[str, Array], whole: Array, group: Array, group_count: int) -> dict[str, Array]:
    """Of each group's whole transactions the newest, and the largest coordinator epoch; `group` ascends."""
    names = {
        "ended_offset": "end_offset",
        "ended_last_timestamp_ms": "last_timestamp_ms",
        "ended_coordinator_epoch": "end_coordinator_epoch",
    }
    newest = np.full(group_count, NONE, np.int64)
    newest[group] = whole  # of those of one group the last stays
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1])) if len(group) else group
    largest = np.full(group_count, NONE, np.int64)
    largest[group[first]] = max_of(arrays["end_coordinator_epoch"][whole], first)
    return {name: at(arrays[source], newest) for name, source in names.items()} | {
        "max_ended_coordinator_epoch": largest
    }


def _part_arrays(rows: Rows, traced: dict[str, Array], groups: dict[str, Array]) -> dict[str, Array]:
    start, final, end = traced["start_row"], traced["final_row"], traced["end_row"]
    return {
        "producer_id": rows["producer_id"][groups["first_row"]][traced["group"]],
        "start_offset": at(rows["base_offset"], start),
        "first_epoch": at(rows["producer_epoch"], start),
        "max_epoch": traced["max_epoch"],
        "last_offset": at(rows["last_offset"], final),
        "last_sequence": at(rows["last_sequence"], final),
        "record_count": traced["record_count"],
        "size_bytes": traced["size_bytes"],
        "last_timestamp_ms": at(rows["max_timestamp_ms"], final),
        "first_after_ms": rows.moments.before(start),
        "first_before_ms": rows.moments.after(start),
        "last_after_ms": rows.moments.before(final),
        "last_before_ms": rows.moments.after(final),
        "hidden_record_count": _from_row_on(rows, "data_record_count", start),
        "hidden_bytes": _from_row_on(rows, "size_bytes", start),
        "end_offset": at(rows["base_offset"], end),
        "end_marker": _words_at(rows["marker"], end),
        "end_timestamp_ms": at(rows["max_timestamp_ms"], end),
        "end_epoch": at(rows["producer_epoch"], end),
        "end_coordinator_epoch": at(rows["coordinator_epoch"], end),
        "first_timestamp_ms": at(rows["max_timestamp_ms"], start),
    }


def _words_at(words: Array, row: Array) -> Array:
    words_at = np.full(len(row), None, object)
    words_at[row != NONE] = words[row[row != NONE]]
    return words_at


def _from_row_on(rows: Rows, name: str, start: Array) -> Array:
    """The sum of a column from each row on to the end of its batch range; 0 where there is no such row."""
    if not len(start):
        return start
    stop = np.append(rows.first_row[1:], len(rows.batch_range))
    total, known = np.append(0, np.cumsum(rows[name])), np.where(start == NONE, 0, start)
    return np.where(start == NONE, 0, total[stop[rows.batch_range[known]]] - total[known])


def _groups(rows: Rows, groups: dict[str, Array]) -> dict[str, Array]:
    first, last, marker, data = (groups[name] for name in ("first_row", "last_row", "marker_row", "data_row"))
    # A change of epoch clears the cached batches (`ProducerStateEntry.maybeUpdateProducerEpoch`).
    is_cached = groups["changes_at_data"] == groups["changes"]
    return {
        "producer_id": rows["producer_id"][last],
        "batch_range": rows.batch_range[last],
        "lead": groups["lead"],
        "tail": groups["tail"],
        "first_batch_epoch": rows["producer_epoch"][first],
        "is_one_epoch": groups["changes"] == 0,
        "producer_epoch": rows["producer_epoch"][last],
        "last_sequence": np.where(is_cached, at(rows["last_sequence"], data), NONE),
        "last_timestamp_ms": rows["max_timestamp_ms"][last],
        "marker_offset": at(rows["base_offset"], marker),
        "marker_timestamp_ms": at(rows["max_timestamp_ms"], marker),
        "marker_coordinator_epoch": at(rows["coordinator_epoch"], marker),
    }


def producers_of(rows: Rows, parts: TransactionParts) -> pa.Array:
    """The `producers` column of `log_pieces`: one list for each batch range."""
    groups, lead, tail = parts.groups, parts.groups["lead"], parts.groups["tail"]
    kind = LOG_PIECES.arrow_schema.field("producers").type.value_type
    values = {f.name: nullable(groups[f.name]) for f in kind if f.name in groups and f.name not in _NOT_NUMBERS}
    values["is_one_epoch"] = pa.array(groups["is_one_epoch"], pa.bool_())
    values["lead"] = _structs(parts.columns(lead), kind.field("lead").type)
    values["tail"] = _structs(parts.columns(tail), kind.field("tail").type, absent=lead == tail)
    ends = parts.columns(parts.bare)
    bare = {field: ends[name] for field, name in _END_OF_PART.items()}
    markers = _structs(bare, kind.field("bare_markers").type.value_type)
    values["bare_markers"] = lists(markers, parts.bare_group, len(lead))
    return lists(_structs(values, kind), groups["batch_range"], len(rows.first_row))


def _structs(columns: Mapping[str, pa.Array], kind: pa.StructType, *, absent: Array | None = None) -> pa.Array:
    """Columns as structs of `kind`; NULL where `absent`."""
    fields = of_types((columns[f.name] for f in kind), kind)
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=None if absent is None else pa.array(absent))
