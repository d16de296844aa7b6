"""The engine of large audits: Spark's tasks, by calls that every Spark since 4.0 has, and Spark Connect as well."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from txn_analysis.engine.buckets import in_buckets
from txn_analysis.engine.engine import Engine, no_search_for_cycles
from txn_analysis.settings import EngineName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from txn_analysis.columns.values import BatchFunction, GroupFunction
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table


PACKED = pa.schema([("bucket", pa.int32()), ("input", pa.string()), ("rows", pa.binary())])
"""One row is what one batch of an input has of one bucket, as an Arrow message without its schema."""


def packer(name: str, key: Sequence[str], bucket_count: int) -> BatchFunction:
    """Packs the rows of one input."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                yield _packed(name, dict(in_buckets(batch, key, bucket_count)))

    return pack


def _packed(name: str, slices: Mapping[int, pa.RecordBatch]) -> pa.RecordBatch:
    rows = pa.array([s.serialize().to_pybytes() for s in slices.values()], pa.binary())
    columns = [pa.array([*slices], pa.int32()), pa.array([name] * len(slices)), rows]
    return pa.RecordBatch.from_arrays(columns, schema=PACKED)


def unpacked(packed: pa.Table, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """The rows of one bucket, by the name of their input."""
    parts: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
    for name, rows in zip(packed["input"].to_pylist(), pc.cast(packed["rows"], pa.binary()), strict=True):
        parts[name].append(pa.ipc.read_record_batch(rows.as_buffer(), schemas[name]))
    return {name: pa.Table.from_batches(parts[name], schema) for name, schema in schemas.items()}


class Source(NamedTuple):
    """Rows that one frame's batches become by one function, which its tasks have yet to run."""

    frame: DataFrame
    function: BatchFunction


class FrameRows(NamedTuple):
    """Rows that frames will give, all with the same columns."""

    schema: pa.Schema
    sources: tuple[Source, ...]


class OnSpark(Engine[FrameRows]):
    """Groups are brought together in buckets of keys, packed: what is shuffled are few rows of bytes.

    Functions that follow each other on the same rows run in one pass, so that rows meet Java packed alone.

    Args:
        spark: the session.
        bucket_count: into how many buckets keys are divided; a task takes one at a time into its memory.
        warehouse: whose tables are read.
    """

    name = EngineName.SPARK

    def __init__(self, spark: SparkSession, bucket_count: int, warehouse: Warehouse | None = None) -> None:
        self._spark = spark
        self._bucket_count = bucket_count
        self._warehouse = warehouse

    def table(self, table: Table, *names: str, **one_of: Collection[Any]) -> FrameRows:
        """As of `Engine`."""
        if self._warehouse is None:
            raise ValueError(table.name)
        schema = pa.schema([table.arrow_schema.field(name) for name in names])
        return FrameRows(schema, (Source(*self._warehouse.read_in_tasks(table, *names, **one_of)),))

    def made(self, rows: pa.Table) -> FrameRows:
        """As of `Engine`."""
        frame = self._spark.createDataFrame(rows, from_arrow_schema(rows.schema))
        return FrameRows(rows.schema, (Source(frame, _cast_to(rows.schema)),))

    def together(self, *rows: FrameRows) -> FrameRows:
        """As of `Engine`."""
        return FrameRows(rows[0].schema, tuple(source for each in rows for source in each.sources))

    def mapped(self, rows: FrameRows, function: BatchFunction, schema: pa.Schema) -> FrameRows:
        """As of `Engine`."""
        return FrameRows(schema, tuple(Source(s.frame, _one_pass(s.function, function)) for s in rows.sources))

    def grouped(self, key: Sequence[str], function: GroupFunction, schema: pa.Schema, **inputs: FrameRows) -> FrameRows:
        """As of `Engine`."""
        packed = [self.mapped(rows, packer(name, key, self._bucket_count), PACKED) for name, rows in inputs.items()]
        schemas = {name: rows.schema for name, rows in inputs.items()}
        buckets = _frame(self.together(*packed)).groupBy("bucket")
        frame = buckets.applyInArrow(_of_bucket(function, schemas), from_arrow_schema(schema))
        return FrameRows(schema, (Source(frame, _cast_to(schema)),))

    @contextmanager
    def kept(self, rows: FrameRows) -> Iterator[FrameRows]:
        """As of `Engine`."""
        frame = _frame(rows).persist()
        try:
            yield FrameRows(rows.schema, (Source(frame, _cast_to(rows.schema)),))
        finally:
            frame.unpersist()

    def collected(self, rows: FrameRows) -> pa.Table:
        """As of `Engine`."""
        return _frame(rows).toArrow().cast(rows.schema)

    def write(self, rows: FrameRows, function: BatchFunction, table: Table, **slice_of: str) -> None:
        """As of `Engine`; the tasks write what they make."""
        if self._warehouse is None:
            raise ValueError(table.name)
        (source,) = rows.sources if len(rows.sources) == 1 else (Source(_frame(rows), _cast_to(rows.schema)),)
        self._warehouse.replace_by(source.frame, _one_pass(source.function, function), table, **slice_of)


def _frame(rows: FrameRows) -> DataFrame:
    """The rows as one frame."""
    schema = from_arrow_schema(rows.schema)
    frames = [source.frame.mapInArrow(source.function, schema) for source in rows.sources]
    return reduce(DataFrame.unionByName, frames)


def _cast_to(schema: pa.Schema) -> BatchFunction:
    """Spark's own types of Arrow, such as of lists, are not always those that were written."""
    return lambda batches: (batch.cast(schema) for batch in batches)


def _one_pass(first: BatchFunction, second: BatchFunction) -> BatchFunction:
    return lambda batches: second(first(batches))


def _of_bucket(function: GroupFunction, schemas: dict[str, pa.Schema]) -> Callable[[pa.Table], pa.Table]:
    def run(packed: pa.Table) -> pa.Table:
        with no_search_for_cycles():
            return function(unpacked(packed, schemas))

    return run
