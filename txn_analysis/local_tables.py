"""Delta tables on a disk of this machine, read and written past Spark, whose first look at any table takes seconds.

Python writes and reads the data files; Delta's kernel says which they are, and Delta commits them, under one lock with
other processes (`one_writer`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from txn_analysis.alike import unlike
from txn_analysis.data_files import write_data_files
from txn_analysis.delta_log import DeltaLog
from txn_analysis.delta_snapshot import DeltaSnapshot
from txn_analysis.taken_rows import take_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from txn_analysis.alike import Alike
    from txn_analysis.data_files import DataFile
    from txn_analysis.tables import Table
    from txn_analysis.taken_rows import Wanted

    Row = dict[str, Any]


@dataclass(frozen=True)
class LocalTables:
    """The tables in one folder, `root`. What writes must be the only writer of its table meanwhile.

    What they raise where there is no table, or it is damaged, or the disk fails them, has its words in
    `storage_errors`.
    """

    spark: SparkSession
    root: Path

    def rows(self, table: Table, names: Sequence[str], one_of: Mapping[str, Collection[str]]) -> list[Row] | None:
        """Rows of a table as plain data; structs and maps are dictionaries. As `held` otherwise."""
        found = self.held(table, names, one_of)
        return None if found is None else found.to_pylist(maps_as_pydicts="strict")

    def held(self, table: Table, names: Sequence[str], one_of: Mapping[str, Collection[str]]) -> pa.Table | None:
        """Rows of a table in memory, as Arrow. None where only Spark can read them.

        Args:
            table: a small one, or one of which some slices are wanted.
            names: of the columns that are wanted; all where there are none.
            one_of: what some columns may hold; only rows that meet all are wanted. The one by which the table is
                partitioned, if it is, must be among them.
        """
        snapshot = self._snapshot(table)
        if not snapshot.is_plain:
            return None
        column = next(iter(table.partition_by), None)
        schema = pa.schema([field for field in table.arrow_schema if field.name != column])
        own, wanted = [name for name in names or schema.names if name != column], pc.scalar(True)
        for name in one_of.keys() - {column}:
            wanted &= pc.field(name).isin([*one_of[name]])
        files: defaultdict[str | None, list[str]] = defaultdict(list)
        slices: list[str | None] = []
        for slice_, path in snapshot.files(column, sorted(one_of[column])) if column else snapshot.files():
            files[slice_].append(f"{self._path(table)}/{path}")
        parts = [schema.empty_table().select(own)]
        is_asked = column is not None and (not names or column in names)
        for slice_, paths in files.items():
            parts.append(ds.dataset(paths, schema).to_table(own, filter=wanted))
            slices += [slice_] * len(parts[-1])
        found = pa.concat_tables(parts)
        return found.append_column(column, pa.array(slices, pa.string())) if is_asked else found

    def files(self, table: Table, slices: Iterable[str]) -> list[tuple[str, str]]:
        """Of each file of some slices, sorted: which slice, and where it lies below the table's folder."""
        found = self._snapshot(table).files(table.partition_by[0], sorted(slices))
        return sorted((str(name), path) for name, path in found)

    def written(self, rows: Sequence[Row], table: Table, slice_of: Mapping[str, str]) -> list[DataFile]:
        """Rows made on the driver as a data file that no commit names yet; absent columns are NULL."""
        return write_data_files([(table, pa.RecordBatch.from_pylist(rows, table.arrow_schema))], self.root, slice_of)

    def held_files(
        self, rows: Sequence[pa.RecordBatch], table: Table, taken: Wanted, slice_of: Mapping[str, str]
    ) -> list[DataFile]:
        """The same with rows in memory, and what is taken over of another table's files; see `take_file`."""
        files = write_data_files([(table, batch) for batch in rows], self.root, slice_of)
        for slice_, path in sorted(taken.files):
            file = self.root / taken.table.name / path
            files += take_file(file, taken.key, taken.keys[slice_], table, self.root, slice_of)
        return files

    def replace(self, table: Table, files: Sequence[DataFile], slice_of: Mapping[str, str], condition: str) -> None:
        """Make files the whole content of a slice; `condition` says in SQL which it is."""
        is_new = not self.files(table, slice_of.values())
        self._log(table).replace(files, slice_of, condition, is_new=is_new)

    def insert(self, rows: Sequence[Row], table: Table, unless: Sequence[Alike]) -> int | None:
        """Insert the rows that are not alike, in one of some ways, to a row of the table; say how many those were.

        None where only Spark can read the table.
        """
        present = self.rows(table, sorted({name for alike in unless for name in alike.names}), {})
        if present is None:
            return None
        fresh = unlike(rows, present, unless)
        if fresh:
            self._log(table).append(self.written(fresh, table, {}))
        return len(fresh)

    def _path(self, table: Table) -> str:
        return str(self.root / table.name)

    def _log(self, table: Table) -> DeltaLog:
        return DeltaLog(self.spark, self._path(table))

    def _snapshot(self, table: Table) -> DeltaSnapshot:
        return DeltaSnapshot(self.spark, self._path(table))
