"""Judging a run: the verdict on every open transaction of a reconstructed run, its cause, and the abort plan."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

from txn_analysis.judge.early_warning import open_warnings
from txn_analysis.judge.finding import Finding, Place, finding_of, impacts_of, place_of
from txn_analysis.judge.judgement import Judgement, Judgements, judgements_of
from txn_analysis.judge.outcome import has_logs, outcome_of
from txn_analysis.judge.warnings_of_records import id_warnings_of
from txn_analysis.kafka.topics import GROUP_TOPIC
from txn_analysis.kafka.transactions import OpenTransaction, PartitionView
from txn_analysis.pipeline.coordinator_side import CoordinatorSide, coordinator_side, side_at_hand
from txn_analysis.pipeline.on_spark.blocked_groups import blocked_groups
from txn_analysis.pipeline.on_spark.warnings import id_warnings
from txn_analysis.pipeline.run import digest, parameters
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.read.topic_config import read_topic_configs
from txn_analysis.spark.parallel import in_parallel
from txn_analysis.storage.commits import commit_run
from txn_analysis.storage.frames import collected
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
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.judge.impact import Impact
    from txn_analysis.pipeline.run import Run

Row = dict[str, Any]

EVIDENCE_TABLES = (INPUTS, LOG_BATCHES, LOG_PIECES, GROUP_OFFSETS, PRODUCER_SNAPSHOTS, TRANSACTION_STATES)


@dataclass(frozen=True)
class Judged:
    """The answers of one run as rows: its findings, its abort plan, and its own row of `runs`.

    As many as transactions are open, so they are held here and written once; `health` is one row per partition.
    """

    run: Run
    health: list[Row]
    findings: list[Row]
    plan: list[Row]
    run_row: Row

    def write(self) -> None:
        """Write findings and plan, then the row of `runs`, with which everything of the run begins to count."""
        in_parallel(
            partial(self.run.replace_rows, self.findings, FINDINGS),
            partial(self.run.replace_rows, self.plan, ABORT_PLAN),
        )
        commit_run(self.run.warehouse, self.run_row)


def judge(run: Run) -> Judged:
    """The verdict on every open transaction of a reconstructed run, and the plan for those that hang."""
    seen = _seen_at_hand(run) if run.evidence.is_at_hand else _seen_in_tasks(run)
    warnings = [*open_warnings(seen.judged.of_open, run.settings), *seen.of_ids]
    findings = [finding.row() for finding in _findings(run, seen.judged.of_open)]
    run_row = _run_row(run, seen, findings, warnings)
    return Judged(run, seen.health, findings, plan_of(run, findings), run_row)


class _Seen(NamedTuple):
    """What was judged, by rows of `partition_health` and by what was seen of the state, and what it says of ids."""

    health: list[Row]
    state: StateEvidence
    judged: Judgements
    of_ids: list[Row]


def _seen_at_hand(run: Run) -> _Seen:
    opened, health = in_parallel(partial(run.listed, TRANSACTIONS, outcome=["open"]), run.health)
    side = side_at_hand(run, opened, health)
    judged = _judged(run, opened, health, side)
    return _Seen(health, side.state, judged, id_warnings_of(run.state_records, run.as_of_ms))


def _seen_in_tasks(run: Run) -> _Seen:
    opened, health, states = in_parallel(
        lambda: collected(run.rows(TRANSACTIONS).where(F.col("outcome") == "open")),
        run.health,
        run.states,  # may look how many partitions there are
    )
    states.persist()
    try:
        (state, judged), of_ids = in_parallel(
            lambda: judgements(run, opened, health, states), lambda: id_warnings(states, run.settings, run.as_of_ms)
        )
    finally:
        states.unpersist()
    return _Seen(health, state, judged, of_ids)


def judgements(run: Run, opened: list[Row], health: list[Row], states: DataFrame) -> tuple[StateEvidence, Judgements]:
    """The coordinator's coverage, and the judgement of some open transactions.

    Args:
        run: whose evidence counts.
        opened: rows of `transactions`, open ones.
        health: all rows of `partition_health` of the run.
        states: the records of the coordinator that are evidence in the run.
    """
    side = coordinator_side(run, opened, health, states)
    return side.state, _judged(run, opened, health, side)


def _judged(run: Run, opened: list[Row], health: list[Row], side: CoordinatorSide) -> Judgements:
    partitions = {view.topic_partition: view for view in map(PartitionView.of, health)}
    transactions = [OpenTransaction.of(row) for row in opened]
    return judgements_of(transactions, partitions, side.views, side.state, run.settings, run.moments)


def plan_of(run: Run, findings: list[Row]) -> list[Row]:
    """The rows of `abort_plan` for the findings of a run."""
    return [record.model_dump() for record in abort_plan(findings, run.settings, run.as_of_ms)]


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


def _counted(state: StateEvidence) -> Row:
    """How many partitions of the state were counted on, and why: whoever reads the run later counts on them too."""
    return {
        "transaction_state_partitions": state.count.used,
        "transaction_state_partitions_basis": state.count.basis,
    }


def _run_row(run: Run, seen: _Seen, findings: list[Row], warnings: list[Row]) -> Row:
    state, judged = seen.state, seen.judged
    is_seeing = has_logs((row["topic"], row["is_in_capture"]) for row in seen.health)
    outcome = outcome_of(judged.of_open, has_state=state.seen_count > 0, has_logs=is_seeing)
    settings, verdict_counts = run.settings, Counter(str(row["verdict"]) for row in findings)
    coverage = state.coverage(holes_waived=settings.transaction_state_complete) | {"disproved": judged.disproved}
    return {
        "run_id": run.run_id,
        "cluster": settings.cluster,
        "capture": run.evidence.capture,
        "earlier_captures": list(reversed(run.evidence.captures[1:])),
        "as_of_ms": run.as_of_ms,
        "as_of_basis": "given" if settings.as_of_ms is not None else "newest_broker_timestamp",
        "parameters": json.dumps(parameters(settings) | _counted(state), sort_keys=True),
        "input_count": sum(item["capture_rank"] == 0 for item in run.evidence.inputs),
        "table_versions": run.warehouse.versions(EVIDENCE_TABLES),
        "verdict_counts": dict(verdict_counts),
        "state_coverage": json.dumps(coverage, sort_keys=True),
        "warnings": json.dumps(warnings, sort_keys=True),
        "outcome": outcome.value,
    }
