"""The engine of large audits: Spark's tasks, by calls that every Spark since 4.0 has, and Spark Connect as well.

No setting of the session changes what it does, as the session may be somebody else's.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from txn_analysis.columns.parquet import BYTES_BY_PLACE, DIFFERENCES, parquet_of, rows_of_parquet
from txn_analysis.columns.values import packed, unpacked
from txn_analysis.engine.buckets import BUCKET_BYTES, Buckets, gathered, in_buckets, numbers_for_parts
from txn_analysis.engine.engine import Engine, no_search_for_cycles
from txn_analysis.settings import EngineName
from txn_analysis.spark.jobs import named_jobs
from txn_analysis.spark.workers import cores_of, in_tasks, prepare_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from txn_analysis.columns.values import BatchFunction, GroupFunction
    from txn_analysis.engine.engine import KeySizes
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table


# All that Spark sees of rows: Arrow streams without their schema, which would be most of a few rows. How it would turn
# nested columns into its own and back depends on its version, and on settings of the session.
PACKED = pa.schema([("rows", pa.binary())])
"""One row is one batch."""
IN_BUCKETS = pa.schema([("bucket", pa.int32()), ("input", pa.string()), *PACKED])
"""One row is what one batch of an input has of one bucket, see `packer`."""
_PACKED, _IN_BUCKETS = "rows BINARY", "bucket INT, input STRING, rows BINARY"
_ROWS_PER_BATCH = 100_000
_TASKS_PER_CORE = 4
_BUCKETS_PER_TASK = 8
_MUCH_BYTES, _TRIED_BYTES = 64 << 10, 256 << 10  # of Arrow memory
_ZSTD, _SIZE_BYTES = pa.Codec("zstd", compression_level=3), 8
_STREAM = b"\xff" * 4  # how an Arrow stream without its schema begins; no slice has as many bytes


def packer(name: str, key: Sequence[str], buckets: Buckets, numbers_of: Sequence[int] | None = None) -> BatchFunction:
    """Packs the rows of one input.

    Args:
        name: of the input.
        key: the columns of the key.
        buckets: that the keys belong to.
        numbers_of: what Spark sees as the number of each bucket; None for the number itself.
    """

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = DIFFERENCES
        for place, batch in enumerate(gathered(batches, buckets.count)):
            if place == 0 and batch.nbytes >= _MUCH_BYTES:  # else it is the only one, and no file is made of it
                numbers = _shortest(batch)
            slices = in_buckets(batch, key, buckets)
            shown = {bucket if numbers_of is None else numbers_of[bucket]: rows for bucket, rows in slices}
            yield _packed(name, shown, batch.schema, numbers)

    return pack


def _packed(name: str, slices: Mapping[int, pa.RecordBatch], schema: pa.Schema, numbers: str) -> pa.RecordBatch:
    """Few rows are packed as Arrow streams, many as files of Parquet: columns, and bytes of numbers, repeat."""
    head_bytes = schema.serialize().size
    own = [
        _file(rows, numbers) if rows.nbytes >= _MUCH_BYTES else _stream(rows, head_bytes) for rows in slices.values()
    ]
    columns = [pa.array([*slices], pa.int32()), pa.array([name] * len(slices)), pa.array(own, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=IN_BUCKETS)


def _shortest(rows: pa.RecordBatch) -> str:
    """How the numbers of an input are best written, as some rows tell.

    Of records of the state differences are shorter, of pieces of logs and end markers bytes by their place.
    """
    some = rows.slice(0, max(1, len(rows) * _TRIED_BYTES // max(1, rows.nbytes)))
    return min(DIFFERENCES, BYTES_BY_PLACE, key=lambda numbers: len(_file(some, numbers)))


def rows_of_bucket(in_bucket: pa.Table, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """The rows of one bucket, by the name of their input."""
    names = pc.cast(in_bucket["input"], pa.string())
    own = {name: in_bucket.filter(pc.equal(names, name)) for name in schemas}
    return {name: _table(own[name], schema) for name, schema in schemas.items()}


class Source(NamedTuple):
    """Rows that one frame's batches become by one function, which its tasks have yet to run.

    `is_packed`: the frame has these rows packed, and the function does no more than unpack them.
    """

    frame: DataFrame
    function: BatchFunction
    is_packed: bool = False

    def then(self, function: BatchFunction) -> Source:
        """The same, and another function of what the first one makes, in the same pass."""
        first = self.function  # tasks take the functions along, and could not take the frame
        return Source(self.frame, lambda batches: function(first(batches)))

    def in_tasks(self, schema: str) -> DataFrame:
        """What the function makes, of columns that Spark shall see."""
        return in_tasks(self.frame, self.function, schema)


class FrameRows(NamedTuple):
    """Rows that frames will give, all with the same columns."""

    schema: pa.Schema
    sources: tuple[Source, ...]


class OnSpark(Engine[FrameRows]):
    """Groups are brought together in buckets of keys, packed: what is shuffled are few rows of bytes.

    Functions that follow each other on the same rows run in one pass, so that rows meet Java packed alone.

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
        return _unpacked(self._spark.createDataFrame(_packed_table(rows), _PACKED), rows.schema)

    def together(self, *rows: FrameRows) -> FrameRows:
        """As of `Engine`."""
        return FrameRows(rows[0].schema, tuple(source for each in rows for source in each.sources))

    def mapped(self, rows: FrameRows, function: BatchFunction, schema: pa.Schema) -> FrameRows:
        """As of `Engine`."""
        return FrameRows(schema, tuple(source.then(function) for source in rows.sources))

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
        buckets = self.in_parts(key, size_bytes, **inputs).groupBy("bucket")
        return _unpacked(buckets.applyInArrow(_of_bucket(function, schemas, schema), _PACKED), schema)

    def in_parts(self, key: Sequence[str], size_bytes: KeySizes | None = None, **inputs: FrameRows) -> DataFrame:
        """Rows of `IN_BUCKETS`, of all inputs. One part is what one task gets: bucket % parts.

        There are as many parts as this engine says: a session's number may be 200, or 1.
        """
        has_parts_by_number = hasattr(DataFrame, "repartitionById")  # since Spark 4.1; else by the hash of the number
        numbers_of = None if has_parts_by_number else numbers_for_parts(self.bucket_count, self.task_count)
        buckets = Buckets.dealing(size_bytes or {}, self.bucket_count, self.task_count)
        frames = [
            source.then(packer(name, key, buckets, numbers_of)).in_tasks(_IN_BUCKETS)
            for name, rows in inputs.items()
            for source in rows.sources
        ]
        rows = reduce(DataFrame.unionByName, frames)
        if has_parts_by_number:
            return rows.repartitionById(self.task_count, "bucket")
        return rows.repartition(self.task_count, "bucket")

    @contextmanager
    def kept(self, rows: FrameRows) -> Iterator[FrameRows]:
        """As of `Engine`."""
        frame = _frame(rows).persist()
        try:
            yield _unpacked(frame, rows.schema)
        finally:
            frame.unpersist()

    def collected(self, rows: FrameRows) -> pa.Table:
        """As of `Engine`."""
        frame = _frame(rows)
        with named_jobs(self._spark):
            return _table(frame.toArrow(), rows.schema)

    def write(self, rows: FrameRows, function: BatchFunction, table: Table, **slice_of: str) -> None:
        """As of `Engine`; the tasks write what they make."""
        if self._warehouse is None:
            raise ValueError(table.name)
        (source,) = rows.sources if len(rows.sources) == 1 else _unpacked(_frame(rows), rows.schema).sources
        made = source.then(function)
        self._warehouse.replace_by(made.frame, made.function, table, **slice_of)


