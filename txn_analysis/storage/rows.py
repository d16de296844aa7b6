"""Rows as Arrow: some columns of a table, bytes to pass through Spark, and the tasks that fill several tables at once.

A task gives batches of rows, each with the name of where they belong: a table's, or any other for what the driver is
told. What the driver gets back grows with files and findings, not with rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from txn_analysis.tables import Table

    Row = dict[str, Any]

NamedRows = tuple[str, pa.RecordBatch]
BatchesByName = dict[str, list[pa.RecordBatch]]

# Of a few rows, threads take ten times as long to start as the rows take.
_WRITTEN = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)


def schema_of(table: Table, names: Sequence[str]) -> pa.Schema:
    """Some columns of a table, in the order of their names; all where none is named."""
    return pa.schema([table.arrow_schema.field(name) for name in names or table.arrow_schema.names])


def plain_rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """All rows as dictionaries."""
    return [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]


def packed(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """The rows of batches of one schema as the bytes of an Arrow stream, which Spark passes on without a look at it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_WRITTEN) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(rows: pa.BinaryScalar | bytes) -> pa.Table:
    """The rows that `packed` made bytes of."""
    return pa.ipc.open_stream(rows if isinstance(rows, bytes) else rows.as_buffer(), options=_READ).read_all()


@dataclass(frozen=True)
class RowTasks:
    """Work that fills tables.

    Attributes:
        count: how many tasks there are.
        tables: what they fill.
        rows_of: run where the task is: the batches of one task, by its number, each with the name of its table, or with
            another name for what the driver is told.
        input_bytes: how much they read.
    """

    count: int
    tables: tuple[Table, ...]
    rows_of: Callable[[int], Iterable[NamedRows]]
    input_bytes: int

    def all_rows(self) -> Iterator[NamedRows]:
        """What all tasks give, one after another in this process."""
        return (named for number in range(self.count) for named in self.rows_of(number))

    def of_tables(self, named: Iterable[NamedRows], told: BatchesByName) -> Iterator[tuple[Table, pa.RecordBatch]]:
        """The rows of the tables, each batch with its table; all others are added to `told`."""
        known = {table.name: table for table in self.tables}
        for name, rows in named:
            if name in known:
                yield known[name], rows
            else:
                told.setdefault(name, []).append(rows)


def tables_of(told: BatchesByName) -> dict[str, pa.Table]:
    """Batches by name as one table for each name."""
    return {name: pa.Table.from_batches(batches) for name, batches in told.items()}
