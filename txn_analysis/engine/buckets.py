"""Buckets of keys: what a step is given at once, on either engine, so that its memory does not grow with the input."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import mixed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from txn_analysis.columns.arrays import Array

BUCKET_BYTES = 64 << 20
"""Of text, whose rows a bucket holds."""
_SLICE_BYTES = 256 << 10
_LEAST_GATHERED_BYTES, _MOST_GATHERED_BYTES = 8 << 20, 64 << 20


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


def numbers_for_parts(bucket_count: int, part_count: int) -> list[int]:
    """A number for each bucket that Spark's `repartition` takes to part bucket % part_count."""
    waiting: list[list[int]] = [[] for _ in range(part_count)]
    wanted = -(-bucket_count // part_count)
    start, step = 0, 4 * bucket_count
    while min(map(len, waiting)) < wanted:
        numbers = np.arange(start, start + step, dtype=np.uint32)
        for number, part in zip(numbers.tolist(), (_murmur3(numbers) % part_count).tolist(), strict=True):
            waiting[part].append(number)
        start += step
    return [waiting[bucket % part_count][bucket // part_count] for bucket in range(bucket_count)]


def _murmur3(numbers: Array) -> Array:
    """Spark's `hash` of an INT: Murmur3 of 32 bits with the seed 42, as a signed number."""
    word = _rotated(numbers * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    hashed = _rotated(np.uint32(42) ^ word, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashed = hashed ^ np.uint32(4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = (hashed ^ (hashed >> np.uint32(shift))) * np.uint32(factor)
    return (hashed ^ (hashed >> np.uint32(16))).view(np.int32).astype(np.int64)


def _rotated(numbers: Array, count: int) -> Array:
    rotated: Array = (numbers << np.uint32(count)) | (numbers >> np.uint32(32 - count))
    return rotated


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
    hashes = np.append(_hashes(words.dictionary), np.uint64(0))
    found: Array = hashes[words.indices.fill_null(len(hashes) - 1).to_numpy(zero_copy_only=False)]
    return found


def _hashes(words: pa.StringArray) -> Array:
    """Of each word the sum of its bytes, each times a power of 31 by its place."""
    if not len(words):
        return np.zeros(0, np.uint64)
    _, bounds, data = words.buffers()
    stops = np.frombuffer(bounds, np.int32)[words.offset : words.offset + len(words) + 1]
    text, stops = np.frombuffer(data or b"", np.uint8)[stops[0] : stops[-1]], stops - stops[0]
    lengths = np.diff(stops)
    powers = np.cumprod(np.full(lengths.max(), 31, np.uint64))
    sums = np.cumsum(text * powers[np.arange(len(text)) - np.repeat(stops[:-1], lengths)])
    found: Array = np.diff(np.append(np.uint64(0), sums)[stops])
    return found


def gathered(batches: Iterable[pa.RecordBatch], bucket_count: int) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: what a bucket gets of a small one hardly packs, and is mostly a message's head.

    They have 8 MiB at least, or 256 KiB for each bucket, and 64 MiB at most.
    """
    enough_bytes = min(max(_LEAST_GATHERED_BYTES, bucket_count * _SLICE_BYTES), _MOST_GATHERED_BYTES)
    held, size_bytes = list[pa.RecordBatch](), 0
    for batch in filter(len, batches):
        held.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= enough_bytes:
            yield _as_one(held)
            held, size_bytes = [], 0
    if held:
        yield _as_one(held)


def _as_one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)  # which copies a single one as well


def in_buckets(batch: pa.RecordBatch, key: Sequence[str], by: Buckets) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a batch, which has some, by the bucket of their key; buckets without any are left out."""
    buckets = by.of([batch.column(column) for column in key])
    starts = _starts(buckets)
    if len(starts) > len(np.unique(buckets[starts])):  # else the rows of each lie together as they are
        order = np.argsort(buckets, kind="stable")
        batch, buckets = batch.take(pa.array(order)), buckets[order]
        starts = _starts(buckets)
    for start, end in pairwise([*starts.tolist(), len(batch)]):
        yield int(buckets[start]), batch.slice(start, end - start)


def _starts(buckets: Array) -> Array:
    """Where another bucket begins."""
    return np.flatnonzero(np.diff(buckets, prepend=-1))
