"""What is inside a record batch of format 2: its records, decompressed within bounds.

Only batches that brokers write themselves are opened: end markers, `__transaction_state` and `__consumer_offsets`. No
record of a client is ever looked into.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import google_crc32c
import numpy as np
import pyarrow as pa

from txn_analysis.columns.compiled import compiled
from txn_analysis.kafka.batch_headers import HEADER_BYTES, PEEK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from txn_analysis.columns.arrays import Array
    from txn_analysis.kafka.batch_headers import Headers, Source


MAX_RECORDS_BYTES = 64 << 20  # brokers take batches of 1 MiB by default; a bomb must not fill the memory
_TOO_LONG = f"the records are longer than {MAX_RECORDS_BYTES} bytes, decompressed"
_STEP_BYTES = 256 << 10
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEAD_BYTES = 16  # magic, version and oldest compatible version
_GZIP_WINDOW_BITS = 31
_MOST_VARINT_BYTES, _MOST_LENGTH_BYTES = 10, 5  # of 64 and of 32 bits
_SMALLEST_RECORD_BYTES = 7


class CutShortError(ValueError):
    """The bytes end within a field, or a number has more bytes than its type."""


class Cursor:
    """A place in some bytes, which are read from front to back; what is read moves it on."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first byte."""
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether everything was read."""
        return self._at == len(self._data)

    def unsigned_varint(self, most_bytes: int) -> int:
        """Seven bits a byte, the lowest first (org.apache.kafka.common.utils.ByteUtils).

        Raises:
            CutShortError: there are no more bytes, or the number has more than `most_bytes`.
        """
        value, data, at = 0, self._data, self._at
        for shift in range(0, 7 * most_bytes, 7):
            if at >= len(data):
                raise CutShortError("a number is cut short")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self._at = at
                return value
        raise CutShortError("a number is too long")


class BadBatchError(ValueError):
    """The records of a batch cannot be read; the message says why, never what they hold."""


@dataclass(frozen=True)
class LogRecord:
    """One record. `timestamp_delta` counts from the batch's base timestamp; a key or value that is None is null."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None


def records_of(batch: bytes, codec: str, record_count: int) -> Iterator[LogRecord]:
    """The records of a whole batch of format 2, in order (kafka.common.record.DefaultRecord).

    Raises:
        BadBatchError: it holds other records than it counts, or is not what its codec says.
    """
    body = _Body(decompressed(batch[HEADER_BYTES:], codec))
    for _ in range(record_count):
        try:
            record = body.record()
        except CutShortError as error:
            raise BadBatchError(f"a record is not whole: {error}") from error
        yield record
    if not body.is_at_end:
        raise BadBatchError("the batch holds more than its records")


def decompressed(data: bytes, codec: str) -> bytes:
    """The records of a batch, at most MAX_RECORDS_BYTES of them.

    Raises:
        BadBatchError: the data is damaged, or longer.
    """
    try:
        return _READERS[codec](data)
    except (zlib.error, OSError, CutShortError, pa.ArrowException) as error:
        raise BadBatchError(f"the records are not {codec} data") from error


def _gunzip(data: bytes) -> bytes:
    stream = zlib.decompressobj(_GZIP_WINDOW_BITS)
    found = stream.decompress(data, MAX_RECORDS_BYTES + 1)
    if not stream.eof and len(found) <= MAX_RECORDS_BYTES:
        raise BadBatchError("the gzip data is cut short")
    return _bounded(found)


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
    size = Cursor(block).unsigned_varint(_MOST_LENGTH_BYTES)
    if before + size > MAX_RECORDS_BYTES:
        raise BadBatchError(_TOO_LONG)
    return bytes(pa.decompress(block, size, codec="snappy", asbytes=True)) if size else b""


def _bounded(found: bytes) -> bytes:
    if len(found) > MAX_RECORDS_BYTES:
        raise BadBatchError(_TOO_LONG)
    return found


_READERS: Mapping[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "gzip": _gunzip,
    "snappy": _unsnappy,
    "lz4": partial(_streamed, codec="lz4"),
    "zstd": partial(_streamed, codec="zstd"),
}


class _Body(Cursor):
    """Reads records from front to back."""

    def record(self) -> LogRecord:
        length = self.varint()
        end = self._at + length
        if length < _SMALLEST_RECORD_BYTES - 1 or end > len(self._data):
            raise BadBatchError("a record does not fit into its batch")
        self._at += 1  # attributes, of which none is in use
        timestamp_delta, offset_delta = self.varint(), self.varint()
        key, value = self._bytes(end), self._bytes(end)
        header_count = self.varint()
        if header_count < 0:
            raise BadBatchError("a record has fewer headers than none")
        for _ in range(header_count):
            if self._bytes(end) is None:
                raise BadBatchError("a header without a key")
            self._bytes(end)
        if self._at != end:
            raise BadBatchError("a record does not fill its length")
        return LogRecord(offset_delta, timestamp_delta, key, value)

    def _bytes(self, end: int) -> bytes | None:
        length = self.varint()
        if length < -1 or self._at + max(length, 0) > end:
            raise BadBatchError("a key or value does not fit into its record")
        if length < 0:
            return None
        self._at += length
        return self._data[self._at - length : self._at]

    def varint(self) -> int:
        """A zigzag varint of up to 64 bits."""
        value = self.unsigned_varint(_MOST_VARINT_BYTES)
        return (value >> 1) ^ -(value & 1)


