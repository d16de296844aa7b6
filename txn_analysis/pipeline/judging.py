"""Judging a run: the verdict on every open transaction of a reconstructed run, its cause, and the abort plan."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import is_in
from txn_analysis.columns.records import batch_of
from txn_analysis.judge import blocked_groups as groups
from txn_analysis.judge.early_warning import open_warnings
from txn_analysis.judge.finding import Place, finding_of, impacts_of, place_of
from txn_analysis.judge.judgement import Judgement, Judgements, judgements_of
from txn_analysis.judge.outcome import Sight, outcome_of
from txn_analysis.kafka.names import GROUP_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.log.two_logs import two_clusters
from txn_analysis.pipeline.coordinator_side import coordinator_sides, states_of, warnings_of_ids
from txn_analysis.pipeline.run import digest, parameters
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.read.topic_config import read_topic_configs
from txn_analysis.spark.parallel import in_parallel
from txn_analysis.storage.commits import commit_run
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
)
from txn_analysis.tables.abort_plan import plan_rows
from txn_analysis.tables.given import ONLY, given_schema
from txn_analysis.tables.inputs import RunRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.steps import CoordinatorSide
    from txn_analysis.judge.early_warning import WarningLine
    from txn_analysis.pipeline.linking import Logs
    from txn_analysis.pipeline.run import Given, Run
    from txn_analysis.tables import AbortRecord, Impact, Transaction


_SECTION = ("input_id", "section_index")
_STRETCH = (*_SECTION, "text_start_bytes", "text_end_bytes")
_KEY = ("audit", "partition", "group_id", "producer_id", *_STRETCH)
OFFSETS = pa.schema([f.with_nullable(True) for f in given_schema(GROUP_OFFSETS, *_KEY[1:], "last_offset")])
"""One row is a stretch of text in which all groups were read; or a group with offsets of an open producer, or of any
other, and names neither that one nor its stretch."""


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
    rows = given.rows(GROUP_OFFSETS, *OFFSETS.names[1:], partition=sorted(partitions))
    own = engine.mapped(rows, of_sections(sections, {transaction.producer_id for transaction in opened}), OFFSETS)
    summed_up = engine.collected(engine.grouped(["partition", "group_id"], sum_step, OFFSETS, offsets=own))
    return groups.blocked_groups(opened, files, groups.GroupOffsets.of(summed_up.to_pylist()))


def of_sections(sections: Collection[tuple[str, int]], producers: Collection[int]) -> BatchFunction:
    """Of rows of `group_offsets` those of some sections, summed up with regard to some producers."""
    asked = pa.array(sorted(producers), pa.int64())

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.filter(pa.array(is_in(batch, _SECTION, sections)))
            is_stretch, is_asked = pc.is_null(rows["group_id"]), pc.is_in(rows["producer_id"], asked)
            kept = dict.fromkeys(_STRETCH, is_stretch) | {"producer_id": is_asked}
            columns = [
                pc.if_else(kept[f.name], rows[f.name], pa.scalar(None, f.type)) if f.name in kept else rows[f.name]
                for f in OFFSETS
            ]
            yield from _summed_up(pa.table(columns, OFFSETS.names)).to_batches()

    return run


def sum_step(tables: Mapping[str, pa.Table]) -> pa.Table:
    """By partition and group, of `offsets`: each once, with its last offset."""
    return _summed_up(tables["offsets"])


def _summed_up(rows: pa.Table) -> pa.Table:
    found = rows.group_by([*_KEY]).aggregate([("last_offset", "max")])
    return pa.table([found[name] for name in (*_KEY, "last_offset_max")], OFFSETS.names).cast(OFFSETS)


EVIDENCE_TABLES = (INPUTS, LOG_BATCHES, LOG_PIECES, GROUP_OFFSETS, PRODUCER_SNAPSHOTS, TRANSACTION_STATES)


@dataclass(frozen=True)
class Judged:
    """The answers of one run: its findings, its abort plan, and its own record.

    As many as transactions are open, so they are held here and written once. `health` is one row of `partition_health`
    per partition, for the report.
    """

    run: Run
    health: Sequence[PartitionHealth]
    findings: tuple[Finding, ...]
    plan: tuple[AbortRecord, ...]
    record: RunRecord

    def write(self) -> None:
        """Write findings and plan, then the row of `runs`, with which everything of the run begins to count."""
        findings = batch_of(Finding, self.findings, FINDINGS.arrow_schema)
        in_parallel(
            partial(self.run.replace, [findings], FINDINGS),
            partial(self.run.replace, [plan_rows(self.plan)], ABORT_PLAN),
        )
        commit_run(self.run.warehouse, self.record)


def judge(run: Run, logs: Logs) -> Judged:
    """The verdict on every open transaction of linked logs, and the plan for those that hang."""
    with states_of(run) as states:
        sides, of_ids = in_parallel(
            partial(coordinator_sides, run, states, logs),
            partial(warnings_of_ids, run.engine, states.histories, run.settings, run.as_of_ms),
        )
    health, state, judged = logs.health.get(ONLY, []), sides[ONLY].state, judged_audits(run, sides, logs)[ONLY]
    warnings = [*open_warnings(judged.of_open, run.settings), *of_ids]
    findings = tuple(_findings(run, judged.of_open))
    plan = abort_plan(findings, run.settings, run.as_of_ms)
    return Judged(run, health, findings, plan, _record_of(run, health, state, judged, findings, warnings))


def judged_audits(given: Given, sides: Mapping[int, CoordinatorSide], logs: Logs) -> dict[int, Judgements]:
    """By audit, the verdict on every open transaction of linked logs.

    Args:
        given: the audits.
        sides: what is known of the coordinator of each.
        logs: theirs.
    """
    found = {}
    for number, side in sides.items():
        audit, opened = given.audits[number], logs.opened.get(number, [])
        partitions = {TopicPartition(one.topic, one.partition): one for one in logs.health.get(number, ())}
        found[number] = judgements_of(
            opened,
            partitions,
            side.views,
            side.state,
            audit.settings,
            audit.moments,
            audit.sections,
            audit.manifests,
        )
    return found


def _findings(run: Run, judged: list[Judgement]) -> Iterable[Finding]:
    configs = {} if run.settings.topic_config is None else read_topic_configs(run.settings.topic_config)
    impacts = _with_groups(run, judged, impacts_of(judged, configs, run.settings, run.as_of_ms))
    for judgement in judged:
        where, producer_id, start = place = place_of(judgement)
        finding_id = digest((run.settings.cluster, *where, producer_id, start))
        yield finding_of(judgement, run.run_id, finding_id, impacts.get(place))


def _with_groups(run: Run, judged: list[Judgement], impacts: Mapping[Place, Impact]) -> dict[Place, Impact]:
    """The impacts on `__consumer_offsets` with the groups that wait behind them."""
    opened = [judgement.opened for judgement in judged if judgement.opened.topic == GROUP_TOPIC]
    waiting = blocked_groups(run, opened) if opened else {}
    return {
        place: impact._replace(**waiting[place[0].partition]._asdict()) if place[0].topic == GROUP_TOPIC else impact
        for place, impact in impacts.items()
    }


def _clusters(run: Run, health: Iterable[PartitionHealth]) -> dict[str, dict[str, JsonValue]]:
    """What looks like two clusters, where anything does."""
    found = {(one.topic, one.partition): one.two_logs for one in health}
    looks = two_clusters(found, run.evidence.sections, run.evidence.captures)
    return {} if looks is None else {"clusters": looks._asdict()}


def _record_of(
    run: Run,
    health: Sequence[PartitionHealth],
    state: StateEvidence,
    judged: Judgements,
    findings: Sequence[Finding],
    warnings: Sequence[WarningLine],
) -> RunRecord:
    settings = run.settings
    outcome = outcome_of(judged.of_open, has_state=state.seen_count > 0, sight=Sight.of(health))
    coverage = state.coverage(holes_waived=settings.transaction_state_complete)
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
        verdict_counts=dict(Counter(finding.verdict.value for finding in findings)),
        state_coverage=json.dumps(
            coverage.plain()
            | {"disproved": judged.disproved}
            | ({"copied": judged.copied.plain()} if judged.copied.manifest_count else {})
            | _clusters(run, health),
            sort_keys=True,
        ),
        warnings=json.dumps([asdict(line) for line in warnings], sort_keys=True),
        outcome=outcome.value,
    )
