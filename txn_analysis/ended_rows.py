"""The ended transactions of a run, read batch by batch: those that are asked about, and what ended before each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.judge.endings import EndedTransaction
from txn_analysis.tables import TRANSACTIONS
from txn_analysis.tables.transactions import ENDED_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from txn_analysis.past_run import PastRun

_KEY = ("topic", "partition", "producer_id")
_STORED = tuple(name for name in EndedTransaction._fields if name != "previous_end_ms")
_NEWEST_FIRST = [("end_timestamp_ms", "descending"), ("topic", "ascending"), ("partition", "ascending")]
_HELD_ROWS = 1 << 16
_AT_ONCE = 1 << 15
_UNKNOWN = np.iinfo(np.int64).min


def ended_rows(run: PastRun, outcome: str | None, **one_of: Collection[Any]) -> Iterator[pa.Table]:
    """The ended rows of `transactions` that are asked about, as the columns of `EndedTransaction`; some at a time.

    Args:
        run: whose they are.
        outcome: only those that ended like this.
        one_of: as of `Stored.batches`.
    """
    outcomes = ENDED_OUTCOMES if outcome is None else (outcome,)
    for batch in run.batches(TRANSACTIONS, *_STORED, outcome=outcomes, **one_of):
        for first in range(0, len(batch), _AT_ONCE):
            yield pa.Table.from_batches([batch.slice(first, _AT_ONCE)])


def newest(parts: Iterator[pa.Table], limit: int) -> tuple[pa.Table | None, int]:
    """The rows that ended last, newest first, and how many there were; None where there was none."""
    held: list[pa.Table] = []
    number = 0
    for part in parts:
        held.append(part)
        number += len(part)
        if sum(map(len, held)) > limit + _HELD_ROWS:
            held = [_newest(held, limit)]
    return (_newest(held, limit) if held else None), number


def _newest(parts: list[pa.Table], limit: int) -> pa.Table:
    rows = pa.concat_tables(parts)
    order = pc.sort_indices(rows, [*_NEWEST_FIRST, ("end_offset", "descending")])  # NULL comes last in either order
    return rows.take(order[:limit]).combine_chunks()


def with_previous_ends(run: PastRun, rows: pa.Table) -> Iterator[EndedTransaction]:
    """Ended transactions, each with the time of its producer's end marker before its own."""
    keys = rows.select(_KEY).group_by(list(_KEY)).aggregate([])
    keys = keys.append_column("key", pa.array(np.arange(len(keys))))
    previous = _Previous(_keyed(rows.append_column("row", pa.array(np.arange(len(rows)))), keys))
    wanted = {name: keys[name].unique().to_pylist() for name in _KEY}
    for batch in run.batches(TRANSACTIONS, *_KEY, "end_offset", "end_timestamp_ms", outcome=ENDED_OUTCOMES, **wanted):
        previous.add(_keyed(pa.Table.from_batches([batch]), keys))
    for row, before_ms in zip(rows.to_pylist(), previous.times_ms(), strict=True):
        yield EndedTransaction(**row, previous_end_ms=before_ms)


def _keyed(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows of some producers in some partitions, each with the number of its key."""
    return rows.join(keys, list(_KEY), join_type="inner")


class _Previous:
    """Of each of some ends the nearest one before it, of its producer and partition, among those that are added."""

    def __init__(self, asked: pa.Table) -> None:
        rows = asked.sort_by("row")
        self._keys, self._ends = (rows[name].to_numpy() for name in ("key", "end_offset"))
        self._found, self._times = np.full(len(rows), -1, np.int64), np.full(len(rows), _UNKNOWN)

    def add(self, rows: pa.Table) -> None:
        """Look among some more rows."""
        keys = np.concatenate([rows["key"].to_numpy(), self._keys])
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
