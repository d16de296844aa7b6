"""Array helpers of the fold: NULL-aware values of rows, reductions per group, neighbours within a piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from txn_analysis.ingest.line_form import ABSENT

Array = np.ndarray[Any, np.dtype[Any]]

NONE = ABSENT  # stands for NULL; no number of the fold is negative


def lists(values: pa.Array, piece: Array, count: int) -> pa.Array:
    """One list per piece, from values that are sorted by piece."""
    return pa.ListArray.from_arrays(pa.array(np.searchsorted(piece, np.arange(count + 1)), pa.int32()), values)


def nullable(values: Array) -> pa.Array:
    """The values with NONE as NULL."""
    return pa.array(values, mask=values == NONE)


def max_of(values: Array, first: Array) -> Array:
    """The largest value of each group; groups begin at `first`. NONE loses against any value."""
    return np.maximum.reduceat(values, first) if len(first) else np.array([], np.int64)


def at(values: Array, row: Array) -> Array:
    """The values at some rows; NULL where there is no such row."""
    return np.where(row == NONE, NONE, values[np.where(row == NONE, 0, row)]) if len(values) else row


def nearest(values: Array, is_wanted: Array, piece: Array) -> tuple[Array, Array]:
    """For each row the value of the wanted row at or before it, and of the one at or after it, in the same piece."""
    count = len(piece)
    place = np.arange(count)
    before = np.maximum.accumulate(np.where(is_wanted, place, -1))
    after = np.minimum.accumulate(np.where(is_wanted, place, count)[::-1])[::-1]
    found = []
    for row in (before, after):
        inside = np.clip(row, 0, count - 1)
        is_there = (row == inside) & (piece[inside] == piece)
        found.append(np.where(is_there, values[inside], NONE))
    return found[0], found[1]
