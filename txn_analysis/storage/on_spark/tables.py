"""Delta tables as Spark has them: how they come into being, their format, and their rows as frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from txn_analysis.storage.errors import mapped
from txn_analysis.storage.local.new_tables import check_format, description, properties
from txn_analysis.storage.local.tables import no_warehouse
from txn_analysis.storage.on_spark.types import spark_schema
from txn_analysis.tables import ENDED_TRANSACTIONS, INPUTS, RUNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table


def create_table(spark: SparkSession, path: str, table: Table) -> None:
    """Create a Delta table with its comments, NOT NULL columns and CHECK constraints, unless another was faster."""
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(description(table))
    builder = builder.addColumns(spark_schema(table)).partitionedBy(*table.partition_by)
    for name, value in properties(table).items():
        builder = builder.property(name, value)
    builder.execute()


def has_table(spark: SparkSession, root: str, table: Table) -> bool:
    """Whether there is such a table under `root`.

    Raises:
        WarehouseError: it is of another format.
    """
    path = f"{root}/{table.name}"
    if not DeltaTable.isDeltaTable(spark, path):
        return False
    (detail,) = DeltaTable.forPath(spark, path).detail().select("properties").collect()
    check_format(root, detail["properties"])
    return True


def newest_version(spark: SparkSession, path: str) -> int:
    """Of the table's newest commit."""
    return int(DeltaTable.forPath(spark, path).history(1).collect()[0]["version"])


def table_frame(spark: SparkSession, root: str, table: Table) -> DataFrame:
    """All rows of a table under `root`; see `Warehouse.frame`."""
    return mapped(f"{root}/{table.name}", lambda: _loaded(spark, root, table))


def _loaded(spark: SparkSession, root: str, table: Table) -> DataFrame:
    try:
        return spark.read.format("delta").load(f"{root}/{table.name}")
    except AnalysisException as error:
        raise no_warehouse(root, table) from error


def committed(warehouse: Warehouse, table: Table) -> DataFrame:
    """The committed rows of a table as it is now: what a reader of its frame may see.

    Raises:
        WarehouseError: there is no such warehouse.
    """
    rows = warehouse.frame(table)
    runs = warehouse.frame(RUNS).select("run_id")
    if "run_id" in table.partition_by:
        return rows.join(F.broadcast(runs), "run_id", "leftsemi")
    if "ingest_id" not in table.partition_by:
        return rows
    inputs = warehouse.frame(INPUTS).select("input_id", "ingest_id")
    read = rows.join(F.broadcast(inputs), ["ingest_id", "input_id"], "leftsemi")
    if table is not ENDED_TRANSACTIONS:
        return read
    return read.unionByName(
        rows.join(F.broadcast(runs.withColumnRenamed("run_id", "ingest_id")), "ingest_id", "leftsemi")
    )
