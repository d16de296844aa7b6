"""The audit as its steps: ingest, reconstruct, judge, plan, report. Every verb and every job calls these functions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.advise.abort_plan import abort_plan
from txn_analysis.errors import WarehouseError
from txn_analysis.evidence import Evidence, evidence_of
from txn_analysis.ingest.ingest import Ingested
from txn_analysis.ingest.ingest import ingest as read_inputs
from txn_analysis.judge.coordinator import coordinator_facts, state_evidence
from txn_analysis.judge.facts import facts
from txn_analysis.judge.rules import VERDICTS, first_rule
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.judge.words import evidence, missing_evidence
from txn_analysis.reconstruct.partitions import linked_partitions, partition_health, transactions
from txn_analysis.report.model import build_report
from txn_analysis.report.progress import silent
from txn_analysis.tables import (
    ABORT_PLAN,
    FINDINGS,
    INPUTS,
    LOG_BATCHES,
    LOG_PIECES,
    PARTITION_HEALTH,
    PRODUCER_SNAPSHOTS,
    RUNS,
    TRANSACTION_STATES,
    TRANSACTIONS,
)
from txn_analysis.warehouse import Warehouse, in_parallel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.config import Settings
    from txn_analysis.judge.state_coverage import StateEvidence
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.progress import Progress
    from txn_analysis.tables import Table

EVIDENCE_TABLES = (INPUTS, LOG_BATCHES, LOG_PIECES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES)
# What decides a verdict; where the answer is printed does not.
_JUDGING = (
    "as_of_ms",
    "transaction_max_timeout_ms",
    "transaction_state_partitions",
    "transaction_state_complete",
    "state_copied_last",
    "max_clock_skew_ms",
    "transactional_id_expiration_ms",
    "plan_valid_ms",
)


@dataclass(frozen=True)
class Run:
    """One judgement of one capture; `run_id` digests its evidence and parameters, so a repeat is the same run."""

    run_id: str
    evidence: Evidence
    settings: Settings
    as_of_ms: int | None

    @property
    def warehouse(self) -> Warehouse:
        """Where the run reads and writes."""
        return self.evidence.warehouse

    def rows(self, table: Table) -> DataFrame:
        """The run's own rows of a result table."""
        return self.warehouse.read(table).where(F.col("run_id") == self.run_id)

    def replace(self, frame: DataFrame, table: Table) -> None:
        """Make `frame` the run's rows of a result table."""
        self.warehouse.replace(frame, table, run_id=self.run_id)


def ingest(spark: SparkSession, paths: Sequence[str], settings: Settings, progress: Progress | None = None) -> Ingested:
    """Read files into the input tables; see `txn_analysis.ingest.ingest.ingest`."""
    return read_inputs(Warehouse(spark, settings.warehouse), paths, settings, progress or silent())


def audit(
    spark: SparkSession, paths: Sequence[str], settings: Settings, progress: Progress | None = None
) -> AuditReport:
    """Ingest, reconstruct, judge, write findings and plan; returns the report of the run.

    Raises:
        InputError: an input was not understood; nothing is judged then.
    """
    progress = progress or silent()
    ingested = ingest(spark, paths, settings, progress)
    settings = settings.model_copy(update={"capture": ingested.capture})
    with progress.stage("reconstruct"):
        run = reconstruct(spark, settings)
    with progress.stage("judge"):
        judged = judge(run)
    with progress.stage("write"):
        in_parallel(*[partial(run.replace, frame, table) for frame, table in judged.tables()])
    own = [item for item in run.evidence.inputs if item["capture_rank"] == 0]
    return build_report(judged.run_row, own, judged.health, judged.findings)


def start_run(spark: SparkSession, settings: Settings) -> Run:
    """The run for a capture: the named one, or else the cluster's newest by its brokers' clocks."""
    known = evidence_of(Warehouse(spark, settings.warehouse), settings.cluster, settings.capture)
    as_of_ms = settings.as_of_ms if settings.as_of_ms is not None else known.newest_moment_ms
    return Run(_run_id(known, settings), known, settings, as_of_ms)


def _run_id(known: Evidence, settings: Settings) -> str:
    inputs = sorted((item["capture"], item["input_id"]) for item in known.inputs)
    judging = settings.model_dump(mode="json", include=set(_JUDGING))
    return "run-" + _digest((settings.cluster, known.captures, inputs, judging))


def _digest(basis: Any) -> str:
    return blake2b(json.dumps(basis, sort_keys=True).encode(), digest_size=8).hexdigest()


def reconstruct(spark: SparkSession, settings: Settings) -> Run:
    """Write `transactions` and `partition_health` of the run for a capture."""
    run = start_run(spark, settings)
    linked = linked_partitions(run.evidence, run.as_of_ms).persist()
    in_parallel(
        lambda: run.replace(partition_health(linked, run.run_id), PARTITION_HEALTH),
        lambda: run.replace(transactions(linked, run.evidence, run.run_id), TRANSACTIONS),
    )
    linked.unpersist()
    return run


@dataclass(frozen=True)
class Judged:
    """The answers of one run as rows: its findings, its abort plan, and its own row of `runs`.

    As many as transactions are open, so they are held here and written once; `health` is one row per partition.
    """

    run: Run
    health: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    plan: list[dict[str, Any]]
    run_row: dict[str, Any]

    def tables(self) -> list[tuple[DataFrame, Table]]:
        """The rows as frames, with the tables they belong to."""
        rows = ((self.findings, FINDINGS), (self.plan, ABORT_PLAN), ([self.run_row], RUNS))
        return [(self.run.warehouse.rows(found, table), table) for found, table in rows]


