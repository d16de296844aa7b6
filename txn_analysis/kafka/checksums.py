"""The checksums of record batches: CRC-32C from format 2 on, CRC-32 before."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import google_crc32c
import numpy as np

from txn_analysis.columns.compiled import compiled
from txn_analysis.kafka.batch_headers import PEEK_BYTES

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array
    from txn_analysis.kafka.batch_headers import Headers, Read

_CRC_START, _LEGACY_CRC_START = 21, 16  # attributes on; magic on
_GAP_BYTES = 512  # batches that lie so near are read together
_RUN_BYTES = 4 << 20
_CASTAGNOLI = 0x82F63B78
_LIBRARY_US = 4  # for a batch


def _table() -> Array:
    """What each byte adds to a CRC-32C."""
    values = np.arange(256, dtype=np.int64)
    for _ in range(8):
        values = np.where(values & 1, values >> 1 ^ _CASTAGNOLI, values >> 1)
    return values


_CRC_TABLE = _table()


def is_right(batch: bytes, crc: int, *, is_legacy: bool = False) -> bool:
    """Whether a whole batch has the checksum that its header states."""
    if is_legacy:
        return zlib.crc32(batch[_LEGACY_CRC_START:]) == crc
    return int(google_crc32c.value(batch[_CRC_START:])) == crc


def checked(read: Read, found: Headers, rows: Array) -> Array:
    """Whether the checksums of some batches (ascending `rows`) are right; reads them where `found` does not hold them.

    One that can no longer be read whole, as the file was cut in the meantime, is wrong.
    """
    size, crc, position = found.size[rows], crcs(found)[rows], found.position[rows]
    legacy = found.is_legacy[rows]
    right = np.zeros(len(rows), bool)
    is_held = (size <= PEEK_BYTES) & ~legacy
    held = np.flatnonzero(is_held)
    right[held] = crc[held] == _of_short(found.raw[rows[held]], size[held])
    others = np.flatnonzero(~is_held)
    for run in _runs(position[others], size[others]):
        part = others[run]
        start = int(position[part[0]])
        data = read(start, int(position[part[-1]] + size[part[-1]]))
        for k in part.tolist():
            at = int(position[k]) - start
            batch = data[at : at + int(size[k])]
            right[k] = len(batch) == size[k] and is_right(batch, int(crc[k]), is_legacy=bool(legacy[k]))
    return right


def _of_short(batches: Array, size: Array) -> Array:
    """The CRC-32C of batches that are held whole."""
    _crc32c_of_each.count(len(batches) * _LIBRARY_US)
    if _crc32c_of_each.is_worth_loading:
        values = np.empty(len(batches), np.int64)
        _crc32c_of_each(batches.view(np.uint8).reshape(-1, PEEK_BYTES), size, _CRC_TABLE, values)
        return values
    data, value = batches.tobytes(), google_crc32c.value
    spans = zip(range(0, len(data), PEEK_BYTES), size.tolist(), strict=True)
    return np.array([value(data[at + _CRC_START : at + length]) for at, length in spans], np.int64)


@compiled
def _crc32c_of_each(batches: Array, size: Array, table: Array, values: Array) -> None:
    """The checksums of short batches, for each of which a call of the library takes 50 times as long."""
    for row in range(len(batches)):
        crc = 0xFFFFFFFF
        for k in range(_CRC_START, size[row]):
            crc = table[(crc ^ batches[row, k]) & 0xFF] ^ (crc >> 8)
        values[row] = crc ^ 0xFFFFFFFF


def crcs(found: Headers) -> Array:
    """The checksum that each header states."""
    values: Array = np.where(found.is_legacy, found.legacy["crc"], found.peeks["crc"]).astype(np.int64)
    return values


def _runs(position: Array, size: Array) -> list[slice]:
    """Neighbours that are read in one piece."""
    if not len(position):
        return []
    end = position + size
    is_far = position[1:] - end[:-1] > _GAP_BYTES
    starts = [0]
    for k in range(1, len(position)):
        if is_far[k - 1] or end[k] - position[starts[-1]] > _RUN_BYTES:
            starts.append(k)
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(position)], strict=True)]
