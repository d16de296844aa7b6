"""What is inside a record batch of format 2: its records, decompressed within bounds.

Only batches that brokers write themselves are opened: end markers, `__transaction_state` and `__consumer_offsets`. No
record of a client is ever looked into.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import partial

import google_crc32c
import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import Array
from txn_analysis.columns.compiled import NO_PLACE, compiled
from txn_analysis.kafka.batch_headers import HEADER_BYTES, PEEK_BYTES, Headers, Source

MAX_RECORDS_BYTES = 64 << 20  # brokers take batches of 1 MiB by default; a bomb must not fill the memory
_TOO_LONG = f"the records are longer than {MAX_RECORDS_BYTES} bytes, decompressed"
_STEP_BYTES = 256 << 10
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEAD_BYTES = 16  # magic, version and oldest compatible version
_GZIP_WINDOW_BITS = 31
_MOST_VARINT_BYTES, MOST_LENGTH_BYTES = 10, 5  # of 64 and of 32 bits
SMALLEST_RECORD_BYTES = 7
_SIGN, _INT64_MAX = 0x80, 2**63 - 1


NO_BYTES = -1
"""Stands for the length of a key or value that is null."""
TIME_DELTA, OFFSET_DELTA, KEY_START, KEY_BYTES, VALUE_START, VALUE_BYTES = range(6)
"""What `read_record` gives of a record: deltas to its batch, and where its key and value begin, with their lengths."""


@compiled
def varint(raw: Array, at: int, stop: int, most_bytes: int) -> tuple[int, int]:
    """An unsigned varint, and where it ends; NO_PLACE where none stands there, or at no place.

    Seven bits a byte, the lowest first (`org.apache.kafka.common.utils.ByteUtils`).
    """
    value = shift = 0
    while 0 <= at < stop and shift < 7 * most_bytes:
        byte = int(raw[at])
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < _SIGN:
            return value, at
        shift += 7
    return 0, NO_PLACE


@compiled
def _signed_varint(raw: Array, at: int, stop: int) -> tuple[int, int]:
    """The same of a zigzag varint of up to 64 bits."""
    value, at = varint(raw, at, stop, _MOST_VARINT_BYTES)
    return ((value >> 1) & _INT64_MAX) ^ -(value & 1), at


@compiled
def _after_bytes(raw: Array, at: int, stop: int, least: int) -> tuple[int, int]:
    """How long a key or value is whose length stands at a place, and where it begins; else NO_PLACE."""
    size, at = _signed_varint(raw, at, stop)
    if at == NO_PLACE or size < least or size > stop - at:
        return 0, NO_PLACE
    return size, at


@compiled
def read_record(raw: Array, at: int, stop: int, record: Array) -> int:
    """Fill `record` by a record of format 2 (`DefaultRecord`); where it ends, or NO_PLACE where none stands there.

    Args:
        raw: records, decompressed.
        at: where it begins; NO_PLACE gives NO_PLACE.
        stop: where the records of its batch end.
        record: six numbers, see `TIME_DELTA`.
    """
    length, at = _signed_varint(raw, at, stop)
    if at == NO_PLACE or length < SMALLEST_RECORD_BYTES - 1 or length > stop - at:
        return NO_PLACE
    end = at + length
    record[TIME_DELTA], at = _signed_varint(raw, at + 1, end)  # behind the attributes
    record[OFFSET_DELTA], at = _signed_varint(raw, at, end)
    key_bytes, key = _after_bytes(raw, at, end, NO_BYTES)
    value_bytes, value = _after_bytes(raw, key + max(key_bytes, 0), end, NO_BYTES)
    record[KEY_START], record[KEY_BYTES] = key, key_bytes
    record[VALUE_START], record[VALUE_BYTES] = value, value_bytes
    headers, at = _signed_varint(raw, value + max(value_bytes, 0), end)
    if at == NO_PLACE or headers < 0 or headers > end - at:
        return NO_PLACE
    for k in range(2 * headers):
        header_bytes, at = _after_bytes(raw, at, end, -(k & 1))  # a header has a key, its value may be null
        if at == NO_PLACE:
            return NO_PLACE
        at += max(header_bytes, 0)
    return end if at == end else NO_PLACE


class BadBatchError(ValueError):
    """The records of a batch cannot be read; the message says why, never what they hold."""


def only_record(batch: bytes, codec: str) -> tuple[int, bytes, bytes]:
    """Offset delta, key and value of the record of a whole batch of format 2 that holds one; what is null is empty.

    Raises:
        BadBatchError: it holds other records, or is not what its codec says.
    """
    body, record = decompressed(batch[HEADER_BYTES:], codec), np.zeros(6, np.int64)
    if read_record.plain(np.frombuffer(body, np.uint8), 0, len(body), record) != len(body):
        raise BadBatchError("the batch does not hold one record")
    _, offset_delta, key, key_bytes, value, value_bytes = record.tolist()
    return offset_delta, body[key : key + max(key_bytes, 0)], body[value : value + max(value_bytes, 0)]


def decompressed(data: bytes, codec: str) -> bytes:
    """The records of a batch, at most MAX_RECORDS_BYTES of them.

    Raises:
        BadBatchError: the data is damaged, or longer.
    """
    try:
        return _READERS[codec](data)
    except (zlib.error, OSError, pa.ArrowException) as error:
        raise BadBatchError(f"the records are not {codec} data") from error


def _gunzip(data: bytes) -> bytes:
    stream = zlib.decompressobj(_GZIP_WINDOW_BITS)
    unpacked = stream.decompress(data, MAX_RECORDS_BYTES + 1)
    if not stream.eof and len(unpacked) <= MAX_RECORDS_BYTES:
        raise BadBatchError("the gzip data is cut short")
    return _bounded(unpacked)


def _streamed(data: bytes, codec: str) -> bytes:
    parts, total = [], 0
    with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
        while total <= MAX_RECORDS_BYTES and (part := stream.read(_STEP_BYTES)):
            parts.append(part)
            total += len(part)
    return _bounded(b"".join(parts))


def _unsnappy(data: bytes) -> bytes:
    """Snappy as Java's clients frame it (xerial: blocks behind a header), or bare as others do."""
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, 0)
    blocks, total, at = [], 0, _XERIAL_HEAD_BYTES
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4 + size
        if at > len(data):
            raise BadBatchError("the snappy data is cut short")
        blocks.append(_snappy_block(data[at - size : at], total))
        total += len(blocks[-1])
    return b"".join(blocks)


