"""The answers of `kafka-transactions.sh`, from the tables of one run, under that tool's column names.

Three things differ from the tool, because files cannot know them, or prove more:

* `Coordinator` and `CoordinatorId` name the partition of `__transaction_state` whose leader is the coordinator, such as
  `__transaction_state-3`, where the tool prints the number of that broker.
* Durations are against the moment of the copy (`as_of_ms`), not the wall clock.
* `find_hanging` lists the run's hanging findings, which need more proof than the tool asks for, and adds the columns
  `TransactionalId` and `Rule`.

What is unknown is None, and null in JSON. In text it is what the tool prints there: `-1` or `None`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

from txn_analysis.advise.plan_versions import stored_record
from txn_analysis.errors import WarehouseError
from txn_analysis.filters import Filters, is_wanted_place, where_coordinator, where_place, where_producer
from txn_analysis.frames import collected
from txn_analysis.judge.state_frames import current_states
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.report.answer import MINUS_ONE, Answer, Column
from txn_analysis.report.escape import escape
from txn_analysis.run import finished_run
from txn_analysis.tables import ABORT_PLAN, FINDINGS, PARTITION_HEALTH
from txn_analysis.wanted_run import wanted_run

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, Row

    from txn_analysis.advise.abort_plan import AbortRecord
    from txn_analysis.run import Run
    from txn_analysis.tables import Table
    from txn_analysis.warehouse import Warehouse

_MS_PER_MIN = 60_000
_PRODUCER_FIELDS = (
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "last_sequence",
    "last_timestamp_ms",
    "txn_start_offset",
)
_RUNNING = ("Ongoing", "PrepareCommit", "PrepareAbort")

_ASKED = (
    *("finding_id", "verdict", "late_by_ms", "topic", "partition", "producer_id", "idle_ms", "transactional_id"),
    *("state_partition", "coordinator_state"),
)

FIND_HANGING = (
    Column("Topic"),
    Column("Partition"),
    Column("ProducerId"),
    Column("ProducerEpoch", MINUS_ONE),
    Column("CoordinatorEpoch", MINUS_ONE),
    Column("StartOffset"),
    Column("LastTimestamp", MINUS_ONE),
    Column("Duration(min)"),
    Column("TransactionalId"),
    Column("Rule"),
)
LIST = (Column("TransactionalId"), Column("Coordinator"), Column("ProducerId"), Column("TransactionState"))
DESCRIBE = (
    Column("CoordinatorId"),
    Column("TransactionalId"),
    Column("ProducerId"),
    Column("ProducerEpoch", MINUS_ONE),
    Column("TransactionState"),
    Column("TransactionTimeoutMs"),
    Column("CurrentTransactionStartTimeMs"),
    Column("TransactionDurationMs"),
    Column("TopicPartitions"),
)
DESCRIBE_PRODUCERS = (
    Column("ProducerId"),
    Column("ProducerEpoch", MINUS_ONE),
    Column("LatestCoordinatorEpoch", MINUS_ONE),
    Column("LastSequence", MINUS_ONE),
    Column("LastTimestamp", MINUS_ONE),
    Column("CurrentTransactionStartOffset"),
)


@dataclass(frozen=True)
class RunTables:
    """The tables as one finished run left them."""

    warehouse: Warehouse
    run: dict[str, Any]

    @property
    def as_of_ms(self) -> int | None:
        """The moment at which the files were copied."""
        as_of_ms: int | None = self.run["as_of_ms"]
        return as_of_ms

    @property
    def has_state(self) -> bool:
        """At least one partition of `__transaction_state` was given."""
        return bool(json.loads(self.run["state_coverage"]).get("seen"))

    def of(self, run_id: str) -> RunTables:
        """The tables of another run of the same cluster.

        Raises:
            WarehouseError: there is no such run.
        """
        return run_tables(self.warehouse, self.run["cluster"], run_id)

    def finished(self) -> Run:
        """The run itself, with the settings and the evidence that it had."""
        return finished_run(self.warehouse, self.run)

    def rows(self, table: Table) -> DataFrame:
        """The run's rows of a result table."""
        return self.warehouse.read(table).where(F.col("run_id") == self.run["run_id"])

    def findings(self) -> DataFrame:
        """The run's rows of `findings`."""
        return self.rows(FINDINGS)

    def health(self) -> DataFrame:
        """The run's rows of `partition_health`."""
        return self.rows(PARTITION_HEALTH)

    def places(self, *, of_coordinator: bool = False) -> set[tuple[str, int]]:
        """The partitions that the run saw; with those that the coordinator's transactions list, if they are wanted."""
        seen = {(row["topic"], row["partition"]) for row in collected(self.health().select("topic", "partition"))}
        if of_coordinator:
            listed = self.current_states().select(F.explode("topic_partitions").alias("p")).select("p.*").distinct()
            seen |= {(row["topic"], row["partition"]) for row in collected(listed)}
        return seen

    def abort_plan(self) -> list[AbortRecord]:
        """The run's abort plan, in its order.

        Raises:
            WarehouseError: another version made it, and this one cannot tell whether it may be sent.
        """
        rows = self.rows(ABORT_PLAN).orderBy("topic", "partition", "producer_id", "txn_start_offset")
        return [stored_record(row) for row in collected(rows)]

    def current_states(self) -> DataFrame:
        """The last record of every transactional id, as far as the run could see."""
        return current_states(self.finished().states())