def _frame(rows: FrameRows) -> DataFrame:
    """The rows as one frame, packed; what a step has packed is not looked at again."""
    frames = [each.frame if each.is_packed else each.then(_packed_each).in_tasks(_PACKED) for each in rows.sources]
    return reduce(DataFrame.unionByName, frames)


def _packed_each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([_streams([batch], batch.schema)], schema=PACKED)


def _packed_table(rows: pa.Table) -> pa.Table:
    return pa.table([_streams(rows.to_batches(_ROWS_PER_BATCH), rows.schema)], schema=PACKED)


def _streams(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Array:
    head_bytes = schema.serialize().size
    return pa.array([_stream(batch, head_bytes) for batch in batches], pa.binary())


def _stream(batch: pa.RecordBatch, head_bytes: int) -> bytes:
    return packed([batch], batch.schema)[head_bytes:]


def _file(rows: pa.RecordBatch, numbers: str) -> bytes:
    plain = parquet_of(rows, numbers)
    return int(plain.size).to_bytes(_SIZE_BYTES, "little") + bytes(_ZSTD.compress(plain, asbytes=True))


def _unpacked(frame: DataFrame, schema: pa.Schema) -> FrameRows:
    """The rows of a frame of packed ones."""

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (rows for batch in batches for rows in _batches(batch["rows"], schema))

    return FrameRows(schema, (Source(frame, unpack, is_packed=True),))


def _table(packed_rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(_batches(packed_rows["rows"], schema), schema)


def _batches(streams: pa.Array, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    head = schema.serialize().to_pybytes()
    # Sessions may hand over large binary values.
    for stream in (one.as_py() for one in pc.cast(streams, pa.binary())):
        yield from _rows_in(stream, head, schema).to_batches()


def _rows_in(rows: bytes, head: bytes, schema: pa.Schema) -> pa.Table:
    if rows.startswith(_STREAM):
        return unpacked(head + rows)
    size_bytes = int.from_bytes(rows[:_SIZE_BYTES], "little")
    return rows_of_parquet(_ZSTD.decompress(pa.py_buffer(rows)[_SIZE_BYTES:], size_bytes), schema)


def _of_bucket(
    function: GroupFunction, schemas: dict[str, pa.Schema], schema: pa.Schema
) -> Callable[[pa.Table], pa.Table]:
    def run(in_bucket: pa.Table) -> pa.Table:
        prepare_worker()
        with no_search_for_cycles():
            return _packed_table(function(rows_of_bucket(in_bucket, schemas)).cast(schema))

    return run
