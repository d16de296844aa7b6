"""The coordinator's side of the join: current state per transactional id, and the history behind open transactions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from txn_analysis.ingest.sections import CLUSTER_ID
from txn_analysis.judge.history import OpenData, history_facts
from txn_analysis.judge.origins import origin_facts
from txn_analysis.judge.state_coverage import (
    MOST_MISPLACED_IDS,
    StateEvidence,
    StateSection,
    state_evidence_of,
)
from txn_analysis.parallel import in_parallel
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame

    from txn_analysis.config import Settings
    from txn_analysis.evidence import Evidence

Row = dict[str, Any]

_IS_MISPLACED = "state_partition != hashed_partition"
CANDIDATE_KEY = ("topic", "partition", "producer_id")
FACTS = StructType(
    [
        StructField("topic", STRING),
        StructField("partition", INT),
        StructField("producer_id", BIGINT),
        StructField("transactional_id", STRING),
        StructField("state_partition", INT),
        StructField("coordinator_state", STRING),
        StructField("coordinator_producer_id", BIGINT),
        StructField("coordinator_producer_epoch", INT),
        StructField("coordinator_start_ms", BIGINT),
        StructField("coordinator_update_ms", BIGINT),
        StructField("coordinator_timeout_ms", BIGINT),
        StructField("coordinator_txn_epoch", INT),
        StructField("is_listed", BOOLEAN),
        StructField("runs_under_producer_id", BOOLEAN),
        StructField("is_producer_live", BOOLEAN),
        StructField("state_epoch", INT),
        StructField("recorded_after_ms", BIGINT),
        StructField("first_recorded_ms", BIGINT),
        StructField("has_prepare_since_marker", BOOLEAN),
        StructField("ended_state", STRING),
        StructField("ended_ms", BIGINT),
        StructField("ended_again_after_ms", BIGINT),
        StructField("listed_since_ms", BIGINT),
        StructField("prepared_state", STRING),
        StructField("prepared_ms", BIGINT),
        StructField("completed_ms", BIGINT),
        StructField("began_since_ms", BIGINT),
        StructField("new_epoch", INT),
        StructField("new_epoch_ms", BIGINT),
        StructField("rotated_to", BIGINT),
        StructField("rotated_ms", BIGINT),
        StructField("is_rotation_recorded", BOOLEAN),
        StructField("last_own_epoch", INT),
        StructField("tombstone_ms", BIGINT),
        StructField("first_own_ms", BIGINT),
        StructField("is_order_doubtful", BOOLEAN),
        StructField("was_ended_after_log", BOOLEAN),
    ]
)
COORDINATOR_FACTS = tuple(name for name in FACTS.names if name not in CANDIDATE_KEY)
HISTORY_COLUMNS = (
    "transactional_id",
    "state_partition",
    "state",
    "is_tombstone",
    "producer_id",
    "previous_producer_id",
    "next_producer_id",
    "producer_epoch",
    "timeout_ms",
    "topic_partitions",
    "last_update_ms",
    "recorded_ms",
    "start_ms",
    "client_transaction_version",
)


def candidate_key(row: Row) -> tuple[Any, ...]:
    """What open transactions and the facts about them are joined by."""
    return tuple(row[name] for name in CANDIDATE_KEY)


def current_states(states: DataFrame) -> DataFrame:
    """One row per transactional id: its last record in offset order; tombstoned ids are kept and marked."""
    known = states.where(F.col("transactional_id").isNotNull())
    record = F.struct(*[c for c in HISTORY_COLUMNS if c != "transactional_id"])
    latest = known.groupBy("transactional_id").agg(F.max_by(record, "record_order").alias("record"))
    return latest.select("transactional_id", "record.*")


def coordinator_facts(candidates: DataFrame, states: DataFrame, max_clock_skew_ms: int) -> DataFrame:
    """What the coordinator knows of open transactions.

    In:  `candidates`, open rows of `transactions`; `states`, the records that are evidence.
    Out: one row per candidate whose producer id some transactional id has, or had in any earlier record; see `best_of`
         for the choice among several ids.
    """
    wanted = candidates.select(*CANDIDATE_KEY, "last_marker_ms", "first_producer_epoch")
    return (
        histories(candidates, states)
        .groupBy("asked_producer_id")
        .cogroup(wanted.groupBy("producer_id"))
        .applyInArrow(_reader(max_clock_skew_ms), FACTS)
    )


def histories(asked: DataFrame, states: DataFrame) -> DataFrame:
    """The whole histories of the ids that have, or had in any record, a producer id that is asked about.

    In:  `asked`, rows with a `producer_id`; `states`, the records that are evidence.
    Out: one row per record and `asked_producer_id`, with `record_order`.
    """
    known = states.where(F.col("transactional_id").isNotNull())
    named = F.explode(F.array_compact(F.array("producer_id", "previous_producer_id", "next_producer_id")))
    wanted = F.broadcast(asked.select("producer_id").distinct().withColumnRenamed("producer_id", "asked_producer_id"))
    # Under names of their own: both sides come from the same records, and Spark could not tell the columns apart.
    ids = known.select(F.col("transactional_id").alias("asked_id"), named.alias("asked_producer_id"))
    ids = ids.join(wanted, "asked_producer_id", "left_semi").distinct()
    history = known.join(F.broadcast(ids), F.col("transactional_id") == F.col("asked_id"))
    return history.select("asked_producer_id", *HISTORY_COLUMNS, "record_order")


def _reader(max_clock_skew_ms: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    schema = to_arrow_schema(FACTS)

    def read(history: pa.Table, asked: pa.Table) -> pa.Table:
        """All records of the ids that had one producer id, and the open transactions of that producer id."""
        found: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
        transactions = asked.to_pylist()
        for records in by_id(history.to_pylist()).values():
            for fact in facts_of_id(records, transactions, max_clock_skew_ms):
                found[candidate_key(fact)].append(fact)
        return pa.Table.from_pylist([best_of(rows) for rows in found.values()], schema=schema)

    return read


def by_id(records: Iterable[Row]) -> dict[str, list[Row]]:
    """The records of each transactional id."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for record in records:
        found[record["transactional_id"]].append(record)
    return found


