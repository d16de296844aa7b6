"""Work that fills several tables at once, and tells the driver the little that it must know.

A task gives batches of rows, each with the name of where they belong: a table's, or any other for what the driver is
told. What the driver gets back grows with files and findings, not with rows. Where there is little to read, the tasks
run in this process, one after another (`write_here`); where there is much, in Spark (`spark_tasks`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txn_analysis.storage.arrow_streams import packed
from txn_analysis.storage.local.data_files import DataFile, write_data_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from txn_analysis.tables import Table

NamedRows = tuple[str, pa.RecordBatch]


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

    def __add__(self, other: RowTasks) -> RowTasks:
        """The tasks of both; they fill different tables."""

        def rows_of(number: int) -> Iterable[NamedRows]:
            return self.rows_of(number) if number < self.count else other.rows_of(number - self.count)

        read_bytes = self.input_bytes + other.input_bytes
        return RowTasks(self.count + other.count, (*self.tables, *other.tables), rows_of, read_bytes)


@dataclass(frozen=True)
class Results:
    """What tasks gave back: the files that they wrote, and what they told, by name."""

    files: list[DataFile]
    told: dict[str, pa.Table]


def write_here(tasks: RowTasks, root: Path, slice_of: Mapping[str, str]) -> Results:
    """Do all tasks in this process, and write one file of each table that they have rows of; see `write_data_files`."""
    told = Streams()
    rows = (named for number in range(tasks.count) for named in tasks.rows_of(number))
    files = write_data_files(of_tables(rows, tasks.tables, told), root, slice_of)
    return Results(files, told.tables())


class Streams:
    """Batches of rows by name, in memory."""

    def __init__(self) -> None:
        self._held: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)

    def add(self, name: str, rows: pa.RecordBatch) -> None:
        """One more batch under a name."""
        self._held[name].append(rows)

    def tables(self) -> dict[str, pa.Table]:
        """As tables, by name."""
        return {name: pa.Table.from_batches(batches) for name, batches in self._held.items()}

    def rows(self) -> list[dict[str, Any]]:
        """One row for each name, with its Arrow stream."""
        return [{"name": name, "rows": packed(batches, batches[0].schema)} for name, batches in self._held.items()]


def of_tables(
    named: Iterable[NamedRows], tables: Iterable[Table], told: Streams
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of tables, each batch with its table; all others are `told`."""
    known = {table.name: table for table in tables}
    for name, rows in named:
        if name in known:
            yield known[name], rows
        else:
            told.add(name, rows)
