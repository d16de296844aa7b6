"""Rows of a table as readers make them, of columns; the first ones say which ingest, input and section they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.tables import Table

_WHERE_READ_COLUMNS = 3


def schema_read(table: Table) -> pa.Schema:
    """The columns of a table without those that say where a row was read."""
    return pa.schema(list(table.arrow_schema)[_WHERE_READ_COLUMNS:])


def rows_read(table: Table, count: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Rows without those columns, NULL where no column is given.

    Args:
        table: whose rows they are.
        count: how many.
        columns: by name: numbers, of which ABSENT is NULL; an Arrow array as it is; or one value for all.
    """
    schema = schema_read(table)
    arrays = [
        _column(field.type, columns[field.name], count) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(kind: pa.DataType, values: Any, count: int) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if not isinstance(values, np.ndarray):
        return pa.repeat(pa.scalar(values, kind), count)
    return pa.array(values.astype(bool) if pa.types.is_boolean(kind) else values, kind, values == ABSENT)


def placed(rows: pa.RecordBatch, table: Table, *place: str | int) -> pa.RecordBatch:
    """Rows with the ingest, the input and the section of which all of them are."""
    first = (
        pa.repeat(pa.scalar(value, f.type), len(rows)) for value, f in zip(place, table.arrow_schema, strict=False)
    )
    return pa.RecordBatch.from_arrays([*first, *rows.columns], schema=table.arrow_schema)
