"""The checksums of record batches: CRC-32C from format 2 on, CRC-32 before."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import google_crc32c
import numpy as np

from txn_analysis.ingest.batch_headers import PEEK_BYTES

if TYPE_CHECKING:
    from txn_analysis.ingest.batch_headers import Array, Headers, Read

_CRC_START, _LEGACY_CRC_START = 21, 16  # attributes on; magic on
_GAP_BYTES = 512  # batches that lie so near are read together
_RUN_BYTES = 4 << 20


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
    peeks, value = found.raw[rows[held]].tobytes(), google_crc32c.value
    spans = zip(range(0, len(peeks), PEEK_BYTES), size[held].tolist(), strict=True)
    right[held] = crc[held] == np.array([value(peeks[at + _CRC_START : at + length]) for at, length in spans], np.int64)
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
