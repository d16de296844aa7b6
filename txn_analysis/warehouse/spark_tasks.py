"""Rows and Spark: the types of declared tables, and tasks that read and write the data files of tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from txn_analysis.columns.arrays import together
from txn_analysis.columns.values import BatchFunction, packed, rows_of_values, unpacked
from txn_analysis.spark.delta import has_delta
from txn_analysis.spark.jobs import described, named_jobs
from txn_analysis.spark.workers import values_of_tasks, work_for_tasks, work_in
from txn_analysis.tables import Table
from txn_analysis.warehouse.data_files import DataFile, write_data_files
from txn_analysis.warehouse.errors import NO_JARS
from txn_analysis.warehouse.roots import Root
from txn_analysis.warehouse.rows import BatchesByName, RowTasks

RowsOfTask = Callable[[Iterator[pa.RecordBatch], BatchesByName], Iterator[tuple[Table, pa.RecordBatch]]]

_SHARE_BYTES = 4 << 20
"""Of data files that one task reads: what was read of some 30 MB of text."""


def in_shares(
    spark: SparkSession,
    files: Iterable[DataFile],
    rows_of: Callable[[Sequence[DataFile]], Iterator[pa.RecordBatch]],
) -> tuple[DataFrame, BatchFunction]:
    """A frame of one row for each share of some files, and the function that reads the files of its batches."""
    shares = [*together(files, lambda file: file.size_bytes, _SHARE_BYTES)]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for share in work_in(batches):
            yield from rows_of(share)

    return work_for_tasks(spark, shares), run


def spark_schema(table: Table) -> StructType:
    """The columns of a table, comments included."""
    columns = table.columns
    return StructType(
        [StructField(c.name, from_arrow_type(c.type), c.nullable, {"comment": c.comment}) for c in columns]
    )


def delta_frame(
    spark: SparkSession, path: str, version: int, table: Table, one_of: Mapping[str, Collection[Any]]
) -> DataFrame | None:
    """Rows of a table as Delta in Spark reads them; None where it does not.

    So it is in a session without Delta, for a store that it cannot open and we can, and for a table of an earlier
    version of this program, whose columns have other types.

    Args:
        spark: any session.
        path: where the table lies.
        version: the one that is read, whatever comes later.
        table: whose columns are wanted.
        one_of: what some columns may hold; rows that do not meet all are left out.
    """
    if not has_delta(spark):
        return None
    try:
        frame = spark.read.format("delta").option("versionAsOf", version).load(path)
        types = {field.name: field.dataType.simpleString() for field in frame.schema}
        if any(types.get(field.name) != field.dataType.simpleString() for field in spark_schema(table)):
            return None
        frame = frame.select(*table.names)
        for name, values in one_of.items():
            frame = frame.where(col(name).isin([*values]))
        with described(f"read: look whether Delta in Spark reads {table.name}"), named_jobs(spark):
            frame.limit(1).collect()
    except Exception as error:  # whatever Java has against it: our tasks read it, or say what is wrong
        if any(sign in str(error) for sign in NO_JARS):
            raise  # no frame can be read in this session
        return None
    return frame


def write_work(
    spark: SparkSession, tasks: RowTasks, root: Root, slice_of: Mapping[str, str]
) -> tuple[list[DataFile], dict[str, pa.Table]]:
    """Let Spark's tasks do the work of `RowTasks`; see `write_in_tasks`."""
    without_work = replace(tasks, work=())  # tasks take it along

    def rows_of(parts: Iterator[pa.RecordBatch], to_driver: BatchesByName) -> Iterator[tuple[Table, pa.RecordBatch]]:
        return without_work.of_tables(work_in(parts), to_driver)

    return write_in_tasks(work_for_tasks(spark, tasks.work), rows_of, root, slice_of)


def write_in_tasks(
    frame: DataFrame, rows_of: RowsOfTask, root: Root, slice_of: Mapping[str, str]
) -> tuple[list[DataFile], dict[str, pa.Table]]:
    """Let each task of a frame write one file of each table that it has rows of; see `write_data_files`.

    Args:
        frame: each of its parts is a task.
        rows_of: makes the rows of a task, each batch with its table; those for the driver it adds to its last argument.
        root: where the tables lie.
        slice_of: the partition that all rows belong to.

    Returns:
        The files, and the rows for the driver, by name.
    """

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        to_driver: BatchesByName = {}
        files = write_data_files(rows_of(parts, to_driver), root, slice_of)
        streams = [(name, packed(batches, batches[0].schema)) for name, batches in to_driver.items()]
        yield from rows_of_values((files, streams)).to_batches()

    outputs, of_driver = values_of_tasks(frame, run), defaultdict[str, list[pa.Table]](list)
    for name, stream in (named for _, streams in outputs for named in streams):
        of_driver[name].append(unpacked(stream))
    files = [file for of_task, _ in outputs for file in of_task]
    return files, {name: pa.concat_tables(tables) for name, tables in of_driver.items()}