CRC_START, _LEGACY_CRC_START = 21, 16  # attributes on; magic on
_GAP_BYTES = 512  # batches that lie so near are read together
_RUN_BYTES = 4 << 20
_CASTAGNOLI, _CRC_BYTES = 0x82F63B78, 4
_LIBRARY_US = 0.4  # for a batch
_SHORT_BYTES = 2048  # the library is faster at longer ones


def _tables() -> Array:
    """What each byte adds to a CRC-32C, and what it adds with up to seven bytes behind it."""
    values = np.arange(256, dtype=np.int64)
    for _ in range(8):
        values = np.where(values & 1, values >> 1 ^ _CASTAGNOLI, values >> 1)
    tables = [values]
    while len(tables) < _AT_ONCE:
        tables.append(values[tables[-1] & 0xFF] ^ tables[-1] >> 8)
    return np.array(tables)


_AT_ONCE = 8  # bytes: a step waits for the one before it, and these look up their tables side by side
_CRC_TABLES = _tables()


def is_right(batch: bytes, crc: int, *, is_legacy: bool = False) -> bool:
    """Whether a whole batch has the checksum that its header states."""
    if is_legacy:
        return zlib.crc32(batch[_LEGACY_CRC_START:]) == crc
    return int(google_crc32c.value(batch[CRC_START:])) == crc


def checked(source: Source, found: Headers, rows: Array) -> Array:
    """Whether the checksums of some batches (ascending `rows`) are right; reads them where `found` does not hold them.

    One that can no longer be read whole, as the file was cut in the meantime, is wrong.
    """
    size, crc, position = found.size[rows], crcs(found)[rows], found.position[rows]
    legacy = found.is_legacy[rows]
    right = np.zeros(len(rows), bool)
    is_held = (size <= PEEK_BYTES) & ~legacy
    held = np.flatnonzero(is_held)
    starts = np.arange(len(held)) * PEEK_BYTES
    right[held] = crc[held] == _of_spans(found.raw[rows[held]].tobytes(), starts, starts + size[held])
    others = np.flatnonzero(~is_held)
    runs = [others[run] for run in _runs(position[others], size[others])]
    places = [(int(position[part[0]]), int(position[part[-1]] + size[part[-1]])) for part in runs]
    source.will_read(places)
    for part, (start, stop) in zip(runs, places, strict=True):
        data = source.read(start, stop)
        end = position[part] + size[part] - start
        is_short = (size[part] <= _SHORT_BYTES) & ~legacy[part] & (end <= len(data))
        short = part[is_short]
        right[short] = crc[short] == _of_spans(data, position[short] - start, end[is_short])
        for k in part[~is_short].tolist():
            at = int(position[k]) - start
            batch = data[at : at + int(size[k])]
            right[k] = len(batch) == size[k] and is_right(batch, int(crc[k]), is_legacy=bool(legacy[k]))
    return right


def _of_spans(data: bytes, starts: Array, stops: Array) -> Array:
    """The CRC-32C of short batches that stand whole at some places."""
    _crc32c_of_each.count(len(starts) * _LIBRARY_US)
    if _crc32c_of_each.is_worth_loading:
        values = np.empty(len(starts), np.int64)
        _crc32c_of_each(np.frombuffer(data, np.uint8), starts, stops, _CRC_TABLES, values)
        return values
    value, spans = google_crc32c.value, zip(starts.tolist(), stops.tolist(), strict=True)
    return np.array([value(data[start + CRC_START : stop]) for start, stop in spans], np.int64)


@compiled
def _crc32c_of_each(raw: Array, starts: Array, stops: Array, tables: Array, values: Array) -> None:
    """The checksums of short batches, for each of which a call of the library takes three times as long."""
    for row in range(len(starts)):
        crc, at, stop = 0xFFFFFFFF, int(starts[row]) + CRC_START, int(stops[row])
        while at + _AT_ONCE <= stop:
            added = 0
            for k in range(_AT_ONCE):
                byte = int(raw[at + k])
                if k < _CRC_BYTES:
                    byte ^= (crc >> (8 * k)) & 0xFF
                added ^= tables[_AT_ONCE - 1 - k, byte]
            crc = added
            at += _AT_ONCE
        for k in range(at, stop):
            crc = tables[0, (crc ^ int(raw[k])) & 0xFF] ^ (crc >> 8)
        values[row] = crc ^ 0xFFFFFFFF


def crcs(found: Headers) -> Array:
    """The checksum that each header states."""
    values: Array = np.where(found.is_legacy, found.legacy["crc"], found.peeks["crc"]).astype(np.int64)
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
