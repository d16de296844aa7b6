"""The Delta tables of one warehouse, written and read: past Spark on a disk of this machine, elsewhere by Spark.

A slice of a table (the rows of one ingest or of one run) is always replaced as a whole, so that doing something again
changes nothing. Rows count only once they are committed, by the write that comes last (`commits`): content rows by
`inputs`, which names the ingest of each input, and result rows by `runs`. What a killed audit left is never read.
"""

from __future__ import annotations

import random
import time
from contextlib import nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from txn_analysis.errors import WarehouseError
from txn_analysis.spark.parallel import in_parallel
from txn_analysis.spark.private_folders import make_private, make_private_in_store
from txn_analysis.spark.when_needed import is_running, running
from txn_analysis.storage.errors import is_conflict, mapped
from txn_analysis.storage.frames import collected, is_at_hand
from txn_analysis.storage.local.one_writer import one_writer_in_spark
from txn_analysis.storage.local.tables import LocalTables, NeedsSparkError, no_warehouse
from txn_analysis.storage.on_spark.tables import create_table, definition_of, newest_version
from txn_analysis.storage.on_spark.tasks import (
    named_rows,
    rows_named,
    told_rows,
    write_frame,
    write_in_tasks,
)
from txn_analysis.storage.on_spark.types import spark_schema
from txn_analysis.storage.place import check_writable, folder_here, is_here, path_of
from txn_analysis.storage.row_tasks import write_here
from txn_analysis.storage.table_versions import as_declared, bring_up_to_date, differences
from txn_analysis.tables import ALL_TABLES, ENDED_TRANSACTIONS, INPUTS, RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.spark.when_needed import Spark
    from txn_analysis.storage.local.delta_folder import Definition
    from txn_analysis.storage.match import Alike
    from txn_analysis.storage.on_spark.tasks import RowMaker
    from txn_analysis.storage.row_tasks import RowTasks
    from txn_analysis.tables import Table

    Row = dict[str, Any]

_Result = TypeVar("_Result")

MOST_ATTEMPTS = 8
_LONGEST_PAUSE_S = 0.5


