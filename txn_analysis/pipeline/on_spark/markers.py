"""End markers on Spark: brought to the open transactions of their producers, and held against the state.

Markers are as many as transactions: none is collected. The tasks of Spark find those whose decision the state has; what
is left is read by the pure functions of `coordinator.fit`, and only sums travel.
"""

from __future__ import annotations

import pickle
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F

from txn_analysis.coordinator.end_markers import COMMIT, EndMarker
from txn_analysis.coordinator.fit import DECIDED_WITHIN_MS, MarkerSums, sums_of_producer
from txn_analysis.coordinator.history import by_id, in_order
from txn_analysis.kafka.transactions import COMPLETE_COMMIT, COMPLETED, NAMED, PREPARE_COMMIT, TopicPartition
from txn_analysis.logic import UNBOUNDED_MS
from txn_analysis.pipeline.on_spark.state import PICKLED, decoded, histories, named_ids, records_in, told
from txn_analysis.storage.on_spark.types import spark_struct
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

    from txn_analysis.coordinator.fit import StateAtHand

PLACE = ("topic", "partition", "producer_id")
_HOMES = spark_struct(
    state_partition=INT, last_moment_ms=BIGINT, gap_end_ms=BIGINT, leader_epoch=INT, is_export=BOOLEAN
)


def end_markers(ended: DataFrame, health: DataFrame) -> DataFrame:
    """The end markers of the logs of one run, in the fields of `EndMarker`.

    In:  `ended` and `health`, rows of `ended_transactions` and of `partition_health` that are one run's.
    Out: one row per end marker, with its topic, partition and producer id; one whose transaction began in another piece
         of the log can stand there a second time, without its data.
    """
    kind = F.when(F.col("outcome").isin(COMMIT, "ABORT"), F.col("outcome"))
    of_ended = ended.select(
        *PLACE,
        F.col("end_offset").alias("offset"),
        kind.alias("kind"),
        F.col("end_timestamp_ms").alias("at_ms"),
        F.col("end_producer_epoch").alias("producer_epoch"),
        "coordinator_epoch",
        F.lit(True).alias("has_data"),
    )
    found = health.select("topic", "partition", F.explode("bare_markers").alias("m"))
    epochs = ("m.producer_epoch", "m.coordinator_epoch")
    named = (F.col("m.marker").alias("kind"), F.col("m.timestamp_ms").alias("at_ms"))
    bare = found.select(
        "topic", "partition", "m.producer_id", "m.offset", *named, *epochs, F.lit(False).alias("has_data")
    )
    return of_ended.unionByName(bare)


def with_markers(asked: DataFrame, markers: DataFrame) -> DataFrame:
    """The rows that are asked about, each with the end markers of its producer in its partition as `end_markers`."""
    keys = F.broadcast(asked.select(*PLACE).distinct())
    own = markers.join(keys, list(PLACE), "left_semi").groupBy(*PLACE)
    packed = own.agg(F.collect_list(F.struct(*EndMarker._fields)).alias("end_markers"))
    return asked.join(packed, list(PLACE), "left")


def markers_in(row: dict[str, Any]) -> list[EndMarker]:
    """The `end_markers` of one row."""
    return [EndMarker(**marker) for marker in row["end_markers"] or ()]


def marker_sums(markers: DataFrame, states: DataFrame, state: StateAtHand, asked: Collection[int]) -> MarkerSums:
    """What the COMMIT markers of all logs say of the state, see `coordinator.fit`.

    In: `markers`, see `end_markers`; `states`, the records that are evidence; `asked`, producer ids of open
    transactions. Collects one sum for each producer that has a marker without a decision where there might be one.
    """
    commits = markers.where(F.col("kind") == COMMIT)
    unserved = _without_decision(commits, states, state)
    suspects = _that_may_speak(unserved, states, state).select(*PLACE).distinct().persist()
    try:
        groups = with_markers(suspects, markers)
        producers = suspects.select("producer_id").distinct()
        records = histories(producers, states).groupBy("asked_producer_id")
        found = groups.groupBy("producer_id").cogroup(records).applyInArrow(_summer(state, frozenset(asked)), PICKLED)
        sums = _added_up(told(found.mapInArrow(_add_up, PICKLED)))
        if not sums.contradicted_count:
            return sums
        # Only where something contradicts, how much confirms decides anything.
        others = commits.join(F.broadcast(suspects), list(PLACE), "left_anti")
        confirmed_count = others.count() - _without_decision(others, states, state).count()
        return sums.plus(MarkerSums(confirmed_count))
    finally:
        suspects.unpersist()


def _decided_commits(states: DataFrame) -> DataFrame:
    """One row per commit and partition: from when to when its marker can have been written, at the latest."""
    in_order_of_id = Window.partitionBy("transactional_id").orderBy("record_order")
    columns = ("transactional_id", "record_order", "state", "recorded_ms", "last_update_ms", "topic_partitions")
    known = decoded(states)
    once = known.select(*columns, named_ids("producer_id", "previous_producer_id").alias("producer_ids"))
    moment = F.struct("state", "recorded_ms", "last_update_ms")
    rows = once.dropDuplicates(["transactional_id", "record_order"]).select(
        "*", F.lead(moment, 1).over(in_order_of_id).alias("n1"), F.lead(moment, 2).over(in_order_of_id).alias("n2")
    )
    commits = rows.where(F.col("state") == PREPARE_COMMIT)
    return commits.select(
        F.explode(F.array_distinct("producer_ids")).alias("producer_id"),
        F.explode("topic_partitions").alias("tp"),
        F.greatest("recorded_ms", "last_update_ms").alias("prepared_ms"),
        F.coalesce(_completed_ms(), F.lit(UNBOUNDED_MS)).alias("completed_ms"),
    ).select("producer_id", "tp.topic", "tp.partition", "prepared_ms", "completed_ms")


