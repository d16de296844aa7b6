"""Early warning: what does not hang yet and will, and whose; from the open transactions and the coordinator's state.

Counted by application (`judge.applications`), so that a thousand ids of one job are one line. What is collected is
bounded: of each kind the worst applications, and how many ids there are in all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from txn_analysis.frames import collected
from txn_analysis.judge.applications import application_of
from txn_analysis.judge.state_frames import current_states
from txn_analysis.judge.warnings import OF_ABORTS, OF_LAST_RECORDS, WARNINGS
from txn_analysis.judge.warnings.open_transaction_near_bound import OPEN_TRANSACTION_NEAR_BOUND, is_near
from txn_analysis.judge.warnings.warning import Known
from txn_analysis.tables._schema import BIGINT, STRING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from txn_analysis.config import Settings
    from txn_analysis.judge.judgement import Judgement

Row = dict[str, Any]

MOST_APPLICATIONS = 10
_MANY = 3
_BY_KIND = {warning.kind: warning for warning in WARNINGS}
_ORDER = {warning.kind: number for number, warning in enumerate(WARNINGS)}
_FLAGGED = StructType(
    [StructField("kind", STRING), StructField("transactional_id", STRING), StructField("score", BIGINT)]
)
_GROUPED = StructType([*_FLAGGED.fields, StructField("application", STRING), StructField("framework", STRING)])


def id_warnings(states: DataFrame, settings: Settings, as_of_ms: int | None) -> list[Row]:
    """What the records of transactional ids warn of, as plain data in the order of `WARNINGS`.

    In: `states`, the records that are evidence.
    """
    known = Known(settings, F.lit(as_of_ms).cast("bigint"))
    flagged = _flagged(current_states(states), known).unionByName(_repeated(states))
    rows = sorted(collected(_worst(flagged)), key=lambda row: (_ORDER[row["kind"]], -row["score"], row["application"]))
    return [_warning(row) for row in rows]


def open_warnings(judged: Iterable[Judgement], settings: Settings) -> list[Row]:
    """Of the judged open transactions those that will soon be late."""
    near = [(-(j.facts.lateness.late_by_ms or 0), j.facts) for j in judged if is_near(j.facts.lateness, settings)]
    return [
        {
            "kind": OPEN_TRANSACTION_NEAR_BOUND.kind,
            "subject": facts.where,
            "example": None if facts.coordinator is None else facts.coordinator.transactional_id,
            "text": OPEN_TRANSACTION_NEAR_BOUND.text.format(start=facts.open.txn_start_offset, score=left_ms),
            "count": 1,
        }
        for left_ms, facts in sorted(near, key=lambda found: found[0])[:MOST_APPLICATIONS]
    ]


def _warning(row: Row) -> Row:
    whose = "" if row["framework"] is None else f" ({row['framework']})"
    return {
        "kind": row["kind"],
        "subject": row["application"],
        "example": row["worst_id"],
        "text": _BY_KIND[row["kind"]].text.format(score=row["score"]) + whose,
        "count": row["id_count"],
    }


def _flagged(current: DataFrame, known: Known) -> DataFrame:
    """One row per warning about an id's last record; a higher score is worse."""
    live = current.where(~F.col("is_tombstone"))
    median = live.agg(F.percentile_approx("timeout_ms", 0.5).alias("median_ms"))
    found = [
        F.when(w.when(known), F.struct(F.lit(w.kind).alias("kind"), w.score(known).cast("bigint").alias("score")))
        for w in OF_LAST_RECORDS
    ]
    rows = live.crossJoin(F.broadcast(median))
    exploded = rows.select("transactional_id", F.explode(F.array_compact(F.array(*found))).alias("w"))
    return exploded.select("w.kind", "transactional_id", "w.score")


def _repeated(states: DataFrame) -> DataFrame:
    """One row per id that was timed out, or fenced in the middle of a transaction, many times; see `judge.endings`."""
    known = states.where(F.col("transactional_id").isNotNull())
    aborts = known.where("state = 'PrepareAbort'").groupBy("transactional_id").agg(F.count("*").alias("abort_count"))
    often = F.broadcast(aborts.where(F.col("abort_count") >= _MANY).select("transactional_id"))
    in_order = Window.partitionBy("transactional_id").orderBy("record_order")
    before = F.lag(F.struct("state", "producer_epoch", "producer_id")).over(in_order)
    after = F.lead(F.struct("state", "last_update_ms"), 2).over(in_order)
    # Copies and captures hold the same record.
    once = known.join(often, "transactional_id", "left_semi").dropDuplicates(["transactional_id", "record_order"])
    rows = once.withColumn("before", before).withColumn("after", after).where("state = 'PrepareAbort'")
    was_raised = F.expr(
        "before.state = 'Ongoing' AND before.producer_id = producer_id AND producer_epoch > before.producer_epoch"
    )
    kind = F.coalesce(*[F.when(warning.when(), F.lit(warning.kind)) for warning in OF_ABORTS])
    counted = rows.where(was_raised).withColumn("kind", kind).where("kind IS NOT NULL")
    return counted.groupBy("kind", "transactional_id").agg(F.count("*").alias("score")).where(F.col("score") >= _MANY)


def _worst(flagged: DataFrame) -> DataFrame:
    """Of each kind the applications that are worst, with their worst id and how many ids they have."""
    named = flagged.select(*_FLAGGED.names).mapInArrow(_with_application, _GROUPED)
    grouped = named.groupBy("kind", "application", "framework").agg(
        F.count("*").alias("id_count"),
        F.max("score").alias("score"),
        F.min_by("transactional_id", F.struct(-F.col("score"), "transactional_id")).alias("worst_id"),
    )
    rank = F.row_number().over(Window.partitionBy("kind").orderBy(F.desc("score"), F.desc("id_count"), "application"))
    return grouped.withColumn("rank", rank).where(F.col("rank") <= MOST_APPLICATIONS)


def _with_application(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(_GROUPED)
    for part in parts:
        rows = part.to_pylist()
        for row in rows:
            owner = application_of(row["transactional_id"])
            row |= {"application": owner.name, "framework": owner.framework}
        yield pa.RecordBatch.from_pylist(rows, schema=schema)
