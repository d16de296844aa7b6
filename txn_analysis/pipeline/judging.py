"""Judging a run: the verdict on every open transaction of a reconstructed run, its cause, and the abort plan."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.judge.early_warning import open_warnings
from txn_analysis.judge.finding import Finding, Place, finding_of, impacts_of, place_of
from txn_analysis.judge.judgement import Judgement, Judgements, judgements_of
from txn_analysis.judge.outcome import SeenLog, Sight, outcome_of
from txn_analysis.kafka.topics import GROUP_TOPIC
from txn_analysis.kafka.transactions import OPEN_COLUMNS, OpenTransaction, PartitionView
from txn_analysis.log.two_clusters import two_clusters
from txn_analysis.log.two_logs import TwoLogs
from txn_analysis.pipeline.coordinator_side import coordinator_of
from txn_analysis.pipeline.on_spark.blocked_groups import blocked_groups
from txn_analysis.pipeline.run import digest, parameters
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.read.topic_config import read_topic_configs
from txn_analysis.runs.run_record import RunRecord
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
    TRANSACTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.judge.early_warning import WarningLine
    from txn_analysis.judge.impact import Impact
    from txn_analysis.pipeline.run import Run
    from txn_analysis.plan.abort_plan import AbortRecord

TableRow = Mapping[str, Any]
EVIDENCE_TABLES = (INPUTS, LOG_BATCHES, LOG_PIECES, GROUP_OFFSETS, PRODUCER_SNAPSHOTS, TRANSACTION_STATES)


@dataclass(frozen=True)
class Judged:
    """The answers of one run: its findings, its abort plan, and its own record.

    As many as transactions are open, so they are held here and written once. `health` is one row of `partition_health`
    per partition, for the report.
    """

    run: Run
    health: Sequence[TableRow]
    findings: tuple[Finding, ...]
    plan: tuple[AbortRecord, ...]
    record: RunRecord

    def write(self) -> None:
        """Write findings and plan, then the row of `runs`, with which everything of the run begins to count."""
        findings, plan = [finding.row() for finding in self.findings], [record.model_dump() for record in self.plan]
        in_parallel(
            partial(self.run.replace_rows, findings, FINDINGS),
            partial(self.run.replace_rows, plan, ABORT_PLAN),
        )
        commit_run(self.run.warehouse, self.record.row())


def judge(run: Run) -> Judged:
    """The verdict on every open transaction of a reconstructed run, and the plan for those that hang."""
    seen = _seen(run)
    warnings = [*open_warnings(seen.judged.of_open, run.settings), *seen.of_ids]
    findings = tuple(_findings(run, seen.judged.of_open))
    plan = abort_plan(findings, run.settings, run.as_of_ms)
    return Judged(run, seen.health, findings, plan, _record_of(run, seen, findings, warnings))


class _Seen(NamedTuple):
    """What was judged, by rows of `partition_health` and by what was seen of the state, and what it says of ids."""

    health: Sequence[TableRow]
    state: StateEvidence
    judged: Judgements
    of_ids: list[WarningLine]


def _seen(run: Run) -> _Seen:
    rows, health = in_parallel(partial(run.listed, TRANSACTIONS, *OPEN_COLUMNS, outcome=["open"]), run.health)
    opened, followed = [OpenTransaction.of(row) for row in rows], [PartitionView.of(row) for row in health]
    side, of_ids = coordinator_of(run, opened, followed)
    partitions, sections = {view.topic_partition: view for view in followed}, run.evidence.section_rows
    judged = judgements_of(opened, partitions, side.views, side.state, run.settings, run.moments, sections)
    return _Seen(health, side.state, judged, of_ids)


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
    groups = blocked_groups(run, opened) if opened else {}
    return {
        place: replace(impact, **groups[place[0].partition]._asdict()) if place[0].topic == GROUP_TOPIC else impact
        for place, impact in impacts.items()
    }


def _clusters(run: Run, health: Iterable[TableRow]) -> dict[str, Any]:
    """What looks like two clusters, where anything does."""
    found = {(row["topic"], row["partition"]): [TwoLogs(**two) for two in row["two_logs"]] for row in health}
    looks = two_clusters(found, run.evidence.section_rows, run.evidence.captures)
    return {} if looks is None else {"clusters": looks._asdict()}


def _counted(state: StateEvidence) -> dict[str, int | str]:
    """How many partitions of the state were counted on, and why: whoever reads the run later counts on them too."""
    return {
        "transaction_state_partitions": state.count.used,
        "transaction_state_partitions_basis": state.count.basis,
    }


def _record_of(run: Run, seen: _Seen, findings: Sequence[Finding], warnings: Sequence[WarningLine]) -> RunRecord:
    state, judged, settings = seen.state, seen.judged, run.settings
    sight = Sight.of(map(SeenLog.of, seen.health))
    outcome = outcome_of(judged.of_open, has_state=state.seen_count > 0, sight=sight)
    coverage = state.coverage(holes_waived=settings.transaction_state_complete)
    return RunRecord(
        run_id=run.run_id,
        cluster=settings.cluster,
        capture=run.evidence.capture,
        earlier_captures=tuple(reversed(run.evidence.captures[1:])),
        as_of_ms=run.as_of_ms,
        as_of_basis="given" if settings.as_of_ms is not None else "newest_broker_timestamp",
        parameters=json.dumps(parameters(settings) | _counted(state), sort_keys=True),
        input_count=sum(item["capture_rank"] == 0 for item in run.evidence.inputs),
        table_versions=run.warehouse.versions(EVIDENCE_TABLES),
        verdict_counts=dict(Counter(finding.verdict.value for finding in findings)),
        state_coverage=json.dumps(
            coverage.plain() | {"disproved": judged.disproved} | _clusters(run, seen.health), sort_keys=True
        ),
        warnings=json.dumps([asdict(line) for line in warnings], sort_keys=True),
        outcome=outcome.value,
    )
