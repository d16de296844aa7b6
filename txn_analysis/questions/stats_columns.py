"""What `stats` adds up, as whole columns: what one producer did on one topic, how many ended when, and since when.

Rows are added up alike. A column is a sum, the least or the most of something; what was added up can be added up again,
so that memory grows with producers and topics, not with transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import numbers, place_in
from txn_analysis.judge.endings import ADMINISTRATOR, CLIENT_ABORT, FENCING, TIMEOUT
from txn_analysis.report.pictures import EndedSlice
from txn_analysis.tables import LOG_BATCHES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from txn_analysis.columns.arrays import Array
    from txn_analysis.runs.past_run import PastRun

KEY = ("topic", "producer_id")
CAUSES = {name: f"{name}_count" for name in (CLIENT_ABORT, TIMEOUT, FENCING, ADMINISTRATOR)}
"""The causes of an abort that are counted, and the columns of their counts; the others are unexplained."""
SUMS = (
    *("committed_count", "aborted_count", *CAUSES.values(), "unknown_outcome_count"),
    *("empty_count", "empty_commit_count", "open_count", "start_unseen_count", "undated_count", "backwards_count"),
    *("sized_count", "record_count", "size_bytes", "timed_count", "duration_sum_ms"),
    *("decided_count", "marker_wait_sum_ms", "coordinator_timed_count", "coordinator_duration_sum_ms"),
)
_LEAST = ("min_duration_ms", "min_coordinator_duration_ms", "min_marker_wait_ms")
_MOST = (
    *("max_record_count", "max_size_bytes", "max_duration_ms", "max_coordinator_duration_ms", "max_marker_wait_ms"),
)
_HOW = {**dict.fromkeys(SUMS, "sum"), **dict.fromkeys(_LEAST, "min"), **dict.fromkeys(_MOST, "max")}
SCHEMA = pa.schema([("topic", pa.string()), *((name, pa.int64()) for name in ("producer_id", *_HOW))])
_MERGED_ROWS = 1 << 18


def rows_with(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """Rows of `SCHEMA` with some of its columns; the sums that are not given are 0, the others not known."""
    length = len(next(iter(columns.values())))
    zero, none = pa.repeat(pa.scalar(0, pa.int64()), length), pa.nulls(length, pa.int64())
    given = [columns.get(name, zero if name in SUMS else none) for name in SCHEMA.names]
    return pa.table([_int64(each) for each in given], schema=SCHEMA)


def _int64(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return column if pa.types.is_string(column.type) else column.cast(pa.int64())


def spread(names: Sequence[str], values: pa.Array) -> dict[str, pa.Array]:
    """The columns of one measure: how many values are known, their sum, and each of the other names its value.

    Args:
        names: of the count and of the sum, then those of the least and the most as far as there are any.
        values: one a row; NULL where it is not known.
    """
    counted, added, *others = names
    known = pc.is_valid(values)
    return {counted: known, added: pc.fill_null(values, 0), **dict.fromkeys(others, values)}


def added_up(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """The rows of each group as one; without a group one row of all, which is there even where there is no row."""
    found = rows.group_by([*by], use_threads=False).aggregate([*_HOW.items()])
    columns = [found[name] for name in by]
    columns += [
        pc.fill_null(found[f"{name}_{how}"], 0) if how == "sum" else found[f"{name}_{how}"]
        for name, how in _HOW.items()
    ]
    return pa.table(columns, names=[*by, *_HOW])


def by_producer(parts: Iterable[pa.Table]) -> pa.Table:
    """All parts, each of rows of `SCHEMA`, added up by topic and producer; few rows are held at a time."""
    held, merged_rows = [SCHEMA.empty_table()], 0
    for part in parts:
        held.append(added_up(part, KEY))
        if sum(map(len, held)) - merged_rows > max(_MERGED_ROWS, merged_rows):
            held = [added_up(pa.concat_tables(held), KEY)]
            merged_rows = len(held[0])
    return added_up(pa.concat_tables(held), KEY)


_MOST_SLICES = 48
_OUTCOMES = ("COMMIT", "ABORT", "ended")  # in the order of the fields of `EndedSlice`


class Window(NamedTuple):
    """From `since_ms` to before `until_ms`; None is no bound, and without any a row without a time is in it as well."""

    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Some times are not in it."""
        return self != (None, None)

    def has(self, times: pa.Array) -> pa.Array:
        """Which times are in it."""
        found = pa.repeat(pa.scalar(True), len(times))
        if self.since_ms is not None:
            found = pc.and_(found, pc.greater_equal(times, self.since_ms))
        if self.until_ms is not None:
            found = pc.and_(found, pc.less(times, self.until_ms))
        return pc.fill_null(found, fill_value=False)

    def has_one(self, time_ms: int | None) -> bool:
        """Whether a time is in it."""
        if time_ms is None:
            return not self.is_bounded
        is_late_enough = self.since_ms is None or time_ms >= self.since_ms
        return is_late_enough and (self.until_ms is None or time_ms < self.until_ms)


