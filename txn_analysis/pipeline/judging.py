"""Judging a run: the verdict on every open transaction of a reconstructed run, its cause, and the abort plan."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import JsonValue

from txn_analysis.columns.arrays import tuples_of
from txn_analysis.columns.memory import give_back_memory
from txn_analysis.columns.records import batch_of, records_of
from txn_analysis.columns.values import packed, rows_of_values, unpacked, unpickled, values_in
from txn_analysis.coordinator.coverage import StateEvidence
from txn_analysis.coordinator.steps import VIEWED
from txn_analysis.engine.engine import no_search_for_cycles
from txn_analysis.judge import blocked_groups as groups
from txn_analysis.judge.applications import ConnectGroups
from txn_analysis.judge.finding import Costs, finding_of, holders_of, place_of
from txn_analysis.judge.judgement import Cases, Judge, Judgement, Viewed, judge_of, no_cases
from txn_analysis.judge.outcome import Answer, LogCoverage, outcome_of
from txn_analysis.judge.warning_steps import WarningLine, near_bound, open_warnings, soonest
from txn_analysis.kafka.names import GROUP_TOPIC, STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.log.two_logs import two_clusters
from txn_analysis.pipeline.coordinator_side import (
    CoordinatorSide,
    coordinator_side,
    ids_side,
    states_of,
    write_current_states,
)
from txn_analysis.pipeline.linking import Logs
from txn_analysis.pipeline.planning import plan_of
from txn_analysis.pipeline.run import Given, Run, digest, parameters
from txn_analysis.reading.topic_config import read_topic_configs
from txn_analysis.runs.prunes import check_evidence
from txn_analysis.settings import EngineName, Settings
from txn_analysis.spark.jobs import described, in_parallel
from txn_analysis.tables import (
    ABORT_PLAN,
    FINDINGS,
    GROUP_OFFSETS,
    INPUTS,
    LOG_BATCHES,
    LOG_PIECES,
    PRODUCER_SNAPSHOTS,
    TRANSACTION_STATES,
    Finding,
    PartitionHealth,
    Transaction,
)
from txn_analysis.tables.finding_rows import SHOWN, FindingRows
from txn_analysis.tables.inputs import MOST_PLANNED, RunRecord
from txn_analysis.tables.keeping import TakenContent
from txn_analysis.tables.readings import READING_VERSION
from txn_analysis.tables.schema import ONLY, by_audit
from txn_analysis.text import count
from txn_analysis.warehouse.commits import commit_run
from txn_analysis.warehouse.rows import NamedRows, RowTasks


def blocked_groups(given: Given, opened: Sequence[Transaction]) -> dict[int, groups.Groups]:
    """By partition of `__consumer_offsets` with an open transaction, its groups; see `judge.blocked_groups`.

    Args:
        given: the audit of a command.
        opened: the open transactions of that topic.
    """
    engine, partitions = given.engine, {transaction.partition for transaction in opened}
    files = groups.files_that_count(groups.group_files(given.audits[ONLY].sections), partitions)
    if not files:
        return groups.blocked_groups(opened, files, groups.GroupOffsets())
    sections = {(file.input_id, file.section_index) for file in files}
    rows = given.rows(GROUP_OFFSETS, *groups.OFFSETS.names[1:], partition=sorted(partitions))
    producers = {transaction.producer_id for transaction in opened}
    offsets = engine.mapped(rows, groups.of_sections(sections, producers), groups.OFFSETS)
    with described("judge: find the consumer groups that wait behind __consumer_offsets"):
        made = engine.grouped(["partition", "group_id"], groups.sum_step, groups.OFFSETS, offsets=offsets)
        summed_up = engine.collected(made)
    return groups.blocked_groups(opened, files, groups.GroupOffsets.of(summed_up.to_pylist()))


EVIDENCE_TABLES = (INPUTS, LOG_BATCHES, LOG_PIECES, GROUP_OFFSETS, PRODUCER_SNAPSHOTS, TRANSACTION_STATES)


@dataclass(frozen=True)
class Judged:
    """The answers of one run, whose findings are written.

    Attributes:
        run: the run.
        health: one row of `partition_health` per partition, for the report.
        findings: as reports show them.
        plan: rows of `abort_plan`.
        record: of the run.
    """

    run: Run
    health: Sequence[PartitionHealth]
    findings: FindingRows
    plan: pa.Table
    record: RunRecord

    def write(self) -> None:
        """Write the plan, then the row of `runs`, with which everything of the run begins to count."""
        self.run.replace(self.plan.to_batches(), ABORT_PLAN)
        evidence = {TakenContent(item.ingest_id, item.input_id) for item in self.run.evidence.inputs}
        check_evidence(self.run.warehouse, evidence, time.time_ns() // 1_000_000)
        commit_run(self.run.warehouse, self.record)


MOST_AT_ONCE = 2_048
"""So many open transactions are judged at once: facts, verdicts and sentences of no others are in memory."""
_MOST_OF_TASK = 4 * MOST_AT_ONCE
_NEAREST = "nearest"
"""What tasks tell the driver beside the rows that they write: as values, which open transactions will be late next."""


def judge(run: Run, logs: Logs) -> Judged:
    """The verdict on every open transaction of linked logs, and the plan for those that hang; writes the findings."""
    with states_of(run, logs.producers) as states:
        side, (of_ids, connect), _ = in_parallel(
            partial(coordinator_side, run, states, logs),
            partial(ids_side, run.engine, states, run.settings, run.as_of_ms),
            partial(write_current_states, run, states),
        )
    give_back_memory()
    health, state = logs.health.get(ONLY, []), side.seen[ONLY]
    judge_, _ = judges_of(run, side, logs.health)[ONLY]
    costs = _costs_of(run, side.viewed, judge_, connect)
    work = [work_of(judge_, costs, rows) for rows in side.viewed.to_batches(_MOST_OF_TASK)]
    verdicts = partial(verdicts_of, run_id=run.run_id)
    with described(f"judge: give {count(len(side.viewed), 'open transaction')} a verdict"):
        tasks = RowTasks(work, (FINDINGS,), verdicts, run.engine.name is EngineName.SPARK)
        of_driver = run.warehouse.fill(tasks, run_id=run.run_id)
    nearest = of_driver.get(_NEAREST, rows_of_values())
    give_back_memory()
    aborts = plan_of(run)
    give_back_memory()
    shown = FindingRows.together([*map(FindingRows.of_batch, run.batches(FINDINGS, *SHOWN))])
    near = soonest([one for of_some in values_in(nearest) for one in of_some])
    warnings = [*open_warnings(near, run.as_of_ms), *of_ids]
    record = _record_of(run, health, state, judge_, shown, aborts, warnings, connect)
    return Judged(run, health, shown, aborts, record)


class Work(NamedTuple):
    """What a task judges.

    Attributes:
        judge: what it judges by, as far as these transactions ask.
        costs: what their partitions suffer.
        viewed: rows of `VIEWED`, packed.
    """

    judge: Judge
    costs: Costs
    viewed: bytes


def work_of(judge_: Judge, costs: Costs, viewed: pa.RecordBatch) -> Work:
    """The work of one task; it takes along no partitions but those of its transactions, and those of the state."""
    places = {TopicPartition(*place) for place in tuples_of(viewed, ("topic", "partition"))}
    health = {place: one for place, one in judge_.partitions.items() if place in places or place.topic == STATE_TOPIC}
    holders = {place: holder for place, holder in costs.holders.items() if place in places}
    return Work(replace(judge_, partitions=health), replace(costs, holders=holders), packed([viewed], VIEWED))


def verdicts_of(work: Work, run_id: str) -> Iterator[NamedRows]:
    """What a task makes of its work: rows of `findings` of a run, and `_NEAREST` for the driver."""
    costs = work.costs
    for some in _some_at_a_time(unpacked(work.viewed)):
        with no_search_for_cycles():
            judged = work.judge.judged(some)
            findings = [
                finding_of(one, run_id, _finding_id(costs.settings, one), costs.of(one), costs.connect)
                for one in judged
            ]
            rows = batch_of(Finding, findings, FINDINGS.arrow_schema)
        yield FINDINGS.name, rows
        yield from ((_NEAREST, rows) for rows in rows_of_values(soonest(near_bound(judged))).to_batches())


def judges_of(
    given: Given, side: CoordinatorSide, health: Mapping[int, Iterable[PartitionHealth]]
) -> dict[int, tuple[Judge, Cases]]:
    """By audit, what its open transactions are judged by, and these.

    Args:
        given: the audits.
        side: what is known of the coordinator of each.
        health: of the partitions of each.
    """
    cases, bearing = cases_of(side.viewed), cases_of(side.viewed.filter(side.viewed["bears_on_others"]))
    judges = {}
    for number, seen in side.seen.items():
        audit = given.audits[number]
        partitions = {TopicPartition(one.topic, one.partition): one for one in health.get(number, ())}
        judge_ = judge_of(
            bearing.get(number, no_cases),
            partitions,
            seen,
            audit.settings,
            audit.moments,
            audit.sections,
            audit.manifests,
            is_partial=audit.is_partial,
        )
        judges[number] = judge_, cases.get(number, no_cases)
    return judges


def cases_of(viewed: pa.Table) -> dict[int, Cases]:
    """By audit, what is open; records are made of many rows when they are asked for, of few at once.

    Args:
        viewed: rows of `VIEWED`.
    """
    if len(viewed) > MOST_AT_ONCE:
        return {number: partial(_some_at_a_time, rows) for number, rows in by_audit(viewed).items()}
    cases: defaultdict[int, list[Viewed]] = defaultdict(list)
    for audit, case in zip(viewed["audit"].to_pylist(), _cases(viewed), strict=True):
        cases[audit].append(case)
    return {number: partial(iter, [audit_cases]) for number, audit_cases in cases.items()}


def _some_at_a_time(viewed: pa.Table) -> Iterator[list[Viewed]]:
    for start in range(0, len(viewed), MOST_AT_ONCE):
        yield _cases(viewed.slice(start, MOST_AT_ONCE))


def _cases(viewed: pa.Table) -> list[Viewed]:
    return [*zip(records_of(Transaction, viewed), unpickled(viewed["view"].to_pylist()), strict=True)]


def _costs_of(run: Run, viewed: pa.Table, judge_: Judge, connect: ConnectGroups) -> Costs:
    places = tuples_of(viewed, ("topic", "partition", "producer_id", "txn_start_offset"))
    starts = [(TopicPartition(topic, number), *rest) for topic, number, *rest in places]
    of_groups = viewed.filter(pc.equal(viewed["topic"], GROUP_TOPIC))
    return Costs(
        holders_of(starts, judge_.partitions),
        {} if run.settings.topic_config is None else read_topic_configs(run.settings.topic_config),
        blocked_groups(run, records_of(Transaction, of_groups)) if len(of_groups) else {},
        run.settings,
        run.as_of_ms,
        connect,
    )


def _finding_id(settings: Settings, judged: Judgement) -> str:
    where, producer_id, start = place_of(judged)
    return digest((settings.cluster, *where, producer_id, start))


def _clusters(run: Run, health: Iterable[PartitionHealth]) -> dict[str, dict[str, JsonValue]]:
    """What looks like two clusters, where anything does."""
    two_logs = {(one.topic, one.partition): one.two_logs for one in health}
    looks = two_clusters(two_logs, run.evidence.sections, run.evidence.captures)
    return {} if looks is None else {"clusters": looks._asdict()}


def _asked(run: Run) -> dict[str, JsonValue]:
    """The partitions that its capture is asked for, where it is not asked for all."""
    asked = run.evidence.asked
    return {} if asked is None else {"asked": [one._asdict() for one in asked]}


def _record_of(
    run: Run,
    health: Sequence[PartitionHealth],
    state: StateEvidence,
    judge_: Judge,
    findings: FindingRows,
    plan: pa.Table,
    warnings: Sequence[WarningLine],
    connect: ConnectGroups,
) -> RunRecord:
    settings = run.settings
    outcome = outcome_of(findings.records(Answer), has_state=state.seen_count > 0, logs=LogCoverage.of(health))
    # Whoever reads the run later counts on as many partitions of the state.
    counted = {
        "transaction_state_partitions": state.count.used,
        "transaction_state_partitions_basis": state.count.basis,
    }
    return RunRecord(
        run_id=run.run_id,
        run_number=0,
        cluster=settings.cluster,
        capture=run.evidence.capture,
        earlier_captures=tuple(reversed(run.evidence.captures[1:])),
        as_of_ms=run.as_of_ms,
        as_of_basis="given" if settings.as_of_ms is not None else "newest_broker_timestamp",
        parameters=json.dumps(parameters(settings) | counted, sort_keys=True),
        input_count=sum(item.capture_rank == 0 for item in run.evidence.inputs),
        table_versions=run.warehouse.versions(EVIDENCE_TABLES),
        verdict_counts={verdict.value: number for verdict, number in findings.verdict_counts.items()},
        state_coverage=json.dumps(
            judge_.state.coverage(judge_.settings)
            | {"disproved": judge_.disproved}
            | ({"copied": judge_.copied.plain()} if judge_.copied.manifest_count else {})
            | connect.coverage
            | _clusters(run, health)
            | _asked(run),
            sort_keys=True,
        ),
        warnings=json.dumps([asdict(line) for line in warnings], sort_keys=True),
        outcome=outcome.value,
        planned=None if len(plan) > MOST_PLANNED else tuple(plan["finding_id"].to_pylist()),
        reading_version=READING_VERSION,
    )
