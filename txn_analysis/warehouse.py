"""The Delta tables of one warehouse: the only module that reads or writes them.

A slice of a table (the rows of one ingest or of one run) is always replaced as a whole, so that doing something again
changes nothing. Rows of an ingest count as evidence only once `inputs` names that ingest, which is written last.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from txn_analysis.errors import WarehouseError
from txn_analysis.tables import ALL_TABLES, INPUTS, RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.tables import Table

_MOST_AT_ONCE = 8

# Keys come first in every table; statistics on them are what file skipping needs.
_INDEXED_COLUMNS = "6"


def in_parallel(*actions: Callable[[], Any]) -> list[Any]:
    """What some independent actions return: small Spark jobs mostly wait for the driver, not for each other."""
    with ThreadPoolExecutor(min(len(actions), _MOST_AT_ONCE) or 1) as pool:
        return list(pool.map(lambda action: action(), actions))


class Warehouse:
    """Delta tables under one folder, or any URI that Spark can write."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        # Delta takes a relative path for the name of a table.
        self.root = root.rstrip("/") if "://" in root else str(Path(root).absolute())

    def path(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self.root}/{table.name}"

    def create(self) -> None:
        """Create the tables that are missing, with their comments and NOT NULL columns."""
        missing = [t for t in ALL_TABLES if not DeltaTable.isDeltaTable(self.spark, self.path(t))]
        in_parallel(*[partial(self._create, table) for table in missing])

    def _create(self, table: Table) -> None:
        builder = (
            DeltaTable.createIfNotExists(self.spark).location(self.path(table)).comment(f"One row is {table.grain}.")
        )
        builder = builder.addColumns(table.schema).partitionedBy(*table.partition_by)
        builder.property("delta.dataSkippingNumIndexedCols", _INDEXED_COLUMNS).execute()

    def read(self, table: Table) -> DataFrame:
        """The table as it is now.

        Raises:
            WarehouseError: there is no such warehouse.
        """
        try:
            return self.spark.read.format("delta").load(self.path(table))
        except AnalysisException as error:
            message = f"{self.root}: no warehouse here ({table.name} is missing). Run `txn-analysis audit` first."
            raise WarehouseError(message) from error

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """The newest version of some tables, by name."""
        return {table.name: self._version(table) for table in tables}

    def _version(self, table: Table) -> int:
        # Delta's own log object: asking by DESCRIBE HISTORY is a Spark job for each table.
        log = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]  # a JVM is running
        return int(log.forTable(self.spark._jsparkSession, self.path(table)).unsafeVolatileSnapshot().version())

    def is_new(self, table: Table) -> bool:
        """Nothing was ever written to the table; a cheap answer that saves a Spark job on a first run."""
        return self._version(table) == 0

    def replace(self, frame: DataFrame, table: Table, **slice_of: str) -> None:
        """Make `frame` the whole content of one slice of the table, such as `run_id="…"`."""
        predicate = " AND ".join(f"{column} = '{_quoted(value)}'" for column, value in slice_of.items())
        writer = (
            frame.select(*table.schema.names).write.format("delta").mode("overwrite").option("replaceWhere", predicate)
        )
        self._write(writer, table)

    def append(self, frame: DataFrame, table: Table) -> None:
        """Add rows to a table."""
        self._write(frame.select(*table.schema.names).write.format("delta").mode("append"), table)

    def rows(self, rows: Iterable[dict[str, Any]], table: Table) -> DataFrame:
        """Rows made on the driver as a frame of the table's schema; absent columns are NULL."""
        names = table.schema.names
        return self.spark.createDataFrame([tuple(row.get(n) for n in names) for row in rows], table.schema)

    def _write(self, writer: Any, table: Table) -> None:
        try:
            writer.save(self.path(table))
        except AnalysisException as error:
            raise WarehouseError(f"{self.path(table)}: cannot be written: {error.getMessage()}") from error

    def inputs(self, cluster: str) -> DataFrame:
        """The inputs of one cluster, all captures."""
        return self.read(INPUTS).where(F.col("cluster") == cluster)

    def run_number(self, run_id: str) -> int:
        """The number of a run: its own where it was completed before, else the next one."""
        if self.is_new(RUNS):
            return 1
        numbers = {row["run_id"]: row["run_number"] for row in self.read(RUNS).select("run_id", "run_number").collect()}
        return int(numbers.get(run_id, max(numbers.values(), default=0) + 1))

    def latest_run(self, cluster: str) -> str:
        """The run that was completed last for a cluster.

        Raises:
            WarehouseError: nothing was run for this cluster yet.
        """
        newest = self.read(RUNS).where(F.col("cluster") == cluster).agg(F.max_by("run_id", "run_number")).first()
        if newest is None or newest[0] is None:
            raise WarehouseError(f"{self.root}: no run of cluster {cluster} yet. Run `txn-analysis audit PATH…` first.")
        return str(newest[0])


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
