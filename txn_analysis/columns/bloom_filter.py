"""A set of numbers that is small enough to travel: it may take others for its own, and forgets none."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from txn_analysis.columns.arrays import mixed

if TYPE_CHECKING:
    from txn_analysis.columns.arrays import Array

_BITS_PER_NUMBER = 16
_MOST_BITS = 1 << 24


class BloomFilter(NamedTuple):
    """A bit for each place that one of the numbers is mixed to.

    It takes one of sixteen other numbers for its own, or fewer; of more than a million numbers, more: it has 2 MiB at
    most.
    """

    bits: Array

    @classmethod
    def of(cls, numbers: Array) -> BloomFilter:
        """Of numbers, which may repeat."""
        count = min(_MOST_BITS, 1 << max(3, (_BITS_PER_NUMBER * len(numbers)).bit_length()))
        is_set = np.zeros(count, bool)
        is_set[_places(numbers, count)] = True
        return cls(np.packbits(is_set, bitorder="little"))

    def may_hold(self, numbers: Array) -> Array:
        """Of each number, whether it may be one of them."""
        place = _places(numbers, 8 * len(self.bits))
        is_set: Array = (self.bits[place >> 3] >> (place & 7).astype(np.uint8) & 1).astype(bool)
        return is_set


def _places(numbers: Array, count: int) -> Array:
    bit_places: Array = (mixed(numbers.astype(np.int64).view(np.uint64)) & np.uint64(count - 1)).astype(np.int64)
    return bit_places
