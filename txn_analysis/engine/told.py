"""Rows that carry what no engine looks at: values of our own, and rows of several kinds that one step makes."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txn_analysis.storage.rows import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.engine.engine import BatchFunction

TOLD = pa.schema([("told", pa.binary())])
"""One row is one value: what tasks tell the driver, or each other; little, and made by our own code."""

NAMED = pa.schema([("name", pa.string()), ("rows", pa.binary())])
"""One row is all rows of one kind that a step made of some keys, as an Arrow stream."""


def told(*values: Any) -> pa.Table:
    """Values as rows."""
    return pa.table({"told": pa.array([pickle.dumps(value) for value in values], pa.binary())}, schema=TOLD)


def heard(rows: pa.Table | pa.RecordBatch) -> Iterator[Any]:
    """The values of such rows."""
    return unpickled(rows.column("told").to_pylist())


def unpickled(values: Iterable[bytes]) -> Iterator[Any]:
    """Values that our own code has pickled."""
    return map(pickle.loads, values)


def named(**kinds: pa.RecordBatch) -> pa.Table:
    """Rows of several kinds, by their names; those without any are left out."""
    held = {name: rows for name, rows in kinds.items() if rows.num_rows}
    streams = [packed([rows], rows.schema) for rows in held.values()]
    return pa.table([pa.array([*held], pa.string()), pa.array(streams, pa.binary())], schema=NAMED)


def rows_named(name: str) -> BatchFunction:
    """The rows of one kind, of rows of `NAMED`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for own, stream in zip(batch.column("name").to_pylist(), batch.column("rows"), strict=True):
                if own == name:
                    yield from unpacked(stream).to_batches()

    return run