def _completed_ms() -> Column:
    """When the Complete record was written at the latest, as `history.written_by_ms`; NULL where nothing tells."""
    after = F.when(~F.col("n2.state").isin(*COMPLETED), F.greatest("n2.recorded_ms", "n2.last_update_ms"))
    dumped = F.when(F.col("n1.recorded_ms").isNotNull(), F.greatest("n1.recorded_ms", "n1.last_update_ms"))
    return F.when(F.col("n1.state") == COMPLETE_COMMIT, F.coalesce(dumped, after))


def _without_decision(commits: DataFrame, states: DataFrame, state: StateAtHand) -> DataFrame:
    skew_ms = state.max_clock_skew_ms
    decided = _decided_commits(states)
    is_its_own = (
        (commits["producer_id"] == decided["producer_id"])
        & (commits["topic"] == decided["topic"])
        & (commits["partition"] == decided["partition"])
        & (decided["prepared_ms"] <= commits["at_ms"] + skew_ms)
        & (commits["at_ms"] - skew_ms <= decided["completed_ms"])
    )
    return commits.join(decided, is_its_own, "left_anti")


def _that_may_speak(unserved: DataFrame, states: DataFrame, state: StateAtHand) -> DataFrame:
    """The markers that may contradict the state, or be later than it: a rough look; `coordinator.fit` looks exactly."""
    spark, skew_ms = unserved.sparkSession, state.max_clock_skew_ms
    since_ms = -UNBOUNDED_MS if state.known_since_ms is None else state.known_since_ms
    homes = states.select(F.explode(named_ids(*NAMED)).alias("producer_id"), "state_partition").distinct()
    placed = homes.join(F.broadcast(_homes(spark, state)), "state_partition", "left")
    rows = unserved.join(placed, "producer_id", "left")
    at_ms = F.col("at_ms")
    is_young = at_ms >= since_ms
    is_whole = F.col("gap_end_ms").isNull() | (F.col("gap_end_ms") < at_ms - DECIDED_WITHIN_MS)
    is_ahead = F.col("coordinator_epoch") > F.col("leader_epoch")
    is_reached = F.col("last_moment_ms") >= at_ms + skew_ms
    is_later = F.col("last_moment_ms").isNull() | (F.col("last_moment_ms") + skew_ms < at_ms)
    last = [chain.last_moment_ms for chain in state.chains.values() if chain.last_moment_ms is not None]
    gaps = [chain.gap_end_ms for chain in state.chains.values() if chain.gap_end_ms is not None]
    is_kept = is_young | (at_ms - DECIDED_WITHIN_MS > max(gaps, default=-UNBOUNDED_MS // 2))
    is_after_all = is_young & (at_ms > max(last, default=-UNBOUNDED_MS // 2) + skew_ms)
    of_unknown = (F.lit(state.is_whole) & is_kept) | is_after_all
    of_known = (is_reached & (F.coalesce(is_ahead, F.lit(False)) | is_whole | F.col("is_export"))) | is_later
    return rows.where(
        F.when(F.col("state_partition").isNull(), of_unknown).otherwise(F.coalesce(of_known, F.lit(True)))
    )


def _homes(spark: SparkSession, state: StateAtHand) -> DataFrame:
    rows = [
        (n, chain.last_moment_ms, chain.gap_end_ms, chain.leader_epoch, n in state.exports)
        for n, chain in sorted(state.chains.items())
    ]
    return spark.createDataFrame(rows, _HOMES)


def _summer(state: StateAtHand, asked: frozenset[int]) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def sum_up(groups: pa.Table, history: pa.Table) -> pa.Table:
        """All markers of one producer in some partitions, and all records of the ids that have, or had, it."""
        rows = groups.to_pylist()
        if not rows:
            return pa.table({"pickled": pa.array([], pa.binary())})
        markers = {TopicPartition(row["topic"], row["partition"]): markers_in(row) for row in rows}
        known = [in_order(found) for found in by_id(records_in(history)).values()]
        sums = sums_of_producer(rows[0]["producer_id"], markers, known, state, asked)
        return pa.table({"pickled": pa.array([pickle.dumps(sums)], pa.binary())})

    return sum_up


def _add_up(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    sums = _added_up(pickle.loads(each) for part in parts for each in part.column("pickled").to_pylist())  # noqa: S301 our own tasks wrote it
    yield pa.record_batch({"pickled": pa.array([pickle.dumps(sums)], pa.binary())})


def _added_up(parts: Iterable[MarkerSums]) -> MarkerSums:
    return reduce(MarkerSums.plus, parts, MarkerSums())


def is_foreign(states: DataFrame, markers: DataFrame, known_since_ms: int | None) -> bool:
    """Transactions ended in the logs not long ago, and the state knows none of their producers.

    In: `states`, the records that are evidence; `markers`, see `end_markers`.
    """
    recent = markers if known_since_ms is None else markers.where(F.col("at_ms") >= known_since_ms)
    ended = recent.select("producer_id").distinct()
    named = F.explode(named_ids(*NAMED))
    known = states.select(named.alias("producer_id"), F.lit(True).alias("is_known")).distinct()
    counts = ended.join(known, "producer_id", "left").agg(F.count("*"), F.count("is_known")).collect()[0]
    return bool(counts[0] > 0 and counts[1] == 0)