def run_tables(warehouse: Warehouse, cluster: str, run_id: str | None = None) -> RunTables:
    """The tables of a run; of the cluster's last one where none is named.

    Raises:
        WarehouseError: there is no such run.
    """
    return RunTables(warehouse, wanted_run(warehouse, cluster, run_id))


def find_hanging(findings: DataFrame, filters: Filters, since: DataFrame | None = None) -> Answer:
    """The hanging findings; `Duration(min)` is whole minutes since the last write, as Kafka's.

    `since`: findings of another run; what hung there already is left out.
    """
    rows = _hanging(findings)
    if since is not None:
        rows = rows.join(F.broadcast(_hanging(since).select("finding_id")), "finding_id", "left_anti")
    rows = where_coordinator(where_producer(where_place(rows, filters), filters), filters, "coordinator_state")
    if filters.duration_ms is not None:
        rows = rows.where(F.col("idle_ms") > filters.duration_ms)
    found = rows.orderBy("topic", "partition", "txn_start_offset", "producer_id").collect()
    return Answer(FIND_HANGING, tuple(_hanging_row(row) for row in found if filters.has_id(row["transactional_id"])))


class OpenRow(NamedTuple):
    """One open transaction of a run, as far as the outcome depends on it."""

    verdict: Verdict
    late_by_ms: int | None
    topic: str
    partition: int


def asked_about(
    findings: DataFrame, filters: Filters, since: DataFrame | None = None, *, has_state: bool
) -> list[OpenRow]:
    """The open transactions that a question is about, hanging or not; what is in doubt may be what is asked for.

    Args:
        findings: of the run.
        filters: the question.
        since: findings of another run; what hung there already is not asked about.
        has_state: at least one partition of `__transaction_state` was given.
    """
    rows = findings if since is None else findings.join(_hanging(since).select("finding_id"), "finding_id", "left_anti")
    found = []
    for row in collected(rows.select(*_ASKED)):
        verdict = Verdict(row["verdict"])
        if filters.has(row, in_doubt=verdict is Verdict.INCONCLUSIVE or not has_state):
            found.append(OpenRow(verdict, row["late_by_ms"], row["topic"], row["partition"]))
    return found


def _hanging(findings: DataFrame) -> DataFrame:
    return findings.where(F.col("verdict") == Verdict.HANGING.value)