def judge(run: Run) -> Judged:
    """The verdict on every open transaction of a reconstructed run, and the plan for those that hang."""
    warehouse, settings = run.warehouse, run.settings
    opened, health = in_parallel(
        partial(_dicts, run.rows(TRANSACTIONS).where(F.col("outcome") == "open")),
        partial(_dicts, run.rows(PARTITION_HEALTH).drop("producers")),
    )
    state, known = _coordinator(run, opened, health)
    partitions = warehouse.rows(health, PARTITION_HEALTH)
    rows = facts(warehouse.rows(opened, TRANSACTIONS), partitions, known, state, settings, run.as_of_ms)
    findings = [_finding(row, run) for row in _dicts(rows.withColumn("rule", first_rule()))]
    return Judged(
        run, health, findings, _plan(run, findings), _run_row(run, state, Counter(row["verdict"] for row in findings))
    )


def _coordinator(
    run: Run, opened: list[dict[str, Any]], health: list[dict[str, Any]]
) -> tuple[StateEvidence, DataFrame]:
    """The coordinator's coverage, and what it knows of each open transaction."""
    settings, spark = run.settings, run.warehouse.spark
    states = run.evidence.states(settings.transaction_state_partitions).persist()
    facts_known = coordinator_facts(run.warehouse.rows(opened, TRANSACTIONS), states, settings.max_clock_skew_ms)
    state, known = in_parallel(
        partial(state_evidence, states, run.evidence, health, settings), partial(_dicts, facts_known)
    )
    states.unpersist()
    return state, spark.createDataFrame([tuple(row.values()) for row in known], facts_known.schema)


def find_hanging(spark: SparkSession, settings: Settings) -> Run:
    """Write `findings` of a reconstructed run, and the row of `runs` that says what they rest on."""
    run = start_run(spark, settings)
    in_parallel(*[partial(run.replace, frame, t) for frame, t in judge(run).tables() if t is not ABORT_PLAN])
    return run


def plan_aborts(spark: SparkSession, settings: Settings) -> Run:
    """Write `abort_plan` of a judged run: one row per hanging transaction, and nothing else."""
    run = start_run(spark, settings)
    plan = _plan(run, _dicts(run.rows(FINDINGS)))
    run.replace(run.warehouse.rows(plan, ABORT_PLAN), ABORT_PLAN)
    return run


def _plan(run: Run, findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record.model_dump() for record in abort_plan(findings, run.settings, run.as_of_ms)]


def _finding(row: dict[str, Any], run: Run) -> dict[str, Any]:
    place = (run.settings.cluster, row["topic"], row["partition"], row["producer_id"], row["txn_start_offset"])
    words = {"evidence": evidence(row), "missing_evidence": missing_evidence(row)}
    judged = row | words | {"run_id": run.run_id, "finding_id": _digest(place), "verdict": VERDICTS[row["rule"]].value}
    return {name: judged[name] for name in FINDINGS.schema.names}


def _run_row(run: Run, state: StateEvidence, verdict_counts: Counter[str]) -> dict[str, Any]:
    settings = run.settings
    coverage = {
        "expected": state.expected_count,
        "seen": state.seen_count,
        "missing": [p.state_partition for p in state.partitions if not p.is_seen],
        "problems": state.gaps(holes_waived=settings.transaction_state_complete),
    }
    return {
        "run_id": run.run_id,
        "run_number": run.warehouse.run_number(run.run_id),
        "cluster": settings.cluster,
        "capture": run.evidence.capture,
        "earlier_captures": list(reversed(run.evidence.captures[1:])),
        "as_of_ms": run.as_of_ms,
        "as_of_basis": "given" if settings.as_of_ms is not None else "newest_broker_timestamp",
        "parameters": json.dumps(settings.model_dump(mode="json", include=set(_JUDGING)), sort_keys=True),
        "input_count": sum(item["capture_rank"] == 0 for item in run.evidence.inputs),
        "table_versions": run.warehouse.versions(EVIDENCE_TABLES),
        "verdict_counts": dict(verdict_counts),
        "state_coverage": json.dumps(coverage, sort_keys=True),
        "outcome": "findings" if verdict_counts[Verdict.HANGING.value] else "clean",
    }


def load_report(spark: SparkSession, settings: Settings, run_id: str | None = None) -> AuditReport:
    """The report of a run, from the tables; of the cluster's last run where none is named."""
    warehouse = Warehouse(spark, settings.warehouse)
    wanted = run_id or warehouse.latest_run(settings.cluster)
    of_run = F.col("run_id") == wanted
    frames = (
        warehouse.read(RUNS).where(of_run),
        warehouse.inputs(settings.cluster).drop("sections"),
        warehouse.read(PARTITION_HEALTH).where(of_run).drop("producers"),
        warehouse.read(FINDINGS).where(of_run),
    )
    runs, inputs, health, findings = in_parallel(*[partial(_dicts, frame) for frame in frames])
    if not runs:
        raise WarehouseError(f"{settings.warehouse}: no run {wanted}. `txn-analysis report` shows the last one.")
    own = [item for item in inputs if item["capture"] == runs[0]["capture"]]
    return build_report(runs[0], own, health, findings)


def _dicts(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]
