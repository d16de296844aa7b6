"""The engine of large audits: Spark's tasks, by calls that every Spark since 4.0 has, and Spark Connect as well."""

from __future__ import annotations

from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from txn_analysis.engine.buckets import PACKED, packer, unpacked
from txn_analysis.engine.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pyspark.sql import SparkSession

    from txn_analysis.engine.engine import BatchFunction, GroupFunction
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table


_BUCKET_BYTES = 32 << 20


def bucket_count(text_bytes: int) -> int:
    """Into how many buckets keys are divided, so that each holds what was read of some 32 MiB of text."""
    return max(8, -(-text_bytes // _BUCKET_BYTES))


class FrameRows(NamedTuple):
    """Rows of a frame, with the types that functions see."""

    schema: pa.Schema
    frame: DataFrame


class OnSpark(Engine[FrameRows]):
    """Groups are brought together in buckets of keys, packed: what is shuffled are few rows of bytes.

    Args:
        spark: the session.
        bucket_count: into how many buckets keys are divided; a task takes one at a time into its memory.
        warehouse: whose tables are read.
    """

    def __init__(self, spark: SparkSession, bucket_count: int, warehouse: Warehouse | None = None) -> None:
        self._spark = spark
        self._bucket_count = bucket_count
        self._warehouse = warehouse

    def table(self, table: Table, *names: str, **one_of: Collection[Any]) -> FrameRows:
        """As of `Engine`."""
        if self._warehouse is None:
            raise ValueError(table.name)
        frame = self._warehouse.frame(table)
        for name, values in one_of.items():
            frame = frame.where(F.col(name).isin([*values]))
        return FrameRows(pa.schema([table.arrow_schema.field(name) for name in names]), frame.select(*names))

    def made(self, rows: pa.Table) -> FrameRows:
        """As of `Engine`."""
        return FrameRows(rows.schema, self._spark.createDataFrame(rows, from_arrow_schema(rows.schema)))

    def together(self, *rows: FrameRows) -> FrameRows:
        """As of `Engine`."""
        return FrameRows(rows[0].schema, reduce(DataFrame.unionByName, [each.frame for each in rows]))

    def mapped(self, rows: FrameRows, function: BatchFunction, schema: pa.Schema) -> FrameRows:
        """As of `Engine`."""
        return FrameRows(schema, rows.frame.mapInArrow(_typed(function, rows.schema), from_arrow_schema(schema)))

    def grouped(self, key: Sequence[str], function: GroupFunction, schema: pa.Schema, **inputs: FrameRows) -> FrameRows:
        """As of `Engine`."""
        packed = [self.mapped(rows, packer(name, key, self._bucket_count), PACKED) for name, rows in inputs.items()]
        schemas = {name: rows.schema for name, rows in inputs.items()}
        buckets = self.together(*packed).frame.groupBy("bucket")
        return FrameRows(schema, buckets.applyInArrow(_of_bucket(function, schemas), from_arrow_schema(schema)))

    @contextmanager
    def kept(self, rows: FrameRows) -> Iterator[FrameRows]:
        """As of `Engine`."""
        frame = rows.frame.persist()
        try:
            yield FrameRows(rows.schema, frame)
        finally:
            frame.unpersist()

    def collected(self, rows: FrameRows) -> pa.Table:
        """As of `Engine`."""
        return rows.frame.toArrow().cast(rows.schema)


def _typed(function: BatchFunction, schema: pa.Schema) -> BatchFunction:
    """Spark's own types of Arrow, such as of lists, are not always those that were written."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(batch.cast(schema) for batch in batches)

    return run


def _of_bucket(function: GroupFunction, schemas: dict[str, pa.Schema]) -> Callable[[pa.Table], pa.Table]:
    def run(packed: pa.Table) -> pa.Table:
        return function(unpacked(packed, schemas))

    return run
