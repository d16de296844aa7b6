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
from txn_analysis.judge.causes import EXHAUSTED_EPOCH
from txn_analysis.judge.coordinator import current_states
from txn_analysis.judge.endings import TAKEN_OVER_WITHIN_MS
from txn_analysis.judge.facts import NEVER_TIMES_OUT_MS
from txn_analysis.judge.words import topic_partition
from txn_analysis.tables._schema import BIGINT, STRING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from txn_analysis.config import Settings

Row = dict[str, Any]

MOST_APPLICATIONS = 10
_NEAR = 0.75
_EPOCHS_LEFT = 1_000
_TIMES_THE_MEDIAN = 10
_EXPIRES_WITHIN_MS = 86_400_000
_MANY = 3

_WORDS = {
    "transaction_near_timeout": "{share} % of its timeout is over and the coordinator has nothing decided",
    "timeout_above_maximum": "timeout of {score} ms, above transaction.max.timeout.ms: a hang is seen that much later",
    "timeout_outlier": "timeout of {score} ms, more than 10 times the median: it can hold partitions for that long",
    "never_times_out": "it never times out: a two-phase commit, which only its owner may end",
    "epoch_near_exhaustion": "epoch {score}: at 32766 it gets a new producer id",
    "about_to_expire": "not used for {score} ms: the coordinator will forget it within a day, and fail its next use",
    "many_timeouts": "{score} of its transactions were timed out by the coordinator",
    "many_fencings": "{score} times a new instance took it over in the middle of a transaction",
}
KINDS = ("open_transaction_near_bound", *_WORDS)
_FLAGGED = StructType(
    [StructField("kind", STRING), StructField("transactional_id", STRING), StructField("score", BIGINT)]
)
_GROUPED = StructType([*_FLAGGED.fields, StructField("application", STRING), StructField("framework", STRING)])


def id_warnings(states: DataFrame, settings: Settings, as_of_ms: int | None) -> list[Row]:
    """What the records of transactional ids warn of, as plain data in the order of `KINDS`.

    In: `states`, the records that are evidence.
    """
    flagged = _flagged(current_states(states), settings, as_of_ms).unionByName(_repeated(states))
    rows = sorted(
        collected(_worst(flagged)), key=lambda row: (KINDS.index(row["kind"]), -row["score"], row["application"])
    )
    return [_warning(row) for row in rows]


def open_warnings(judged: list[Row], settings: Settings) -> list[Row]:
    """Of the judged open transactions those that will soon be late."""
    near = [r for r in judged if r["is_late"] is False and r["late_by_ms"] > -(1 - _NEAR) * settings.late_after_ms]
    return [
        {
            "kind": KINDS[0],
            "subject": topic_partition(row),
            "example": row["transactional_id"],
            "text": f"open from offset {row['txn_start_offset']}, late in {-row['late_by_ms']} ms",
            "count": 1,
        }
        for row in sorted(near, key=lambda row: -row["late_by_ms"])[:MOST_APPLICATIONS]
    ]


def _warning(row: Row) -> Row:
    whose = "" if row["framework"] is None else f" ({row['framework']})"
    return {
        "kind": row["kind"],
        "subject": row["application"],
        "example": row["worst_id"],
        "text": _WORDS[row["kind"]].format(score=row["score"], share=row["score"]) + whose,
        "count": row["id_count"],
    }


def _flagged(current: DataFrame, settings: Settings, as_of_ms: int | None) -> DataFrame:
    """One row per warning about an id's last record; a higher score is worse."""
    live = current.where(~F.col("is_tombstone"))
    median = live.agg(F.percentile_approx("timeout_ms", 0.5).alias("median_ms"))
    rows = live.crossJoin(F.broadcast(median))
    as_of = F.lit(as_of_ms).cast("bigint")
    age, unused = as_of - F.col("start_ms"), as_of - F.col("last_update_ms")
    share = F.floor(age * 100 / F.col("timeout_ms"))
    max_ms, timeout_ms = settings.transaction_max_timeout_ms, F.col("timeout_ms")
    is_timed = timeout_ms != NEVER_TIMES_OUT_MS
    is_idle = F.col("state").isin("Empty", "CompleteCommit", "CompleteAbort")
    expires_ms = settings.transactional_id_expiration_ms - _EXPIRES_WITHIN_MS
    kinds: dict[str, tuple[Column, Column]] = {
        "transaction_near_timeout": (
            (F.col("state") == "Ongoing") & is_timed & (share >= int(_NEAR * 100)) & (share < 100),
            share,
        ),
        "timeout_above_maximum": (is_timed & (timeout_ms > max_ms), timeout_ms),
        "timeout_outlier": (
            is_timed & (timeout_ms <= max_ms) & (timeout_ms > F.col("median_ms") * _TIMES_THE_MEDIAN),
            timeout_ms,
        ),
        "never_times_out": (~is_timed, timeout_ms),
        "epoch_near_exhaustion": (
            F.col("producer_epoch") >= EXHAUSTED_EPOCH - _EPOCHS_LEFT,
            F.col("producer_epoch").cast("bigint"),
        ),
        "about_to_expire": (is_idle & (unused > expires_ms), unused),
    }
    found = [
        F.when(holds, F.struct(F.lit(kind).alias("kind"), score.cast("bigint").alias("score")))
        for kind, (holds, score) in kinds.items()
    ]
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
    was_due = F.coalesce(F.col("last_update_ms") >= F.col("start_ms") + F.col("timeout_ms"), F.lit(False))
    was_taken = (F.col("after.state") == "Empty") & (
        F.col("after.last_update_ms") - F.col("last_update_ms") <= TAKEN_OVER_WITHIN_MS
    )
    kind = F.when(was_due, "many_timeouts").when(was_taken, "many_fencings")
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
