"""Rows of tables that are evidence of audits: each has the number of its audit, so that thousands are judged as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from txn_analysis.columns.arrays import equal_runs

if TYPE_CHECKING:
    from txn_analysis.tables._schema import Table

AUDIT = pa.field("audit", pa.int32())
"""The first column of every row."""
ONLY = 0
"""The number of the audit of a command."""


def given_schema(table: Table, *names: str) -> pa.Schema:
    """Of rows of a content table the number of their audit and some columns, those that only evidence has included."""
    known = {field.name: field.with_nullable(True) for field in table.arrow_schema}
    return pa.schema([AUDIT, *(known.get(name, pa.field(name, pa.int64())) for name in names)])


def by_audit(rows: pa.Table) -> dict[int, pa.Table]:
    """The rows of each audit, in their order."""
    numbers = rows["audit"].unique().to_pylist()
    if len(numbers) < 2:
        return dict.fromkeys(numbers, rows)
    ordered = rows.sort_by("audit")
    bounds = equal_runs(ordered, ("audit",))
    return {ordered["audit"][start].as_py(): ordered.slice(start, stop - start) for start, stop in bounds}


def with_audit(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the one audit of a command, which have the other columns of a schema."""
    number = pa.repeat(pa.scalar(ONLY, AUDIT.type), len(rows))
    return pa.RecordBatch.from_arrays([number, *(rows[name] for name in schema.names[1:])], schema=schema)