def facts_of_id(records: list[Row], asked: list[Row], max_clock_skew_ms: int) -> list[Row]:
    """What the history of one transactional id says about each open transaction that is asked about.

    Args:
        records: records of the id as rows of `transaction_states` with their `record_order`, in any order.
        asked: open rows of `transactions` whose producer id the id has, or had.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
    """
    history = in_order(records)
    facts = []
    for data in asked:
        place = {name: data[name] for name in CANDIDATE_KEY}
        open_data = OpenData(
            **place, last_marker_ms=data["last_marker_ms"], first_producer_epoch=data["first_producer_epoch"]
        )
        known = history_facts(history, open_data, max_clock_skew_ms)
        facts.append(place | known | origin_facts(history, open_data, max_clock_skew_ms))
    return facts


def in_order(records: list[Row]) -> list[Row]:
    """The records of one id, oldest first and each once: several captures and copies may hold the same one."""
    by_order: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for record in records:
        same_place = by_order[tuple(record["record_order"].values())]
        if record not in same_place:
            same_place.append(record)
    # Copies that differ are broken evidence: none is lost, and which one comes last is never left to chance.
    return [record for order in sorted(by_order) for record in sorted(by_order[order], key=repr)]


def best_of(rows: list[Row]) -> Row:
    """Of the facts of several ids about one open transaction, those that count.

    The id whose transaction lists the partition, then the one that runs under the producer id, then the one that was
    updated last.
    """
    return max(
        rows,
        key=lambda row: (
            row["is_listed"],
            row["runs_under_producer_id"],
            row["coordinator_update_ms"] or 0,
            row["transactional_id"],
        ),
    )


