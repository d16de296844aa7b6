"""The coordinator's side on Spark: its records brought to the open transactions, and summed up for coverage.

Spark only moves rows; what they say is read by the pure functions of `judge.coordinator_view` and
`judge.state_sections`, in its tasks and in the pure core alike.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from txn_analysis.ingest.sections import CLUSTER_ID, STATE
from txn_analysis.judge.coordinator_view import Views, views_of
from txn_analysis.judge.history import by_id
from txn_analysis.judge.records import OPEN_COLUMNS, STATE_COLUMNS, OpenTransaction, StateRecord
from txn_analysis.judge.state_coverage import StateEvidence, state_evidence_of
from txn_analysis.judge.state_sections import (
    SectionRecord,
    StateSums,
    added_up,
    console_sections,
    sections_of,
    sums_of,
)
from txn_analysis.parallel import in_parallel
from txn_analysis.tables._schema import BINARY, struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from txn_analysis.config import Settings
    from txn_analysis.evidence import Evidence

Row = dict[str, Any]

# What tasks tell the driver of themselves: few, and made by our own code.
_TOLD = struct(pickled=BINARY)


def current_states(states: DataFrame) -> DataFrame:
    """One row per transactional id: its last record in offset order; tombstoned ids are kept and marked."""
    known = states.where(F.col("transactional_id").isNotNull())
    record = F.struct(*[c for c in STATE_COLUMNS if c != "transactional_id"])
    latest = known.groupBy("transactional_id").agg(F.max_by(record, "record_order").alias("record"))
    return latest.select("transactional_id", "record.*")


def coordinator_views(opened: DataFrame, states: DataFrame, max_clock_skew_ms: int) -> Views:
    """What the coordinator knows of open transactions; collects as many views as there are.

    In: `opened`, open rows of `transactions`; `states`, the records that are evidence.
    """
    asked = opened.select(*OPEN_COLUMNS)
    records = histories(asked, states).groupBy("asked_producer_id")
    found = records.cogroup(asked.groupBy("producer_id")).applyInArrow(_viewer(max_clock_skew_ms), _TOLD)
    views: Views = {}
    for part in _told(found):
        views |= part
    return views


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
    return history.select("asked_producer_id", *STATE_COLUMNS, "record_order")


def records_in(history: pa.Table) -> list[StateRecord]:
    """The rows of `histories` as records."""
    return [StateRecord.placed(row) for row in history.to_pylist()]


def _viewer(max_clock_skew_ms: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def view(history: pa.Table, asked: pa.Table) -> pa.Table:
        """All records of the ids that had one producer id, and the open transactions of that producer id."""
        opened = [OpenTransaction.of(row) for row in asked.to_pylist()]
        views = views_of(by_id(records_in(history)), opened, max_clock_skew_ms)
        return pa.table({"pickled": pa.array([pickle.dumps(views)] if views else [], pa.binary())})

    return view


def state_evidence(states: DataFrame, evidence: Evidence, health: list[Row], settings: Settings) -> StateEvidence:
    """How much of `__transaction_state` the judged capture holds, and whether it can belong to the logs.

    In: `states`, the records that are evidence; `health`, rows of `partition_health` of the run. Collects one sum for
    each state file and task.
    """
    own = [section for section in evidence.section_rows if not section["capture_rank"]]
    has_records = any(s["kind"] == STATE or s["kind"].startswith("console") for s in own)
    sums, is_foreign = in_parallel(
        lambda: _sums(states) if has_records else StateSums({}, {}),
        lambda: _is_foreign(states, evidence.pieces),
    )
    return state_evidence_of(
        settings.transaction_state_partitions,
        sections_of(sums.files, [section for section in own if section["kind"] == STATE]),
        console_sections(sums.console),
        health,
        is_foreign=is_foreign,
        cluster_ids={s["stated"] for s in evidence.section_rows if s["kind"] == CLUSTER_ID},
    )


def _is_foreign(states: DataFrame, pieces: DataFrame) -> bool:
    """Transactions ended in the logs, and the state knows none of their producers."""
    producers = pieces.select(F.explode("producers").alias("producer")).where("producer.marker_offset IS NOT NULL")
    ended = producers.select("producer.producer_id").distinct()
    named = F.explode(F.array_compact(F.array("producer_id", "previous_producer_id", "next_producer_id")))
    known = states.select(named.alias("producer_id"), F.lit(True).alias("is_known")).distinct()
    counts = ended.join(known, "producer_id", "left").agg(F.count("*"), F.count("is_known")).collect()[0]
    return bool(counts[0] > 0 and counts[1] == 0)


def _sums(states: DataFrame) -> StateSums:
    """The records of the judged capture, summed up where they are."""
    own = states.where("capture_rank = 0").select(*SectionRecord._fields)
    return added_up(_told(own.mapInArrow(_sum_up, _TOLD)))


def _sum_up(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        columns = [part.column(name).to_pylist() for name in SectionRecord._fields]
        sums = sums_of(map(SectionRecord._make, zip(*columns, strict=True)))
        yield pa.record_batch({"pickled": pa.array([pickle.dumps(sums)], pa.binary())})


def _told(frame: DataFrame) -> Iterator[Any]:
    for row in frame.collect():
        yield pickle.loads(row["pickled"])  # noqa: S301 our own tasks wrote it
