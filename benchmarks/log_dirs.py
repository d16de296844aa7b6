"""Broker log directories with invented batches: real headers, checksums and end markers, records that are noise."""

import struct
from functools import lru_cache
from pathlib import Path

import numpy as np
from google_crc32c import value as crc32c
from numpy.typing import NDArray

from benchmarks.batches import (
    CONTROL_BATCH_BYTES,
    COORDINATOR_EPOCH,
    HEADER_BYTES,
    LEADER_EPOCH,
    PRODUCER_EPOCH,
    Batches,
    Partition,
    fixed_size,
)
from benchmarks.dumps import MIB, TOPIC
from tests.tools.log_dirs.encoder import record

Bytes = NDArray[np.uint8]

_SEGMENT_BYTES = 1024 * MIB  # the brokers' default
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


def write_log_dir(folder: Path, size_bytes: int, batch_bytes: int) -> int:
    """Write the segments of one partition; returns the number of batches.

    Args:
        folder: the log directory; the partition's folder is made in it.
        size_bytes: of all segments together, reached by at most one batch too much.
        batch_bytes: of every batch but the end markers.
    """
    log = Partition(0, fixed_size(batch_bytes))
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
    written = batches = 0
    with open(place / f"{log.next_offset:020d}.log", "wb") as segment:
        while written < size_bytes:
            made = log.take(min(_WRITE_BYTES, size_bytes - written) // batch_bytes + 1)
            written += segment.write(segment_bytes(made).data)
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
    return np.frombuffer(record(0, 0, key, value), dtype=np.uint8)


@lru_cache(maxsize=1)
def _noise() -> Bytes:
    """What stands for compressed records: as large as a processor's cache, and not worth making twice."""
    return np.frombuffer(np.random.default_rng(0).bytes(_NOISE_BYTES), dtype=np.uint8)
