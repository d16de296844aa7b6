"""Ended transactions by time: in which window they are wanted, and how many ended in each of a few slices of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.report.ended_slices import EndedSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_SLICES = 48
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
    step_ms = (last_ms - first_ms) // MOST_SLICES + 1
    counts = np.zeros(((last_ms - first_ms) // step_ms + 1, len(_OUTCOMES)), np.int64)
    for batch in batches():
        timed = batch.filter(pc.is_valid(batch["end_timestamp_ms"]))
        place = (timed["end_timestamp_ms"].to_numpy() - first_ms) // step_ms
        outcome = pc.index_in(timed["outcome"], pa.array(_OUTCOMES)).to_numpy(zero_copy_only=False)
        np.add.at(counts, (place, outcome.astype(np.int64)), 1)
    starts = (first_ms + step_ms * np.arange(len(counts))).tolist()
    return tuple(EndedSlice(start, start + step_ms, *row) for start, row in zip(starts, counts.tolist(), strict=True))
