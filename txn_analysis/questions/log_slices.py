"""The shape of a log in a bounded number of points: its shown offsets are cut into slices, each of which keeps one.

However long a log is, it is read once, batch by batch, and no batch is kept.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.report.pictures import MarkerPoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txn_analysis.columns.arrays import Array

LOG_SLICES = 200
MARKER_SLICES = 50

_NOWHERE = -1

Place = tuple[str, int]


class Shown(NamedTuple):
    """Which offsets of a partition are shown: from the first one to before the other."""

    from_offset: int
    to_offset: int

    def slices(self, offsets: Array, count: int) -> Array:
        """Which of `count` slices each offset lies in, from 0."""
        share = (offsets - self.from_offset) / (self.to_offset - self.from_offset)
        return np.clip(np.floor(share * count), 0, count - 1).astype(np.int64)


class EndPoint(NamedTuple):
    """Where a log ended in one slice, and its last stable offset then.

    `moment_ms` is the last time of a broker's clock in the slice, `timestamp_ms` the last of any clock; None without.
    """

    end_offset: int
    moment_ms: int | None
    timestamp_ms: int | None
    last_stable_offset: int


def log_points(
    appends: Iterable[pa.RecordBatch],
    transactions: Iterable[pa.RecordBatch],
    shown: Mapping[Place, Shown],
    as_of_ms: int | None,
) -> dict[Place, list[EndPoint]]:
    """Where logs ended when, and their last stable offset then.

    Args:
        appends: of batches, or of pieces, `topic`, `partition`, `base_offset`, `last_offset`, `moment_ms` (a broker's
            clock) and `timestamp_ms` (any clock).
        transactions: of the run, `topic`, `partition`, `txn_start_offset` and `end_offset`; read after the appends.
        shown: the partitions.
        as_of_ms: when the files were copied; a later timestamp is not believed.

    Returns:
        By partition, one for each slice that holds something.
    """
    ends = {place: _Ends(window, as_of_ms) for place, window in shown.items()}
    for place, batch in _by_place(appends, shown):
        ends[place].add(batch)
    held = {place: _Held(shown[place], of_place.end_offsets) for place, of_place in ends.items()}
    for place, batch in _by_place(transactions, shown):
        held[place].add(batch)
    return {place: of_place.points(held[place].offsets) for place, of_place in ends.items()}


def marker_points(
    transactions: Iterable[pa.RecordBatch], shown: Mapping[Place, Shown]
) -> dict[Place, list[MarkerPoint]]:
    """End markers.

    Args:
        transactions: of the run, `topic`, `partition`, `end_offset`, `end_timestamp_ms` and `outcome`.
        shown: the partitions.

    Returns:
        By partition, one for each slice and outcome that has one.
    """
    found: dict[Place, defaultdict[str, _Newest]] = {
        place: defaultdict(lambda: _Newest(MARKER_SLICES)) for place in shown
    }
    for place, batch in _by_place(transactions, shown):
        window = shown[place]
        timed = batch.filter(pc.is_valid(batch["end_timestamp_ms"]))
        inside = timed.filter(_between(timed["end_offset"], window.from_offset, window.to_offset - 1))
        for outcome in inside["outcome"].unique().to_pylist():
            own = inside.filter(pc.equal(inside["outcome"], outcome))
            offsets = _numbers(own["end_offset"])
            slices = window.slices(offsets, MARKER_SLICES)
            found[place][outcome].add(slices, offsets, _numbers(own["end_timestamp_ms"]))
    return {
        place: [
            MarkerPoint(int(last.values[at]), int(last.offsets[at]), outcome, int(last.counts[at]))
            for outcome, last in of_place.items()
            for at in np.flatnonzero(last.counts).tolist()
        ]
        for place, of_place in found.items()
    }


def _by_place(
    batches: Iterable[pa.RecordBatch], shown: Mapping[Place, Shown]
) -> Iterator[tuple[Place, pa.RecordBatch]]:
    """The rows of each partition that is shown."""
    topics = sorted({topic for topic, _ in shown})
    known, places = pa.array(topics, pa.string()), [(topics.index(p[0]), p) for p in shown]
    for batch in batches:
        topic = pc.fill_null(pc.index_in(batch["topic"], known), _NOWHERE).to_numpy(zero_copy_only=False)
        partition = _numbers(batch["partition"])
        for number, place in places:
            own = (topic == number) & (partition == place[1])
            if own.all():
                yield place, batch
            elif own.any():
                yield place, batch.filter(pa.array(own))


class _Newest:
    """Of each slice the value that was given with the highest offset, and how many were given."""

    def __init__(self, count: int) -> None:
        self.counts = np.zeros(count, np.int64)
        self.offsets = np.full(count, _NOWHERE, np.int64)
        self.values = np.zeros(count, np.int64)

    def add(self, slices: Array, offsets: Array, values: Array) -> None:
        np.add.at(self.counts, slices, 1)
        order = np.lexsort((offsets, slices))
        slices, offsets, values = slices[order], offsets[order], values[order]
        last = np.append(slices[1:] != slices[:-1], True)[: len(slices)]
        slices, offsets, values = slices[last], offsets[last], values[last]
        is_newer = offsets > self.offsets[slices]
        self.offsets[slices[is_newer]] = offsets[is_newer]
        self.values[slices[is_newer]] = values[is_newer]

    def at(self, number: int) -> int | None:
        return None if self.offsets[number] == _NOWHERE else int(self.values[number])


class _Ends:
    """Where one log ended, by slice, and when."""

    def __init__(self, window: Shown, as_of_ms: int | None) -> None:
        self._window, self._as_of_ms = window, as_of_ms
        self._ends = np.zeros(LOG_SLICES, np.int64)
        self._moments, self._timestamps = _Newest(LOG_SLICES), _Newest(LOG_SLICES)

    def add(self, batch: pa.RecordBatch) -> None:
        is_shown = pc.and_(
            pc.greater_equal(batch["last_offset"], self._window.from_offset),
            pc.less(batch["base_offset"], self._window.to_offset),
        )
        batch = batch.filter(is_shown)
        last, base = _numbers(batch["last_offset"]), _numbers(batch["base_offset"])
        slices = self._window.slices(last, LOG_SLICES)
        np.maximum.at(self._ends, slices, last + 1)
        is_moment = flags(pc.is_valid(batch["moment_ms"]))
        self._moments.add(slices[is_moment], base[is_moment], _numbers(batch["moment_ms"])[is_moment])
        if self._as_of_ms is not None:
            is_credible = flags(_between(batch["timestamp_ms"], 1, self._as_of_ms))
            self._timestamps.add(slices[is_credible], base[is_credible], _numbers(batch["timestamp_ms"])[is_credible])

    @property
    def end_offsets(self) -> Array:
        """Of the slices that hold something, in order."""
        return self._ends[self._ends > 0]

    def points(self, held: Array) -> list[EndPoint]:
        numbers = np.flatnonzero(self._ends).tolist()
        return [
            EndPoint(
                end_offset=int(self._ends[number]),
                moment_ms=self._moments.at(number),
                timestamp_ms=self._timestamps.at(number),
                last_stable_offset=min(int(stable), int(self._ends[number])),
            )
            for number, stable in zip(numbers, held.tolist(), strict=True)
        ]


class _Held:
    """The smallest start that was open at each of some end offsets of one log."""

    def __init__(self, window: Shown, end_offsets: Array) -> None:
        self._window, self._ends = window, end_offsets
        self.offsets = np.full(len(end_offsets), np.iinfo(np.int64).max)

    def add(self, batch: pa.RecordBatch) -> None:
        start, end = _numbers(batch["txn_start_offset"]), _numbers(batch["end_offset"])
        is_open = ~flags(pc.is_valid(batch["end_offset"]))
        reaches = (start < self._window.to_offset) & (is_open | (end >= self._window.from_offset))
        first = np.searchsorted(self._ends, start, "right")  # the first end above its start
        behind = np.where(is_open, len(self._ends), np.searchsorted(self._ends, end, "right"))
        chosen = reaches & (first < behind)
        for offset, begin, stop in zip(
            start[chosen].tolist(), first[chosen].tolist(), behind[chosen].tolist(), strict=True
        ):
            np.minimum(self.offsets[begin:stop], offset, out=self.offsets[begin:stop])


def _between(values: pa.Array, first: int, last: int) -> pa.Array:
    return pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))  # filters take NULL for no


def flags(values: pa.Array) -> Array:
    """Flags as numpy has them; NULL is false."""
    mask: Array = pc.fill_null(values, fill_value=False).to_numpy(zero_copy_only=False)
    return mask


def _numbers(values: pa.Array) -> Array:
    """As integers; NULL is 0, and whoever asks knows where it is."""
    numbers: Array = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return numbers
