"""Delta tables in one folder of this machine, read and written without Spark, whose first look at one takes seconds.

Arrow writes and reads the data files; Delta's log says which they are (`delta_folder`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.errors import WarehouseError
from txn_analysis.storage.errors import mapped
from txn_analysis.storage.local.data_files import write_data_files
from txn_analysis.storage.local.delta_folder import DeltaFolder, NoTable
from txn_analysis.storage.local.new_tables import check_format, create_table_here
from txn_analysis.storage.local.one_writer import one_writer
from txn_analysis.storage.local.parquet_batches import batches_of
from txn_analysis.storage.match import unlike
from txn_analysis.storage.row_batches import held, of_names, plain_rows
from txn_analysis.tables import ALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from txn_analysis.storage.local.data_files import DataFile
    from txn_analysis.storage.match import Alike
    from txn_analysis.tables import Table

    Row = dict[str, Any]

_Result = TypeVar("_Result")


class NeedsSparkError(WarehouseError):
    """A table has rows deleted beside its files, or columns by other names: only Spark reads and writes it."""


def no_warehouse(root: Path | str, table: Table) -> WarehouseError:
    """The error of whoever asks where there is no warehouse, or a part of one is gone."""
    what = f"no warehouse here ({table.name} is missing): give the --warehouse of an audit, or audit first"
    return WarehouseError(f"{root}: {what}")


@dataclass(frozen=True)
class LocalTables:
    """The tables in one folder, `root`.

    Every method raises WarehouseError where there is no such table, where it is damaged or of another format, or where
    the disk fails it, and NeedsSparkError where it is not plain.
    """

    root: Path
    _known: dict[str, DeltaFolder] = field(default_factory=dict, compare=False, repr=False)

    def listed(self, table: Table, *names: str, **one_of: Collection[Any]) -> list[Row]:
        """As of `Stored`."""
        return plain_rows(self.batches(table, *names, **one_of))

    def held(self, table: Table, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """As of `Stored`."""
        return held(self.batches(table, *names, **one_of), table, names)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """As of `Stored`."""
        return self._streamed(table, self._table(table), names or table.arrow_schema.names, one_of)

    def _streamed(
        self, table: Table, stored: DeltaFolder, names: Sequence[str], one_of: Mapping[str, Collection[Any]]
    ) -> Iterator[pa.RecordBatch]:
        column = next(iter(table.partition_by), None)
        stored_schema = pa.schema([field for field in table.arrow_schema if field.name != column])
        wanted = pc.scalar(True)
        for name, values in one_of.items():
            if name != column:
                wanted &= pc.field(name).isin(pa.array([*values], stored_schema.field(name).type))
        files: defaultdict[str | None, list[str]] = defaultdict(list)
        for file in stored.files:
            if column is None or column not in one_of or file.slice in one_of[column]:
                files[file.slice].append(f"{self._path(table)}/{file.path}")
        own, schema = [name for name in names if name != column], of_names(table, names)
        for slice_, paths in files.items():
            found = batches_of(paths, stored_schema, own, wanted, one_of.keys() - {column})
            for batch in filter(len, mapped_each(self._path(table), found)):
                arrays = [pa.repeat(slice_, len(batch)) if name == column else batch[name] for name in schema.names]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    @property
    def are_plain(self) -> bool:
        """All tables that are there can be read and written here; others need Spark."""
        return all(map(self._is_plain, ALL_TABLES))

    def _is_plain(self, table: Table) -> bool:
        try:
            return self._mapped(table, lambda: self._opened(table).is_plain)
        except NoTable:
            return True

    def version(self, table: Table) -> int:
        """The newest version of a table; 0 where nothing was written since it was made."""
        return self._mapped(table, lambda: self._stored(table).version)

    def has(self, table: Table) -> bool:
        """Whether there is such a table."""
        try:
            self._mapped(table, lambda: self._opened(table))
        except NoTable:
            return False
        return True

    def create(self, table: Table) -> None:
        """Make a table, unless it is there."""

        def create() -> None:
            with one_writer(self.root, table.name):
                create_table_here(self.root / table.name, table)

        self._mapped(table, create)

    def replace(self, table: Table, files: Sequence[DataFile], slice_of: Mapping[str, str]) -> None:
        """Make files, already written, the whole content of a slice."""
        self._alone(table, lambda stored: stored.replace(files, slice_of))

    def replace_rows(self, rows: Sequence[pa.RecordBatch], table: Table, slice_of: Mapping[str, str]) -> None:
        """Make rows in memory the whole content of a slice; of a table without partitions of some rows."""
        if table.partition_by:
            files = self._mapped(table, lambda: self._written(rows, table, slice_of))
            return self.replace(table, files, slice_of)

        def replace(stored: DeltaFolder) -> None:
            present = self._rows(table, stored, table.arrow_schema.names)
            kept = [row for row in present if not slice_of.items() <= row.items()]
            stored.replace(self._written([_batch(kept, table), *rows], table, {}), {})

        return self._alone(table, replace)

    def _written(self, rows: Iterable[pa.RecordBatch], table: Table, slice_of: Mapping[str, str]) -> list[DataFile]:
        """Data files that no commit names yet."""
        return write_data_files(((table, batch) for batch in rows), self.root, slice_of)

    def insert(self, rows: Sequence[Row], table: Table, unless: Sequence[Alike]) -> int:
        """Insert the rows that are not alike, in one of some ways, to a row of the table; say how many those were."""

        def insert(stored: DeltaFolder) -> int:
            names = sorted({name for alike in unless for name in alike.names})
            fresh = unlike(rows, self._rows(table, stored, names), unless)
            if fresh:
                stored.append(self._written([_batch(fresh, table)], table, {}))
            return len(fresh)

        return self._alone(table, insert)

    def _rows(self, table: Table, stored: DeltaFolder, names: Sequence[str]) -> list[Row]:
        return plain_rows(self._streamed(table, stored, names, {}))

    def _alone(self, table: Table, write: Callable[[DeltaFolder], _Result]) -> _Result:
        def locked() -> _Result:
            with one_writer(self.root, table.name):
                stored = self._table(table)
                self._known.pop(table.name, None)
                return write(stored)

        return self._mapped(table, locked)

    def _table(self, table: Table) -> DeltaFolder:
        stored = self._mapped(table, lambda: self._stored(table))
        if not stored.is_plain:
            raise NeedsSparkError(
                f"{self._path(table)}: has rows or columns that only Spark can read. Run the same command again"
            )
        return stored

    def _stored(self, table: Table) -> DeltaFolder:
        try:
            return self._opened(table)
        except NoTable as error:
            raise no_warehouse(self.root, table) from error

    def _opened(self, table: Table) -> DeltaFolder:
        """The table as it is now; its log is read once for each version, which takes milliseconds."""
        known = self._known.get(table.name)
        if known is None or not known.is_newest():
            known = self._known[table.name] = DeltaFolder(self.root / table.name)
            check_format(self.root, known.properties)
        return known

    def _mapped(self, table: Table, action: Callable[[], _Result]) -> _Result:
        return mapped(self._path(table), action)

    def _path(self, table: Table) -> str:
        return str(self.root / table.name)


def _batch(rows: Sequence[Row], table: Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([*rows], table.arrow_schema)


def mapped_each(place: str, items: Iterator[_Result]) -> Iterator[_Result]:
    """Each item of a stream; what reading it raises is said as `storage_error` says it."""
    end: Any = object()
    while (item := mapped(place, lambda: next(items, end))) is not end:
        yield item
