"""The series behind a report's pictures, from the tables of one run.

However long the logs are, the driver gets no more than some hundred points for each of some tens of partitions and
transactional ids, the worst first: Spark cuts what is shown into slices of offsets, and keeps one point of each.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from txn_analysis.frames import collected
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.parallel import in_parallel
from txn_analysis.reading.topics import BROKER_WRITTEN_TOPICS
from txn_analysis.report.pictures import (
    IdTimeline,
    LogPoint,
    MarkerPoint,
    PartitionTimeline,
    Pictures,
    RunPoint,
    StateChange,
)
from txn_analysis.tables import FINDINGS, LOG_BATCHES, LOG_PIECES, PARTITION_HEALTH, RUNS, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from txn_analysis.evidence import Evidence
    from txn_analysis.queries import RunTables
    from txn_analysis.report.model import AuditReport, PartitionItem

MOST_PARTITIONS = 24
MOST_IDS = 24
MOST_CHANGES = 60
MOST_RUNS = 30
LOG_SLICES = 200
MARKER_SLICES = 50

_PLACE = ("topic", "partition")
_SHOWN = "topic string, partition int, from_offset bigint, to_offset bigint"

Row = dict[str, Any]
Place = tuple[str, int]


def pictures_of(report: AuditReport, tables: RunTables) -> Pictures:
    """The series of one report, from the tables of its run."""
    run = tables.finished()
    places, ids = worst_places(report), _worst_ids(report)
    partitions, changes, runs = in_parallel(
        lambda: _partition_timelines(run.evidence, tables.rows(TRANSACTIONS), places, report.run.as_of_ms),
        lambda: collected(state_changes(run.states(), ids)) if ids else [],
        lambda: collected(run_points(tables)),
    )
    return Pictures(partitions, _id_timelines(changes, ids), _run_points(runs))


def worst_places(report: AuditReport) -> dict[Place, tuple[int, int]]:
    """The partitions to show, worst first, each with the offsets to show: as many before its last stable offset as
    after. Partitions with nothing but transactions in progress are not shown.
    """
    partitions = report.partitions_by_place
    verdicts = defaultdict(list)
    for finding in report.findings:
        if finding.verdict is not Verdict.IN_PROGRESS:
            verdicts[finding.topic, finding.partition].append(finding.verdict.severity)
    ranked = sorted(verdicts, key=lambda place: (-max(verdicts[place]), -_hidden(partitions.get(place)), place))
    windows = {place: _window(partitions.get(place)) for place in ranked}
    return dict([(place, window) for place, window in windows.items() if window is not None][:MOST_PARTITIONS])


def _hidden(item: PartitionItem | None) -> int:
    return 0 if item is None else item.hidden_record_count or 0


def _window(item: PartitionItem | None) -> tuple[int, int] | None:
    if item is None or item.first_offset is None or item.end_offset is None or item.last_stable_offset is None:
        return None
    stable, end = item.last_stable_offset, item.end_offset
    return (max(item.first_offset, 2 * stable - end), end) if end > stable else None


def _worst_ids(report: AuditReport) -> list[str]:
    ids = (f.transactional_id for f in report.findings if f.verdict is not Verdict.IN_PROGRESS)
    return list(dict.fromkeys(name for name in ids if name is not None))[:MOST_IDS]


def _batches(evidence: Evidence) -> DataFrame:
    """Per batch: offsets, the time of a broker's clock if it has one (as `reconstruct.fold` sees it), any other."""
    is_marker = F.col("is_control") & F.coalesce(F.col("marker").isin("COMMIT", "ABORT"), F.lit(True))
    is_append_time = F.coalesce(F.col("timestamp_type") == "LogAppendTime", F.lit(False))
    is_moment = is_marker | is_append_time | F.col("topic").isin(*BROKER_WRITTEN_TOPICS)
    return evidence.of(LOG_BATCHES).select(
        *_PLACE,
        "base_offset",
        "last_offset",
        F.when(is_moment, F.col("max_timestamp_ms")).alias("moment_ms"),
        F.col("max_timestamp_ms").alias("timestamp_ms"),
    )


def _pieces(evidence: Evidence) -> DataFrame:
    """The same per piece of a segment, for logs of which no batch was kept (`--depth quick`)."""
    renamed = ("first_offset AS base_offset", "last_moment_ms AS moment_ms", "max_timestamp_ms AS timestamp_ms")
    return evidence.of(LOG_PIECES).selectExpr(*_PLACE, "last_offset", *renamed)


def _markers(transactions: DataFrame) -> DataFrame:
    """The same of every end marker: between them and the pieces, a log of which no batch was kept has a shape."""
    renamed = ("end_offset AS last_offset", "end_offset AS base_offset")
    times = ("end_timestamp_ms AS moment_ms", "end_timestamp_ms AS timestamp_ms")
    return transactions.where(F.col("end_timestamp_ms").isNotNull()).selectExpr(*_PLACE, *renamed, *times)


