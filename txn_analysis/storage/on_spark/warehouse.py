"""A warehouse that only Spark reads and writes: in an object store, or with tables that another tool has changed."""

from __future__ import annotations

import random
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from delta.tables import DeltaTable
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from txn_analysis.spark.parallel import in_parallel
from txn_analysis.spark.private_folders import make_private, make_private_in_store
from txn_analysis.storage.errors import is_conflict, mapped
from txn_analysis.storage.local.one_writer import one_writer_in_spark
from txn_analysis.storage.on_spark.tables import create_table, has_table, newest_version, table_frame
from txn_analysis.storage.on_spark.tasks import named_rows, rows_named, told_rows
from txn_analysis.storage.on_spark.types import frame_of, spark_schema
from txn_analysis.storage.place import check_writable
from txn_analysis.storage.row_batches import of_names, plain_rows
from txn_analysis.storage.warehouse import MOST_ATTEMPTS, Warehouse, too_busy
from txn_analysis.tables import ALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from txn_analysis.spark.when_needed import Spark
    from txn_analysis.storage.match import Alike
    from txn_analysis.storage.on_spark.tasks import RowMaker
    from txn_analysis.storage.row_tasks import RowTasks
    from txn_analysis.tables import Table

    Row = dict[str, Any]

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
            make_private_in_store(self.spark, self.root)
        in_parallel(*[partial(self._prepare, table) for table in ALL_TABLES])

    def _prepare(self, table: Table) -> None:
        if not self._has(table):
            self._write(table, partial(create_table, self.spark, self.path(table), table))

    def _has(self, table: Table) -> bool:
        """Whether there is such a table; its format is looked at once."""
        if table.name not in self._known and mapped(self.path(table), partial(has_table, self.spark, self.root, table)):
            self._known.add(table.name)
        return table.name in self._known

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """As of `Warehouse`."""
        return {t.name: mapped(self.path(t), partial(newest_version, self.spark, self.path(t))) for t in tables}

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """As of `Warehouse`."""
        rows = self.frame(table)
        for column, values in one_of.items():
            schema = StructType([StructField(column, spark_schema(table)[column].dataType)])
            wanted = self.spark.createDataFrame([(value,) for value in values], schema)
            rows = rows.join(F.broadcast(wanted), column, "left_semi")
        found = rows.select(*(names or table.names)).toArrow()
        return iter(found.cast(of_names(table, names)).to_batches())

    def frame(self, table: Table) -> DataFrame:
        """As of `Warehouse`."""
        self._has(table)
        return table_frame(self.spark, self.root, table)

    def replace(self, rows: Sequence[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        """As of `Warehouse`."""
        self._replace(frame_of(self.spark, plain_rows(rows), table), table, slice_of)

    def replace_by(self, frame: DataFrame, rows_of: RowMaker | None, table: Table, **slice_of: str) -> None:
        """As of `Warehouse`."""
        rows = frame.mapInArrow(rows_of, spark_schema(table)) if rows_of else frame.select(*table.names)
        self._replace(rows, table, slice_of)

    def _replace(self, rows: DataFrame, table: Table, slice_of: dict[str, str]) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", _condition(slice_of))
        self._write(table, lambda: writer.save(self.path(table)))

    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        """As of `Warehouse`."""
        # Kept between the writes: a second look at the file of a broker that runs could differ from the first.
        named = named_rows(self.spark, tasks).persist()
        try:
            in_parallel(*[partial(self._replace, rows_named(named, t), t, slice_of) for t in tasks.tables])
            return mapped(self.root, partial(told_rows, named, tasks))
        finally:
            named.unpersist()

    def insert(self, rows: Sequence[Row], table: Table, unless: Sequence[Alike]) -> int:
        """As of `Warehouse`."""
        condition = " OR ".join(f"({alike.sql})" for alike in unless) or "false"

        def merge() -> int:
            merged = self._as_target(table).merge(frame_of(self.spark, rows, table).alias("s"), condition)
            return int(merged.whenNotMatchedInsertAll().execute().collect()[0]["num_inserted_rows"])

        return self._write(table, merge)

    def _as_target(self, table: Table) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path(table)).alias("t")

    def _write(self, table: Table, write: Callable[[], _Result]) -> _Result:
        """Do one whole write, and again where another writer committed in between."""
        for attempt in range(MOST_ATTEMPTS):
            try:
                return mapped(self.path(table), partial(self._alone, table, write))
            except Exception as error:
                if not is_conflict(error):
                    raise
                time.sleep(random.uniform(0, _LONGEST_PAUSE_S * (attempt + 1) / MOST_ATTEMPTS))  # noqa: S311 no secret
        raise too_busy(self.path(table))

    def _alone(self, table: Table, write: Callable[[], _Result]) -> _Result:
        with one_writer_in_spark(self.spark, self._folder, table.name) if self._folder else nullcontext():
            return write()


def _condition(slice_of: dict[str, str]) -> str:
    return " AND ".join(f"{column} = {_literal(value)}" for column, value in slice_of.items())


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
