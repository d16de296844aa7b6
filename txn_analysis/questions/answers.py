"""Answers as rows to print, and as JSON: those of `kafka-transactions.sh`, captures, what became of recommended aborts.

The first come from the tables of one run, under that tool's column names. Three things differ from the tool, because
files cannot know them, or prove more:

* `Coordinator` and `CoordinatorId` name the partition of `__transaction_state` whose leader is the coordinator, such as
  `__transaction_state-3`, where the tool prints the number of that broker.
* Durations are against the moment of the copy (`as_of_ms`), not the wall clock.
* `find_hanging` lists the run's hanging findings, which need more proof than the tool asks for, and adds the columns
  `TransactionalId` and `Rule`.

What is unknown is None, and null in JSON. In text it is what the tool prints there: `-1` or `None`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import BaseModel, TypeAdapter

from txn_analysis.errors import WarehouseError
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.plan.repair import Outcome, Repair
from txn_analysis.questions.filters import Filters
from txn_analysis.report.formats import MINUS_ONE, Answer, Column, answer_of
from txn_analysis.runs.ask import ask, is_one_of, views_in
from txn_analysis.runs.past_run import PastRun
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.tables import Finding
from txn_analysis.text import SCHEMA_DIALECT, count, escape, iso_utc, utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.questions.verify import Unverified

_MS_PER_MIN = 60_000
_PRODUCERS = Path(__file__).with_name("producers.sql")
_RUNNING = ("Ongoing", "PrepareCommit", "PrepareAbort")

FIND_HANGING = (
    Column("Topic", of="topic"),
    Column("Partition", of="partition"),
    Column("ProducerId", of="producer_id"),
    Column("ProducerEpoch", MINUS_ONE, "producer_epoch"),
    Column("CoordinatorEpoch", MINUS_ONE, "coordinator_epoch"),
    Column("StartOffset", of="txn_start_offset"),
    Column("LastTimestamp", MINUS_ONE, "last_timestamp_ms"),
    Column("Duration(min)", of=lambda finding: None if finding.idle_ms is None else finding.idle_ms // _MS_PER_MIN),
    Column("TransactionalId", of="transactional_id"),
    Column("Rule", of="rule"),
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

ACCEPT = (
    Column("Topic", of="topic"),
    Column("Partition", of="partition"),
    Column("StartOffset", of="txn_start_offset"),
    Column("ProducerId", of="producer_id"),
    Column("TransactionalId", of="transactional_id"),
    Column("Verdict", of=lambda decision: decision.verdict.value),
    Column("Rule", of="rule"),
    Column("Until", of=lambda decision: utc(decision.until_ms)),
    Column("By", of="accepted_by"),
    Column("Reason", of="reason"),
    Column("FindingId", of="finding_id"),
)
DESCRIBE_ALL_PRODUCERS = (Column("Topic"), Column("Partition"), *DESCRIBE_PRODUCERS)


def find_hanging(findings: Iterable[Finding], filters: Filters, since: Iterable[Finding] = ()) -> Answer:
    """The hanging findings; `Duration(min)` is whole minutes since the last write, as Kafka's.

    `since`: findings of another run; what hung there already is left out.
    """
    asked = asked_about(findings, filters, since, has_state=True)
    hanging_findings = [finding for finding in asked if finding.verdict is Verdict.HANGING]
    order = attrgetter("topic", "partition", "txn_start_offset", "producer_id")
    return answer_of(FIND_HANGING, sorted(hanging_findings, key=order))


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
    known, open_findings = {finding.finding_id for finding in since if finding.verdict is Verdict.HANGING}, []
    for finding in findings:
        is_in_doubt = finding.verdict is Verdict.INCONCLUSIVE or not has_state
        if finding.finding_id not in known and filters.has(finding, in_doubt=is_in_doubt):
            open_findings.append(finding)
    return open_findings


def list_transactions(states: Iterable[StateRecord], as_of_ms: int | None, filters: Filters) -> Answer:
    """The transactional ids with their current state; removed ones are not listed, as Kafka's tool does.

    A `duration_ms` keeps running transactions whose start is known; topics and partitions keep those that list one.
    """
    rows = sorted(
        (record.transactional_id, _coordinator(record), record.producer_id, record.state)
        for record in states
        # A Dead id is being removed: Kafka's coordinator leaves it out as well.
        if not record.is_tombstone and record.state != "Dead" and _is_wanted(record, as_of_ms, filters)
    )
    return Answer(LIST, tuple(rows))


def _is_wanted(record: StateRecord, as_of_ms: int | None, filters: Filters) -> bool:
    asked = (
        (filters.producer_ids, record.producer_id),
        (filters.states, record.state),
        (filters.state_partitions, record.state_partition),
    )
    is_named = all(not wanted or value in wanted for wanted, value in asked)
    has_place = filters.has_one_of(record.topic_partitions)
    lasted_ms = _running(record, as_of_ms)[1]
    is_long = filters.duration_ms is None or (lasted_ms is not None and lasted_ms > filters.duration_ms)
    return is_named and is_long and has_place and filters.has_id(record.transactional_id)


def _running(record: StateRecord, as_of_ms: int | None) -> tuple[int | None, int | None]:
    """Since when a transaction is running, and for how long, as far as both are known."""
    start_ms = record.start_ms if record.state in _RUNNING else None
    return start_ms, None if start_ms is None or as_of_ms is None else as_of_ms - start_ms


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
    return (
        _coordinator(record),
        record.transactional_id,
        record.producer_id,
        record.producer_epoch,
        record.state,
        record.timeout_ms,
        *_running(record, as_of_ms),
        [f"{topic}-{partition}" for topic, partition in sorted(record.topic_partitions)],
    )


def last_producers(run: PastRun, **one_of: Collection[Any]) -> pa.Table:
    """The producers at the ends of some logs, or of all, as `producers.sql` has them, by topic, partition and id."""
    rows = f"SELECT * FROM last_producers WHERE {is_one_of(one_of)} ORDER BY topic, `partition`, producer_id"  # noqa: S608 ours
    return ask(run, rows, views_in(_PRODUCERS))


def describe_producers(tables: RunTables, filters: Filters, *, is_all: bool) -> Answer:
    """The wanted producers; each with its topic and partition where those of all partitions are asked for."""
    columns = DESCRIBE_ALL_PRODUCERS if is_all else DESCRIBE_PRODUCERS
    column_values = last_producers(tables.finished, **filters.rows).columns[-len(columns) :]
    return Answer(columns, tuple(zip(*(column.to_pylist() for column in column_values), strict=True)))


def _coordinator(record: StateRecord) -> str | None:
    return None if record.state_partition is None else f"__transaction_state-{record.state_partition}"


def _transaction(record: str) -> tuple[Column, ...]:
    """The columns that name a transaction; `record` is the attribute that holds it."""
    return (
        Column("Topic", of=f"{record}.topic"),
        Column("Partition", of=f"{record}.partition"),
        Column("ProducerId", of=f"{record}.producer_id"),
        Column("StartOffset", of=f"{record}.txn_start_offset"),
        Column("TransactionalId", of=f"{record}.transactional_id"),
    )


VERIFY = (
    *_transaction("record"),
    Column("Repair", of="repair.value"),
    Column("MarkerOffset", of="marker_offset"),
    Column("LsoBefore", of="last_stable_offset_before"),
    Column("LsoAfter", of="last_stable_offset_after"),
    Column("RecommendedIn", of="record.run_id"),
    Column("Why", of="why"),
)
"""One row per recommended abort, of `Outcome`."""
HISTORY = (
    *_transaction("outcome.record"),
    Column("Rule", of="outcome.record.rule"),
    Column("Cause", of="cause"),
    # The latest moment at which its last record can have been written, by the brokers' clocks.
    Column("HangingSince", of=lambda past: iso_utc(past.findings[0].appended_before_ms)),
    Column("FirstSeenIn", of=lambda past: past.findings[0].run_id),
    Column("RecommendedIn", of="recommended_in"),
    Column("Repair", of="outcome.repair.value"),
    Column("EndedIn", of="ended_in"),
    Column("Nights", of=lambda past: len(past.findings)),
    Column("Times", of="times"),
)
"""One row per transaction that ever hung, of `Past`; `Nights` is how many runs saw it open."""


def what_is_open(open_plan: Unverified) -> str:
    """That nothing later tells what became of a plan, and what would; one line."""
    number = count(open_plan.count, "abort")
    if not open_plan.is_dated:
        undated = f"run {escape(open_plan.run_id)} does not know when its files were copied"
        return f"could not tell what became of {number}: {undated}. Audit them again with --as-of TIME"
    later = f"no capture is later than that of run {escape(open_plan.run_id)}, which recommends them"
    return f"could not tell what became of {number}: {later}. Copy the files again, audit them, then verify"


def in_words(outcomes: Sequence[Outcome], open_plan: Unverified | None) -> str:
    """How many of which kind, on one line; `open_plan` is what no later capture tells of, if there is any."""
    if not outcomes and open_plan is not None:
        return f"Nothing can be told yet of {count(open_plan.count, 'abort')} of run {escape(open_plan.run_id)}.\n"
    if not outcomes:
        return "No earlier run has an abort still to be verified.\n"
    counts = Counter(outcome.repair for outcome in outcomes)
    return ", ".join(f"{counts[repair]} {repair.value}" for repair in Repair) + "\n"


def json_text(answer: BaseModel | Iterable[BaseModel]) -> str:
    """An answer as one object, or several as a list of objects, and a newline; ASCII only."""
    json_value = (
        answer.model_dump(mode="json") if hasattr(answer, "model_dump") else [i.model_dump(mode="json") for i in answer]
    )
    return json.dumps(json_value, indent=2, ensure_ascii=True) + "\n"


def schema_text(kind: Any) -> str:
    """The JSON schema of an answer of some kind, such as `OffsetAnswer` or `list[Explanation]`."""
    return (
        json.dumps({"$schema": SCHEMA_DIALECT} | TypeAdapter(kind).json_schema(mode="serialization"), indent=2) + "\n"
    )
