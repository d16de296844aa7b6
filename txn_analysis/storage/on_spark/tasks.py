"""Spark tasks that write the data files of tables; for storage that only Spark writes, frames of the same rows.

A frame of Spark fills one table. Here a task gives rows of several; see `row_tasks`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from txn_analysis.storage.arrow_streams import packed, unpacked
from txn_analysis.storage.local.data_files import DataFile, write_data_files
from txn_analysis.storage.on_spark.types import spark_schema, spark_struct
from txn_analysis.storage.row_tasks import NamedRows, Results, Streams, of_tables
from txn_analysis.tables._schema import BIGINT, BINARY, STRING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.storage.row_tasks import RowTasks
    from txn_analysis.tables import Table

RowMaker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_FILES = spark_struct(table=STRING, path=STRING, size_bytes=BIGINT, modified_ms=BIGINT, statistics=STRING)
_NAMED_ROWS = spark_struct(name=STRING, rows=BINARY)  # rows: an Arrow stream
_RESULTS = StructType([*_FILES, *_NAMED_ROWS])


def write_in_tasks(spark: SparkSession, tasks: RowTasks, root: Path, slice_of: Mapping[str, str]) -> Results:
    """Let each task write one file of each table that it has rows of; see `write_data_files`."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _numbers(numbers):
            told = Streams()
            files = write_data_files(of_tables(tasks.rows_of(number), tasks.tables, told), root, slice_of)
            yield _results(files, told)

    return _collected(_numbered(spark, tasks).mapInArrow(run, _RESULTS))


def write_frame(
    frame: DataFrame, rows_of: RowMaker, table: Table, root: Path, slice_of: Mapping[str, str]
) -> list[DataFile]:
    """Let each task of a frame write one file of what `rows_of` makes of its rows; see `write_data_files`."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _results(write_data_files(((table, rows) for rows in rows_of(parts)), root, slice_of), Streams())

    return _collected(frame.mapInArrow(run, _RESULTS)).files


def named_rows(spark: SparkSession, tasks: RowTasks) -> DataFrame:
    """All that the tasks give, for storage where only Spark can write."""
    return named_rows_of(
        _numbered(spark, tasks), lambda parts: chain.from_iterable(map(tasks.rows_of, _numbers(parts)))
    )


def named_rows_of(frame: DataFrame, rows_of: Callable[[Iterator[pa.RecordBatch]], Iterable[NamedRows]]) -> DataFrame:
    """What `rows_of` makes of Arrow batches of a frame; one row is one batch of it, with its name."""
    schema = to_arrow_schema(_NAMED_ROWS)

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for name, rows in rows_of(parts):
            yield pa.RecordBatch.from_pylist([{"name": name, "rows": packed([rows], rows.schema)}], schema=schema)

    return frame.mapInArrow(run, _NAMED_ROWS)


def rows_named(named: DataFrame, table: Table) -> DataFrame:
    """The rows of one table, of `named_rows`."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for stream in part.column(0):
                yield from unpacked(stream).to_batches()

    return named.where(F.col("name") == table.name).select("rows").mapInArrow(run, spark_schema(table))


def told_rows(named: DataFrame, tasks: RowTasks) -> dict[str, pa.Table]:
    """What the driver is told, of `named_rows`."""
    return _told(named.where(~F.col("name").isin([table.name for table in tasks.tables])).collect())


def _numbered(spark: SparkSession, tasks: RowTasks) -> DataFrame:
    """One row, and one Spark task, for each task: its number."""
    return spark.range(0, tasks.count, 1, max(tasks.count, 1))


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    return (number for batch in batches for number in batch.column(0).to_pylist())


def _results(files: list[DataFile], told: Streams) -> pa.RecordBatch:
    rows = [*map(asdict, files), *told.rows()]
    return pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(_RESULTS))


def _collected(frame: DataFrame) -> Results:
    rows = frame.collect()
    files = [DataFile(*row[: len(_FILES)]) for row in rows if row["table"] is not None]
    return Results(files, _told(row for row in rows if row["name"] is not None))


def _told(rows: Iterable[Any]) -> dict[str, pa.Table]:
    parts: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for row in rows:
        parts[row["name"]].append(unpacked(bytes(row["rows"])))
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}
