"""Buckets of keys: what a step is given at once, on either engine, so that its memory does not grow with the input."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import Array, mixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BUCKET_BYTES = 64 << 20
"""Of text, whose rows a bucket holds."""


def bucket_count(text_bytes: int, least: int = 1) -> int:
    """Into how many buckets keys are divided, so that each holds what was read of some 64 MiB of text."""
    return max(least, -(-text_bytes // BUCKET_BYTES))


@dataclass(frozen=True)
class Buckets:
    """Which bucket each key belongs to, in every process.

    Attributes:
        count: how many buckets there are.
        hashes: those of the keys that were dealt out, sorted. Keys with equal hashes share a bucket.
        dealt_to: the bucket of each of them. All other keys go by their hash.
    """

    count: int
    hashes: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    dealt_to: Array = field(default_factory=lambda: np.zeros(0, np.int32))

    @classmethod
    def dealing(cls, size_bytes: Mapping[tuple[Any, ...], int], count: int, task_count: int) -> Buckets:
        """Keys of known sizes, dealt out by `deal`."""
        if not size_bytes:
            return cls(count)
        hashes = _key_hashes([pa.array(column) for column in zip(*size_bytes, strict=True)])
        order = np.argsort(hashes)
        dealt_to = np.array(deal([*size_bytes.values()], count, task_count), np.int32)
        return cls(count, hashes[order], dealt_to[order])

    def of(self, columns: Sequence[pa.Array]) -> Array:
        """The bucket of each row, by the columns of its key."""
        hashes = _key_hashes(columns)
        buckets: Array = (hashes % np.uint64(self.count)).astype(np.int32)
        if len(self.hashes):
            place = np.searchsorted(self.hashes, hashes).clip(max=len(self.hashes) - 1)
            buckets = np.where(self.hashes[place] == hashes, self.dealt_to[place], buckets)
        return buckets


def deal(sizes: Sequence[int], bucket_count: int, task_count: int) -> list[int]:
    """The bucket of each of some keys: the largest first, each to the task that has the least by then.

    The task of a bucket is bucket % task_count. Of the buckets of a task the one with the least is taken.
    """
    tasks = [(0, task) for task in range(task_count)]
    buckets = [[(0, bucket) for bucket in range(task, bucket_count, task_count)] for task in range(task_count)]
    dealt_to = [0] * len(sizes)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        of_task, task = heapq.heappop(tasks)
        of_bucket, dealt_to[place] = heapq.heappop(buckets[task])
        heapq.heappush(buckets[task], (of_bucket + sizes[place], dealt_to[place]))
        heapq.heappush(tasks, (of_task + sizes[place], task))
    return dealt_to


def numbers_for_parts(spark: SparkSession, bucket_count: int, part_count: int) -> list[int]:
    """A number for each bucket that Spark's `repartition` takes to part bucket % part_count."""
    from pyspark.sql import functions as f  # noqa: PLC0415 no local audit loads PySpark

    waiting: list[list[int]] = [[] for _ in range(part_count)]
    wanted = -(-bucket_count // part_count)
    start, step = 0, 4 * bucket_count
    while min(map(len, waiting)) < wanted:
        numbers = spark.range(start, start + step).select(f.col("id").cast("int").alias("number"))
        for number, part in numbers.select("number", f.pmod(f.hash("number"), f.lit(part_count))).collect():
            waiting[part].append(number)
        start += step
    return [waiting[bucket % part_count][bucket // part_count] for bucket in range(bucket_count)]


def _key_hashes(columns: Sequence[pa.Array]) -> Array:
    """Of each row a number of 64 bits for its key; the width of an integer does not matter."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = mixed(hashes * np.uint64(31) + _numbers(column))
    return hashes


def _numbers(column: pa.Array) -> Array:
    if pa.types.is_integer(column.type):
        numbers: Array = column.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).view(np.uint64)
        return numbers
    words = column.dictionary_encode()
    hashes = np.array([*(crc32(word.encode()) for word in words.dictionary.to_pylist()), 0], np.uint64)
    row_hashes: Array = hashes[words.indices.fill_null(len(hashes) - 1).to_numpy(zero_copy_only=False)]
    return row_hashes