class Warehouse:
    """Delta tables under one folder, or any URI that Spark can write."""

    def __init__(self, session: Spark, root: str) -> None:
        self.session = session
        # Delta takes a relative path for the name of a table.
        self.root = root.rstrip("/") if "://" in root else str(Path(root).absolute())

    @property
    def spark(self) -> SparkSession:
        """The session to work in, started by now."""
        return running(self.session)

    def parallelism(self, input_bytes: int) -> int:
        """How many tasks run at once where so much is read."""
        return 1 if is_at_hand(input_bytes) else int(self.spark.sparkContext.defaultParallelism)

    def path(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self.root}/{table.name}"

    @cached_property
    def _local(self) -> LocalTables | None:
        """The tables, if the warehouse is on a file system of this machine."""
        if not is_running(self.session) and (folder := folder_here(self.root)):
            return LocalTables(folder)
        return LocalTables(path_of(self.root)) if is_here(self.spark, self.root) else None

    def create(self) -> None:
        """Create the tables that are missing, with their comments, NOT NULL columns and CHECK constraints.

        A folder for them that is not there yet is made for its owner alone; one that is there keeps its mode.
        Tables of another version are brought up to what is declared today; see `table_versions`.

        Raises:
            WarehouseError: the folder cannot be written, or a table is damaged, or cannot be written any more.
        """
        if self._local:
            check_writable(self._local.root)
            make_private(self._local.root)
            for table in ALL_TABLES:
                self._prepare(table)
        else:
            make_private_in_store(self.spark, self.root)
            in_parallel(*[partial(self._prepare, table) for table in ALL_TABLES])

    def _prepare(self, table: Table) -> None:
        stored = self._definition(table)
        if stored is None:
            self._create_table(table)
        elif differences(stored, self.path(table), table):
            self._write(table, lambda: self._bring_up_to_date(table))

    def _bring_up_to_date(self, table: Table) -> None:
        # Looked at once more, as the only writer: another audit may have come first.
        stored = self._definition(table)
        if stored is None:
            raise no_warehouse(self.root, table)
        bring_up_to_date(self.spark, stored, self.path(table), table)

    def _definition(self, table: Table) -> Definition | None:
        """How a table is defined as of now; None where there is none."""
        if self._local:
            return self._local.definition(table)
        return self._mapped(table, lambda: definition_of(self.spark, self.path(table)))

    def _create_table(self, table: Table) -> None:
        if self._local:
            self._local.create(table)
        else:
            self._write(table, partial(create_table, self.spark, self.path(table), table))

    def _plain(self, *tables: Table) -> LocalTables | None:
        """The tables on this machine, if all of some are such as need no Spark."""
        return self._local if self._local and all(map(self._local.is_plain, tables)) else None

    def read(self, table: Table) -> DataFrame:
        """The committed rows of the table as it is now: what every verb and report may see.

        Raises:
            WarehouseError: there is no such warehouse.
        """
        rows = self.read_uncommitted(table)
        if "run_id" in table.partition_by:
            return rows.join(F.broadcast(self.read_uncommitted(RUNS).select("run_id")), "run_id", "leftsemi")
        if "ingest_id" in table.partition_by:
            committed = self.read_uncommitted(INPUTS).select("input_id", "ingest_id")
            read = rows.join(F.broadcast(committed), ["ingest_id", "input_id"], "leftsemi")
            if table is not ENDED_TRANSACTIONS:
                return read
            runs = self.read_uncommitted(RUNS).select(F.col("run_id").alias("ingest_id"))
            return read.unionByName(rows.join(F.broadcast(runs), "ingest_id", "leftsemi"))
        return rows

    def read_uncommitted(self, table: Table) -> DataFrame:
        """All rows of the table as it is now: for an ingest or a run that reads its own slice before it commits.

        What another version did not know yet is NULL.

        Raises:
            WarehouseError: there is no such warehouse, or it was made with other types.
        """
        return as_declared(self._mapped(table, partial(self._load, table)), self.path(table), table)

    def _load(self, table: Table) -> DataFrame:
        try:
            return self.spark.read.format("delta").load(self.path(table))
        except AnalysisException as error:
            raise no_warehouse(self.root, table) from error

    def listed(self, table: Table, *names: str, **one_of: Collection[Any]) -> list[Row]:
        """Rows as plain data, where there are few: as many as there are files that were read, or runs.

        Args:
            table: `inputs` or `runs`, or another one of which a few small slices are wanted, committed or not.
            names: of the columns that are wanted; all where there are none.
            one_of: what some columns may hold, never NULL; only rows that meet all are wanted.

        Raises:
            WarehouseError: there is no such warehouse.
        """
        if self._local:
            with suppress(NeedsSparkError):
                return self._local.listed(table, *names, **one_of)
        return collected(self._wanted(table, names, one_of))

    def held(self, table: Table, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """The same rows as Arrow."""
        if self._local:
            with suppress(NeedsSparkError):
                return self._local.held(table, *names, **one_of)
        return self._wanted(table, names, one_of).toArrow()

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """The same rows one batch after another, for tables of any size."""
        if self._local:
            with suppress(NeedsSparkError):
                return self._local.batches(table, *names, **one_of)
        return iter(self._wanted(table, names, one_of).toArrow().to_batches())

    def _wanted(self, table: Table, names: Sequence[str], one_of: Mapping[str, Collection[Any]]) -> DataFrame:
        rows = self.read_uncommitted(table)
        for column, values in one_of.items():
            schema = StructType([StructField(column, spark_schema(table)[column].dataType)])
            wanted = self.spark.createDataFrame([(value,) for value in values], schema)
            rows = rows.join(F.broadcast(wanted), column, "left_semi")
        return rows.select(*names) if names else rows

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """The newest version of some tables, by name."""
        return {table.name: self._version(table) for table in tables}

    def _version(self, table: Table) -> int:
        if self._local:
            return self._local.version(table)
        return self._mapped(table, lambda: newest_version(self.spark, self.path(table)))

    def replace(self, frame: DataFrame, table: Table, **slice_of: str) -> None:
        """Make `frame` the whole content of one slice of the table, such as `run_id="…"`.

        Raises:
            WarehouseError: it cannot be written, or a row breaks a constraint of the table.
        """
        self.replace_by(frame.select(*table.names), None, table, **slice_of)

    def replace_by(self, frame: DataFrame, rows_of: RowMaker | None, table: Table, **slice_of: str) -> None:
        """The same with what `rows_of`, run in a Spark worker, makes of Arrow batches of the frame.

        Raises:
            WarehouseError: as with `replace`.
        """
        if local := self._plain(table):
            write = partial(write_frame, frame, rows_of or iter, table, local.root, slice_of)
            local.replace(table, self._mapped(table, write), slice_of)
        else:
            rows = frame.mapInArrow(rows_of, spark_schema(table)) if rows_of else frame
            writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", _condition(slice_of))
            self._write(table, lambda: writer.save(self.path(table)))

    def replace_rows(self, rows: Sequence[Row], table: Table, **slice_of: str) -> None:
        """The same with rows made on the driver; absent columns are NULL.

        Raises:
            WarehouseError: as with `replace`.
        """
        if local := self._plain(table):
            local.replace_rows(rows, table, slice_of)
        else:
            self.replace(self.rows(rows, table), table, **slice_of)

    def replace_held(self, rows: Sequence[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        """The same with rows held as Arrow.

        Raises:
            WarehouseError: as with `replace`.
        """
        if local := self._plain(table):
            local.replace(table, local.held_files(rows, table, slice_of), slice_of)
        else:
            self.replace(self.rows((row for batch in rows for row in batch.to_pylist()), table), table, **slice_of)

    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        """Make what tasks produce the whole content of a slice, in each of the tables that they fill.

        Where they read little, they run in this process: no job of Spark is as fast.

        Returns:
            What they told, by name.

        Raises:
            WarehouseError: as with `replace`.
        """
        local = self._plain(*tasks.tables)
        if local is None:
            return self._fill_by_spark(tasks, slice_of)
        is_little = is_at_hand(tasks.input_bytes)
        write = write_here if is_little else partial(write_in_tasks, self.spark)
        found = mapped(self.root, partial(write, tasks, local.root, slice_of))
        for table in tasks.tables:
            local.replace(table, [file for file in found.files if file.table == table.name], slice_of)
        return found.told

    def _fill_by_spark(self, tasks: RowTasks, slice_of: dict[str, str]) -> dict[str, pa.Table]:
        # Kept between the writes: a second look at the file of a broker that runs could differ from the first.
        named = named_rows(self.spark, tasks).persist()
        try:
            in_parallel(*[partial(self.replace, rows_named(named, t), t, **slice_of) for t in tasks.tables])
            return mapped(self.root, partial(told_rows, named, tasks))
        finally:
            named.unpersist()

    def rows(self, rows: Iterable[Row], table: Table) -> DataFrame:
        """Rows made on the driver as a frame of the table's schema; absent columns are NULL."""
        names = table.names
        return self.spark.createDataFrame([tuple(row.get(n) for n in names) for row in rows], spark_schema(table))

    def insert(self, rows: Sequence[Row], table: Table, unless: Sequence[Alike]) -> int:
        """Insert the rows that are not alike, in one of some ways, to a row of the table; say how many those were.

        Looking and inserting is one step: of two writers at once, the second sees the rows of the first.

        Raises:
            WarehouseError: as with `replace`.
        """
        if local := self._plain(table):
            return local.insert(rows, table, unless)
        return self._write(table, partial(self._merge, rows, table, unless))

    def _merge(self, rows: Sequence[Row], table: Table, unless: Sequence[Alike]) -> int:
        condition = " OR ".join(f"({alike.sql})" for alike in unless)
        merged = self._as_target(table).merge(self.rows(rows, table).alias("s"), condition)
        return int(merged.whenNotMatchedInsertAll().execute().collect()[0]["num_inserted_rows"])

    def update(self, rows: Sequence[Row], table: Table, matching: Alike, columns: Sequence[str]) -> None:
        """Set some columns of every row of a table without partitions as in the one of `rows` that is alike to it.

        Raises:
            WarehouseError: as with `replace`.
        """
        if local := self._plain(table):
            return local.update(rows, table, matching, columns)
        source, values = self.rows(rows, table).alias("s"), {name: F.col(f"s.{name}") for name in columns}

        def merge() -> None:
            self._as_target(table).merge(source, matching.sql).whenMatchedUpdate(set=dict(values)).execute()

        return self._write(table, merge)

    def _as_target(self, table: Table) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path(table)).alias("t")

    def _write(self, table: Table, write: Callable[[], _Result]) -> _Result:
        """Do one whole write, and again where another writer committed in between."""
        for attempt in range(MOST_ATTEMPTS):
            try:
                return self._mapped(table, partial(self._alone, table, write))
            except Exception as error:
                if not is_conflict(error):
                    raise
                time.sleep(random.uniform(0, _LONGEST_PAUSE_S * (attempt + 1) / MOST_ATTEMPTS))  # noqa: S311 no secret
        raise too_busy(self.path(table))

    def _alone(self, table: Table, write: Callable[[], _Result]) -> _Result:
        with one_writer_in_spark(self.spark, self._local.root, table.name) if self._local else nullcontext():
            return write()

    def _mapped(self, table: Table, action: Callable[[], _Result]) -> _Result:
        return mapped(self.path(table), action)


def too_busy(path: str) -> WarehouseError:
    """The error of a writer that others were faster than, every time."""
    return WarehouseError(f"{path}: other audits kept writing here at the same time. Run the same command again")


def _condition(slice_of: dict[str, str]) -> str:
    return " AND ".join(f"{column} = {_literal(value)}" for column, value in slice_of.items())


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