def list_transactions(states: DataFrame, as_of_ms: int | None, filters: Filters) -> Answer:
    """The transactional ids with their current state; removed ones are not listed, as Kafka's tool does.

    A `duration_ms` keeps running transactions whose start is known; topics and partitions keep those that list one.
    """
    rows = where_coordinator(where_producer(_known(states), filters), filters, "state")
    if filters.topics:
        rows = rows.where(F.exists("topic_partitions", lambda place: is_wanted_place(place, filters)))
    if filters.duration_ms is not None:
        duration_ms = F.lit(as_of_ms).cast("bigint") - F.col("start_ms")
        rows = rows.where(F.col("state").isin(*_RUNNING) & (duration_ms > filters.duration_ms))
    found = rows.select("transactional_id", "state_partition", "producer_id", "state").orderBy("transactional_id")
    return Answer(
        LIST,
        tuple(
            (row["transactional_id"], _coordinator(row), row["producer_id"], row["state"])
            for row in found.collect()
            if filters.has_id(row["transactional_id"])
        ),
    )


def describe(states: DataFrame, as_of_ms: int | None, *transactional_ids: str) -> Answer:
    """Some transactional ids; start and duration only while a transaction is running.

    Raises:
        WarehouseError: the run saw no such id, or its last record removes it.
    """
    return Answer(DESCRIBE, tuple(_described(states, as_of_ms, name) for name in transactional_ids))


def _described(states: DataFrame, as_of_ms: int | None, transactional_id: str) -> tuple[Any, ...]:
    row = states.where(F.col("transactional_id") == transactional_id).first()
    if row is None or row["is_tombstone"]:
        why = "was removed (tombstone)" if row is not None else "is in no record that this run saw"
        raise WarehouseError(f"transactional id {escape(transactional_id)} {why}; the verb `list` shows all ids")
    start_ms = row["start_ms"] if row["state"] in _RUNNING else None
    duration_ms = None if start_ms is None or as_of_ms is None else as_of_ms - start_ms
    listed = sorted((p["topic"], p["partition"]) for p in row["topic_partitions"] or [])
    return (
        _coordinator(row),
        row["transactional_id"],
        row["producer_id"],
        row["producer_epoch"],
        row["state"],
        row["timeout_ms"],
        start_ms,
        duration_ms,
        [f"{topic}-{partition}" for topic, partition in listed],
    )


def describe_producers(health: DataFrame, topic: str, partition: int, producer_ids: Collection[int] = ()) -> Answer:
    """The producers of one partition at the end of its log, by producer id; all of them, or some.

    Raises:
        WarehouseError: the run saw nothing of the partition.
    """
    row = health.where((F.col("topic") == topic) & (F.col("partition") == partition)).select("producers").first()
    if row is None:
        raise WarehouseError(f"this run saw nothing of {escape(topic)}-{partition}; the verb `report` says what it saw")
    wanted = [p for p in row["producers"] or [] if not producer_ids or p["producer_id"] in producer_ids]
    producers = sorted(wanted, key=lambda producer: int(producer["producer_id"]))
    return Answer(
        DESCRIBE_PRODUCERS, tuple(tuple(producer[name] for name in _PRODUCER_FIELDS) for producer in producers)
    )


def _hanging_row(row: Row) -> tuple[Any, ...]:
    idle_ms = row["idle_ms"]
    return (
        row["topic"],
        row["partition"],
        row["producer_id"],
        row["producer_epoch"],
        row["coordinator_epoch"],
        row["txn_start_offset"],
        row["last_timestamp_ms"],
        None if idle_ms is None else idle_ms // _MS_PER_MIN,
        row["transactional_id"],
        row["rule"],
    )


def _known(states: DataFrame) -> DataFrame:
    # A Dead id is being removed: Kafka's coordinator leaves it out as well.
    return states.where(~F.col("is_tombstone") & (F.coalesce("state", F.lit("")) != "Dead"))


def _coordinator(row: Row) -> str | None:
    return None if row["state_partition"] is None else f"__transaction_state-{row['state_partition']}"
