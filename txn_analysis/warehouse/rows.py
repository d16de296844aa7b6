"""Rows as they are given to a warehouse, and compared with those that it has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import Array, mixed, tuples_of
from txn_analysis.tables import Table

if TYPE_CHECKING:
    from txn_analysis.warehouse.data_files import DataFile

# Of this process, so that nobody can make rows for which they do not hold; each number of a hash has its own.
_KEY, _OF_NULL = np.frombuffer(os.urandom(32), np.uint64).reshape(2, 2, 1)


class Size(NamedTuple):
    """How much there is: rows, files, and bytes on the disk; those of a file of which some rows stay by their share."""

    row_count: int = 0
    file_count: int = 0
    size_bytes: int = 0

    @classmethod
    def of(cls, files: Sequence[DataFile]) -> Size:
        """That of whole files."""
        return cls(sum(f.row_count for f in files), len(files), sum(f.size_bytes for f in files))

    def without(self, kept: int, row_count: int) -> Size:
        """What goes of so many rows where some are kept."""
        gone = row_count - kept
        return Size(gone, 0, self.size_bytes * gone // row_count) if kept else self

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(*map(add, self, other))


def without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows, as a table or a batch, that have not the values of any key, NULL among them; they keep their order."""
    wanted = {*tuples_of(keys, keys.column_names)}
    return rows.filter(pa.array([key not in wanted for key in tuples_of(rows, keys.column_names)], pa.bool_()))


def row_hashes(columns: Sequence[pa.Array], count: int) -> Array:
    """Two rows of UINT64, which together hash each row of some columns: equal in this process where the rows are.

    Args:
        columns: of numbers and words, or lists and structs of them.
        count: of rows.
    """
    hashes = np.broadcast_to(_KEY, (2, count))
    for column in columns:
        hashes = mixed(hashes ^ _hashes(column))
    return hashes


def _hashes(column: pa.Array) -> Array:
    kind = column.type
    if pa.types.is_struct(kind):
        hashes = row_hashes(column.flatten(), len(column))
    elif pa.types.is_list(kind):
        hashes = _list_hashes(column)
    elif pa.types.is_string(kind):
        words = column.dictionary_encode()
        digests = (blake2b(w.encode(), digest_size=16, key=_KEY.data).digest() for w in words.dictionary.to_pylist())
        of_words = np.frombuffer(b"".join([*digests, bytes(16)]), np.uint64).reshape(-1, 2).T
        hashes = of_words[:, words.indices.fill_null(-1).to_numpy()]
    else:
        numbers = column.view(pa.int64()) if pa.types.is_floating(kind) else column.cast(pa.int64())
        hashes = mixed(numbers.fill_null(0).to_numpy().view(np.uint64) ^ _KEY)
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), hashes, _OF_NULL) if column.null_count else hashes


def _list_hashes(column: pa.ListArray) -> Array:
    """Of each list the sum of what its elements and their places hash to."""
    lengths = column.value_lengths().fill_null(0).to_numpy()
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - lengths
    elements = column.flatten()
    places = np.arange(len(elements)) - np.repeat(starts, lengths)
    sums = np.zeros((2, len(elements) + 1), np.uint64)
    np.cumsum(mixed(_hashes(elements) ^ mixed(places.view(np.uint64))), axis=1, out=sums[:, 1:])
    return sums[:, ends] - sums[:, starts]


NamedRows = tuple[str, pa.RecordBatch]
BatchesByName = dict[str, list[pa.RecordBatch]]


def schema_of(table: Table, names: Sequence[str]) -> pa.Schema:
    """Some columns of a table, in the order of their names; all where none is named."""
    return pa.schema([table.arrow_schema.field(name) for name in names or table.arrow_schema.names])


@dataclass(frozen=True)
class RowTasks:
    """Work that fills tables.

    Attributes:
        work: of each task what it works on.
        tables: what they fill.
        rows_of: run where the task is: the batches of one task, of its work, each with the name of its table, or with
            another name for what the driver is told.
        is_on_spark: they are Spark's tasks; else this process does them one after another.
    """

    work: Sequence[Any]
    tables: tuple[Table, ...]
    rows_of: Callable[[Any], Iterable[NamedRows]]
    is_on_spark: bool

    def of_tables(self, work: Iterable[Any], to_driver: BatchesByName) -> Iterator[tuple[Table, pa.RecordBatch]]:
        """What some work gives the tables, each batch with its table; all other rows are added to `to_driver`."""
        tables = {table.name: table for table in self.tables}
        for name, rows in (named for one in work for named in self.rows_of(one)):
            if name in tables:
                yield tables[name], rows
            else:
                to_driver.setdefault(name, []).append(rows)


def tables_of(to_driver: BatchesByName) -> dict[str, pa.Table]:
    """Batches by name as one table for each name."""
    return {name: pa.Table.from_batches(batches) for name, batches in to_driver.items()}
