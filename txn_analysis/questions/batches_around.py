"""The batches of a log around some open transactions: a few of each, found in one reading of their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from txn_analysis.judge.timeline import LoggedBatch
from txn_analysis.tables import LOG_BATCHES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from txn_analysis.kafka.transactions import OpenTransaction
    from txn_analysis.runs.evidence import Evidence

_OWN_BATCHES = 3
_MARKERS = 2


def batches_around(evidence: Evidence, opened: Sequence[OpenTransaction]) -> list[list[LoggedBatch]]:
    """Of each transaction its first and last batches, its producer's marker before it, and the markers around it."""
    around = [_Around(transaction) for transaction in opened]
    topics, partitions = {one.topic for one in opened}, {one.partition for one in opened}
    for batch in evidence.batches(LOG_BATCHES, "partition", *LoggedBatch._fields, topic=topics, partition=partitions):
        for one in around:
            one.add(batch)
    return [one.batches for one in around]


class _Around:
    """What is shown of one transaction."""

    def __init__(self, opened: OpenTransaction) -> None:
        self._opened = opened
        self._first, self._last = _Nearest(_OWN_BATCHES), _Nearest(-_OWN_BATCHES)
        self._own_marker, self._before, self._after = _Nearest(-1), _Nearest(-_MARKERS), _Nearest(_MARKERS)

    def add(self, batch: pa.RecordBatch) -> None:
        opened = self._opened
        is_here = pc.and_(pc.equal(batch["topic"], opened.topic), pc.equal(batch["partition"], opened.partition))
        is_own, is_marker = pc.equal(batch["producer_id"], opened.producer_id), batch["is_control"]
        is_before = pc.less(batch["base_offset"], opened.txn_start_offset)
        is_marker_before = pc.and_(pc.and_(is_here, is_marker), is_before)
        is_own_data = pc.and_(pc.and_(is_here, is_own), pc.invert(pc.or_(is_marker, is_before)))
        self._first.add(batch, is_own_data)
        self._last.add(batch, is_own_data)
        self._before.add(batch, is_marker_before)
        self._own_marker.add(batch, pc.and_(is_marker_before, is_own))
        if opened.last_offset is not None:
            is_after = pc.greater(batch["base_offset"], opened.last_offset)
            self._after.add(batch, pc.and_(pc.and_(is_here, is_marker), is_after))

    @property
    def batches(self) -> list[LoggedBatch]:
        """What is shown, each batch once."""
        parts = (self._first, self._last, self._own_marker, self._before, self._after)
        return [*{offset: batch for part in parts for offset, batch in part.found.items()}.values()]


class _Nearest:
    """Of the batches that are added those at the smallest offsets, or (a negative count) at the largest ones.

    Copies and captures hold the same batch; of each place in the log one is enough to be read.
    """

    def __init__(self, count: int) -> None:
        self._kept = slice(count) if count > 0 else slice(count, None)
        self.found: dict[int, LoggedBatch] = {}

    def add(self, batch: pa.RecordBatch, is_meant: pa.Array) -> None:
        """Look among the rows of a batch that are meant; NULL means no."""
        places = np.flatnonzero(pc.fill_null(is_meant, fill_value=False).to_numpy(zero_copy_only=False))
        if not len(places):
            return
        _, first = np.unique(batch["base_offset"].to_numpy()[places], return_index=True)
        nearest = batch.select([*LoggedBatch._fields]).take(places[first[self._kept]])
        found = map(LoggedBatch._make, zip(*(column.to_pylist() for column in nearest.columns), strict=True))
        every = {one.base_offset: one for one in found} | self.found
        self.found = {offset: every[offset] for offset in sorted(every)[self._kept]}
