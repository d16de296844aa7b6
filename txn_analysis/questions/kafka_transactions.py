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

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from txn_analysis.errors import WarehouseError
from txn_analysis.report.formats import MINUS_ONE, Answer, Column
from txn_analysis.text.escape import escape
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from txn_analysis.judge.finding import Finding
    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.run_tables import ProducerState

_MS_PER_MIN = 60_000
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


def find_hanging(findings: Iterable[Finding], filters: Filters, since: Iterable[Finding] = ()) -> Answer:
    """The hanging findings; `Duration(min)` is whole minutes since the last write, as Kafka's.

    `since`: findings of another run; what hung there already is left out.
    """
    known = _hanging(since)
    found = [
        finding
        for finding in findings
        if finding.verdict is Verdict.HANGING
        and finding.finding_id not in known
        and filters.has(finding, in_doubt=False)
    ]
    order = attrgetter("topic", "partition", "txn_start_offset", "producer_id")
    return Answer(FIND_HANGING, tuple(_hanging_row(finding) for finding in sorted(found, key=order)))


def asked_about(
    findings: Iterable[Finding], filters: Filters, since: Iterable[Finding] = (), *, has_state: bool
) -> list[Finding]:
    """The open transactions that a question is about, hanging or not; what is in doubt may be what is asked for.

    Args:
        findings: of the run.
        filters: the question.
        since: findings of another run; what hung there already is not asked about.
        has_state: at least one partition of `__transaction_state` was given.
    """
    known, found = _hanging(since), []
    for finding in findings:
        is_in_doubt = finding.verdict is Verdict.INCONCLUSIVE or not has_state
        if finding.finding_id not in known and filters.has(finding, in_doubt=is_in_doubt):
            found.append(finding)
    return found


def _hanging(findings: Iterable[Finding]) -> set[str]:
    return {finding.finding_id for finding in findings if finding.verdict is Verdict.HANGING}


def list_transactions(states: Iterable[StateRecord], as_of_ms: int | None, filters: Filters) -> Answer:
    """The transactional ids with their current state; removed ones are not listed, as Kafka's tool does.

    A `duration_ms` keeps running transactions whose start is known; topics and partitions keep those that list one.
    """
    found = sorted(
        (record.transactional_id, _coordinator(record), record.producer_id, record.state)
        for record in states
        if _is_listed(record) and _is_wanted(record, as_of_ms, filters)
    )
    return Answer(LIST, tuple(found))


def _is_listed(record: StateRecord) -> bool:
    # A Dead id is being removed: Kafka's coordinator leaves it out as well.
    return not record.is_tombstone and record.state != "Dead"


def _is_wanted(record: StateRecord, as_of_ms: int | None, filters: Filters) -> bool:
    asked = (
        (filters.producer_ids, record.producer_id),
        (filters.states, record.state),
        (filters.state_partitions, record.state_partition),
    )
    is_named = all(not wanted or value in wanted for wanted, value in asked)
    is_long = filters.duration_ms is None or _runs_longer(record, as_of_ms, filters.duration_ms)
    has_place = filters.has_one_of(record.topic_partitions)
    return is_named and is_long and has_place and filters.has_id(record.transactional_id)


def _runs_longer(record: StateRecord, as_of_ms: int | None, duration_ms: int) -> bool:
    if as_of_ms is None or record.start_ms is None:
        return False
    return record.state in _RUNNING and as_of_ms - record.start_ms > duration_ms


def describe(states: Iterable[StateRecord], as_of_ms: int | None, *transactional_ids: str) -> Answer:
    """Some transactional ids; start and duration only while a transaction is running.

    Args:
        states: the last record of these ids, or of more.
        as_of_ms: when the files were copied.
        transactional_ids: those that are described, in this order.

    Raises:
        WarehouseError: the run saw no such id, or its last record removes it.
    """
    known = {record.transactional_id: record for record in states}
    return Answer(DESCRIBE, tuple(_described(known.get(name), as_of_ms, name) for name in transactional_ids))


def _described(record: StateRecord | None, as_of_ms: int | None, transactional_id: str) -> tuple[Any, ...]:
    if record is None or record.is_tombstone:
        why = "was removed (tombstone)" if record is not None else "is in no record that this run saw"
        raise WarehouseError(f"transactional id {escape(transactional_id)} {why}; the verb `list` shows all ids")
    start_ms = record.start_ms if record.state in _RUNNING else None
    duration_ms = None if start_ms is None or as_of_ms is None else as_of_ms - start_ms
    return (
        _coordinator(record),
        record.transactional_id,
        record.producer_id,
        record.producer_epoch,
        record.state,
        record.timeout_ms,
        start_ms,
        duration_ms,
        [f"{topic}-{partition}" for topic, partition in sorted(record.topic_partitions)],
    )


def describe_producers(
    producers: Iterable[ProducerState] | None, topic: str, partition: int, producer_ids: Collection[int] = ()
) -> Answer:
    """The producers of one partition at the end of its log, by producer id; all of them, or some.

    Raises:
        WarehouseError: the run saw nothing of the partition; `producers` is None.
    """
    if producers is None:
        raise WarehouseError(f"this run saw nothing of {escape(topic)}-{partition}; the verb `report` says what it saw")
    wanted = [tuple(producer) for producer in producers if not producer_ids or producer.producer_id in producer_ids]
    return Answer(DESCRIBE_PRODUCERS, tuple(sorted(wanted, key=itemgetter(0))))


def _hanging_row(finding: Finding) -> tuple[Any, ...]:
    return (
        finding.topic,
        finding.partition,
        finding.producer_id,
        finding.producer_epoch,
        finding.coordinator_epoch,
        finding.txn_start_offset,
        finding.last_timestamp_ms,
        None if finding.idle_ms is None else finding.idle_ms // _MS_PER_MIN,
        finding.transactional_id,
        finding.rule,
    )


def _coordinator(record: StateRecord) -> str | None:
    return None if record.state_partition is None else f"__transaction_state-{record.state_partition}"
