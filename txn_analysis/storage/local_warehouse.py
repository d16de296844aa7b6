"""A warehouse in a folder of this machine, whose tables are made, read and written without Spark.

Arrow writes and reads the data files; Delta's log says which they are (`delta_folder`). Spark, whose first look at a
table takes seconds, is asked for what only it does: frames of large tables, and the tasks that fill them.
"""

from __future__ import annotations

import fcntl
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from functools import reduce
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.errors import WarehouseError
from txn_analysis.storage.data_files import read_files, write_data_files
from txn_analysis.storage.delta_folder import DeltaFolder, NoTable
from txn_analysis.storage.errors import said_in_words
from txn_analysis.storage.new_tables import check_format, create_table_here
from txn_analysis.storage.opening import check_writable, fits_in_memory, make_private
from txn_analysis.storage.warehouse import Warehouse, no_warehouse, rows_without_match, schema_of, tables_of
from txn_analysis.tables import ALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.spark.lazy_session import Spark
    from txn_analysis.storage.data_files import DataFile
    from txn_analysis.storage.warehouse import BatchesByName, MatchKey, RowTasks
    from txn_analysis.tables import Table


_FOLDER = ".locks"
_LOOK_AGAIN_S = 0.1
_SAY_SO_AFTER_S = 2.0

