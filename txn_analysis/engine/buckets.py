"""Buckets of keys: what a step is given at once, on either engine, so that its memory does not grow with the input."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import mixed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txn_analysis.columns.arrays import Array

BUCKET_BYTES = 64 << 20
"""Of text, whose rows a bucket holds."""
_SLICE_BYTES = 256 << 10
_LEAST_GATHERED_BYTES, _MOST_GATHERED_BYTES = 8 << 20, 64 << 20


def bucket_count(text_bytes: int, least: int = 1) -> int:
    """Into how many buckets keys are divided, so that each holds what was read of some 64 MiB of text."""
    return max(least, -(-text_bytes // BUCKET_BYTES))


def bucket_of(columns: Sequence[pa.Array], bucket_count: int) -> Array:
    """To which bucket each row belongs by its key; the same key gives the same one in every process."""
    key = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        key = mixed(key * np.uint64(31) + _numbers(column))
    found: Array = (key % np.uint64(bucket_count)).astype(np.int32)
    return found


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


def in_buckets(batch: pa.RecordBatch, key: Sequence[str], bucket_count: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a batch, which has some, by the bucket of their key; buckets without any are left out."""
    buckets = bucket_of([batch.column(column) for column in key], bucket_count)
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
