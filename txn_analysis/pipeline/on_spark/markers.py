"""End markers on Spark: brought to the open transactions of their producers, and held against the state.

Markers are as many as transactions: none is collected. The tasks of Spark find those whose decision the state has; what
is left is read by the pure functions of `coordinator.fit`, and only sums travel.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from txn_analysis.coordinator.end_markers import ABORT, COMMIT, EndMarker
from txn_analysis.coordinator.fit import MarkerSums
from txn_analysis.coordinator.history import by_id, in_order
from txn_analysis.coordinator.marker_checks import Producer, sums_of_producer
from txn_analysis.coordinator.state_at_hand import DECIDED_WITHIN_MS
from txn_analysis.kafka.transactions import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    COMPLETED,
    NAMED,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    TopicPartition,
)
from txn_analysis.logic import UNBOUNDED_MS, latest
from txn_analysis.pipeline.on_spark.state import PICKLED, decoded, histories, named_ids, records_in, told
from txn_analysis.storage.on_spark.types import spark_struct
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.coordinator.state_at_hand import StateAtHand

PLACE = ("topic", "partition", "producer_id")
_HOMES = spark_struct(
    state_partition=INT,
    last_moment_ms=BIGINT,
    last_until_as_of_ms=BIGINT,
    gap_end_ms=BIGINT,
    leader_epoch=INT,
    is_export=BOOLEAN,
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
        F.col("max_producer_epoch").alias("data_epoch"),
    )
    found = health.select("topic", "partition", F.explode("bare_markers").alias("m"))
    epochs = ("m.producer_epoch", "m.coordinator_epoch")
    named = (F.col("m.marker").alias("kind"), F.col("m.timestamp_ms").alias("at_ms"))
    of_data = F.lit(False).alias("has_data"), F.lit(None).cast("int").alias("data_epoch")
    bare = found.select("topic", "partition", "m.producer_id", "m.offset", *named, *epochs, *of_data)
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
    """What the end markers of all logs say of the state, see `coordinator.marker_checks`.

    In: `markers`, see `end_markers`; `states`, the records that are evidence; `asked`, producer ids of open
    transactions. Collects one sum for each producer that has a marker which may speak against the state, and for each
    task.
    """
    not_aborts = markers.where(F.col("kind").isNull() | (F.col("kind") == COMMIT)).persist()
    commits, decided = not_aborts.where(F.col("kind") == COMMIT), _decided(states).persist()
    completed = _completed(states).persist()
    unsure = _unsure(_unsure(not_aborts, decided, state), completed, state).persist()
    unserved = _with_homes(_unserved(not_aborts, decided, state), states, state)
    may_be_later = _with_homes(not_aborts, states, state).where(_may_be_later(state))
    # Markers of unprinted kind of unknown producers are asked one by one below: no decision can be theirs.
    is_one_by_one = F.col("kind").isNull() & F.col("state_partition").isNull()
    speaking = unserved.where(_may_contradict(state) & ~is_one_by_one).select("producer_id")
    # One without data may repeat another that is sure.
    bare = unsure.where(~F.col("has_data")).select("producer_id")
    speaking = speaking.unionByName(may_be_later.select("producer_id")).unionByName(bare).distinct()
    # Of these producers every marker: any of them may show transaction version 2.
    suspects = markers.join(F.broadcast(speaking), "producer_id", "left_semi").select(*PLACE).distinct().persist()
    try:
        groups = with_markers(suspects, markers)
        producers = suspects.select("producer_id").distinct()
        records = histories(producers, states).groupBy("asked_producer_id")
        found = groups.groupBy("producer_id").cogroup(records).applyInArrow(_summer(state, frozenset(asked)), PICKLED)
        sums = _added_up(told(found.mapInArrow(_add_up, PICKLED)))
        unprinted = _with_homes(not_aborts.where(F.col("kind").isNull()), states, state)
        of_unknown = unprinted.where(F.col("state_partition").isNull())
        sums = sums.plus(_added_up(told(of_unknown.mapInArrow(_unprinted(state), PICKLED))))
        is_unsure = sums.is_unsure or not unsure.where("has_data").isEmpty()
        sure_ms = latest(*(_newest_sure_ms(not_aborts, each, state) for each in (decided, completed)))
        sums = replace(sums, is_unsure=is_unsure, sure_ms=sure_ms)
        if not sums.against.marker_count and not sums.more_if_nothing_was_lost.marker_count:
            return sums
        # Only where something contradicts, how much is confirmed decides anything.
        others = commits.join(F.broadcast(suspects), list(PLACE), "left_anti")
        confirmed_count = others.count() - _unserved(others, decided, state).count()
        return sums.plus(MarkerSums(confirmed_count))
    finally:
        for frame in (suspects, unsure, completed, decided, not_aborts):
            frame.unpersist()


def _decided(states: DataFrame) -> DataFrame:
    """One row per decision and partition, see `marker_checks.Decided`; `next_ms` NULL where its id has no next one."""
    in_order_of_id = Window.partitionBy("transactional_id").orderBy("record_order")
    columns = ("transactional_id", "record_order", "state", "recorded_ms", "last_update_ms", "topic_partitions")
    known = decoded(states)
    once = known.select(*columns, named_ids("producer_id", "previous_producer_id").alias("producer_ids"))
    moment = F.struct("state", "recorded_ms", "last_update_ms")
    rows = once.dropDuplicates(["transactional_id", "record_order"]).select(
        "*", F.lead(moment, 1).over(in_order_of_id).alias("n1"), F.lead(moment, 2).over(in_order_of_id).alias("n2")
    )
    is_its_own = F.col("n1.state") == F.when(F.col("state") == PREPARE_COMMIT, COMPLETE_COMMIT).otherwise(
        COMPLETE_ABORT
    )
    next_ms = F.when(F.col("n1").isNotNull(), F.coalesce(_next_ms(), F.lit(UNBOUNDED_MS)))
    return (
        rows.where(F.col("state").isin(*PREPARED))
        .select(
            F.when(F.col("state") == PREPARE_COMMIT, COMMIT).otherwise(ABORT).alias("decided_kind"),
            F.explode(F.array_distinct("producer_ids")).alias("producer_id"),
            "topic_partitions",
            F.greatest("recorded_ms", "last_update_ms").alias("prepared_ms"),
            next_ms.alias("next_ms"),
            F.when(is_its_own, next_ms).otherwise(F.lit(UNBOUNDED_MS)).alias("completed_ms"),
        )
        .withColumn("tp", F.explode("topic_partitions"))
        .select("decided_kind", "producer_id", "tp.topic", "tp.partition", "prepared_ms", "next_ms", "completed_ms")
    )


def _completed(states: DataFrame) -> DataFrame:
    """The Complete records whose Prepare is gone, as `_decided` but of unknown partitions."""
    in_order_of_id = Window.partitionBy("transactional_id").orderBy("record_order")
    rows = decoded(states).dropDuplicates(["transactional_id", "record_order"])
    n1 = F.lead(F.struct("state", "recorded_ms", "last_update_ms"), 1).over(in_order_of_id)
    rows = rows.withColumn("before", F.lag("state", 1).over(in_order_of_id)).withColumn("n1", n1)
    rows = rows.where(F.col("state").isin(*COMPLETED))
    is_commit = F.col("state") == COMPLETE_COMMIT
    prepared = F.when(is_commit, PREPARE_COMMIT).otherwise(PREPARE_ABORT)
    dated = F.when(F.col("recorded_ms").isNotNull(), F.greatest("recorded_ms", "last_update_ms"))
    after = F.when(~F.col("n1.state").isin(*COMPLETED), F.greatest("n1.recorded_ms", "n1.last_update_ms"))
    return rows.where(F.col("before").isNull() | (F.col("before") != prepared)).select(
        F.when(is_commit, COMMIT).otherwise(ABORT).alias("decided_kind"),
        F.explode(F.array_distinct(named_ids("producer_id", "previous_producer_id"))).alias("producer_id"),
        F.col("last_update_ms").alias("prepared_ms"),
        F.coalesce(dated, after, F.lit(UNBOUNDED_MS)).alias("next_ms"),
    )


def _next_ms() -> Column:
    """When the next record was written at the latest, as `history.written_by_ms`; NULL where nothing tells."""
    after = F.when(~F.col("n2.state").isin(*COMPLETED), F.greatest("n2.recorded_ms", "n2.last_update_ms"))
    is_dated = F.col("n1.recorded_ms").isNotNull() | ~F.coalesce(F.col("n1.state").isin(*COMPLETED), F.lit(False))
    return F.coalesce(F.when(is_dated, F.greatest("n1.recorded_ms", "n1.last_update_ms")), after)


def _is_served(markers: DataFrame, decided: DataFrame, until: Column, state: StateAtHand) -> Column:
    """A marker can be that of a decision up to a moment; of either kind where none is printed."""
    skew_ms = state.max_clock_skew_ms
    is_in_its_place = [markers[column] == decided[column] for column in PLACE if column in decided.columns]
    is_kind = markers["kind"].isNull() | (markers["kind"] == decided["decided_kind"])
    is_in_time = (decided["prepared_ms"] <= markers["at_ms"] + skew_ms) & (markers["at_ms"] - skew_ms <= until)
    return reduce(Column.__and__, is_in_its_place, is_kind & is_in_time)


def _unserved(markers: DataFrame, decided: DataFrame, state: StateAtHand) -> DataFrame:
    """The markers for which the state has no decision; of unprinted kind also those whose decision is an id's last."""
    until = F.when(markers["kind"].isNull(), decided["next_ms"]).otherwise(decided["completed_ms"])
    return markers.join(decided, _is_served(markers, decided, until, state), "left_anti")


