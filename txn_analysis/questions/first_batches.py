"""The timestamps with which ended transactions began: those of their first batches, as `log_batches` holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import numbers, place_in
from txn_analysis.tables import LOG_BATCHES

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.runs.past_run import PastRun

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
