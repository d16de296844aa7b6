"""Fragments: each producer's batches of one piece, cut at its own end markers.

Rules of Kafka's `ProducerStateManager`: transactions are keyed by producer id alone, and any COMMIT or ABORT marker
ends them, whatever its epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import NONE, Array, Nearest, at, lists, max_of, nullable
from txn_analysis.log.producer_trace import trace
from txn_analysis.tables import LOG_PIECES

_ABORT = "ABORT"
_NOT_NUMBERS = frozenset({"is_one_epoch", "lead", "tail"})
_NAMES_IN_FRAGMENTS = {
    "offset": "end_offset",
    "marker": "end_marker",
    "timestamp_ms": "end_timestamp_ms",
    "producer_epoch": "end_epoch",
    "coordinator_epoch": "end_coordinator_epoch",
}


@dataclass(frozen=True)
class Rows:
    """Batches in text order as arrays; `piece` is the ordinal of the piece each one belongs to."""

    columns: dict[str, Array]
    piece: Array
    first_row: Array

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @cached_property
    def moments(self) -> Nearest:
        """The moments of the broker's clock."""
        return Nearest(self["max_timestamp_ms"], self["is_moment"], self.piece)


@dataclass(frozen=True)
class Fragments:
    """Stretches of one producer's batches in one piece that end at its end marker or at the piece's end.

    Attributes:
        piece: of each.
        arrays: what is known of each, by name; NONE where it is not.
        groups: the producers of all pieces, sorted by piece and producer id, with what is known of each at the end of
            its piece. `lead` and `tail` are its first and last fragment, which can be the same one.
        whole: the fragments that are whole transactions, sorted like their producers: they follow an end marker of
            their producer and end with one, all in one piece.
        bare: the fragments that are an end marker without data, sorted like their producers.
        bare_group: the producer of each of those, as its place in `groups`.
    """

    piece: Array
    arrays: dict[str, Array]
    groups: dict[str, Array]
    whole: Array
    bare: Array
    bare_group: Array

    def columns(self, index: Array) -> dict[str, pa.Array]:
        """What is known of some fragments, by name."""
        return {
            name: pa.array(v[index], pa.string()) if v.dtype == object else nullable(v[index])
            for name, v in self.arrays.items()
        }

    def struct(self, index: Array, kind: pa.StructType, *, absent: Array | None = None) -> pa.Array:
        """Some fragments as structs of `kind`; NULL where `absent`."""
        columns = self.columns(index)
        fields = [columns[f.name].cast(f.type) for f in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=None if absent is None else pa.array(absent))


def fragments_of(rows: Rows) -> Fragments:
    """The fragments of all pieces."""
    traced = trace(rows.columns, rows.piece)
    groups, found = traced.groups, traced.fragments
    piece = rows.piece[groups["first_row"]]
    order = np.lexsort((rows["producer_id"][groups["first_row"]], piece))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    is_whole = (found["end_row"] != NONE) & (found["start_row"] != NONE)
    is_whole[groups["lead"]] = False
    whole, whole_group = _by_group(is_whole, rank[found["group"]])
    bare, bare_group = _by_group((found["end_row"] != NONE) & (found["start_row"] == NONE), rank[found["group"]])
    arrays = _fragment_arrays(rows, found, groups)
    ended = _newest_ended(arrays, whole, whole_group, len(order))
    ended["last_commit_offset"] = _last_commits(arrays, rank[found["group"]], len(order))
    return Fragments(
        piece=piece[found["group"]],
        arrays=arrays,
        groups=_groups(rows, {name: values[order] for name, values in groups.items()}) | ended,
        whole=whole,
        bare=bare,
        bare_group=bare_group,
    )


def _by_group(is_wanted: Array, group: Array) -> tuple[Array, Array]:
    """The wanted fragments sorted by their groups, and those groups."""
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
    return {name: at(arrays[own], newest) for name, own in names.items()} | {"max_ended_coordinator_epoch": largest}


def _fragment_arrays(rows: Rows, found: dict[str, Array], groups: dict[str, Array]) -> dict[str, Array]:
    start, final, end = found["start_row"], found["final_row"], found["end_row"]
    hidden_records, hidden_bytes = _from_row_on(rows, start)
    return {
        "producer_id": rows["producer_id"][groups["first_row"]][found["group"]],
        "start_offset": at(rows["base_offset"], start),
        "first_epoch": at(rows["producer_epoch"], start),
        "max_epoch": found["max_epoch"],
        "last_offset": at(rows["last_offset"], final),
        "last_sequence": at(rows["last_sequence"], final),
        "record_count": found["record_count"],
        "size_bytes": found["size_bytes"],
        "last_timestamp_ms": at(rows["max_timestamp_ms"], final),
        "first_after_ms": rows.moments.before(start),
        "first_before_ms": rows.moments.after(start),
        "last_after_ms": rows.moments.before(final),
        "last_before_ms": rows.moments.after(final),
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


def _groups(rows: Rows, groups: dict[str, Array]) -> dict[str, Array]:
    first, last, marker, data = (groups[name] for name in ("first_row", "last_row", "marker_row", "data_row"))
    # A change of epoch clears the cached batches (`ProducerStateEntry.maybeUpdateProducerEpoch`).
    is_cached = groups["changes_at_data"] == groups["changes"]
    return {
        "producer_id": rows["producer_id"][last],
        "piece": rows.piece[last],
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


def producers_of(rows: Rows, fragments: Fragments) -> pa.Array:
    """The `producers` column of `log_pieces`: one list per piece."""
    groups = fragments.groups
    kind = LOG_PIECES.arrow_schema.field("producers").type.value_type
    values = {f.name: nullable(groups[f.name]) for f in kind if f.name in groups and f.name not in _NOT_NUMBERS}
    values["is_one_epoch"] = pa.array(groups["is_one_epoch"], pa.bool_())
    values["lead"] = fragments.struct(groups["lead"], kind.field("lead").type)
    is_one = groups["lead"] == groups["tail"]
    values["tail"] = fragments.struct(groups["tail"], kind.field("tail").type, absent=is_one)
    values["bare_markers"] = _bare_markers(fragments, kind.field("bare_markers").type.value_type)
    edges = pa.StructArray.from_arrays([values[f.name].cast(f.type) for f in kind], fields=list(kind))
    return lists(edges, groups["piece"], len(rows.first_row))


def _bare_markers(fragments: Fragments, kind: pa.StructType) -> pa.Array:
    """The end markers without data: one list per producer."""
    columns = fragments.columns(fragments.bare)
    fields = [columns[_NAMES_IN_FRAGMENTS[f.name]].cast(f.type) for f in kind]
    markers = pa.StructArray.from_arrays(fields, fields=list(kind))
    return lists(markers, fragments.bare_group, len(fragments.groups["producer_id"]))