def log_points(appends: DataFrame, transactions: DataFrame, shown: DataFrame, as_of_ms: int | None) -> DataFrame:
    """Where logs ended when, and their last stable offset then.

    In:  `appends`, batches or pieces; `transactions` of the run; `shown`, which offsets of which partitions.
    Out: one row per slice of the shown offsets that holds a time: `topic`, `partition`, `slice`, `end_offset`,
         `moment_ms` (brokers' clocks) or NULL, `timestamp_ms` (any clock) or NULL, `last_stable_offset`.
    """
    known_ms = F.lit(as_of_ms).cast("bigint")
    timed = (
        appends.join(F.broadcast(shown), [*_PLACE])
        .where((F.col("last_offset") >= F.col("from_offset")) & (F.col("base_offset") < F.col("to_offset")))
        .withColumn("slice", _slice(F.col("last_offset"), LOG_SLICES))
        .withColumn("timestamp_ms", F.when(F.col("timestamp_ms").between(F.lit(1), known_ms), F.col("timestamp_ms")))
    )
    points = timed.groupBy(*_PLACE, "slice").agg(
        (F.max("last_offset") + 1).alias("end_offset"),
        F.max_by("moment_ms", F.when(F.col("moment_ms").isNotNull(), F.col("base_offset"))).alias("moment_ms"),
        F.max_by("timestamp_ms", F.when(F.col("timestamp_ms").isNotNull(), F.col("base_offset"))).alias("timestamp_ms"),
    )
    stable = points.join(_open_in_slices(transactions, shown), [*_PLACE, "slice"])
    was_open = (F.col("txn_start_offset") < F.col("end_offset")) & F.coalesce(
        F.col("marker_offset") >= F.col("end_offset"), F.lit(True)
    )
    held = stable.where(was_open).groupBy(*_PLACE, "slice").agg(F.min("txn_start_offset").alias("held_offset"))
    return points.join(held, [*_PLACE, "slice"], "left").select(
        *_PLACE,
        "slice",
        "end_offset",
        "moment_ms",
        "timestamp_ms",
        F.coalesce("held_offset", "end_offset").alias("last_stable_offset"),
    )


def _slice(offset: Column, count: int) -> Column:
    """Which of `count` slices of the shown offsets an offset lies in, from 0."""
    share = (offset - F.col("from_offset")) / (F.col("to_offset") - F.col("from_offset"))
    return F.greatest(F.least(F.floor(share * count), F.lit(count - 1)), F.lit(0)).cast("int")


def _open_in_slices(transactions: DataFrame, shown: DataFrame) -> DataFrame:
    """One row per transaction and slice in which it was, or may have been, open."""
    reaches = transactions.join(F.broadcast(shown), [*_PLACE]).where(
        (F.col("txn_start_offset") < F.col("to_offset"))
        & F.coalesce(F.col("end_offset") >= F.col("from_offset"), F.lit(True))
    )
    last = F.coalesce("end_offset", F.col("to_offset") - 1)
    slices = F.sequence(_slice(F.col("txn_start_offset"), LOG_SLICES), _slice(last, LOG_SLICES))
    return reaches.select(
        *_PLACE, "txn_start_offset", F.col("end_offset").alias("marker_offset"), F.explode(slices).alias("slice")
    )


def marker_points(transactions: DataFrame, shown: DataFrame) -> DataFrame:
    """End markers.

    In:  `transactions` of the run; `shown`, which offsets of which partitions.
    Out: one row per slice and outcome: `topic`, `partition`, `outcome`, `marker_count`, `offset` and `time_ms` of the
         last of them.
    """
    ended = (
        transactions.where(F.col("end_timestamp_ms").isNotNull())
        .join(F.broadcast(shown), [*_PLACE])
        .where(F.col("end_offset").between(F.col("from_offset"), F.col("to_offset") - 1))
    )
    slices = ended.groupBy(*_PLACE, "outcome", _slice(F.col("end_offset"), MARKER_SLICES).alias("slice"))
    return slices.agg(
        F.count(F.lit(1)).alias("marker_count"),
        F.max("end_offset").alias("offset"),
        F.max_by("end_timestamp_ms", "end_offset").alias("time_ms"),
    )


