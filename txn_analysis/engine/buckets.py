"""Rows packed for their way to the task that has their key: one row of two columns for thousands of rows of many."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from txn_analysis.columns.arrays import Array
    from txn_analysis.engine.engine import BatchFunction

PACKED = pa.schema([("bucket", pa.int32()), ("input", pa.string()), ("rows", pa.binary())])
"""One row is what one batch of an input has of one bucket, as an Arrow message without its schema."""


def bucket_of(columns: Sequence[pa.Array], bucket_count: int) -> Array:
    """To which bucket each row belongs by its key; the same key gives the same one in every process."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = _mixed(mixed * np.uint64(31) + _numbers(column))
    found: Array = (mixed % np.uint64(bucket_count)).astype(np.int32)
    return found


def _numbers(column: pa.Array) -> Array:
    if pa.types.is_integer(column.type):
        numbers: Array = column.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).view(np.uint64)
        return numbers
    words = column.dictionary_encode()
    hashes = np.array([*(crc32(word.encode()) for word in words.dictionary.to_pylist()), 0], np.uint64)
    found: Array = hashes[words.indices.fill_null(len(hashes) - 1).to_numpy(zero_copy_only=False)]
    return found


def _mixed(numbers: Array) -> Array:
    """SplitMix64's finalizer: numbers in a row do not stay in a row."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = numbers ^ (numbers >> np.uint64(31))
    return mixed


def packer(name: str, key: Sequence[str], bucket_count: int) -> BatchFunction:
    """Packs the rows of one input."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                buckets = bucket_of([batch.column(column) for column in key], bucket_count)
                yield _packed(name, batch, buckets)

    return pack


def _packed(name: str, batch: pa.RecordBatch, buckets: Array) -> pa.RecordBatch:
    order = np.argsort(buckets, kind="stable")
    own, starts = np.unique(buckets[order], return_index=True)
    sorted_batch = batch.take(pa.array(order))
    ends = [*starts[1:].tolist(), len(batch)]
    slices = [sorted_batch.slice(a, b - a) for a, b in zip(starts.tolist(), ends, strict=True)]
    rows = pa.array([s.serialize().to_pybytes() for s in slices], pa.binary())
    return pa.RecordBatch.from_arrays([pa.array(own), pa.array([name] * len(own)), rows], schema=PACKED)


def unpacked(packed: pa.Table, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """The rows of one bucket, by the name of their input."""
    parts: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
    for name, rows in zip(packed["input"].to_pylist(), pc.cast(packed["rows"], pa.binary()), strict=True):
        parts[name].append(pa.ipc.read_record_batch(rows.as_buffer(), schemas[name]))
    return {name: pa.Table.from_batches(parts[name], schema) for name, schema in schemas.items()}
