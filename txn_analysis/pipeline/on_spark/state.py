"""The coordinator's records on Spark: the histories of some ids, and what is summed up of all of them for coverage.

Spark only moves rows; what they say is read by the pure functions of `coordinator.sections` and `coordinator.chain`, in
its tasks and in the pure core alike.
"""

from __future__ import annotations

import pickle
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from txn_analysis.coordinator.chain import StateChain, StateRows
from txn_analysis.coordinator.coverage import StateEvidence, state_evidence_of
from txn_analysis.coordinator.partition_count import IdSums, sums_of_columns, sums_of_ids
from txn_analysis.coordinator.sections import (
    SectionRecord,
    StateSums,
    added_up,
    console_sections,
    sections_of,
    sums_of,
)
from txn_analysis.coordinator.state_row import StateFiles, StateRow
from txn_analysis.kafka.transactions import NAMED, STATE_COLUMNS, StateRecord
from txn_analysis.spark.parallel import in_parallel
from txn_analysis.storage.frames import is_at_hand
from txn_analysis.storage.on_spark.types import spark_struct
from txn_analysis.tables._schema import BINARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import Column, DataFrame

    from txn_analysis.coordinator.partition_count import StateCount
    from txn_analysis.kafka.transactions import PartitionView
    from txn_analysis.runs.evidence import Evidence

PICKLED = spark_struct(pickled=BINARY)
"""What tasks tell the driver of themselves: little, and made by our own code."""

_CHAINED = (
    "state_partition",
    "capture_rank",
    "offset",
    "batch_base_offset",
    "batch_last_offset",
    "leader_epoch",
    "recorded_ms",
    "last_update_ms",
    "transactional_id",
    "state",
    "producer_epoch",
    "topic_partitions",
    *NAMED,
    "is_undecodable",
    "may_name_more",
    "record_order",
)


def told(frame: DataFrame) -> Iterator[Any]:
    """What tasks told, see `PICKLED`."""
    for row in frame.collect():
        yield pickle.loads(row["pickled"])  # noqa: S301 our own tasks wrote it


def named_ids(*columns: str) -> Column:
    """The producer ids in some columns of a record, as an array."""
    return F.array_compact(F.array(*columns))


def decoded(states: DataFrame) -> DataFrame:
    """The records that could be decoded."""
    return states.where(F.col("transactional_id").isNotNull() & ~F.col("is_undecodable"))


def current_states(states: DataFrame) -> DataFrame:
    """One row per transactional id: its last record in offset order; tombstoned ids are kept and marked.

    Of an id whose last record could not be decoded there is none.
    """
    known = states.where(F.col("transactional_id").isNotNull())
    record = F.struct(*[c for c in STATE_COLUMNS if c != "transactional_id"])
    place = F.struct("record_order", ~F.col("is_undecodable"))
    latest = known.groupBy("transactional_id").agg(F.max_by(record, place).alias("record"))
    return latest.select("transactional_id", "record.*").where(~F.col("is_undecodable"))


def histories(asked: DataFrame, states: DataFrame) -> DataFrame:
    """The whole histories of the ids that have, or had in any record, a producer id that is asked about.

    In:  `asked`, rows with a `producer_id`; `states`, the records that are evidence.
    Out: one row per record and `asked_producer_id`, with `record_order`.
    """
    known = states.where(F.col("transactional_id").isNotNull())
    named = F.explode(named_ids(*NAMED))
    wanted = F.broadcast(asked.select("producer_id").distinct().withColumnRenamed("producer_id", "asked_producer_id"))
    # Under names of their own: both sides come from the same records, and Spark could not tell the columns apart.
    ids = known.select(F.col("transactional_id").alias("asked_id"), named.alias("asked_producer_id"))
    ids = ids.join(wanted, "asked_producer_id", "left_semi").distinct()
    history = known.join(F.broadcast(ids), F.col("transactional_id") == F.col("asked_id"))
    return history.select("asked_producer_id", *STATE_COLUMNS, "record_order")


def records_in(history: pa.Table) -> list[StateRecord]:
    """The rows of `histories` as records."""
    return [StateRecord.placed(row) for row in history.to_pylist()]


def id_sums(rows: DataFrame, size_bytes: int) -> IdSums:
    """What rows of `transaction_states` say of the count of partitions; few are looked at here, many where they are."""
    known = rows.select("transactional_id_hash", "state_partition").dropna()
    if is_at_hand(size_bytes):
        return sums_of_ids((row[0], row[1]) for row in known.collect())
    return reduce(IdSums.plus, told(known.mapInArrow(_sum_up_ids, PICKLED)), IdSums())


def _sum_up_ids(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        sums = sums_of_columns(*[part.column(n).to_numpy(zero_copy_only=False) for n in range(2)])
        yield pa.record_batch({"pickled": pa.array([pickle.dumps(sums)], pa.binary())})


def state_evidence(
    states: DataFrame,
    evidence: Evidence,
    partitions: Iterable[PartitionView],
    count: StateCount,
    as_of_ms: int | None,
) -> StateEvidence:
    """How much of `__transaction_state` the judged capture holds.

    In: `states`, the records that are evidence; `partitions`, all whose logs were followed; `count`, of the partitions
    of the state; `as_of_ms`, the moment of the copy where the operator states it. Collects one sum for each state file
    and task, and one chain for each partition of the state.
    """
    files = StateFiles.of(evidence.section_rows)
    sums, chains = in_parallel(
        lambda: _sums(states) if files.has_own_records else StateSums({}, {}),
        lambda: _chains(states, as_of_ms) if files.has_own_records else {},
    )
    return state_evidence_of(
        count, sections_of(sums.files, files.own), console_sections(sums.console), chains, partitions
    )


def _chains(states: DataFrame, as_of_ms: int | None) -> dict[int, StateChain]:
    known = states.where(F.col("state_partition").isNotNull()).select(*_CHAINED)
    return dict(told(known.groupBy("state_partition").applyInArrow(_chainer(as_of_ms), PICKLED)))


def _chainer(as_of_ms: int | None) -> Callable[[pa.Table], pa.Table]:
    def chain(records: pa.Table) -> pa.Table:
        """All records of one partition of the state, of all captures."""
        rows, number = StateRows(as_of_ms), records["state_partition"][0].as_py()
        for row in records.to_pylist():
            rows.add(StateRow.of(row), tuple(row["record_order"].values()))
        return pa.table({"pickled": pa.array([pickle.dumps((number, rows.chain()))], pa.binary())})

    return chain


def _sums(states: DataFrame) -> StateSums:
    """The records of the judged capture, summed up where they are."""
    own = states.where("capture_rank = 0").select(*SectionRecord._fields)
    return added_up(told(own.mapInArrow(_sum_up, PICKLED)))


def _sum_up(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        columns = [part.column(name).to_pylist() for name in SectionRecord._fields]
        sums = sums_of(map(SectionRecord._make, zip(*columns, strict=True)))
        yield pa.record_batch({"pickled": pa.array([pickle.dumps(sums)], pa.binary())})
