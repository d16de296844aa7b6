"""Functions in Spark's tasks, by calls that every Spark since 4.0 has, and Spark Connect as well.

Nothing here, and nothing that calls it, depends on a setting of the session: it may be somebody else's.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txn_analysis.columns.memory import keep_pages
from txn_analysis.columns.types import nullable_type, typed
from txn_analysis.columns.values import VALUES, BatchFunction, rows_of_values, unpickled, values_in
from txn_analysis.errors import ConfigError, MissingToolError
from txn_analysis.spark.jobs import named_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


OLDEST = (4, 0)
"""Spark 3.5 has no `applyInArrow` of groups, and no `toArrow`."""
_UNKNOWN_CORES = 32
_DYNAMIC_CORE_BYTES = 64 << 20


def check_spark(spark: SparkSession) -> SparkSession:
    """The session, unless its Spark is too old.

    Raises:
        ConfigError: it is no session.
        MissingToolError: it is older than 4.0.
    """
    if not hasattr(spark, "version"):
        raise ConfigError(f"the first argument is a session of Spark, or None; this is {spark!r}")
    version = str(spark.version)
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise MissingToolError(f"this is Spark {version}: give a session of Spark 4.0 or newer")
    return spark


def cores_of(spark: SparkSession, work_bytes: int) -> int:
    """How many tasks run at once; a guess where the session does not say, as in Spark Connect.

    Where executors are allocated dynamically, those that are there say little: Spark asks for more where tasks wait.
    Then each 64 MiB of the work count as a core.
    """
    context: Any = getattr(spark, "sparkContext", None)
    cores = _UNKNOWN_CORES if context is None else int(context.defaultParallelism)
    is_dynamic = spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    return max(cores, work_bytes // _DYNAMIC_CORE_BYTES) if is_dynamic else cores


def work_for_tasks(spark: SparkSession, work: Sequence[Any]) -> DataFrame:
    """One row, and one task, for each piece of work; a task unpickles its own alone, however many there are.

    The work is joined to a range, as rows of a frame lie in as many parts as a session likes.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 no local audit loads PySpark

    rows = rows_of_values(*work).append_column("id", pa.array(range(len(work)), pa.int64()))
    frame = spark.range(0, len(work), 1, max(len(work), 1))
    return frame.join(f.broadcast(spark.createDataFrame(rows, "value BINARY, id BIGINT")), "id").select("value")


def work_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """The pieces of work of the rows of `work_for_tasks` that a task has."""
    return (piece for batch in batches for piece in values_in(batch))


def prepare_worker() -> None:
    """Make the worker process that a task has fit for many tasks; every function in tasks calls this first.

    Spark's worker searches all its objects for cycles after each task. That takes 30 ms for the modules alone, so they
    are taken out of the search.
    """
    keep_pages()
    _search_no_modules(len(sys.modules))


@cache
def _search_no_modules(_count: int) -> None:
    """What is alive when new modules were loaded is modules, nearly all of it."""
    gc.freeze()


def values_of_tasks(frame: DataFrame, function: BatchFunction) -> list[Any]:
    """The values that a function gives in tasks, one for each part of a frame, as rows of `rows_of_values`."""
    with named_jobs(frame.sparkSession):
        rows = in_tasks(frame, function, columns_of(VALUES)).collect()
    return [*unpickled(row["value"] for row in rows)]


def in_tasks(frame: DataFrame, function: BatchFunction, schema: StructType) -> DataFrame:
    """What a function makes of each part of a frame, in the task of that part, as columns of Spark's types."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 no local audit loads PySpark

    shown = to_arrow_schema(schema)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        return (typed(rows, shown) for rows in function(batches))

    return frame.mapInArrow(run, schema)


def columns_of(schema: pa.Schema) -> StructType:
    """The columns of rows as Spark has them: nothing but what a row means says that none is NULL."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 as above

    return from_arrow_schema(pa.schema([(field.name, nullable_type(field.type)) for field in schema]))