def _snappy_block(block: bytes, before: int) -> bytes:
    size, at = varint.plain(np.frombuffer(block, np.uint8), 0, len(block), MOST_LENGTH_BYTES)
    if at == NO_PLACE:
        raise BadBatchError("the snappy data is cut short")
    if before + size > MAX_RECORDS_BYTES:
        raise BadBatchError(_TOO_LONG)
    return bytes(pa.decompress(block, size, codec="snappy", asbytes=True)) if size else b""


def _bounded(unpacked: bytes) -> bytes:
    if len(unpacked) > MAX_RECORDS_BYTES:
        raise BadBatchError(_TOO_LONG)
    return unpacked


_READERS: Mapping[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "gzip": _gunzip,
    "snappy": _unsnappy,
    "lz4": partial(_streamed, codec="lz4"),
    "zstd": partial(_streamed, codec="zstd"),
}


CRC_START, _LEGACY_CRC_START = 21, 16  # attributes on; magic on
_GAP_BYTES = 512  # batches that lie so near are read together
_RUN_BYTES = 4 << 20


def is_right(batch: bytes, crc: int, *, is_legacy: bool = False) -> bool:
    """Whether a whole batch has the checksum that its header states."""
    if is_legacy:
        return zlib.crc32(batch[_LEGACY_CRC_START:]) == crc
    return int(google_crc32c.value(batch[CRC_START:])) == crc


def checked(source: Source, headers: Headers, rows: Array) -> Array:
    """Whether the checksums of some batches (ascending `rows`) are right; reads them where `headers` do not hold them.

    One that can no longer be read whole, as the file was cut in the meantime, is wrong.
    """
    size, crc, position = headers.size[rows], crcs(headers)[rows], headers.position[rows]
    legacy = headers.is_legacy[rows]
    right = np.zeros(len(rows), bool)
    is_in_memory = (size <= PEEK_BYTES) & ~legacy
    in_memory = np.flatnonzero(is_in_memory)
    starts = np.arange(len(in_memory)) * PEEK_BYTES
    right[in_memory] = crc[in_memory] == _crc32c(
        headers.raw[rows[in_memory]].tobytes(), starts, starts + size[in_memory]
    )
    others = np.flatnonzero(~is_in_memory)
    runs = [others[run] for run in _runs(position[others], size[others])]
    places = [(int(position[part[0]]), int(position[part[-1]] + size[part[-1]])) for part in runs]
    source.will_read(places)
    for part, (start, stop) in zip(runs, places, strict=True):
        data = source.read(start, stop)
        begins, ends = position[part] - start, position[part] + size[part] - start
        right[part] = (crc[part] == _crc32c(data, begins, ends)) & (ends <= len(data)) & ~legacy[part]
        for k in part[legacy[part]].tolist():
            at = int(position[k]) - start
            batch = data[at : at + int(size[k])]
            right[k] = len(batch) == size[k] and is_right(batch, int(crc[k]), is_legacy=True)
    return right


def _crc32c(data: bytes, starts: Array, stops: Array) -> Array:
    """The checksums of batches that stand at some places of some data."""
    value, places = google_crc32c.value, zip((starts + CRC_START).tolist(), stops.tolist(), strict=True)
    return np.fromiter((value(data[start:stop]) for start, stop in places), np.int64, len(starts))


def crcs(headers: Headers) -> Array:
    """The checksum that each header states."""
    values: Array = np.where(headers.is_legacy, headers.legacy["crc"], headers.peeks["crc"]).astype(np.int64)
    return values


def _runs(position: Array, size: Array) -> list[slice]:
    """Neighbours that are read in one piece."""
    end, runs, start = position + size, list[slice](), 0
    breaks = np.append(np.flatnonzero(position[1:] - end[:-1] > _GAP_BYTES) + 1, len(position))
    while start < len(position):
        stop = int(breaks[np.searchsorted(breaks, start, "right")])
        stop = min(stop, int(np.searchsorted(end, position[start] + _RUN_BYTES, "right")))
        runs.append(slice(start, max(stop, start + 1)))
        start = runs[-1].stop
    return runs
