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
from txn_analysis.commits import commit_run
from txn_analysis.errors import WarehouseError
from txn_analysis.evidence import Evidence, evidence_of
from txn_analysis.ingest.ingest import Ingested
from txn_analysis.ingest.ingest import ingest as read_inputs
from txn_analysis.judge.coordinator import candidate_key, coordinator_facts, state_evidence
from txn_analysis.judge.judgement import judgement_of
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.parallel import in_parallel
from txn_analysis.reconstruct.partitions import all_transactions, linked_partitions, partition_health
from txn_analysis.reconstruct.transaction_rows import transaction_rows
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
from txn_analysis.warehouse import Warehouse

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
        """The run's own rows of a result table, whether the run is complete or not."""
        return self.warehouse.read_uncommitted(table).where(F.col("run_id") == self.run_id)

    def replace(self, frame: DataFrame, table: Table) -> None:
        """Make `frame` the run's rows of a result table."""
        self.warehouse.replace(frame, table, run_id=self.run_id)

    def replace_rows(self, rows: list[dict[str, Any]], table: Table) -> None:
        """The same with rows made on the driver."""
        self.warehouse.replace_rows(rows, table, run_id=self.run_id)


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
        judged.write()
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
    linked = linked_partitions(run.evidence, run.as_of_ms)
    in_parallel(
        lambda: run.replace(partition_health(linked, run.run_id), PARTITION_HEALTH),
        lambda: run.warehouse.replace_by(
            all_transactions(linked), transaction_rows(run.run_id), TRANSACTIONS, run_id=run.run_id
        ),
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
        partial(_dicts, run.rows(TRANSACTIONS).where(F.col("outcome") == "open")),
        partial(_dicts, run.rows(PARTITION_HEALTH).drop("producers")),
    )
    state, known = _coordinator(run, opened, health)
    partitions = {(row["topic"], row["partition"]): row for row in health}
    findings = [
        _finding(row, partitions[row["topic"], row["partition"]], known.get(candidate_key(row)), state, run)
        for row in opened
    ]
    return Judged(
        run, health, findings, _plan(run, findings), _run_row(run, state, Counter(row["verdict"] for row in findings))
    )


def _coordinator(
    run: Run, opened: list[dict[str, Any]], health: list[dict[str, Any]]
) -> tuple[StateEvidence, dict[tuple[Any, ...], dict[str, Any]]]:
    """The coordinator's coverage, and what it knows of open transactions, by `candidate_key`."""
    settings = run.settings
    states = run.evidence.states(settings.transaction_state_partitions).persist()
    facts_known = coordinator_facts(run.warehouse.rows(opened, TRANSACTIONS), states, settings.max_clock_skew_ms)
    state, known = in_parallel(
        partial(state_evidence, states, run.evidence, health, settings), lambda: _dicts(facts_known) if opened else []
    )
    states.unpersist()
    return state, {candidate_key(row): row for row in known}


def find_hanging(spark: SparkSession, settings: Settings) -> Run:
    """Write `findings` and `abort_plan` of a reconstructed run, and complete it with its row of `runs`.

    Raises:
        WarehouseError: the capture was not reconstructed with these settings; nothing open would look like all is well.
    """
    run = start_run(spark, settings)
    judged = judge(run)
    if not judged.health and any(s["kind"] == "log" for item in run.evidence.inputs for s in item["sections"] or ()):
        raise WarehouseError(f"{settings.warehouse}: {run.run_id} is not reconstructed. Run jobs/reconstruct.py first.")
    judged.write()
    return run


def plan_aborts(spark: SparkSession, settings: Settings) -> Run:
    """Write `abort_plan` of a complete run anew: one row per hanging transaction, and nothing else.

    Raises:
        WarehouseError: the capture was not judged with these settings.
    """
    run = start_run(spark, settings)
    if run.warehouse.read(RUNS).where(F.col("run_id") == run.run_id).isEmpty():
        raise WarehouseError(f"{settings.warehouse}: {run.run_id} is not judged. Run jobs/find_hanging.py first.")
    run.replace_rows(_plan(run, _dicts(run.rows(FINDINGS))), ABORT_PLAN)
    return run


def _plan(run: Run, findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record.model_dump() for record in abort_plan(findings, run.settings, run.as_of_ms)]


def _finding(
    opened: dict[str, Any],
    partition: dict[str, Any],
    coordinator: dict[str, Any] | None,
    state: StateEvidence,
    run: Run,
) -> dict[str, Any]:
    """The row of `findings` of one open transaction; see `judge.judgement.judgement_of` for what it is judged by."""
    row = judgement_of(opened, partition, coordinator, state, run.settings, run.as_of_ms)
    place = (run.settings.cluster, row["topic"], row["partition"], row["producer_id"], row["txn_start_offset"])
    row |= {"run_id": run.run_id, "finding_id": _digest(place)}
    return {name: row[name] for name in FINDINGS.schema.names}


def _run_row(run: Run, state: StateEvidence, verdict_counts: Counter[str]) -> dict[str, Any]:
    settings = run.settings
    coverage = state.coverage(holes_waived=settings.transaction_state_complete)
    return {
        "run_id": run.run_id,
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
