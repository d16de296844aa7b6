"""The ended transactions of a run, read batch by batch: those that are asked about, and what ended before each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.judge.endings import EndedTransaction
from txn_analysis.runs.ended_transactions import ended_batches
from txn_analysis.tables.transactions import ENDED_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from txn_analysis.runs.past_run import PastRun

_KEY = ("topic", "partition", "producer_id")
_STORED = tuple(name for name in EndedTransaction._fields if name != "previous_end_ms")
_NEWEST_FIRST = [("end_timestamp_ms", "descending"), ("topic", "ascending"), ("partition", "ascending")]
_HELD_ROWS = 1 << 15
_UNKNOWN = np.iinfo(np.int64).min


def ended_rows(run: PastRun, outcome: str | None, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
    """The ended transactions that are asked about.

    Args:
        run: whose they are.
        outcome: only those that ended like this.
        names: of the columns that are wanted; without any, those of `EndedTransaction`.
        one_of: as of `Stored.batches`.
    """
    outcomes = ENDED_OUTCOMES if outcome is None else (outcome,)
    return ended_batches(run, *(names or _STORED), outcomes=outcomes, **one_of)


def newest(parts: Iterable[pa.RecordBatch], limit: int) -> tuple[pa.Table | None, int]:
    """The rows that ended last, newest first, and how many there were; None where there was none."""
    held: list[pa.Table] = []
    number, since_ms = 0, None
    for part in map(_table, parts):
        number += len(part)
        held.append(part if since_ms is None else part.filter(pc.greater_equal(part["end_timestamp_ms"], since_ms)))
        if sum(map(len, held)) > limit + _HELD_ROWS:
            held = [_newest(held, limit)]
            since_ms = held[0]["end_timestamp_ms"][-1].as_py()
    return (_newest(held, limit) if held else None), number


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _newest(parts: list[pa.Table], limit: int) -> pa.Table:
    rows = pa.concat_tables(parts)
    order = pc.sort_indices(rows, [*_NEWEST_FIRST, ("end_offset", "descending")])  # NULL comes last in either order
    return rows.take(order[:limit]).combine_chunks()


def with_previous_ends(run: PastRun, rows: pa.Table) -> Iterator[EndedTransaction]:
    """Ended transactions, each with the time of its producer's end marker before its own."""
    previous = _Previous(rows)
    asked = {name: rows[name].unique().to_pylist() for name in _KEY}
    for batch in ended_batches(run, *_KEY, "end_offset", "end_timestamp_ms", **asked):
        previous.add(batch)
    listed = (row for batch in rows.to_batches(_HELD_ROWS) for row in batch.to_pylist())
    for row, before_ms in zip(listed, previous.times_ms(), strict=True):
        yield EndedTransaction(**row, previous_end_ms=before_ms)


class _Previous:
    """Of each of some ends the nearest one before it, of its producer and partition, among those that are added."""

    def __init__(self, asked: pa.Table) -> None:
        self._topics, self._producers = (asked[name].unique() for name in ("topic", "producer_id"))
        self._partition_count = pc.max(asked["partition"]).as_py() + 1
        self._keys, self._ends = self._keys_of(asked), asked["end_offset"].to_numpy()
        self._found, self._times = np.full(len(asked), -1, np.int64), np.full(len(asked), _UNKNOWN)

    def _keys_of(self, rows: pa.Table | pa.RecordBatch) -> NDArray[np.int64]:
        """A number for each partition and producer of those that are asked about."""
        topic, producer = (
            pc.index_in(rows[name], known).to_numpy(zero_copy_only=False)
            for name, known in (("topic", self._topics), ("producer_id", self._producers))
        )
        place = topic.astype(np.int64) * self._partition_count + rows["partition"].to_numpy()
        keys: NDArray[np.int64] = place * len(self._producers) + producer
        return keys

    def add(self, rows: pa.RecordBatch) -> None:
        """Look among some more rows, of these topics, partitions and producers."""
        keys = np.concatenate([self._keys_of(rows), self._keys])
        ends = np.concatenate([rows["end_offset"].to_numpy(), self._ends])
        times = pc.fill_null(rows["end_timestamp_ms"], _UNKNOWN).to_numpy()
        order = np.lexsort((np.arange(len(keys)) < len(rows), ends, keys))  # who asks stands before an end of its own
        is_end = order < len(rows)
        place = np.maximum.accumulate(np.where(is_end, np.arange(len(order)), -1))[~is_end]
        asked, before = order[~is_end] - len(rows), order[place]
        is_own = (place >= 0) & (keys[before] == self._keys[asked])
        is_nearer = is_own & (ends[before] > self._found[asked])
        asked, before = asked[is_nearer], before[is_nearer]
        self._found[asked], self._times[asked] = ends[before], times[before]

    def times_ms(self) -> list[int | None]:
        """The times of those ends; None where there is none, or where it has none."""
        return [None if time_ms == _UNKNOWN else time_ms for time_ms in self._times.tolist()]
