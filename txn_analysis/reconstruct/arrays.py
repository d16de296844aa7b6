"""Array helpers of the fold: NULL-aware values of rows, reductions per group, neighbours within a piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, np.dtype[Any]]

NONE = np.iinfo(np.int64).min  # stands for NULL


def lists(values: pa.Array, piece: Array, count: int) -> pa.Array:
    """One list per piece, from values that are sorted by piece."""
    return pa.ListArray.from_arrays(pa.array(np.searchsorted(piece, np.arange(count + 1)), pa.int32()), values)


def nullable(values: Array) -> pa.Array:
    """The values with NONE as NULL."""
    return pa.array(values, mask=values == NONE)


def max_of(values: Array, first: Array) -> Array:
    """The largest value of each group; groups begin at `first`. NONE loses against any value."""
    return np.maximum.reduceat(values, first) if len(first) else np.array([], np.int64)


def sum_of(values: Array, first: Array) -> Array:
    """The sum of each group; groups begin at `first`."""
    return np.add.reduceat(values, first) if len(first) else np.array([], np.int64)


def at(values: Array, row: Array) -> Array:
    """The values at some rows; NULL where there is no such row."""
    return np.where(row == NONE, NONE, values[np.where(row == NONE, 0, row)]) if len(values) else row


def next_index(is_wanted: Array, row: Array, piece: Array) -> Array:
    """The first wanted row at or after each row, in the same piece."""
    return _neighbour(np.flatnonzero(is_wanted), row, piece, side="left", step=0)


def previous_index(is_wanted: Array, row: Array, piece: Array) -> Array:
    """The last wanted row at or before each row, in the same piece."""
    return _neighbour(np.flatnonzero(is_wanted), row, piece, side="right", step=-1)


def _neighbour(wanted: Array, row: Array, piece: Array, *, side: Any, step: int) -> Array:
    if not len(wanted) or not len(row):
        return np.full(len(row), NONE, np.int64)
    known = np.where(row == NONE, 0, row)
    place = np.searchsorted(wanted, known, side) + step
    is_inside = (row != NONE) & (place >= 0) & (place < len(wanted))
    found = wanted[np.clip(place, 0, len(wanted) - 1)]
    return np.where(is_inside & (piece[found] == piece[known]), found, NONE)
