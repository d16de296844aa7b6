"""Judging a run: the verdict on every open transaction of a reconstructed run, its cause, and the abort plan."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.advise.abort_plan import abort_plan
from txn_analysis.blocked_groups import GROUP_TOPIC, blocked_groups
from txn_analysis.commits import commit_run
from txn_analysis.frames import collected
from txn_analysis.ingest.sections import STATE_TOPIC
from txn_analysis.ingest.topic_config import read_topic_configs
from txn_analysis.judge.coordinator import candidate_key, coordinator_facts, state_evidence
from txn_analysis.judge.early_warning import id_warnings, open_warnings
from txn_analysis.judge.impact import impact_of
from txn_analysis.judge.judgement import judgement_of
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.parallel import in_parallel
from txn_analysis.run import digest, parameters
from txn_analysis.tables import (
    ABORT_PLAN,
    FINDINGS,
    INPUTS,
    LOG_BATCHES,
    LOG_PIECES,
    PARTITION_HEALTH,
    PRODUCER_SNAPSHOTS,
    TRANSACTION_STATES,
    TRANSACTIONS,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from txn_analysis.ingest.topic_config import TopicConfig
    from txn_analysis.judge.state_coverage import StateEvidence
    from txn_analysis.run import Run

Row = dict[str, Any]

EVIDENCE_TABLES = (INPUTS, LOG_BATCHES, LOG_PIECES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES)


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
    opened, health = in_parallel(
        partial(collected, run.rows(TRANSACTIONS).where(F.col("outcome") == "open")),
        partial(collected, run.rows(PARTITION_HEALTH).drop("producers")),
    )
    configs = {} if run.settings.topic_config is None else read_topic_configs(run.settings.topic_config)
    states = run.states().persist()
    (state, judged), of_ids = in_parallel(
        lambda: judged_rows(run, opened, health, states), lambda: id_warnings(states, run.settings, run.as_of_ms)
    )
    states.unpersist()
    warnings = [*open_warnings(judged, run.settings), *of_ids]
    groups = blocked_groups(run, judged)
    impacts = _impacts(run, judged, health, configs)
    for row in judged:
        if row["topic"] == GROUP_TOPIC and _place(row) in impacts:
            impacts[_place(row)] |= groups.get(row["partition"], {})
    findings = [_finding(row, run, impacts.get(_place(row))) for row in judged]
    return Judged(run, health, findings, plan_of(run, findings), _run_row(run, state, findings, warnings))


def judged_rows(run: Run, opened: list[Row], health: list[Row], states: DataFrame) -> tuple[StateEvidence, list[Row]]:
    """The coordinator's coverage, and the judged rows of some open transactions, with all facts.

    Args:
        run: whose evidence counts.
        opened: rows of `transactions`, open ones.
        health: all rows of `partition_health` of the run.
        states: the records of the coordinator that are evidence in the run.
    """
    state, known = _coordinator(run, opened, health, states)
    partitions = {(row["topic"], row["partition"]): row for row in health}
    judged = []
    for row in opened:
        coordinator, partition = known.get(candidate_key(row)), partitions[row["topic"], row["partition"]]
        decider = partitions.get((STATE_TOPIC, None if coordinator is None else coordinator["state_partition"]))
        epoch = None if decider is None else decider["leader_epoch"]
        judged.append(judgement_of(row, partition, coordinator, state, run.settings, run.as_of_ms, epoch))
    return state, judged


def _coordinator(
    run: Run, opened: list[Row], health: list[Row], states: DataFrame
) -> tuple[StateEvidence, dict[tuple[Any, ...], Row]]:
    """The coordinator's coverage, and what it knows of open transactions, by `candidate_key`."""
    settings = run.settings
    facts_known = coordinator_facts(run.warehouse.rows(opened, TRANSACTIONS), states, settings.max_clock_skew_ms)
    state, known = in_parallel(
        partial(state_evidence, states, run.evidence, health, settings),
        lambda: collected(facts_known) if opened else [],
    )
    return state, {candidate_key(row): row for row in known}


def plan_of(run: Run, findings: list[Row]) -> list[Row]:
    """The rows of `abort_plan` for the findings of a run."""
    return [record.model_dump() for record in abort_plan(findings, run.settings, run.as_of_ms)]


def _place(row: Row) -> tuple[Any, ...]:
    return row["topic"], row["partition"], row["producer_id"], row["txn_start_offset"]


def _impacts(run: Run, judged: list[Row], health: list[Row], configs: dict[str, TopicConfig]) -> dict[Any, Row]:
    """What each blocked partition suffers, by the place of the transaction that holds its last stable offset."""
    partitions = {(row["topic"], row["partition"]): row for row in health}
    holders: dict[Any, Row] = {}
    for row in sorted(judged, key=lambda row: int(row["txn_start_offset"])):
        if row["blocks_partition"]:
            holders.setdefault((row["topic"], row["partition"]), row)
    return {
        _place(row): impact_of(row, partitions[place], configs.get(place[0]), run.settings.free_bytes, run.as_of_ms)
        for place, row in holders.items()
    }


def _finding(judged: Row, run: Run, impact: Row | None) -> Row:
    """The row of `findings` of one judged transaction."""
    place = (run.settings.cluster, *_place(judged))
    row = judged | {"run_id": run.run_id, "finding_id": digest(place), "impact": impact}
    return {name: row[name] for name in FINDINGS.schema.names}


def _run_row(run: Run, state: StateEvidence, findings: list[Row], warnings: list[Row]) -> Row:
    settings, verdict_counts = run.settings, Counter(row["verdict"] for row in findings)
    coverage = state.coverage(holes_waived=settings.transaction_state_complete)
    return {
        "run_id": run.run_id,
        "cluster": settings.cluster,
        "capture": run.evidence.capture,
        "earlier_captures": list(reversed(run.evidence.captures[1:])),
        "as_of_ms": run.as_of_ms,
        "as_of_basis": "given" if settings.as_of_ms is not None else "newest_broker_timestamp",
        "parameters": json.dumps(parameters(settings), sort_keys=True),
        "input_count": sum(item["capture_rank"] == 0 for item in run.evidence.inputs),
        "table_versions": run.warehouse.versions(EVIDENCE_TABLES),
        "verdict_counts": dict(verdict_counts),
        "state_coverage": json.dumps(coverage, sort_keys=True),
        "warnings": json.dumps(warnings, sort_keys=True),
        "outcome": "findings" if verdict_counts[Verdict.HANGING.value] else "clean",
    }
