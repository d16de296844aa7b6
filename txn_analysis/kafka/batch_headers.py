"""The record batches of a segment file by their headers alone: where each begins, and what its header says.

A batch's length is in its first 12 bytes, so that a segment can be followed from batch to batch without its records
(`FileLogInputStream`). Small batches are read in windows, as that is faster; of large ones only the first bytes are.
Layouts: kafka-formats.md, 5.5, and `AbstractLegacyRecordBatch` for message formats 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from txn_analysis.columns.compiled import compiled
from txn_analysis.kafka.names import CODECS, OFFSET_MAX

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array


Read = Callable[[int, int], bytes]


LOCAL_BYTES_PER_READ = 4096
"""Of smaller batches on a disk reading everything costs less than one call for each header."""


class Source(Protocol):
    """The bytes of a file, wherever it is."""

    def read(self, start: int, end: int) -> bytes:
        """Those from one position to another, cut at the end of the file."""

    def will_read(self, places: Sequence[tuple[int, int]]) -> None:
        """What will be read next, in this order: a file in a store comes while others are worked on."""

    @property
    def bytes_per_request(self) -> int:
        """As many bytes are read on in the time of one more `read`, as it is known by now.

        Smaller batches are read whole, of larger ones the headers alone.
        """


@dataclass(frozen=True)
class Held:
    """Bytes in memory, those of a file from position `start` on."""

    data: bytes
    start: int = 0
    bytes_per_request: int = LOCAL_BYTES_PER_READ

    def read(self, start: int, end: int) -> bytes:
        """As of `Source`."""
        return self.data[start - self.start : end - self.start]

    def will_read(self, places: Sequence[tuple[int, int]]) -> None:
        """As of `Source`: nothing is to come."""


LOG_OVERHEAD_BYTES = 12  # base offset and length, which the length does not count
UP_TO_MAGIC_BYTES = 17
HEADER_BYTES = 61
PEEK_BYTES = 96  # a header with, of an end marker, all of its record (78 bytes)
SMALL_FILE_BYTES = 1 << 16
_WINDOW_BYTES = 4 << 20
_FIRST_PEEKS, _PEEKS = 16, 4096
_SMALLEST_BATCH = {0: 14 + LOG_OVERHEAD_BYTES, 1: 22 + LOG_OVERHEAD_BYTES, 2: HEADER_BYTES}
_LENGTH = Struct(">i")
_PYTHON_US = 8  # for each batch
_LENGTH_AT, _LENGTH_BYTES, _MAX_LENGTH = 8, 4, 2**31 - 1

_FIELDS = (
    ("base_offset", ">i8", 0),
    ("length", ">i4", 8),
    ("leader_epoch", ">i4", 12),
    ("magic", "i1", 16),
    ("crc", ">u4", 17),
    ("attributes", ">i2", 21),
    ("last_offset_delta", ">i4", 23),
    ("base_timestamp", ">i8", 27),
    ("max_timestamp", ">i8", 35),
    ("producer_id", ">i8", 43),
    ("producer_epoch", ">i2", 51),
    ("base_sequence", ">i4", 53),
    ("record_count", ">i4", 57),
)
_LEGACY_FIELDS = (("crc", ">u4", 12), ("magic", "i1", 16), ("attributes", "u1", 17), ("timestamp", ">i8", 18))


def layout(fields: Sequence[tuple[str, str, int]]) -> np.dtype[Any]:
    """Some fields (name, type, place) of the first PEEK_BYTES of a batch."""
    names, formats, offsets = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": PEEK_BYTES})


HEADER, LEGACY_HEADER = layout(_FIELDS), layout(_LEGACY_FIELDS)
_PEEK = np.dtype(f"V{PEEK_BYTES}")
CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 7, 8, 16, 32, 64
_KNOWN_ATTRIBUTES = 128
TORN, ZEROS, FOREIGN = "torn", "zeros", "foreign"


@dataclass(frozen=True)
class Headers:
    """Some neighbouring batches of a segment, in file order.

    `position` is the byte of the file where each begins, `raw` its first PEEK_BYTES (also what follows it).
    """

    position: Array
    raw: Array

    @classmethod
    def at(cls, places: Array, data: bytes, start: int) -> Headers:
        """The batches that begin at some places of `data`, which was read from byte `start` of the file on."""
        count = max(0, len(data) - PEEK_BYTES + 1)
        # Plain bytes are copied at once; a structured type would be copied field by field.
        everywhere = np.ndarray((count,), _PEEK, data, strides=(1,)) if count else np.empty(0, _PEEK)
        return cls(places + start, everywhere[places])

    @classmethod
    def joined(cls, blocks: Sequence[Headers]) -> Headers:
        """The batches of some blocks as one."""
        return cls(
            np.concatenate([np.empty(0, np.int64), *(block.position for block in blocks)]),
            np.concatenate([np.empty(0, _PEEK), *(block.raw for block in blocks)]),
        )

    def __len__(self) -> int:
        return len(self.position)

    @cached_property
    def peeks(self) -> Array:
        """Their headers of format 2."""
        return self.raw.view(HEADER)

    @cached_property
    def legacy(self) -> Array:
        """The headers' bytes in the layout of formats 0 and 1."""
        return self.raw.view(LEGACY_HEADER)

    @cached_property
    def is_legacy(self) -> Array:
        """Message formats 0 and 1, which know no producers."""
        is_legacy: Array = self.peeks["magic"] < 2
        return is_legacy

    @cached_property
    def size(self) -> Array:
        """Bytes of each batch in the file."""
        return self.number("length") + LOG_OVERHEAD_BYTES

    @cached_property
    def base_offset(self) -> Array:
        """Offset of the first record; of the last one in formats 0 and 1, which do not say more."""
        return self.number("base_offset")

    @cached_property
    def last_offset(self) -> Array:
        """Offset of the last record."""
        last: Array = self.base_offset + np.where(self.is_legacy, 0, self.number("last_offset_delta"))
        return last

    def number(self, name: str) -> Array:
        """One field of the headers, in the machine's own byte order."""
        values: Array = self.peeks[name].astype(np.int64)
        return values

    @property
    def headers(self) -> bytes:
        """The headers alone, one behind the other."""
        return self.raw.view(np.uint8).reshape(-1, PEEK_BYTES)[:, :HEADER_BYTES].tobytes()

    def part(self, start: int, stop: int) -> Headers:
        """Some of these batches."""
        return Headers(self.position[start:stop], self.raw[start:stop])


