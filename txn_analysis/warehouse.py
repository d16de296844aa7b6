"""The Delta tables of one warehouse: the only module that reads or writes them.

A slice of a table (the rows of one ingest or of one run) is always replaced as a whole, so that doing something again
changes nothing. Rows count only once they are committed, by the write that comes last: content rows by `inputs`, which
names the ingest of each input, and result rows by `runs`. What a killed audit left behind is never read.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlparse

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from txn_analysis.errors import WarehouseError
from txn_analysis.one_writer import one_writer
from txn_analysis.parallel import in_parallel
from txn_analysis.storage_errors import is_conflict, storage_error
from txn_analysis.tables import ALL_TABLES, INPUTS, RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from txn_analysis.tables import Table

    Row = dict[str, Any]

_Result = TypeVar("_Result")

_MOST_ATTEMPTS = 8
_LONGEST_PAUSE_S = 0.5

# Keys come first in every table; statistics on them are what file skipping needs.
_INDEXED_COLUMNS = "6"

# What reading an input found out; content that was read before keeps what was found then.
_FOUND_BY_READING = ("ingest_id", "parsed_bytes", "rejected_bytes", "newest_moment_ms", "sections")
_SAME_INPUT = "t.input_id = s.input_id AND t.cluster = s.cluster AND t.capture = s.capture"
_READ_BY_ANOTHER = "t.input_id = s.input_id AND t.kind <=> s.kind AND NOT t.ingest_id <=> s.ingest_id"


class Warehouse:
    """Delta tables under one folder, or any URI that Spark can write."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        # Delta takes a relative path for the name of a table.
        self.root = root.rstrip("/") if "://" in root else str(Path(root).absolute())

    def path(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self.root}/{table.name}"

    @cached_property
    def _local_root(self) -> Path | None:
        """The folder, if the warehouse is on a file system of this machine."""
        jvm: Any = self.spark._jvm
        conf = self.spark._jsparkSession.sessionState().newHadoopConf()
        is_local = jvm.org.apache.hadoop.fs.Path(self.root).getFileSystem(conf).getScheme() == "file"
        return Path(unquote(urlparse(self.root).path) if "://" in self.root else self.root) if is_local else None

    def create(self) -> None:
        """Create the tables that are missing, with their comments, NOT NULL columns and CHECK constraints.

        Raises:
            WarehouseError: the folder cannot be written, or a table is damaged.
        """
        if self._local_root:
            _check_writable(self._local_root)
        in_parallel(*[partial(self._create, table) for table in ALL_TABLES if not self._exists(table)])

    def _exists(self, table: Table) -> bool:
        return self._mapped(table, lambda: bool(DeltaTable.isDeltaTable(self.spark, self.path(table))))

    def _create(self, table: Table) -> None:
        builder = (
            DeltaTable.createIfNotExists(self.spark).location(self.path(table)).comment(f"One row is {table.grain}.")
        )
        builder = builder.addColumns(table.schema).partitionedBy(*table.partition_by)
        # As properties of the new table the constraints need no commits of their own; ALTER TABLE takes one for each.
        for name, condition in table.checks.items():
            builder = builder.property(f"delta.constraints.{name}", condition)
        builder = builder.property("delta.dataSkippingNumIndexedCols", _INDEXED_COLUMNS)
        self._write(table, builder.execute)

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
            return rows.join(F.broadcast(committed), ["ingest_id", "input_id"], "leftsemi")
        return rows

    def read_uncommitted(self, table: Table) -> DataFrame:
        """All rows of the table as it is now: for an ingest or a run that reads its own slice before it commits.

        Raises:
            WarehouseError: there is no such warehouse.
        """
        return self._mapped(table, partial(self._load, table))

    def _load(self, table: Table) -> DataFrame:
        try:
            return self.spark.read.format("delta").load(self.path(table))
        except AnalysisException as error:
            message = f"{self.root}: no warehouse here ({table.name} is missing). Run `txn-analysis audit` first."
            raise WarehouseError(message) from error

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """The newest version of some tables, by name."""
        return {table.name: self._version(table) for table in tables}

    def _version(self, table: Table) -> int:
        # Delta's own log object: asking by DESCRIBE HISTORY is a Spark job for each table. It is brought up to date
        # first, since other processes commit as well.
        jvm: Any = self.spark._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.spark._jsparkSession, self.path(table))
        nothing = jvm.scala.Option.empty()
        return self._mapped(table, lambda: int(log.update(False, nothing, nothing).version()))

    def is_new(self, table: Table) -> bool:
        """Nothing was ever written to the table; a cheap answer that saves a Spark job on a first run."""
        return self._version(table) == 0

    def replace(self, frame: DataFrame, table: Table, **slice_of: str) -> None:
        """Make `frame` the whole content of one slice of the table, such as `run_id="…"`.

        Raises:
            WarehouseError: it cannot be written, or a row breaks a constraint of the table.
        """
        predicate = " AND ".join(f"{column} = '{_quoted(value)}'" for column, value in slice_of.items())
        writer = (
            frame.select(*table.schema.names).write.format("delta").mode("overwrite").option("replaceWhere", predicate)
        )
        self._write(table, lambda: writer.save(self.path(table)))

    def rows(self, rows: Iterable[Row], table: Table) -> DataFrame:
        """Rows made on the driver as a frame of the table's schema; absent columns are NULL."""
        names = table.schema.names
        return self.spark.createDataFrame([tuple(row.get(n) for n in names) for row in rows], table.schema)

    def held_inputs(self, input_ids: Iterable[str]) -> list[Row]:
        """Rows of `inputs` that list any of these contents, of whatever cluster and capture."""
        if self.is_new(INPUTS):
            return []
        wanted = self.spark.createDataFrame([(i,) for i in input_ids], "input_id string")
        rows = self.read(INPUTS).join(F.broadcast(wanted), "input_id", "left_semi")
        return [row.asDict(recursive=True) for row in rows.collect()]

    def commit_inputs(self, inputs: Sequence[Row], held: Sequence[Row]) -> None:
        """Name inputs with the ingest that read them: from now on that ingest's rows of them count.

        An input that its capture holds already stays as it is. Where another ingest has read the same content, that
        one keeps counting, and ours never does. `held` is what `held_inputs` said of them before; who commits in the
        meantime is seen.

        Raises:
            WarehouseError: it cannot be written, or other audits were faster every time.
        """
        for _ in range(_MOST_ATTEMPTS):
            known = found_by_reading(held)
            places = {(row["cluster"], row["capture"], row["input_id"]) for row in held}
            fresh = [
                row | known.get((row["input_id"], row["kind"]), {})
                for row in inputs
                if (row["cluster"], row["capture"], row["input_id"]) not in places
            ]
            if not fresh or self._insert(fresh, INPUTS, f"({_SAME_INPUT}) OR ({_READ_BY_ANOTHER})") == len(fresh):
                return
            held = self.held_inputs(row["input_id"] for row in inputs)
        raise WarehouseError(_too_busy(self.path(INPUTS)))

    def deepen_inputs(self, inputs: Sequence[Row]) -> None:
        """Let contents that were read before count as they were read now, for every cluster and capture that has them.

        Raises:
            WarehouseError: it cannot be written.
        """
        source = self.rows(inputs, INPUTS).alias("s")
        found: dict[str, str | Column] = {name: f"s.{name}" for name in _FOUND_BY_READING}

        def merge() -> None:
            table = DeltaTable.forPath(self.spark, self.path(INPUTS)).alias("t")
            matched = table.merge(source, "t.input_id = s.input_id AND t.kind <=> s.kind")
            matched.whenMatchedUpdate(set=found).execute()

        self._write(INPUTS, merge)

    def commit_run(self, run: Row) -> None:
        """Write the row of a run, after all its other rows: from now on they count.

        A run that was completed before keeps its number; a new one gets the next, which no other run has.

        Raises:
            WarehouseError: it cannot be written, or other audits were faster every time.
        """
        for _ in range(_MOST_ATTEMPTS):
            numbers = {} if self.is_new(RUNS) else self._run_numbers()
            if run["run_id"] in numbers:
                numbered = run | {"run_number": numbers[run["run_id"]]}
                return self.replace(self.rows([numbered], RUNS), RUNS, run_id=run["run_id"])
            numbered = run | {"run_number": max(numbers.values(), default=0) + 1}
            if self._insert([numbered], RUNS, "t.run_id = s.run_id OR t.run_number = s.run_number"):
                return None
        raise WarehouseError(_too_busy(self.path(RUNS)))

    def _run_numbers(self) -> dict[str, int]:
        return {row["run_id"]: row["run_number"] for row in self.read(RUNS).select("run_id", "run_number").collect()}

    def _insert(self, rows: Sequence[Row], table: Table, unless: str) -> int:
        """Insert the rows `s` for which no row `t` of the table meets a condition, and say how many those were.

        The condition is part of the transaction: of two writers at once, the second sees the rows of the first.
        """
        source = self.rows(rows, table).alias("s")

        def merge() -> int:
            merged = DeltaTable.forPath(self.spark, self.path(table)).alias("t").merge(source, unless)
            return int(merged.whenNotMatchedInsertAll().execute().collect()[0]["num_inserted_rows"])

        return self._write(table, merge)

    def _write(self, table: Table, write: Callable[[], _Result]) -> _Result:
        """Do one whole write, and again where another writer committed in between."""
        for attempt in range(_MOST_ATTEMPTS):
            try:
                return self._mapped(table, partial(self._alone, table, write))
            except Exception as error:
                if not is_conflict(error):
                    raise
                time.sleep(random.uniform(0, _LONGEST_PAUSE_S * (attempt + 1) / _MOST_ATTEMPTS))  # noqa: S311 no secret
        raise WarehouseError(_too_busy(self.path(table)))

    def _alone(self, table: Table, write: Callable[[], _Result]) -> _Result:
        with one_writer(self.spark, self._local_root, table.name) if self._local_root else nullcontext():
            return write()

    def _mapped(self, table: Table, action: Callable[[], _Result]) -> _Result:
        try:
            return action()
        except WarehouseError:
            raise
        except Exception as error:
            known = storage_error(error, self.path(table))
            if known is None:
                raise
            raise known from error

    def inputs(self, cluster: str) -> DataFrame:
        """The inputs of one cluster, all captures."""
        return self.read(INPUTS).where(F.col("cluster") == cluster)

    def latest_run(self, cluster: str) -> str:
        """The run that was completed last for a cluster.

        Raises:
            WarehouseError: nothing was run for this cluster yet.
        """
        newest = self.read(RUNS).where(F.col("cluster") == cluster).agg(F.max_by("run_id", "run_number")).first()
        if newest is None or newest[0] is None:
            raise WarehouseError(f"{self.root}: no run of cluster {cluster} yet. Run `txn-analysis audit PATH…` first.")
        return str(newest[0])


def found_by_reading(inputs: Iterable[Row]) -> dict[tuple[str, str | None], Row]:
    """What reading found out, by content and kind: content that was not recognised then may be now."""
    return {(row["input_id"], row["kind"]): {name: row[name] for name in _FOUND_BY_READING} for row in inputs}


def _check_writable(root: Path) -> None:
    """Refuses a folder that cannot be written before anything is read."""
    nearest = next(folder for folder in (root, *root.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        raise WarehouseError(f"{root}: {nearest} is not a folder. Give another --warehouse")
    if not os.access(nearest, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(nearest).f_flag & os.ST_RDONLY
        what = "the file system is read-only" if is_read_only else "no permission to write here"
        raise WarehouseError(
            f"{nearest}: {what}. Earlier runs can still be read; give a --warehouse that can be written"
        )


def _too_busy(path: str) -> str:
    return f"{path}: other audits kept writing here at the same time. Run the same command again"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