def _newest_sure_ms(markers: DataFrame, decided: DataFrame, state: StateAtHand) -> int | None:
    """As `MarkerSums.sure_ms`, of all markers."""
    sure = markers.join(decided, _is_sure(markers, decided, state), "left_semi")
    newest_ms: int | None = sure.agg(F.max("at_ms")).collect()[0][0]
    return newest_ms


def _unsure(markers: DataFrame, decided: DataFrame, state: StateAtHand) -> DataFrame:
    """The markers that none of some decisions surely confirms."""
    return markers.join(decided, _is_sure(markers, decided, state), "left_anti")


def _is_sure(markers: DataFrame, decided: DataFrame, state: StateAtHand) -> Column:
    """As `marker_checks.Producer.is_sure`."""
    within_ms = DECIDED_WITHIN_MS + state.max_clock_skew_ms
    moments = decided["prepared_ms"], decided["next_ms"]
    is_close = reduce(Column.__or__, [F.abs(markers["at_ms"] - ms) <= within_ms for ms in moments])
    return _is_served(markers, decided, decided["next_ms"], state) & is_close


def _unprinted(state: StateAtHand) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What markers of unprinted kind of unknown producers say, see `marker_checks.Producer.sums_of`."""

    def sum_up(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums = MarkerSums()
        for part in parts:
            for row in part.select([*PLACE, *EndMarker._fields]).to_pylist():
                where = TopicPartition(row["topic"], row["partition"])
                marker = EndMarker._make([row[name] for name in EndMarker._fields])
                producer = Producer.of(row["producer_id"], (), state, is_version_2=False)
                sums = sums.plus(producer.sums_of(marker, where))
        yield pa.record_batch({"pickled": pa.array([pickle.dumps(sums)], pa.binary())})

    return sum_up


def _with_homes(markers: DataFrame, states: DataFrame, state: StateAtHand) -> DataFrame:
    """Markers, each with what is known of the partitions of the state that name its producer; NULL where none does."""
    homes = states.select(F.explode(named_ids(*NAMED)).alias("producer_id"), "state_partition").distinct()
    placed = homes.join(F.broadcast(_homes(markers.sparkSession, state)), "state_partition", "left")
    return markers.join(placed, "producer_id", "left")


def _may_contradict(state: StateAtHand) -> Column:
    """A COMMIT marker without a decision may contradict the state: roughly; `coordinator.marker_checks` is exact."""
    at_ms, skew_ms = F.col("at_ms"), state.max_clock_skew_ms
    is_young = at_ms >= (-UNBOUNDED_MS if state.known_since_ms is None else state.known_since_ms)
    is_whole = F.col("gap_end_ms").isNull() | (F.col("gap_end_ms") < at_ms - DECIDED_WITHIN_MS)
    is_ahead = F.col("coordinator_epoch") > F.col("leader_epoch")
    is_reached = F.col("last_moment_ms") >= at_ms + skew_ms
    gaps = [chain.gap_end_ms for chain in state.chains.values() if chain.gap_end_ms is not None]
    is_after_gaps = at_ms - DECIDED_WITHIN_MS > max(gaps, default=-UNBOUNDED_MS // 2)
    epochs = [chain.leader_epoch for chain in state.chains.values() if chain.leader_epoch is not None]
    is_ahead_of_all = F.col("coordinator_epoch") > max(epochs, default=-1)
    shows_version_2 = F.col("producer_epoch") > F.col("data_epoch")
    is_kept = is_after_gaps | (is_young & (is_ahead_of_all | ~shows_version_2))
    of_unknown = F.lit(state.is_whole) & F.coalesce(is_kept, F.lit(True))
    of_known = is_reached & (F.coalesce(is_ahead, F.lit(False)) | is_whole | F.col("is_export"))
    return F.when(F.col("state_partition").isNull(), of_unknown).otherwise(F.coalesce(of_known, F.lit(True)))


def _may_be_later(state: StateAtHand) -> Column:
    """A marker may be later than all that the state holds of it: roughly, as `_may_contradict`."""
    at_ms, skew_ms = F.col("at_ms"), state.max_clock_skew_ms
    ends = [chain.last_until_as_of_ms for chain in state.chains.values()]
    newest_ms = max((ms for ms in ends if ms is not None), default=-UNBOUNDED_MS // 2)
    of_known = F.col("last_until_as_of_ms").isNull() | (F.col("last_until_as_of_ms") + skew_ms < at_ms)
    return F.when(F.col("state_partition").isNull(), at_ms > newest_ms + skew_ms).otherwise(of_known)


def _homes(spark: SparkSession, state: StateAtHand) -> DataFrame:
    rows = [
        (n, chain.last_moment_ms, chain.last_until_as_of_ms, chain.gap_end_ms, chain.leader_epoch, n in state.exports)
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
