"""The tables of one warehouse, made, read and written without Spark, wherever they lie (`roots`).

Arrow writes and reads the data files; Delta's log says which they are (`delta_folder`). Spark is asked for what only it
does: frames of large tables, and the tasks that fill them.

A slice of a table (the rows of one ingest or of one run) is always replaced as a whole, so that doing something again
changes nothing. Several audits may write to one warehouse at once: a commit is refused where another one came between,
and is done again. Which rows count `commits` says.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from txn_analysis.columns.records import Record, fields_of, records_of
from txn_analysis.columns.values import BatchFunction
from txn_analysis.errors import WarehouseError
from txn_analysis.spark.jobs import Spark, running
from txn_analysis.tables import ALL_TABLES, Table
from txn_analysis.warehouse.data_files import DataFile, have_equal_rows, read_files, write_data_files
from txn_analysis.warehouse.delta_folder import MOST_FILES, DeltaFolder
from txn_analysis.warehouse.errors import storage_errors_in_words, too_busy
from txn_analysis.warehouse.new_table import check_format, create_table
from txn_analysis.warehouse.roots import NoTable, Root
from txn_analysis.warehouse.rows import BatchesByName, RowTasks, Size, tables_of, without
from txn_analysis.warehouse.touched import UNSUPPORTED, check_readable, check_writable, unwritten

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MOST_ATTEMPTS = 20  # of some that do nothing but commit, one may lose often in a row
_Result = TypeVar("_Result")

_LONGEST_PAUSE_S = 0.5
# What a task wrote and no commit names: an audit that is about to commit it is never older.
_ORPHAN_MS = 7 * 86_400_000


class Warehouse:
    """Delta tables under one folder, or one name in a store.

    Rows are given whether they are committed or not. Of a result table those count whose `run_id` is in `runs`, of a
    content table those whose `ingest_id` and `input_id` are in `inputs`: whoever asks names them.

    Every method raises WarehouseError where there is no such table, where it is damaged or of another format, or where
    the storage fails it; those that write also where a row breaks a constraint of its table. Other tools may have
    changed a table, which is refused where it is needed (`touched`).

    Attributes:
        root: the folder, or URI, of the tables.
        session: where Spark is needed; questions need none.
        note: what commits of slices say of themselves beside, for `notes`; empty for nothing.
    """

    note = ""

    def __init__(self, session: Spark, root: Root) -> None:
        self.session = session
        self.root = root.place
        self._root = root
        self._tables: dict[str, DeltaFolder] = {}
        self._of_all(self._stored)

    @property
    def spark(self) -> SparkSession:
        """The session to work in, started by now."""
        return running(self.session)

    def path(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self.root}/{table.name}"

    def create(self) -> None:
        """Create the tables that are missing, with their comments, NOT NULL columns and CHECK constraints.

        A folder for them that is not there yet is made for its owner alone; one that is there keeps its mode.
        A warehouse of another format is refused, and a folder that cannot be written before anything is made.
        """
        with storage_errors_in_words(self.root):
            self._root.prepare()
        self._of_all(self._made)

    def _of_all(self, look: Callable[[Table], Any]) -> None:
        """Do something with each table; side by side, as a store takes long to answer."""
        with ThreadPoolExecutor(len(ALL_TABLES)) as pool:
            list(pool.map(look, ALL_TABLES))

    def _made(self, table: Table) -> None:
        with storage_errors_in_words(self.path(table)):
            if (stored := self._stored(table)) is None:
                create_table(self._root, table)
            else:
                check_readable(stored)
                check_writable(stored)

    def has(self, table: Table) -> bool:
        """Whether the table is there; one that a later version declares is not, until the next audit creates it."""
        return self._stored(table) is not None

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """The newest version of some tables, by name."""
        return {table.name: self._plain(table).version for table in tables}

    def delta_table(self, table: Table) -> DeltaTable:
        """The table as it is now, of which SQL is asked."""
        return self._plain(table).delta_table

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """Rows of a table of any size, one batch after another.

        Args:
            table: of which rows are wanted.
            names: of the columns that are wanted; all where there are none.
            one_of: what some columns may hold, never NULL; only rows that meet all are wanted.
        """
        return self._plain(table).batches(*names, **one_of)

    def rows(self, table: Table, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """Rows in memory, as Arrow; arguments as of `batches`."""
        return self._plain(table).rows(*names, **one_of)

    def records(self, kind: type[Record], table: Table, **one_of: Collection[Any]) -> list[Record]:
        """Rows as records of a kind, which are made of the columns of its fields' names; see `batches`."""
        names = [name for name in fields_of(kind) if name in table.names]
        return records_of(kind, self.rows(table, *names, **one_of))

    def read_in_tasks(self, table: Table, *names: str, **one_of: Collection[Any]) -> tuple[DataFrame, BatchFunction]:
        """Rows of a table for Spark's tasks: a frame, and the function that makes the rows of its batches.

        Arguments are those of `batches`.
        """
        from txn_analysis.warehouse.spark_tasks import in_shares

        files = self._plain(table).files_of(one_of)
        root, wanted = self._root, {name: [*values] for name, values in one_of.items()}
        return in_shares(self.spark, files, lambda share: read_files(table, root, share, names, wanted))

    def frame(self, table: Table, **one_of: Collection[Any]) -> DataFrame:
        """Rows of the table as it is now, committed or not, for Spark; see `batches`.

        Where the session has Delta, Delta reads it, at the version that is the newest now; else tasks do.
        """
        from txn_analysis.spark.workers import in_tasks
        from txn_analysis.warehouse.spark_tasks import delta_frame, spark_schema

        stored = self._stored(table)
        by_delta = stored and delta_frame(self.spark, self.path(table), stored.version, table, one_of)
        return by_delta or in_tasks(*self.read_in_tasks(table, **one_of), spark_schema(table))

    def replace(self, rows: Iterable[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        """Make rows, taken one batch after another, the whole content of one slice of a table, such as `run_id="…"`.

        Of a table without partitions the slice is those of its rows that hold these values.
        """
        if table.partition_by:
            with storage_errors_in_words(self.path(table)):
                files = self._written(rows, table, slice_of)
            self._commit(files, table, slice_of)
            return
        fresh, keys = pa.Table.from_batches(rows, table.arrow_schema), pa.Table.from_pylist([slice_of])
        self.revise(table, lambda old: pa.concat_tables([without(old, keys) if slice_of else old.slice(0, 0), fresh]))

    def replace_by(self, frame: DataFrame, rows_of: BatchFunction, table: Table, **slice_of: str) -> None:
        """Make what `rows_of`, run in Spark's workers, makes of the batches of a frame the whole content of a slice."""
        from txn_analysis.warehouse.spark_tasks import write_in_tasks

        with storage_errors_in_words(self.path(table)):
            files, _ = write_in_tasks(
                frame, lambda parts, _: ((table, rows) for rows in rows_of(parts)), self._root, slice_of
            )
        self._commit(files, table, slice_of)

    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        """Make what tasks produce the whole content of a slice, in each of the tables that they fill.

        Returns:
            Their rows that are of none of these tables, by name.
        """
        with storage_errors_in_words(self.root):
            if tasks.is_on_spark:
                from txn_analysis.warehouse.spark_tasks import write_work

                files, driver_tables = write_work(self.spark, tasks, self._root, slice_of)
            else:
                batches: BatchesByName = {}
                files = write_data_files(tasks.of_tables(tasks.work, batches), self._root, slice_of)
                driver_tables = tables_of(batches)
        for table in tasks.tables:
            self._commit([file for file in files if file.table == table.name], table, slice_of)
        return driver_tables

    def notes(self, table: Table) -> Iterator[str]:
        """The notes of a table's commits, newest first, as far as its log goes back."""
        with storage_errors_in_words(self.path(table)):
            yield from self._plain(table).notes()

    def insert(
        self, table: Table, fresh: Callable[[pa.Table], pa.RecordBatch], *names: str, **one_of: Collection[Any]
    ) -> int:
        """Insert the rows that a function makes of those that are there, in one commit; say how many those are.

        Of two writers at once, the function of the second is called again, with the rows of the first.

        Args:
            table: of which rows are added; it has no partitions.
            fresh: makes new rows of those that are there; of none there is no commit.
            names: the columns that it sees; see `batches`.
            one_of: which rows it sees; see `batches`.
        """

        def insert(stored: DeltaFolder) -> int:
            rows = fresh(stored.rows(*names, **one_of))
            if not len(rows):
                return 0
            # In the same commit: who reads the table as it was still finds its files.
            if stored.is_small_in(MOST_FILES):
                stored.replace(self._written([*stored.batches(), rows], table, {}))
            else:
                stored.replace(self._written([rows], table, {}), [])
            return len(rows)

        return self._change(table, insert)

    def revise(self, table: Table, revised: Callable[[pa.Table], pa.Table]) -> None:
        """Put in the place of all rows of a table without partitions what is made of them, in one commit.

        Where that is the same there is no commit.
        """

        def revise(stored: DeltaFolder) -> None:
            before = stored.rows()
            rows = revised(before)
            if not rows.equals(before):
                stored.replace(self._written(rows.to_batches(), table, {}))

        self._change(table, revise)

    def remove(self, table: Table, keys: pa.Table, *, is_rehearsal: bool = False) -> Size:
        """Take out the rows that have the values of some key, in one commit; who reads the table as it was still does.

        Args:
            table: of which rows go; it is partitioned.
            keys: values of some of its columns, the one by which it is partitioned among them; none is NULL.
            is_rehearsal: nothing is done.

        Returns:
            How much is, or would be, gone.
        """
        (column,) = table.partition_by
        names = keys.column_names if is_rehearsal else ()

        def remove(stored: DeltaFolder) -> Size:
            removed, rest = Size(), list[DataFile]()
            slices = sorted({*keys[column].to_pylist()}.intersection(file.slice for file in stored.files))
            for name in slices:
                size = Size.of([file for file in stored.files if file.slice == name])
                if keys.column_names != [column]:
                    rows = stored.rows(*names, **{column: [name]})
                    kept = without(rows, keys)
                    size = size.without(len(kept), len(rows))
                    rest += [] if is_rehearsal else self._written(kept.to_batches(), table, {column: name})
                removed = removed.plus(size)
            if not is_rehearsal:
                stored.replace(rest, slices)
            return removed

        return remove(self._plain(table)) if is_rehearsal else self._change(table, remove)

    def tidy(self, grace_ms: int, *, is_rehearsal: bool) -> Size:
        """Make few files of many small ones, and free the space of those that nobody reads any more.

        Args:
            grace_ms: how long ago they were taken out of the table at least: who opened it before still reads them.
            is_rehearsal: nothing is done.

        Returns:
            The files that are, or would be, gone; rows are not counted.
        """
        freed = Size()
        for table in filter(self.has, ALL_TABLES):
            if not (table.partition_by or is_rehearsal):
                self._change(table, partial(self._as_one_file, table))
            with storage_errors_in_words(self.path(table)):
                paths = {f"{table.name}/{path}" for path in self._plain(table).stale_files(grace_ms, _ORPHAN_MS)}
                stale = self._root.sizes(paths)
                freed = freed.plus(Size(0, len(stale), sum(stale.values())))
                if not is_rehearsal:
                    self._root.drop(sorted(stale))
                    self._plain(table).sum_up()
        return freed

    def _as_one_file(self, table: Table, stored: DeltaFolder) -> None:
        if stored.is_small_in(2):
            stored.replace(self._written(stored.batches(), table, {}))

    def _written(self, rows: Iterable[pa.RecordBatch], table: Table, slice_of: Mapping[str, str]) -> list[DataFile]:
        """Data files that no commit names yet."""
        return write_data_files(((table, batch) for batch in rows), self._root, slice_of)

    def _commit(self, files: Sequence[DataFile], table: Table, slice_of: Mapping[str, str]) -> None:
        """Make files, already written, the whole content of a slice.

        Where the slice holds the same rows already there is no commit: streams and change feeds of the table go on.
        """

        def replace(stored: DeltaFolder) -> None:
            before = [file for file in stored.files if file.slice in slice_of.values()]
            if before and have_equal_rows(table, self._root, before, files):
                self._root.drop(f"{table.name}/{file.path}" for file in files)
            else:
                stored.replace(files, [*slice_of.values()], self.note)

        self._change(table, replace)

    def _change(self, table: Table, change: Callable[[DeltaFolder], _Result]) -> _Result:
        """Do one whole change to a table as it is now, and again where another writer committed in between."""
        for attempt in range(_MOST_ATTEMPTS):
            with storage_errors_in_words(self.path(table)):
                stored = self._plain(table)
                check_writable(stored)
                self._tables.pop(table.name, None)
                try:
                    if stored.grow():  # of an earlier version: decision 0130
                        stored = self._plain(table)
                        self._tables.pop(table.name, None)
                    return change(stored)
                except CommitFailedError as error:
                    if UNSUPPORTED in str(error):  # no other audit was faster: it will never be written
                        raise unwritten(self.path(table), str(error)) from error
            time.sleep(random.uniform(0, _LONGEST_PAUSE_S * (attempt + 1) / _MOST_ATTEMPTS))  # noqa: S311 no secret
        raise too_busy(self.path(table))

    def _plain(self, table: Table) -> DeltaFolder:
        """The table as it is now, with all that it holds in its data files.

        Raises:
            WarehouseError: there is none, as of the class, or as of `check_readable`.
        """
        stored = self._stored(table)
        if stored is None:
            missing = f"no warehouse here ({table.name} is missing)"
            raise WarehouseError(f"{self.root}: {missing}: give the --warehouse of an audit, or audit first")
        check_readable(stored)
        return stored

    def _stored(self, table: Table) -> DeltaFolder | None:
        """The table as it is now, None where there is none; its log is read once for each version, in milliseconds."""
        stored = self._tables.get(table.name)
        with storage_errors_in_words(self.path(table)):
            try:
                if stored is None or stored.table is not table or not stored.is_newest():
                    stored = DeltaFolder(self._root, table)
                    check_format(self.root, stored.properties)
                    self._tables[table.name] = stored
            except NoTable:
                return None
        return stored
