"""Rows as they are given to a warehouse, and compared with those that it has."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import add, ne
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from txn_analysis.columns.arrays import tuples_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from txn_analysis.tables import Table


@dataclass(frozen=True)
class MatchKey:
    """When a row has nothing to add to another one: some columns are equal, NULL as well, and those of `but` differ."""

    same: tuple[str, ...]
    but: tuple[str, ...] = ()

    def is_new(self, rows: pa.RecordBatch, present: pa.Table) -> list[bool]:
        """Of each row, whether it matches none of those that are present."""
        others: defaultdict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
        for same, but in zip(tuples_of(present, self.same), tuples_of(present, self.but), strict=True):
            others[same].append(but)
        row_keys = zip(tuples_of(rows, self.same), tuples_of(rows, self.but), strict=True)
        return [not any(all(map(ne, but, other)) for other in others[same]) for same, but in row_keys]


def rows_without_match(rows: pa.RecordBatch, present: pa.Table, keys: Iterable[MatchKey]) -> pa.RecordBatch:
    """The rows that match none of those that are present, by any of some keys."""
    for key in keys:
        rows = rows.filter(pa.array(key.is_new(rows, present), pa.bool_()))
    return rows


class Size(NamedTuple):
    """How much there is: rows, files, and bytes on the disk; those of a file of which some rows stay by their share."""

    row_count: int = 0
    file_count: int = 0
    size_bytes: int = 0

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(*map(add, self, other))


def without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows that have not the values of any key; they keep their order."""
    wanted = {*tuples_of(keys, keys.column_names)}
    return rows.filter(pa.array([key not in wanted for key in tuples_of(rows, keys.column_names)], pa.bool_()))


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

    def all_rows(self) -> Iterator[NamedRows]:
        """What all tasks give, one after another in this process."""
        return (named for work in self.work for named in self.rows_of(work))

    def of_tables(self, named: Iterable[NamedRows], to_driver: BatchesByName) -> Iterator[tuple[Table, pa.RecordBatch]]:
        """The rows of the tables, each batch with its table; all others are added to `to_driver`."""
        known = {table.name: table for table in self.tables}
        for name, rows in named:
            if name in known:
                yield known[name], rows
            else:
                to_driver.setdefault(name, []).append(rows)


def tables_of(to_driver: BatchesByName) -> dict[str, pa.Table]:
    """Batches by name as one table for each name."""
    return {name: pa.Table.from_batches(batches) for name, batches in to_driver.items()}
