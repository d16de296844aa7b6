"""Delta tables in a store that only Spark reads and writes: how they come into being, and how they are defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta.tables import DeltaTable

from txn_analysis.storage.local.delta_folder import CHECK, Definition
from txn_analysis.storage.local.new_tables import description, properties
from txn_analysis.storage.on_spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from txn_analysis.tables import Table


def create_table(spark: SparkSession, path: str, table: Table) -> None:
    """Create a Delta table with its comments, NOT NULL columns and CHECK constraints, unless another was faster."""
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(description(table))
    builder = builder.addColumns(spark_schema(table)).partitionedBy(*table.partition_by)
    for name, value in properties(table).items():
        builder = builder.property(name, value)
    builder.execute()


def definition_of(spark: SparkSession, path: str) -> Definition | None:
    """How a table is defined as of now; None where there is none."""
    if not DeltaTable.isDeltaTable(spark, path):
        return None
    stored = DeltaTable.forPath(spark, path)
    (detail,) = stored.detail().select("partitionColumns", "properties").collect()
    checks = {n.removeprefix(CHECK): sql for n, sql in detail["properties"].items() if n.startswith(CHECK)}
    return Definition(stored.toDF().schema.json(), tuple(detail["partitionColumns"]), checks)


def newest_version(spark: SparkSession, path: str) -> int:
    """Of the table's newest commit."""
    return int(DeltaTable.forPath(spark, path).history(1).collect()[0]["version"])