@compiled
def _follow_lengths(data: Array, limit: int, places: Array) -> int:
    """Fills `places` by those where batches begin, from the first byte up to `limit`; how many these are.

    A length that no batch has ends it, behind the batch that says so.
    """
    at = count = 0
    while at <= limit:
        places[count] = at
        count += 1
        length = 0
        for k in range(_LENGTH_AT, _LENGTH_AT + _LENGTH_BYTES):
            length = length << 8 | int(data[at + k])
        if length == 0 or length > _MAX_LENGTH:
            break
        at += length + LOG_OVERHEAD_BYTES
    return count


def _follow(data: Array, limit: int, places: Array) -> int:
    """`_follow_lengths`, compiled where that is worth it."""
    follow = _follow_lengths if _follow_lengths.is_worth_loading else _follow_lengths.plain
    count = follow(data, limit, places)
    _follow_lengths.count(count * _PYTHON_US)
    return count


class Stop(NamedTuple):
    """Where following the batches ended, and why: None at the end, or `torn`, `zeros` (preallocated) or `foreign`."""

    position: int
    reason: str | None
    last_offset: int


class HeaderWalk:
    """Follows the batches in [start, end) of a segment file; `start` is where a batch begins.

    Args:
        source: the file.
        start: where the first batch begins.
        end: where the last one must end.
        first_offset: no batch may begin below it.
    """

    def __init__(self, source: Source, start: int, end: int, first_offset: int = 0) -> None:
        self._source = source
        self._read = source.read
        self._at = start
        self._end = end
        self._next_offset = first_offset
        self._is_whole = end - start <= SMALL_FILE_BYTES
        self._is_stopped = False

    def blocks(self) -> Iterator[Headers]:
        """The batches, a bounded number at a time; ends at the first place where none stands."""
        is_dense, is_coming = self._is_whole or self._source.bytes_per_request > SMALL_FILE_BYTES, self._is_whole
        peeks, window_bytes = _FIRST_PEEKS, SMALL_FILE_BYTES
        while self._at < self._end and not self._is_stopped:
            before = self._at
            headers = self._window(window_bytes) if is_dense else self._peeks(peeks)
            good = self._plausible(headers)
            if good < len(headers):
                headers, self._is_stopped = headers.part(0, good), True
            if len(headers):
                self._at = int(headers.position[-1] + headers.size[-1])
                self._next_offset = int(headers.last_offset[-1]) + 1
                yield headers
                is_dense = self._is_whole or (self._at - before) / len(headers) < self._source.bytes_per_request
                peeks, window_bytes = _PEEKS, _WINDOW_BYTES
                if is_dense and not is_coming:
                    self._source.will_read([(self._at, self._end)])
                    is_coming = True
            else:
                self._is_stopped = True

    def _window(self, size_bytes: int) -> Headers:
        """The batches whose first bytes are in one window of the file."""
        start = self._at
        stop = min(start + size_bytes, self._end)
        data = self._read(start, stop)
        is_last = start + len(data) >= self._end or len(data) < stop - start
        # At the end of the file a batch can be shorter than what is looked at.
        limit = len(data) - (UP_TO_MAGIC_BYTES if is_last else PEEK_BYTES)
        places = np.empty(max(0, limit) // LOG_OVERHEAD_BYTES + 1, np.int64)
        count = _follow(np.frombuffer(data, np.uint8), limit, places)
        return Headers.at(places[:count], data + bytes(PEEK_BYTES) if is_last else data, start)

    def _peeks(self, count: int) -> Headers:
        """The first bytes of some batches, each read by itself."""
        read, unpack, at, end = self._read, _LENGTH.unpack_from, self._at, self._end
        positions: list[int] = []
        parts: list[bytes] = []
        while len(parts) < count and at < end:
            part = read(at, min(at + PEEK_BYTES, end))
            if len(part) < UP_TO_MAGIC_BYTES:
                break
            positions.append(at)
            parts.append(part.ljust(PEEK_BYTES, b"\0"))
            (length,) = unpack(part, 8)
            if length <= 0:
                break
            at += length + LOG_OVERHEAD_BYTES
        return Headers(np.array(positions, np.int64), np.frombuffer(b"".join(parts), _PEEK))

    def _plausible(self, headers: Headers) -> int:
        """How many of the batches, from the first on, can be what a broker wrote."""
        if not len(headers):
            return 0
        good = is_plausible(headers)
        good &= headers.position + headers.size <= self._end
        good &= headers.base_offset >= np.append(self._next_offset, headers.last_offset[:-1] + 1)
        return len(headers) if good.all() else int(np.argmin(good))

    def stop(self) -> Stop:
        """Where the walk ended. A batch that was being written is `torn`; what no broker writes is `foreign`."""
        rest = self._end - self._at
        return Stop(self._at, self._reason(rest) if rest else None, self._next_offset - 1)

    def _reason(self, rest: int) -> str:
        head = self._read(self._at, min(self._at + PEEK_BYTES, self._end))
        if not any(head) and self._is_zero_to_end():
            return ZEROS
        if len(head) < UP_TO_MAGIC_BYTES:
            return TORN
        first = Headers.at(np.array([0]), head.ljust(PEEK_BYTES, b"\0"), self._at)
        is_begun = first.base_offset[0] >= self._next_offset and first.size[0] > rest
        is_seen = len(head) >= HEADER_BYTES
        can_be_batch = is_plausible(first)[0] if is_seen else head[16] in _SMALLEST_BATCH
        return TORN if is_begun and can_be_batch else FOREIGN

    def _is_zero_to_end(self) -> bool:
        steps = range(self._at, self._end, _WINDOW_BYTES)
        return not any(self._read(at, min(at + _WINDOW_BYTES, self._end)).strip(b"\0") for at in steps)


def is_plausible(headers: Headers) -> Array:
    """Whether each header is one that a broker can have written; nothing but the header is looked at."""
    f, legacy = headers.peeks, headers.is_legacy
    magic, attributes = f["magic"], headers.number("attributes")
    delta, count = headers.number("last_offset_delta"), headers.number("record_count")
    good = (attributes >= 0) & (attributes < _KNOWN_ATTRIBUTES) & (attributes & CODEC_MASK < len(CODECS))
    good &= (delta >= 0) & (count >= 0) & (count <= delta + 1) & (headers.base_offset <= OFFSET_MAX - delta)
    for name in ("producer_id", "producer_epoch", "base_sequence", "leader_epoch"):
        good &= f[name] >= -1
    if legacy.any():
        good = np.where(legacy, headers.legacy["attributes"] & CODEC_MASK < len(CODECS), good)
        good &= headers.size >= np.array([_SMALLEST_BATCH[0], _SMALLEST_BATCH[1], 0])[np.clip(magic, 0, 2)]
    good &= (magic >= 0) & (magic <= 2) & (headers.base_offset >= 0) & (headers.base_offset <= OFFSET_MAX)
    good &= legacy | (headers.size >= _SMALLEST_BATCH[2])
    return good


class SmallSegments(NamedTuple):
    """Some small segments, whose bytes are one behind the other in `data`, and the batches of those that are whole.

    Attributes:
        data: the bytes of all.
        starts: where each begins in it, and behind the last one its end.
        is_whole: of each, that its batches, as a walk from its first offset finds them, fill it to its end.
        headers: of these batches, with positions in `data`.
        segment: of each batch the number of its segment.
    """

    data: bytes
    starts: Array
    is_whole: Array
    headers: Headers
    segment: Array

    @classmethod
    def of(cls, contents: Sequence[bytes], first_offsets: Sequence[int]) -> SmallSegments:
        """From the bytes of each, and the offset below which none of its batches may begin."""
        data = b"".join(contents)
        starts = np.append(0, np.cumsum([len(content) for content in contents]))
        raw, places, count = np.frombuffer(data, np.uint8), np.empty(len(data) // LOG_OVERHEAD_BYTES + 1, np.int64), 0
        counts = []
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            left = places[count:]
            batch_count = _follow(raw[start:stop], stop - start - UP_TO_MAGIC_BYTES, left)
            left[:batch_count] += start
            count += batch_count
            counts.append(batch_count)
        segment = np.repeat(np.arange(len(contents)), counts)
        headers = Headers.at(places[:count], data + bytes(PEEK_BYTES), 0)
        is_whole = _are_whole(headers, segment, starts, np.asarray(first_offsets))
        kept = np.flatnonzero(is_whole[segment])
        return cls(data, starts, is_whole, Headers(headers.position[kept], headers.raw[kept]), segment[kept])


def _are_whole(headers: Headers, segment: Array, starts: Array, first_offsets: Array) -> Array:
    is_first = np.append(True, segment[1:] != segment[:-1])[: len(segment)]
    end = headers.position + headers.size
    good = is_plausible(headers)
    good &= end <= starts[segment + 1]
    before = np.append(0, headers.last_offset[:-1] + 1)[: len(segment)]
    good &= headers.base_offset >= np.where(is_first, first_offsets[segment], before)
    count = len(starts) - 1
    last_end = np.full(count, -1)
    last_end[segment] = end  # of those of one segment the last stays
    is_whole: Array = (np.bincount(segment, ~good, count) == 0) & (last_end == starts[1:])
    return is_whole
