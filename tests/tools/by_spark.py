"""Tables as Delta in Spark makes and reads them: the second opinion on what the program does without either."""

from collections.abc import Sequence

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from txn_analysis.tables import Table
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.new_table import properties
from txn_analysis.warehouse.spark_tasks import spark_schema


def frame_by_delta(warehouse: Warehouse, table: Table) -> DataFrame:
    """All rows of a table as any reader of Delta sees them."""
    return warehouse.spark.read.format("delta").load(warehouse.path(table))


def frame_of(spark: SparkSession, rows: Sequence[pa.RecordBatch], table: Table) -> DataFrame:
    """Rows made on the driver as a frame of the table's schema."""
    alike = [batch.cast(table.arrow_schema) for batch in rows]
    return spark.createDataFrame(pa.Table.from_batches(alike, table.arrow_schema), spark_schema(table))


def create_by_delta(spark: SparkSession, path: str, table: Table) -> None:
    """Let Delta create a table with its comments, NOT NULL columns and CHECK constraints."""
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(f"One row is {table.grain}.")
    builder = builder.addColumns(spark_schema(table)).partitionedBy(*table.partition_by)
    for name, value in properties(table).items():
        builder = builder.property(name, value)
    builder.execute()


def newest_version(spark: SparkSession, path: str) -> int:
    """Of the newest commit of the table at `path`."""
    return int(DeltaTable.forPath(spark, path).history(1).collect()[0]["version"])