def state_evidence(states: DataFrame, evidence: Evidence, health: list[Row], settings: Settings) -> StateEvidence:
    """How much of `__transaction_state` the judged capture holds, and whether it can belong to the logs.

    In: `states`, the records that are evidence; `health`, rows of `partition_health` of the run. Collects one row per
    state file.
    """
    count = settings.transaction_state_partitions
    kinds = {
        section["kind"] for item in evidence.inputs if not item["capture_rank"] for section in item["sections"] or ()
    }
    is_console = bool(kinds & {"console_text", "console_json"})
    sections, console, is_foreign = in_parallel(
        lambda: _state_sections(states, evidence.sections) if "state" in kinds else [],
        lambda: _console_sections(states) if is_console else {},
        lambda: _is_foreign(states, evidence.pieces),
    )
    clusters = {s["stated"] for s in evidence.section_rows if s["kind"] == CLUSTER_ID}
    return state_evidence_of(count, sections, console, health, is_foreign=is_foreign, cluster_ids=clusters)


def _is_foreign(states: DataFrame, pieces: DataFrame) -> bool:
    """Transactions ended in the logs, and the state knows none of their producers."""
    producers = pieces.select(F.explode("producers").alias("producer")).where("producer.marker_offset IS NOT NULL")
    ended = producers.select("producer.producer_id").distinct()
    named = F.explode(F.array_compact(F.array("producer_id", "previous_producer_id", "next_producer_id")))
    known = states.select(named.alias("producer_id"), F.lit(True).alias("is_known")).distinct()
    counts = ended.join(known, "producer_id", "left").agg(F.count("*"), F.count("is_known")).collect()[0]
    return bool(counts[0] > 0 and counts[1] == 0)


def _state_sections(states: DataFrame, sections: DataFrame) -> list[StateSection]:
    """The dumped state files of the judged capture, summed up; as many rows as there are files."""
    moment = F.greatest("recorded_ms", "last_update_ms")
    summed = (
        states.where("NOT is_console AND capture_rank = 0")
        .groupBy("input_id", "section_index")
        .agg(
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
            F.min_by(moment, "offset").alias("first_ms"),
            F.max(F.when(F.col("is_after_gap"), moment)).alias("gap_ms"),
            F.max(moment).alias("moment_ms"),
            F.count_if("is_undecodable").alias("undecodable_count"),
            F.count_if(F.expr(_IS_MISPLACED)).alias("misplaced_count"),
        )
    )
    key = ["input_id", "section_index"]
    named = (F.col("partition").alias("state_partition"), "file_base_offset", "end_offset")
    files = sections.where("kind = 'state' AND capture_rank = 0").select(*key, *named)
    joined = files.join(summed, key, "left").fillna(0, ["undecodable_count", "misplaced_count"])
    rows = joined.collect()
    ids = _misplaced_ids(states) if any(row["misplaced_count"] for row in rows) else {}
    own = [name for name in joined.columns if name not in key]
    return [
        StateSection(
            **{name: row[name] for name in own},
            misplaced_ids=ids.get((row["input_id"], row["section_index"]), ()),
        )
        for row in rows
    ]


def _misplaced_ids(states: DataFrame) -> dict[tuple[str, int], tuple[str, ...]]:
    """By file of the judged capture, the first ids (by code point) that Kafka's hash puts into another partition."""
    misplaced = states.where("NOT is_console AND capture_rank = 0").where(_IS_MISPLACED)
    ids = misplaced.select("input_id", "section_index", "transactional_id").distinct()
    # One id may have all the records of a file, so the ids are told apart before the first few are taken.
    first = F.array_sort(F.min_by("transactional_id", "transactional_id", MOST_MISPLACED_IDS))
    rows = ids.groupBy("input_id", "section_index").agg(first.alias("ids")).collect()
    return {(row["input_id"], row["section_index"]): tuple(row["ids"]) for row in rows}


def _console_sections(states: DataFrame) -> dict[int, StateSection]:
    """What a console export of the judged capture holds, by the partition that each id hashes to."""
    found = (
        states.where("is_console AND capture_rank = 0")
        .groupBy("state_partition")
        .agg(F.max("last_update_ms").alias("moment_ms"), F.count_if("is_undecodable").alias("undecodable_count"))
    )
    rows = found.collect()
    lost = sum(row["undecodable_count"] for row in rows if row["state_partition"] is None)
    return {
        row["state_partition"]: StateSection(
            row["state_partition"], 0, None, None, None, None, row["moment_ms"], row["undecodable_count"] + lost, 0
        )
        for row in rows
        if row["state_partition"] is not None
    }
