"""The tables of a warehouse in a session's catalog: external tables of their files, and views of rows that count."""

from __future__ import annotations

import os

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from txn_analysis.errors import ConfigError, WarehouseError
from txn_analysis.spark.delta import SETTINGS, has_delta
from txn_analysis.spark.workers import check_spark
from txn_analysis.tables import ALL_TABLES, INPUTS, RUNS, Table
from txn_analysis.tables.schema import CountsBy
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.errors import spark_words, storage_errors_in_words
from txn_analysis.warehouse.opening import open_warehouse


def register(spark: SparkSession, warehouse: str | os.PathLike[str], schema: str) -> list[str]:
    """Make the tables of a warehouse known to the session's catalog: `<name>_files`, and views `<name>` of what counts.

    A view has the rows of all complete audits; those of one that was killed are not among them. What is there already
    by us is made again, and nothing else is touched. Where the catalog outlives the session, so do they.

    Args:
        spark: a session with Delta.
        warehouse: the folder, or URI, of the Delta tables.
        schema: `schema` or `catalog.schema`; it is made where it is missing.

    Returns:
        The names of the views.

    Raises:
        ConfigError: the session has no Delta, or its catalog takes no schema of this name.
        WarehouseError: there is no such warehouse, or a table or view of such a name is of something else.
    """
    root = os.fspath(warehouse)
    with storage_errors_in_words(root):
        check_delta(spark)
        opened = open_warehouse(check_spark(spark), root)
        opened.versions([RUNS])
        return _registered(spark, opened, schema)


def check_delta(spark: SparkSession) -> None:
    """Refuse a session in which no table can be registered.

    Raises:
        ConfigError: it has no Delta.
    """
    if not has_delta(spark):
        raise ConfigError(
            "this session has no Delta, and a table without it cannot be registered. Start it with Delta's jars and "
            f"{' '.join(f'--conf {name}={value}' for name, value in SETTINGS)} (docs/lakehouse.md)"
        )


def check_lasting(spark: SparkSession, schema: str) -> None:
    """Make the schema before a command works for it, unless the catalog ends with the session or has no Delta.

    Raises:
        ConfigError: it is one, or its catalog takes no schema of this name.
    """
    check_delta(spark)
    if "." not in schema and spark.conf.get("spark.sql.catalogImplementation") == "in-memory":
        raise ConfigError(
            f"--register {schema}: the catalog of this session ends with it. Give one that stays: by spark-submit, or"
            " PYSPARK_SUBMIT_ARGS='--conf spark.sql.catalogImplementation=hive pyspark-shell' (docs/lakehouse.md)"
        )
    _made(spark, schema)


def _registered(spark: SparkSession, warehouse: Warehouse, schema: str) -> list[str]:
    tables = [table for table in ALL_TABLES if warehouse.has(table)]
    place = _made(spark, schema)
    for table in tables:
        _check_names(spark, f"{place}.`{table.name}`", f"{place}.`{table.name}_files`", warehouse.path(table))
    for table in tables:
        path = _quoted(warehouse.path(table))
        spark.sql(f"CREATE TABLE IF NOT EXISTS {place}.`{table.name}_files` USING delta LOCATION {path}")
    for table in tables:
        comment = _quoted(f"Of all complete audits. One row is {table.grain}.")
        spark.sql(
            f"CREATE OR REPLACE VIEW {place}.`{table.name}` COMMENT {comment} AS {_rows_that_count(table, place)}"
        )
    return [f"{schema}.{table.name}" for table in tables]


def _made(spark: SparkSession, schema: str) -> str:
    """The schema as SQL names it; it is there afterwards."""
    place = ".".join(f"`{part}`" for part in schema.replace("`", "").split("."))
    try:
        if not spark.catalog.databaseExists(place):  # Hive logs an error and its stack for one that exists
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {place}")
    except AnalysisException as error:
        raise ConfigError(
            f"schema {schema}: the session's catalog does not take it: {spark_words(error)}. Give another SCHEMA, or"
            " CATALOG.SCHEMA with a catalog that the session has"
        ) from None
    return place


def _rows_that_count(table: Table, place: str) -> str:
    """As `Table.counts_by` says it."""
    rows, runs, inputs = (
        f"SELECT {columns} FROM {place}.`{name}_files`"  # noqa: S608 names of ours, and a schema in backticks
        for columns, name in (("*", table.name), ("run_id", RUNS.name), ("ingest_id, input_id", INPUTS.name))
    )
    of_input = f"{rows} WHERE (ingest_id, input_id) IN ({inputs})"
    return {
        CountsBy.ITSELF: rows,
        CountsBy.RUN: f"{rows} WHERE run_id IN ({runs})",
        CountsBy.INPUT: of_input,
        CountsBy.INPUT_OR_RUN: f"{of_input} UNION ALL {rows} WHERE ingest_id IN ({runs})",
    }[table.counts_by]


def _check_names(spark: SparkSession, view: str, files: str, path: str) -> None:
    """Refuse names that are of something else.

    Raises:
        WarehouseError: one is.
    """
    described = _described(spark, files)
    if described and _plain(described.get("Location", "")) != _plain(path):
        elsewhere = described.get("Location") or "no files at all"
        what = "a view, not the table" if "View Text" in described else f"of {elsewhere}, not"
        raise WarehouseError(f"{files}: it is there, and is {what} of {path}. Give another schema")
    described = _described(spark, view)
    if described and files.rpartition(".")[2] not in described.get("View Text", ""):
        raise WarehouseError(f"{view}: it is there, and is no view of {files}. Give another schema")


def _described(spark: SparkSession, name: str) -> dict[str, str]:
    """What the catalog says of a table or view; empty where there is none."""
    if not spark.catalog.tableExists(name):
        return {}
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    return {row["col_name"]: row["data_type"] for row in rows} or {"Location": ""}


def _quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _plain(place: str) -> str:
    """A place by one name: Spark writes `file:` before a path, and reads `s3` as `s3a`."""
    return place.removeprefix("file://").removeprefix("file:").replace("s3a://", "s3://").rstrip("/")
