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

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.errors import WarehouseError
from txn_analysis.report.answer import MINUS_ONE, Answer, Column
from txn_analysis.text.escape import escape
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from txn_analysis.questions.filters import Filters

Row = dict[str, Any]

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


def find_hanging(findings: Iterable[Row], filters: Filters, since: Iterable[Row] = ()) -> Answer:
    """The hanging findings; `Duration(min)` is whole minutes since the last write, as Kafka's.

    `since`: findings of another run; what hung there already is left out.
    """
    known = _hanging(since)
    found = [
        row
        for row in findings
        if row["verdict"] == Verdict.HANGING.value
        and row["finding_id"] not in known
        and filters.has(row, in_doubt=False)
    ]
    order = itemgetter("topic", "partition", "txn_start_offset", "producer_id")
    return Answer(FIND_HANGING, tuple(_hanging_row(row) for row in sorted(found, key=order)))


class OpenRow(NamedTuple):
    """One open transaction of a run, as far as the outcome depends on it."""

    verdict: Verdict
    late_by_ms: int | None
    topic: str
    partition: int


def asked_about(
    findings: Iterable[Row], filters: Filters, since: Iterable[Row] = (), *, has_state: bool
) -> list[OpenRow]:
    """The open transactions that a question is about, hanging or not; what is in doubt may be what is asked for.

    Args:
        findings: of the run.
        filters: the question.
        since: findings of another run; what hung there already is not asked about.
        has_state: at least one partition of `__transaction_state` was given.
    """
    known, found = _hanging(since), []
    for row in findings:
        verdict = Verdict(row["verdict"])
        is_new = row["finding_id"] not in known
        if is_new and filters.has(row, in_doubt=verdict is Verdict.INCONCLUSIVE or not has_state):
            found.append(OpenRow(verdict, row["late_by_ms"], row["topic"], row["partition"]))
    return found


def _hanging(findings: Iterable[Row]) -> set[str]:
    return {row["finding_id"] for row in findings if row["verdict"] == Verdict.HANGING.value}


def list_transactions(states: Iterable[Row], as_of_ms: int | None, filters: Filters) -> Answer:
    """The transactional ids with their current state; removed ones are not listed, as Kafka's tool does.

    A `duration_ms` keeps running transactions whose start is known; topics and partitions keep those that list one.
    """
    found = sorted(
        (row["transactional_id"], _coordinator(row), row["producer_id"], row["state"])
        for row in states
        if _is_listed(row) and _is_wanted(row, as_of_ms, filters)
    )
    return Answer(LIST, tuple(found))


def _is_listed(state: Row) -> bool:
    # A Dead id is being removed: Kafka's coordinator leaves it out as well.
    return not state["is_tombstone"] and state["state"] != "Dead"


def _is_wanted(state: Row, as_of_ms: int | None, filters: Filters) -> bool:
    asked = (
        (filters.producer_ids, state["producer_id"]),
        (filters.states, state["state"]),
        (filters.state_partitions, state["state_partition"]),
    )
    is_named = all(not wanted or value in wanted for wanted, value in asked)
    is_long = filters.duration_ms is None or _runs_longer(state, as_of_ms, filters.duration_ms)
    return (
        is_named
        and is_long
        and filters.has_id(state["transactional_id"])
        and filters.has_one_of(state["topic_partitions"] or ())
    )


def _runs_longer(state: Row, as_of_ms: int | None, duration_ms: int) -> bool:
    is_known = as_of_ms is not None and state["start_ms"] is not None
    return is_known and state["state"] in _RUNNING and as_of_ms - state["start_ms"] > duration_ms


def describe(states: Iterable[Row], as_of_ms: int | None, *transactional_ids: str) -> Answer:
    """Some transactional ids; start and duration only while a transaction is running.

    Args:
        states: the last record of these ids, or of more.
        as_of_ms: when the files were copied.
        transactional_ids: those that are described, in this order.

    Raises:
        WarehouseError: the run saw no such id, or its last record removes it.
    """
    known = {row["transactional_id"]: row for row in states}
    return Answer(DESCRIBE, tuple(_described(known.get(name), as_of_ms, name) for name in transactional_ids))


def _described(row: Row | None, as_of_ms: int | None, transactional_id: str) -> tuple[Any, ...]:
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


def describe_producers(health: Iterable[Row], topic: str, partition: int, producer_ids: Collection[int] = ()) -> Answer:
    """The producers of one partition at the end of its log, by producer id; all of them, or some.

    Raises:
        WarehouseError: the run saw nothing of the partition.
    """
    row = next((row for row in health if (row["topic"], row["partition"]) == (topic, partition)), None)
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


def _coordinator(row: Row) -> str | None:
    return None if row["state_partition"] is None else f"__transaction_state-{row['state_partition']}"
