"""Early warnings on Spark, where the coordinator's records are too many to be held: it only moves rows.

What they warn of is said by the pure functions of `judge.early_warning`, in its tasks.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from txn_analysis.judge.early_warning import (
    MANY,
    Flagged,
    RaisedFrom,
    Warned,
    WarningLine,
    by_application,
    flagged,
    kind_of,
    of_last_record,
    warnings_of,
    worst_of,
)
from txn_analysis.judge.warnings import Abort, Known, LastRecord
from txn_analysis.kafka.transactions import PREPARE_ABORT
from txn_analysis.pipeline.on_spark.state import current_states, decoded
from txn_analysis.storage.frames import collected
from txn_analysis.storage.on_spark.types import record_struct, spark_struct
from txn_analysis.tables._schema import STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from txn_analysis.settings import Settings

Values = tuple[Any, ...]

_KINDS = spark_struct(kind=STRING, transactional_id=STRING)
_FLAGGED, _WARNED = record_struct(Flagged), record_struct(Warned)
_BEFORE = [f"before_{name}" for name in RaisedFrom._fields]


def id_warnings(states: DataFrame, settings: Settings, as_of_ms: int | None) -> list[WarningLine]:
    """What the records of transactional ids warn of, in the order of `WARNINGS`.

    In: `states`, the records that are evidence. Collects of each task and kind the worst applications.
    """
    found = _by_last_record(states, settings, as_of_ms).unionByName(_repeated(states))
    # All ids of one application in one task, which can say how many they are.
    worst = found.repartition("kind", "application").mapInArrow(_worst, _WARNED)
    return warnings_of(Warned(**row) for row in collected(worst))


def _by_last_record(states: DataFrame, settings: Settings, as_of_ms: int | None) -> DataFrame:
    live = current_states(states).where(~F.col("is_tombstone"))
    median = live.agg(F.percentile_approx("timeout_ms", 0.5).alias("median_ms"))
    rows = live.crossJoin(F.broadcast(median)).select("median_ms", "transactional_id", *LastRecord._fields)

    def warned_of(records: Iterable[Values]) -> Iterator[Flagged]:
        for median_ms, transactional_id, *last in records:
            yield from of_last_record(transactional_id, LastRecord(*last), Known(settings, as_of_ms, median_ms))

    return _made_of(rows, warned_of, _FLAGGED)


def _repeated(states: DataFrame) -> DataFrame:
    """One row per id that was timed out, or fenced in the middle of a transaction, many times; see `judge.endings`."""
    known = decoded(states)
    is_abort = F.col("state") == PREPARE_ABORT
    aborts = known.where(is_abort).groupBy("transactional_id").agg(F.count("*").alias("abort_count"))
    often = F.broadcast(aborts.where(F.col("abort_count") >= MANY).select("transactional_id"))
    in_order = Window.partitionBy("transactional_id").orderBy("record_order")
    # Copies and captures hold the same record.
    once = known.join(often, "transactional_id", "left_semi").dropDuplicates(["transactional_id", "record_order"])
    beside = {f"before_{name}": F.lag(name).over(in_order) for name in RaisedFrom._fields} | {
        "after_state": F.lead("state", 2).over(in_order),
        "after_update_ms": F.lead("last_update_ms", 2).over(in_order),
    }
    columns = ("transactional_id", "producer_id", "producer_epoch", *_BEFORE, *Abort._fields)
    kinds = _made_of(once.withColumns(beside).where(is_abort).select(*columns), _kinds, _KINDS)
    counted = kinds.groupBy(*_KINDS.names).agg(F.count("*").alias("score")).where(F.col("score") >= MANY)
    return _made_of(counted, lambda rows: (flagged(*row) for row in rows), _FLAGGED)


def _kinds(rows: Iterable[Values]) -> Iterator[Values]:
    for transactional_id, producer_id, producer_epoch, *columns in rows:
        before, abort = RaisedFrom(*columns[: len(_BEFORE)]), Abort(*columns[len(_BEFORE) :])
        if before.is_raised_to(producer_id, producer_epoch) and (kind := kind_of(abort)) is not None:
            yield kind, transactional_id


def _worst(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = chain.from_iterable(map(_rows, parts))
    yield _batch(worst_of(by_application(Flagged(*row) for row in rows)), _WARNED)


def _made_of(frame: DataFrame, make: Callable[[Iterable[Values]], Iterable[Values]], schema: StructType) -> DataFrame:
    """What a function makes of the rows of a frame, batch by batch."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (_batch(make(_rows(part)), schema) for part in parts)

    return frame.mapInArrow(run, schema)


def _rows(part: pa.RecordBatch) -> Iterator[Values]:
    return zip(*[column.to_pylist() for column in part.columns], strict=True)


def _batch(rows: Iterable[Values], schema: StructType) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    fields = to_arrow_schema(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=fields)
