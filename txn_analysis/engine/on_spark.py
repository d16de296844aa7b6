"""The engine of large audits: Spark's tasks, by calls that every Spark since 4.0 has, and Spark Connect as well.

No setting of the session changes what it does, as the session may be somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from txn_analysis.columns.types import typed
from txn_analysis.columns.values import BatchFunction, GroupFunction
from txn_analysis.engine.buckets import BUCKET_BYTES, Buckets, numbers_for_parts
from txn_analysis.engine.engine import Engine, KeySizes, joined_schema, kind_schema, no_search_for_cycles
from txn_analysis.settings import EngineName
from txn_analysis.spark.jobs import named_jobs
from txn_analysis.spark.workers import columns_of, cores_of, in_tasks, prepare_worker
from txn_analysis.tables import Table
from txn_analysis.warehouse.delta_tables import Warehouse

_BUCKET, _ROW, _MATCHED = "bucket", "row", "_matched"
_TASKS_PER_CORE = 4
_BUCKETS_PER_TASK = 8


def bucketed(
    name: str,
    key: Sequence[str],
    buckets: Buckets,
    numbers_of: Sequence[int] | None = None,
    beside: Sequence[str] = (),
) -> BatchFunction:
    """Each row of an input as its bucket and a struct that has the name of the input.

    Args:
        name: of the input.
        key: the columns of the key.
        buckets: that the keys belong to.
        numbers_of: what Spark sees as the number of each bucket; None for the number itself.
        beside: columns that stand beside the struct.
    """
    numbers = None if numbers_of is None else np.array(numbers_of, np.int32)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in filter(len, batches):
            bucket = buckets.of([batch.column(column) for column in key])
            numbered = pa.array(bucket if numbers is None else numbers[bucket], pa.int32())
            columns = [numbered, batch.drop_columns([*beside]).to_struct_array(), *map(batch.column, beside)]
            yield pa.RecordBatch.from_arrays(columns, [_BUCKET, name, *beside])

    return run


class Known(NamedTuple):
    """Few rows that others must match; `schema` is that of the others before."""

    frame: DataFrame
    key: Sequence[str]
    schema: pa.Schema

    @property
    def is_semi(self) -> bool:
        """The others get no columns."""
        return set(self.frame.columns) <= {*self.key}

    def joined(self, others: DataFrame, struct: str, beside: Sequence[str] = ()) -> DataFrame:
        """The others that match, with what they get; they are structs of one name, and have some columns beside it."""
        is_same = [others[name if name in beside else f"{struct}.{name}"] == self.frame[name] for name in self.key]
        return others.join(f.broadcast(self.frame), is_same, "left_semi" if self.is_semi else "inner")

    def beside(self, schema: pa.Schema) -> list[str]:
        """The columns of the key that are not wanted of what is joined."""
        return [name for name in self.key if name not in schema.names]


class Source(NamedTuple):
    """Rows that one frame's batches become by one function, which its tasks have yet to run.

    `is_as_it_is`: the frame has these rows, and the function does no more than give their columns our types. Of what
    the function makes those rows count that have a match among `known`.
    """

    frame: DataFrame
    function: BatchFunction
    is_as_it_is: bool = False
    known: Known | None = None

    def then(self, function: BatchFunction) -> Source:
        """The same, and another function of what the first one makes, in the same pass; nothing is to be matched."""
        first = self.function  # tasks take the functions along, and could not take the frame
        return Source(self.frame, lambda batches: function(first(batches)))

    def columns(self, schema: pa.Schema) -> DataFrame:
        """The rows as a frame of their columns."""
        if self.known is not None:
            made = self._replace(known=None).columns(self.known.schema).alias(_ROW)
            names = [f"{_ROW}.{name}" if name in self.known.schema.names else name for name in schema.names]
            return self.known.joined(made, _ROW).select(*names)
        return self.frame if self.is_as_it_is else in_tasks(self.frame, self.function, columns_of(schema))

    def bucketed(self, name: str, schema: pa.Schema, function: Callable[..., BatchFunction]) -> DataFrame:
        """The rows as `bucketed` has them; what does not match goes before they are exchanged, and after one pass.

        What a row gets from its match stands in a struct beside it: to make one struct of both takes Java longer than
        all else that it does with the row.

        Args:
            name: of the input.
            schema: its columns.
            function: `bucketed`, but for what stands beside the struct.
        """
        if self.known is None:
            rows = pa.schema([(_BUCKET, pa.int32()), (name, pa.struct(schema))])
            return self.then(function()).columns(rows)
        known, beside = self.known, self.known.beside(schema)
        struct = pa.struct([field for field in known.schema if field.name not in beside])
        rows = pa.schema([(_BUCKET, pa.int32()), (name, struct), *map(known.schema.field, beside)])
        frame = self._replace(known=None).then(function(beside=beside)).columns(rows)
        gained = [field for field in schema.names if field not in known.schema.names]
        matched = [f.struct(*gained).alias(name + _MATCHED)] if gained else []
        return known.joined(frame, name, beside).select(_BUCKET, name, *matched)


class FrameRows(NamedTuple):
    """Rows that frames will give, all with the same columns."""

    schema: pa.Schema
    sources: tuple[Source, ...]


class OnSpark(Engine[FrameRows]):
    """What a step gets, and what it makes, are frames of named columns; keys are brought together in buckets.

    Functions that follow each other on the same rows run in one pass, so that rows meet Java no more than they must.

    Args:
        spark: the session.
        bucket_count: into how many buckets keys are divided; a task takes one at a time into its memory. It takes
            several after another, as most of what is read meets no other rows, and starting a task costs as much as
            many a bucket.
        warehouse: whose tables are read.

    Attributes:
        task_count: how many tasks what is grouped is divided among. Each has as many buckets.
        bucket_count: how many buckets there are.
    """

    name = EngineName.SPARK

    def __init__(self, spark: SparkSession, bucket_count: int, warehouse: Warehouse | None = None) -> None:
        self._spark = spark
        cores = cores_of(spark, bucket_count * BUCKET_BYTES)
        self.task_count = min(bucket_count, max(_TASKS_PER_CORE * cores, bucket_count // _BUCKETS_PER_TASK))
        self.bucket_count = -(-bucket_count // self.task_count) * self.task_count
        self._warehouse = warehouse

    def table(self, table: Table, *names: str, **one_of: Collection[Any]) -> FrameRows:
        """As of `Engine`."""
        if self._warehouse is None:
            raise ValueError(table.name)
        schema = pa.schema([table.arrow_schema.field(name) for name in names])
        return FrameRows(schema, (Source(*self._warehouse.read_in_tasks(table, *names, **one_of)),))

    def made(self, rows: pa.Table) -> FrameRows:
        """As of `Engine`."""
        return _rows(self._spark.createDataFrame(rows, columns_of(rows.schema)), rows.schema)

    def together(self, *rows: FrameRows) -> FrameRows:
        """As of `Engine`; what gets columns of its match has them in its struct then, as the others have."""
        sources = (
            source if source.known is None or source.known.is_semi else _matched(source, each.schema)
            for each in rows
            for source in each.sources
        )
        return FrameRows(rows[0].schema, tuple(sources))

    def mapped(self, rows: FrameRows, function: BatchFunction, schema: pa.Schema) -> FrameRows:
        """As of `Engine`."""
        return FrameRows(schema, tuple(_matched(source, rows.schema).then(function) for source in rows.sources))

    def grouped(
        self,
        key: Sequence[str],
        function: GroupFunction,
        schema: pa.Schema,
        size_bytes: KeySizes | None = None,
        **inputs: FrameRows,
    ) -> FrameRows:
        """As of `Engine`."""
        schemas = {name: rows.schema for name, rows in inputs.items()}
        buckets = self.in_parts(key, size_bytes, **inputs).groupBy(_BUCKET)
        return _rows(buckets.applyInArrow(_of_bucket(function, schemas, schema), columns_of(schema)), schema)

    def in_parts(self, key: Sequence[str], size_bytes: KeySizes | None = None, **inputs: FrameRows) -> DataFrame:
        """Rows of all inputs, each with its bucket and as the struct of its input; one part is what one task gets.

        A bucket goes to the part of its number, modulo parts. There are as many parts as this engine says: a session's
        number may be 200, or 1.
        """
        has_parts_by_number = hasattr(DataFrame, "repartitionById")  # since Spark 4.1; else by the hash of the number
        numbers_of = None if has_parts_by_number else numbers_for_parts(self._spark, self.bucket_count, self.task_count)
        buckets = Buckets.dealing(size_bytes or {}, self.bucket_count, self.task_count)
        frames = [
            source.bucketed(name, rows.schema, partial(bucketed, name, key, buckets, numbers_of))
            for name, rows in inputs.items()
            for source in rows.sources
        ]
        rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
        if has_parts_by_number:
            return rows.repartitionById(self.task_count, _BUCKET)
        return rows.repartition(self.task_count, _BUCKET)

    def of_kind(self, rows: FrameRows, kind: str, *names: str) -> FrameRows:
        """As of `Engine`."""
        schema = kind_schema(rows.schema, kind, names)
        frame = _frame(rows).where(f.col(kind).isNotNull())
        return _rows(frame.select(*(f.col(f"{kind}.{name}") for name in schema.names)), schema)

    def matched(self, rows: FrameRows, known: pa.Table, key: Sequence[str], schema: pa.Schema) -> FrameRows:
        """As of `Engine`; a grouping makes the join behind the pass that gives rows their bucket."""
        frame = self._spark.createDataFrame(known, columns_of(known.schema))
        known = Known(frame, key, rows.schema)
        return FrameRows(schema, tuple(_matched(each, rows.schema)._replace(known=known) for each in rows.sources))

    def joined(self, left: FrameRows, right: FrameRows, key: Sequence[str]) -> FrameRows:
        """As of `Engine`; Spark says in how many parts: told a smaller number than the session has, it takes that."""
        schema = joined_schema(left.schema, right.schema, key)
        return _rows(_frame(left).join(_frame(right), [*key], "left").select(*schema.names), schema)

    @contextmanager
    def kept(self, rows: FrameRows) -> Iterator[FrameRows]:
        """As of `Engine`."""
        frame = _frame(rows).persist()
        try:
            yield _rows(frame, rows.schema)
        finally:
            frame.unpersist()

    def collected(self, rows: FrameRows) -> pa.Table:
        """As of `Engine`."""
        frame = _frame(rows)
        with named_jobs(self._spark):
            batches = frame.toArrow().to_batches()
        return pa.Table.from_batches((typed(batch, rows.schema) for batch in batches), rows.schema)

    def write(self, rows: FrameRows, function: BatchFunction, table: Table, **slice_of: str) -> None:
        """As of `Engine`; the tasks write what they make."""
        if self._warehouse is None:
            raise ValueError(table.name)
        (source,) = rows.sources if len(rows.sources) == 1 else _rows(_frame(rows), rows.schema).sources
        made = _matched(source, rows.schema).then(function)
        self._warehouse.replace_by(made.frame, made.function, table, **slice_of)


def _frame(rows: FrameRows) -> DataFrame:
    """The rows as one frame of their columns."""
    return reduce(DataFrame.unionByName, [source.columns(rows.schema) for source in rows.sources])


def _matched(source: Source, schema: pa.Schema) -> Source:
    """The same rows, of which all count."""
    return source if source.known is None else _rows(source.columns(schema), schema).sources[0]


def _rows(frame: DataFrame, schema: pa.Schema) -> FrameRows:
    """The rows of a frame of such columns."""
    return FrameRows(
        schema, (Source(frame, lambda batches: (typed(rows, schema) for rows in batches), is_as_it_is=True),)
    )


def _of_bucket(
    function: GroupFunction, schemas: Mapping[str, pa.Schema], schema: pa.Schema
) -> Callable[[pa.Table], pa.Table]:
    shown = to_arrow_schema(columns_of(schema))

    def run(in_bucket: pa.Table) -> pa.Table:
        prepare_worker()
        tables = {name: pa.Table.from_batches(_inputs(in_bucket, name, rows), rows) for name, rows in schemas.items()}
        with no_search_for_cycles():
            return pa.Table.from_batches([typed(rows, shown) for rows in function(tables).to_batches()], shown)

    return run


def _inputs(in_bucket: pa.Table, name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one input: a row of a bucket is of one of them, and NULL in the columns of the others."""
    names = [each for each in (name, name + _MATCHED) if each in in_bucket.column_names]
    for batch in in_bucket.select(names).to_batches():
        rows = batch.filter(batch[name].is_valid()) if batch[name].null_count else batch  # a filter copies all it keeps
        if len(rows):
            columns = {field.name: struct.field(field.name) for struct in rows.columns for field in struct.type}
            yield typed(pa.RecordBatch.from_arrays([columns[n] for n in schema.names], [*schema.names]), schema)