def slices_of(batches: Callable[[], Iterable[pa.RecordBatch]]) -> tuple[EndedSlice, ...]:
    """How many ended when, in slices of one length from the first end marker to the last; none without a time.

    Args:
        batches: reads `end_timestamp_ms` and `outcome` of ended transactions; called twice, as nothing is kept.
    """
    bounds = [pc.min_max(batch["end_timestamp_ms"]) for batch in batches() if len(batch)]
    known = [(one["min"].as_py(), one["max"].as_py()) for one in bounds if one["min"].is_valid]
    if not known:
        return ()
    first_ms, last_ms = min(first for first, _ in known), max(last for _, last in known)
    step_ms = (last_ms - first_ms) // _MOST_SLICES + 1
    counts = np.zeros(((last_ms - first_ms) // step_ms + 1, len(_OUTCOMES)), np.int64)
    for batch in batches():
        timed = batch.filter(pc.is_valid(batch["end_timestamp_ms"]))
        place = (timed["end_timestamp_ms"].to_numpy() - first_ms) // step_ms
        outcome = pc.index_in(timed["outcome"], pa.array(_OUTCOMES)).to_numpy(zero_copy_only=False)
        np.add.at(counts, (place, outcome.astype(np.int64)), 1)
    starts = (first_ms + step_ms * np.arange(len(counts))).tolist()
    return tuple(EndedSlice(start, start + step_ms, *row) for start, row in zip(starts, counts.tolist(), strict=True))


_UNKNOWN = np.iinfo(np.int64).max
_READ = ("topic", "partition", "base_offset", "producer_id", "max_timestamp_ms")


def first_timestamps(run: PastRun, rows: pa.Table) -> pa.Array:
    """When each of some transactions began, by the timestamp of its first batch; a client's clock under CreateTime.

    Args:
        run: whose they are; its batches are read once, and none is kept.
        rows: `topic`, `partition`, `producer_id` and `txn_start_offset`, as many as fit in memory.

    Returns:
        Epoch milliseconds; NULL where the batch is not in the files, or has no time.
    """
    first = _FirstBatches(rows)
    asked = {name: rows[name].unique().to_pylist() for name in ("topic", "partition")}
    for batch in run.evidence.batches(LOG_BATCHES, *_READ, **asked):
        first.add(batch.filter(pc.is_valid(batch["max_timestamp_ms"])))
    return first.times_ms()


class _FirstBatches:
    """By partition and start offset, the earliest timestamp of a batch that the same producer wrote there."""

    def __init__(self, rows: pa.Table) -> None:
        self._topics = rows["topic"].unique()
        self._partition_count = (pc.max(rows["partition"]).as_py() or 0) + 1
        self._offsets = np.unique(rows["txn_start_offset"].to_numpy())
        own = self._keys_of(rows["topic"], rows["partition"], rows["txn_start_offset"].to_numpy())
        self._keys, self._key_of_row = np.unique(own, return_inverse=True)
        self._producers = np.empty(len(self._keys), np.int64)
        self._producers[self._key_of_row] = rows["producer_id"].to_numpy()
        self._times = np.full(len(self._keys), _UNKNOWN)

    def _keys_of(self, topics: pa.Array, partitions: pa.Array, offsets: Array) -> Array:
        """A number for each place that is asked about; negative where it is none of them."""
        topic, offset = numbers(pc.index_in(topics, self._topics), -1), place_in(self._offsets, offsets)
        place = topic * self._partition_count + numbers(partitions, 0)
        return np.where((topic < 0) | (offset < 0), -1, place * len(self._offsets) + offset)

    def add(self, batches: pa.RecordBatch) -> None:
        """Look among some more batches."""
        if not len(batches):
            return
        keys = self._keys_of(batches["topic"], batches["partition"], batches["base_offset"].to_numpy())
        at = place_in(self._keys, keys)
        is_first = (at >= 0) & (numbers(batches["producer_id"], -1) == self._producers[at])
        np.minimum.at(self._times, at[is_first], batches["max_timestamp_ms"].to_numpy()[is_first])

    def times_ms(self) -> pa.Array:
        """Of each row."""
        found = self._times[self._key_of_row]
        return pa.array(found, mask=found == _UNKNOWN)
