"""What tasks tell the driver of themselves, and each other: little, and made by our own code."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TOLD = pa.schema([("told", pa.binary())])
"""One row is one value."""


def told(*values: Any) -> pa.Table:
    """Values as rows."""
    return pa.table({"told": pa.array([pickle.dumps(value) for value in values], pa.binary())}, schema=TOLD)


def heard(rows: pa.Table | pa.RecordBatch) -> Iterator[Any]:
    """The values of such rows."""
    return unpickled(rows.column("told").to_pylist())


def unpickled(values: Iterable[bytes]) -> Iterator[Any]:
    """Values that our own code has pickled."""
    return map(pickle.loads, values)
