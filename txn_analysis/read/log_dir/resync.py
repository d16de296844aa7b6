"""Whether a segment goes on behind a place where it seems to end in half a batch.

A damaged length can reach beyond the end of the file just as that of a batch that was being written does. Behind the
damage there are whole batches, though, and they may hold end markers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.kafka.batch_headers import HEADER_BYTES, PEEK_BYTES, Headers, is_plausible
from txn_analysis.kafka.checksums import crcs, is_right

if TYPE_CHECKING:
    from txn_analysis.kafka.batch_headers import Read

_STEP_BYTES = 4 << 20
_MAGIC_AT, _MAGIC = 16, 2
_NEAR_OFFSETS = 2**31  # a batch spans fewer
_MOST_CHECKSUMS = 1000  # more look-alikes are no half batch, whatever they are


def holds_batch(read: Read, start: int, end: int, next_offset: int) -> bool:
    """Whether a whole batch of format 2 with the right checksum begins behind `start`, at `next_offset` or near it."""
    tried = 0
    for at in range(start + 1, end - HEADER_BYTES + 1, _STEP_BYTES):
        data = read(at, min(at + _STEP_BYTES + HEADER_BYTES - 1, end))
        raw = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(raw[_MAGIC_AT : len(raw) - HEADER_BYTES + 1 + _MAGIC_AT] == _MAGIC)
        found = Headers.at(places, data + bytes(PEEK_BYTES), at)
        near = (found.base_offset >= next_offset) & (found.base_offset < next_offset + _NEAR_OFFSETS)
        near &= is_plausible(found) & (found.position + found.size <= end)
        for row in np.flatnonzero(near).tolist():
            position = int(found.position[row])
            batch = read(position, position + int(found.size[row]))
            tried += 1
            if tried > _MOST_CHECKSUMS or is_right(batch, int(crcs(found)[row])):
                return True
    return False