def state_changes(states: DataFrame, ids: Iterable[str]) -> DataFrame:
    """The last records of some transactional ids: one row per record, copies of it counted once."""
    wanted = states.where(F.col("transactional_id").isin(*ids)).dropDuplicates(["transactional_id", "record_order"])
    newest = Window.partitionBy("transactional_id").orderBy(F.col("record_order").desc())
    latest = wanted.withColumn("age", F.row_number().over(newest)).where(F.col("age") <= MOST_CHANGES)
    return latest.select(
        "transactional_id",
        "age",
        F.coalesce("last_update_ms", "recorded_ms").alias("time_ms"),
        F.when(F.col("is_tombstone"), F.lit("Tombstone")).otherwise(F.col("state")).alias("state"),
        "producer_id",
        "producer_epoch",
        F.coalesce(F.size("topic_partitions"), F.lit(0)).alias("partition_count"),
    )


def run_points(tables: RunTables) -> DataFrame:
    """One row per capture of the cluster up to this run: what its last run found hidden, and how many hung."""
    run = tables.run
    upto = tables.warehouse.read(RUNS).where(
        (F.col("cluster") == run["cluster"]) & (F.col("run_number") <= run["run_number"])
    )
    last = upto.groupBy("capture").agg(F.max_by("run_id", "run_number").alias("run_id"))
    runs = upto.join(last.select("run_id"), "run_id", "left_semi").orderBy(
        F.col("as_of_ms").desc(), F.col("run_number").desc()
    )
    runs = runs.select("run_id", "run_number", "as_of_ms").limit(MOST_RUNS)
    hidden = tables.warehouse.read(PARTITION_HEALTH).where(F.col("open_transaction_count") > 0)
    hidden = hidden.groupBy("run_id").agg(
        F.sum("hidden_record_count").alias("hidden_record_count"),
        F.count_if(F.col("hidden_record_count").isNull()).alias("unknown_count"),
    )
    hanging = tables.warehouse.read(FINDINGS).where(F.col("verdict") == Verdict.HANGING.value)
    hanging = hanging.groupBy("run_id").agg(F.count(F.lit(1)).alias("hanging_count"))
    return runs.join(hidden, "run_id", "left").join(hanging, "run_id", "left")


def _partition_timelines(
    evidence: Evidence, transactions: DataFrame, places: dict[Place, tuple[int, int]], as_of_ms: int | None
) -> tuple[PartitionTimeline, ...]:
    if not places:
        return ()
    rows = [(*place, *window) for place, window in places.items()]
    shown = evidence.warehouse.spark.createDataFrame(rows, _SHOWN)
    batches, markers = in_parallel(
        lambda: _by_place(collected(log_points(_batches(evidence), transactions, shown, as_of_ms))),
        lambda: _by_place(collected(marker_points(transactions, shown))),
    )
    if all(batches[place] for place in places):
        return tuple(_timeline(place, batches[place], markers[place]) for place in places)
    appends = _pieces(evidence).unionByName(_markers(transactions))
    pieces = _by_place(collected(log_points(appends, transactions, shown, as_of_ms)))
    return tuple(_timeline(place, batches[place] or pieces[place], markers[place]) for place in places)


def _timeline(place: Place, points: list[Row], markers: list[Row]) -> PartitionTimeline:
    is_broker_time = any(row["moment_ms"] is not None for row in points)
    clock = "moment_ms" if is_broker_time else "timestamp_ms"
    timed = sorted((row for row in points if row[clock] is not None), key=lambda row: int(row["end_offset"]))
    return PartitionTimeline(
        *place,
        is_broker_time,
        tuple(LogPoint(row[clock], row["end_offset"], row["last_stable_offset"]) for row in timed),
        tuple(
            MarkerPoint(row["time_ms"], row["offset"], row["outcome"], row["marker_count"])
            for row in sorted(markers, key=lambda row: int(row["offset"]))
        ),
    )


def _id_timelines(changes: list[Row], ids: Iterable[str]) -> tuple[IdTimeline, ...]:
    of_id: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(changes, key=lambda row: -int(row["age"])):
        if row["time_ms"] is not None and row["state"] is not None:
            of_id[row["transactional_id"]].append(row)
    return tuple(IdTimeline(name, tuple(_change(row) for row in of_id[name])) for name in ids if of_id[name])


def _change(row: Row) -> StateChange:
    return StateChange(row["time_ms"], row["state"], row["producer_id"], row["producer_epoch"], row["partition_count"])


def _run_points(runs: list[Row]) -> tuple[RunPoint, ...]:
    ordered = sorted(runs, key=lambda row: (row["as_of_ms"] or 0, row["run_number"]))
    counts = ("hidden_record_count", "unknown_count", "hanging_count")
    return tuple(RunPoint(row["run_id"], row["as_of_ms"], *(row[name] or 0 for name in counts)) for row in ordered)


def _by_place(rows: list[Row]) -> dict[Place, list[Row]]:
    found: dict[Place, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["topic"], row["partition"]].append(row)
    return found
