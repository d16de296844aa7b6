"""Rows of a table as Arrow batches, as one table in memory, and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.tables import Table

    Row = dict[str, Any]


def of_names(table: Table, names: Sequence[str]) -> pa.Schema:
    """Some columns of a table; all where none is named."""
    return pa.schema([table.arrow_schema.field(name) for name in names or table.arrow_schema.names])


def held(batches: Iterable[pa.RecordBatch], table: Table, names: Sequence[str]) -> pa.Table:
    """Batches of some columns of a table as one."""
    return pa.Table.from_batches(batches, of_names(table, names))


def plain_rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """All rows as dictionaries."""
    return [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]
