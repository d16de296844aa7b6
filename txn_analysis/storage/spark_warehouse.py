"""A warehouse that only Spark reads and writes: in an object store, or with tables that another tool has changed."""

from __future__ import annotations

import random
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from txn_analysis.spark.parallel import in_parallel
from txn_analysis.spark.private_api import make_folder
from txn_analysis.spark.workers import in_tasks
from txn_analysis.storage.errors import is_conflict, said_in_words
from txn_analysis.storage.local_warehouse import one_writer
from txn_analysis.storage.new_tables import check_format, description, properties
from txn_analysis.storage.opening import OWNER_ONLY, check_writable, make_private
from txn_analysis.storage.spark_tasks import frame_of, named_rows, rows_of_table, spark_schema, told_rows
from txn_analysis.storage.warehouse import MOST_ATTEMPTS, Warehouse, no_warehouse, schema_of, too_busy
from txn_analysis.tables import ALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.spark.lazy_session import Spark
    from txn_analysis.storage.warehouse import MatchKey, RowTasks
    from txn_analysis.tables import Table

_Result = TypeVar("_Result")

_LONGEST_PAUSE_S = 0.5


class SparkWarehouse(Warehouse):
    """The tables under `root`, a folder or URI; `folder` is where they lie if it is on this machine."""

    def __init__(self, session: Spark, root: str, folder: Path | None = None) -> None:
        super().__init__(session, root)
        self._folder = folder
        self._known: set[str] = set()

    def create(self) -> None:
        """As of `Warehouse`."""
        if self._folder:
            check_writable(self._folder)
            make_private(self._folder)
        else:
            make_folder(self.spark, self.root, OWNER_ONLY)  # stores without modes only make it
        in_parallel(*[partial(self._prepare, table) for table in ALL_TABLES])

    def _prepare(self, table: Table) -> None:
        if not self._has(table):
            self._write(table, lambda: create_table(self.spark, self.path(table), table))

    def _has(self, table: Table) -> bool:
        """Whether there is such a table; its format is looked at once."""
        if table.name in self._known:
            return True
        with said_in_words(self.path(table)):
            if not DeltaTable.isDeltaTable(self.spark, self.path(table)):
                return False
            (detail,) = DeltaTable.forPath(self.spark, self.path(table)).detail().select("properties").collect()
        check_format(self.root, detail["properties"])
        self._known.add(table.name)
        return True

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """As of `Warehouse`."""
        found = {}
        for table in tables:
            with said_in_words(self.path(table)):
                found[table.name] = newest_version(self.spark, self.path(table))
        return found

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """As of `Warehouse`."""
        rows = self.frame(table)
        for column, values in one_of.items():
            schema = StructType([StructField(column, spark_schema(table)[column].dataType)])
            wanted = self.spark.createDataFrame([(value,) for value in values], schema)
            rows = rows.join(F.broadcast(wanted), column, "left_semi")
        found = rows.select(*(names or table.names)).toArrow()
        return iter(found.cast(schema_of(table, names)).to_batches())

    def frame(self, table: Table) -> DataFrame:
        """As of `Warehouse`."""
        self._has(table)
        return table_frame(self.spark, self.root, table)

    def read_in_tasks(self, table: Table, *names: str, **one_of: Collection[Any]) -> tuple[DataFrame, BatchFunction]:
        """As of `Warehouse`."""
        frame = self.frame(table)
        for name, values in one_of.items():
            frame = frame.where(frame[name].isin([*values]))
        schema = schema_of(table, names)
        return frame.select(*schema.names), lambda batches: (batch.cast(schema) for batch in batches)

    def replace(self, rows: Iterable[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        """As of `Warehouse`."""
        self._replace(frame_of(self.spark, rows, table), table, slice_of)

    def replace_by(self, frame: DataFrame, rows_of: BatchFunction, table: Table, **slice_of: str) -> None:
        """As of `Warehouse`."""
        self._replace(in_tasks(frame, rows_of, spark_schema(table)), table, slice_of)

    def _replace(self, rows: DataFrame, table: Table, slice_of: dict[str, str]) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", _condition(slice_of))
        self._write(table, lambda: writer.save(self.path(table)))

    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        """As of `Warehouse`."""
        # Kept between the writes: a second look at the file of a broker that runs could differ from the first.
        named = named_rows(self.spark, tasks).persist()
        try:
            in_parallel(*[partial(self._replace, rows_of_table(named, t), t, slice_of) for t in tasks.tables])
            with said_in_words(self.root):
                return told_rows(named, tasks)
        finally:
            named.unpersist()

    def insert(self, rows: pa.RecordBatch, table: Table, unless: Sequence[MatchKey]) -> int:
        """As of `Warehouse`."""
        condition = " OR ".join(f"({key.sql})" for key in unless) or "false"

        def merge() -> int:
            target = DeltaTable.forPath(self.spark, self.path(table)).alias("t")
            merged = target.merge(frame_of(self.spark, [rows], table).alias("s"), condition)
            return int(merged.whenNotMatchedInsertAll().execute().collect()[0]["num_inserted_rows"])

        return self._write(table, merge)

    def _write(self, table: Table, write: Callable[[], _Result]) -> _Result:
        """Do one whole write, and again where another writer committed in between."""
        for attempt in range(MOST_ATTEMPTS):
            try:
                # Stores refuse a second writer themselves.
                alone = one_writer(self._folder, table.name) if self._folder else nullcontext()
                with said_in_words(self.path(table)), alone:
                    return write()
            except Exception as error:
                if not is_conflict(error):
                    raise
                time.sleep(random.uniform(0, _LONGEST_PAUSE_S * (attempt + 1) / MOST_ATTEMPTS))  # noqa: S311 no secret
        raise too_busy(self.path(table))


def create_table(spark: SparkSession, path: str, table: Table) -> None:
    """Create a Delta table with its comments, NOT NULL columns and CHECK constraints, unless another was faster."""
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(description(table))
    builder = builder.addColumns(spark_schema(table)).partitionedBy(*table.partition_by)
    for name, value in properties(table).items():
        builder = builder.property(name, value)
    builder.execute()


def newest_version(spark: SparkSession, path: str) -> int:
    """Of the newest commit of the table at `path`."""
    return int(DeltaTable.forPath(spark, path).history(1).collect()[0]["version"])


def table_frame(spark: SparkSession, root: str, table: Table) -> DataFrame:
    """All rows of a table under `root`; see `Warehouse.frame`."""
    with said_in_words(f"{root}/{table.name}"):
        try:
            return spark.read.format("delta").load(f"{root}/{table.name}")
        except AnalysisException as error:
            raise no_warehouse(root, table) from error


def _condition(slice_of: dict[str, str]) -> str:
    escaped = {column: value.replace("\\", "\\\\").replace("'", "\\'") for column, value in slice_of.items()}
    return " AND ".join(f"{column} = '{value}'" for column, value in escaped.items())