# Locks of POSIX are those of a process; threads of one process wait for each other here.
_threads: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class LocalWarehouse(Warehouse):
    """Tables in a folder, all of them plain: no rows deleted beside their files, no columns by other names."""

    def __init__(self, session: Spark, folder: Path) -> None:
        super().__init__(session, str(folder))
        self._folder = folder
        self._known: dict[str, DeltaFolder] = {}

    @property
    def is_plain(self) -> bool:
        """All tables that are there can be read and written here; others need Spark."""
        return all(stored.is_plain for stored in map(self._stored, ALL_TABLES) if stored)

    def create(self) -> None:
        """As of `Warehouse`."""
        check_writable(self._folder)
        make_private(self._folder)
        for table in ALL_TABLES:
            if not self._stored(table):
                with said_in_words(self.path(table)), one_writer(self._folder, table.name):
                    create_table_here(self._folder / table.name, table)

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """As of `Warehouse`."""
        return {table.name: self._plain(table).version for table in tables}

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """As of `Warehouse`."""
        return self._streamed(table, self._plain(table), names, one_of)

    def _streamed(
        self, table: Table, stored: DeltaFolder, names: Sequence[str], one_of: Mapping[str, Collection[Any]]
    ) -> Iterator[pa.RecordBatch]:
        with said_in_words(self.path(table)):
            yield from read_files(table, self._folder, stored.files_of(table, one_of), names, one_of)

    def read_in_tasks(self, table: Table, *names: str, **one_of: Collection[Any]) -> tuple[DataFrame, BatchFunction]:
        """As of `Warehouse`; the tasks read the files, and Java none of their rows."""
        from txn_analysis.storage.spark_tasks import in_shares

        files = self._plain(table).files_of(table, one_of)
        folder, wanted = self._folder, {name: [*values] for name, values in one_of.items()}
        return in_shares(self.spark, files, lambda own: read_files(table, folder, own, names, wanted))

    def frame(self, table: Table) -> DataFrame:
        """As of `Warehouse`."""
        from txn_analysis.storage.spark_warehouse import table_frame

        return table_frame(self.spark, self.root, table)

    def replace(self, rows: Iterable[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        """As of `Warehouse`."""
        if table.partition_by:
            with said_in_words(self.path(table)):
                files = self._written(rows, table, slice_of)
            self._commit(files, table, slice_of)
            return
        with self._alone(table) as stored:
            kept = self._held(table, stored, ())
            is_replaced = [pc.equal(kept[name], value) for name, value in slice_of.items()]
            if is_replaced:
                kept = kept.filter(pc.invert(pc.fill_null(reduce(pc.and_, is_replaced), fill_value=False)))
            stored.replace(self._written([*(kept.to_batches() if is_replaced else ()), *rows], table, {}), {})

    def replace_by(self, frame: DataFrame, rows_of: BatchFunction, table: Table, **slice_of: str) -> None:
        """As of `Warehouse`; the tasks write the files, and only their names come here."""
        from txn_analysis.storage.spark_tasks import write_frame

        with said_in_words(self.path(table)):
            files = write_frame(frame, rows_of, table, self._folder, slice_of)
        self._commit(files, table, slice_of)

    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        """As of `Warehouse`."""
        with said_in_words(self.root):
            if fits_in_memory(tasks.input_bytes):  # in this process, one after another: no job of Spark is as fast
                batches: BatchesByName = {}
                files = write_data_files(tasks.of_tables(tasks.all_rows(), batches), self._folder, slice_of)
                told = tables_of(batches)
            else:
                from txn_analysis.storage.spark_tasks import write_in_tasks

                files, told = write_in_tasks(self.spark, tasks, self._folder, slice_of)
        for table in tasks.tables:
            self._commit([file for file in files if file.table == table.name], table, slice_of)
        return told

    def insert(self, rows: pa.RecordBatch, table: Table, unless: Sequence[MatchKey]) -> int:
        """As of `Warehouse`."""
        with self._alone(table) as stored:
            names = sorted({name for key in unless for name in (*key.same, *key.but)})
            if names:
                rows = rows_without_match(rows, self._held(table, stored, names), unless)
            if len(rows):
                stored.append(self._written([rows], table, {}))
            return len(rows)

    def _held(self, table: Table, stored: DeltaFolder, names: Sequence[str]) -> pa.Table:
        return pa.Table.from_batches(self._streamed(table, stored, names, {}), schema_of(table, names))

    def _written(self, rows: Iterable[pa.RecordBatch], table: Table, slice_of: Mapping[str, str]) -> list[DataFile]:
        """Data files that no commit names yet."""
        return write_data_files(((table, batch) for batch in rows), self._folder, slice_of)

    def _commit(self, files: Sequence[DataFile], table: Table, slice_of: Mapping[str, str]) -> None:
        """Make files, already written, the whole content of a slice."""
        with self._alone(table) as stored:
            stored.replace(files, slice_of)

    @contextmanager
    def _alone(self, table: Table) -> Iterator[DeltaFolder]:
        """The table as it is now, which nobody else writes meanwhile."""
        with said_in_words(self.path(table)), one_writer(self._folder, table.name):
            stored = self._plain(table)
            self._known.pop(table.name, None)
            yield stored

    def _plain(self, table: Table) -> DeltaFolder:
        """The table as it is now.

        Raises:
            WarehouseError: there is none, or another tool made it one that only Spark reads since this was opened.
        """
        stored = self._stored(table)
        if stored is None:
            raise no_warehouse(self.root, table)
        if not stored.is_plain:
            raise WarehouseError(
                f"{self.path(table)}: has rows or columns that only Spark can read. Run the same command again"
            )
        return stored

    def _stored(self, table: Table) -> DeltaFolder | None:
        """The table as it is now, None where there is none; its log is read once for each version, in milliseconds."""
        known = self._known.get(table.name)
        with said_in_words(self.path(table)):
            try:
                if known is None or not known.is_newest():
                    known = DeltaFolder(self._folder / table.name)
                    check_format(self.root, known.properties)
                    self._known[table.name] = known
            except NoTable:
                return None
        return known


@contextmanager
def one_writer(root: Path, table: str) -> Iterator[None]:
    """Holds the lock of one table, waiting for whoever has it; the operating system frees it where a writer is killed.

    A commit creates the next file of a table's log, which must fail if another process was faster. On a local file
    system the log store of Delta in Spark first looks, then renames: two processes can both believe that they wrote the
    same version, and one of them is lost. Stores refuse the second one themselves.

    Raises:
        OSError: the folder of the locks cannot be made.
    """
    path = root / _FOLDER / table
    with _threads[str(path)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            _wait_for(file, table)
            yield


def _wait_for(file: IO[bytes], table: str) -> None:
    began = time.monotonic()
    is_said = False
    while True:
        with suppress(BlockingIOError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if not is_said and time.monotonic() - began > _SAY_SO_AFTER_S:
            is_said = True
            print(f"waiting for another audit that writes {table}", file=sys.stderr, flush=True)
        time.sleep(_LOOK_AGAIN_S)
