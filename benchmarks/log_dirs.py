"""Broker log directories with invented batches: real headers, checksums and end markers, records that are noise.

`python -m benchmarks.log_dirs FOLDER --mib 1024 --batch-bytes 681` writes one partition.
"""

from __future__ import annotations

import argparse
import struct
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from google_crc32c import value as crc32c

from benchmarks.batches import (
    CONTROL_BATCH_BYTES,
    COORDINATOR_EPOCH,
    HEADER_BYTES,
    LEADER_EPOCH,
    PRODUCER_EPOCH,
    Partition,
    fixed_size,
)
from benchmarks.dumps import MIB, TOPIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.batches import Batches

    Bytes = NDArray[np.uint8]

_SEGMENT_BYTES = 1024 * MIB  # the brokers' default
_INDEX_EVERY_BYTES = 4096  # the brokers' default
_WRITE_BYTES = 32 * MIB
_NOISE_BYTES = 16 * MIB
_LZ4 = 3
_IS_TRANSACTIONAL = 1 << 4
_IS_CONTROL = 1 << 5
_CHECKED_FROM = 21  # the checksum covers everything behind itself

# DefaultRecordBatch of Kafka's clients, message format 2.
_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
_BEFORE_LENGTH_ENDS = 12
_INDEX_ENTRY = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])


def write_log_dir(folder: Path, size_bytes: int, batch_bytes: int, *, seed: int = 1) -> int:
    """Write the segments and offset indexes of one partition; returns the number of batches.

    Args:
        folder: the log directory; the partition's folder is made in it.
        size_bytes: of all segments together, reached by at most one batch too much.
        batch_bytes: of every batch but the end markers.
        seed: repeats the same directory.
    """
    log = Partition(0, fixed_size(batch_bytes), seed=seed)
    place = folder / f"{TOPIC}-0"
    place.mkdir(parents=True)
    batches = 0
    while size_bytes > 0:
        written, count = _write_segment(place, log, min(size_bytes, _SEGMENT_BYTES - batch_bytes), batch_bytes)
        size_bytes -= written
        batches += count
    return batches


def _write_segment(place: Path, log: Partition, size_bytes: int, batch_bytes: int) -> tuple[int, int]:
    log.roll()
    first_offset = log.next_offset
    name = f"{first_offset:020d}"
    written = batches = 0
    with open(place / f"{name}.log", "wb") as segment, open(place / f"{name}.index", "wb") as index:
        while written < size_bytes:
            made = log.take(min(_WRITE_BYTES, size_bytes - written) // batch_bytes + 1)
            written += segment.write(segment_bytes(made).data)
            index.write(_index_entries(made, first_offset).tobytes())
            batches += len(made)
    return written, batches


def segment_bytes(made: Batches) -> Bytes:
    """The batches as they lie in a segment."""
    place = made.position - made.position[0]
    size_bytes = int(made.size_bytes.sum())
    noise = _noise()
    content = np.resize(noise, size_bytes)
    content[place[made.is_control, None] + np.arange(HEADER_BYTES, CONTROL_BATCH_BYTES)] = np.where(
        made.is_commit[made.is_control, None], _end_marker(1), _end_marker(0)
    )
    headers = _headers(made)
    header_places = place[:, None] + np.arange(HEADER_BYTES)
    content[header_places] = headers.view(np.uint8).reshape(-1, HEADER_BYTES)
    view = content.data
    ends = place + made.size_bytes
    headers["crc"] = [
        crc32c(bytes(view[start + _CHECKED_FROM : end]))
        for start, end in zip(place.tolist(), ends.tolist(), strict=True)
    ]
    content[header_places] = headers.view(np.uint8).reshape(-1, HEADER_BYTES)
    return content


def _headers(made: Batches) -> NDArray[np.void]:
    headers = np.zeros(len(made), dtype=_HEADER)
    headers["base_offset"] = made.base_offset
    headers["length"] = made.size_bytes - _BEFORE_LENGTH_ENDS
    headers["leader_epoch"] = LEADER_EPOCH
    headers["magic"] = 2
    headers["attributes"] = np.where(made.is_control, _IS_CONTROL, _LZ4) | _IS_TRANSACTIONAL
    headers["last_offset_delta"] = made.record_count - 1
    headers["base_timestamp_ms"] = headers["max_timestamp_ms"] = made.timestamp_ms
    headers["producer_id"] = made.producer_id
    headers["producer_epoch"] = PRODUCER_EPOCH
    headers["base_sequence"] = made.base_sequence
    headers["record_count"] = made.record_count
    return headers


@lru_cache(maxsize=2)
def _end_marker(control_type: int) -> Bytes:
    """The one record of a control batch: 0 aborts, 1 commits (EndTransactionMarker of Kafka's clients)."""
    key = struct.pack(">hh", 0, control_type)
    value = struct.pack(">hi", 0, COORDINATOR_EPOCH)
    # Lengths are zigzag: twice the number. Attributes, timestamp and offset deltas before, no headers behind.
    record = b"\0\0\0" + bytes([2 * len(key)]) + key + bytes([2 * len(value)]) + value + b"\0"
    return np.frombuffer(bytes([2 * len(record)]) + record, dtype=np.uint8)


@lru_cache(maxsize=1)
def _noise() -> Bytes:
    """What stands for compressed records: as large as a processor's cache, and not worth making twice."""
    return np.frombuffer(np.random.default_rng(0).bytes(_NOISE_BYTES), dtype=np.uint8)


def _index_entries(made: Batches, first_offset: int) -> NDArray[np.void]:
    """An entry for the first batch of each stretch of `index.interval.bytes`, as the broker's OffsetIndex has them."""
    stretch = made.position // _INDEX_EVERY_BYTES
    chosen = np.flatnonzero(np.diff(stretch)) + 1
    entries = np.zeros(len(chosen), dtype=_INDEX_ENTRY)
    entries["relative_offset"] = (made.base_offset + made.record_count - 1)[chosen] - first_offset
    entries["position"] = made.position[chosen]
    return entries


def main() -> None:
    """Write one log directory and say how many batches are in it."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.log_dirs", description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--mib", type=int, default=1024, help="size of the log [1024]")
    options.add_argument("--batch-bytes", type=int, default=681)
    chosen = options.parse_args()
    print(f"{write_log_dir(chosen.folder, chosen.mib * MIB, chosen.batch_bytes)} batches in {chosen.folder}")


if __name__ == "__main__":
    main()
