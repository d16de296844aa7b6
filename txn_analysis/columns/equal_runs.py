"""Rows that lie together because they have one key."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from txn_analysis.columns.arrays import Array


def equal_runs(rows: pa.RecordBatch | pa.Table, key: Sequence[str]) -> list[tuple[int, int]]:
    """Where each stretch of rows with equal values in the columns of a key begins, and where it ends; NULL is equal."""
    is_first = np.zeros(rows.num_rows, bool)
    is_first[:1] = True
    for name in key:
        column = pa.chunked_array(rows[name]).combine_chunks()
        codes = pc.fill_null(pc.dictionary_encode(column).indices, -1).to_numpy()
        is_first[1:] |= codes[1:] != codes[:-1]
    return list(pairwise([*np.flatnonzero(is_first).tolist(), rows.num_rows]))


def is_in(rows: pa.RecordBatch | pa.Table, key: Sequence[str], wanted: Collection[tuple[Any, ...]]) -> Array:
    """Whether the key of each row is a wanted one; only the first row of those that lie together is looked up."""
    found = np.zeros(rows.num_rows, bool)
    for start, stop in equal_runs(rows, key):
        found[start:stop] = tuple(rows[name][start].as_py() for name in key) in wanted
    return found
