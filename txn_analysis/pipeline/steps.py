"""The audit as its steps: ingest, reconstruct, judge, plan, report. Every verb and every job calls these functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from pydantic import JsonValue

from txn_analysis.columns.memory import give_back_memory
from txn_analysis.errors import WarehouseError
from txn_analysis.pipeline.ingest import Ingested
from txn_analysis.pipeline.ingest import ingest as read_inputs
from txn_analysis.pipeline.judging import judge as judged_of
from txn_analysis.pipeline.linking import linked_logs, written_logs
from txn_analysis.pipeline.planning import plan_of
from txn_analysis.pipeline.run import Run, parameters, start_run
from txn_analysis.reading.topic_config import read_topic_configs
from txn_analysis.report.build import build_report
from txn_analysis.report.model import AuditReport, EarlierFiles
from txn_analysis.report.terminal import Progress
from txn_analysis.runs.decisions import accepted_of, read_decisions
from txn_analysis.runs.nights import since_last_night
from txn_analysis.runs.prunes import prunes_of
from txn_analysis.settings import Settings
from txn_analysis.spark.jobs import Spark, followed, in_parallel
from txn_analysis.tables import ABORT_PLAN, FINDINGS, PARTITION_HEALTH, RUNS, Table
from txn_analysis.tables.schema import ONLY
from txn_analysis.text import escape
from txn_analysis.warehouse.opening import open_warehouse


def ingest(spark: Spark, paths: Sequence[str], settings: Settings, progress: Progress | None = None) -> Ingested:
    """Read files into the input tables; see `txn_analysis.pipeline.ingest.ingest`."""
    return read_inputs(open_warehouse(spark, settings.warehouse), paths, settings, progress or Progress())


def audit(spark: Spark, paths: Sequence[str], settings: Settings, progress: Progress | None = None) -> AuditReport:
    """Ingest, reconstruct, judge, write findings and plan; returns the report of the run.

    Raises:
        InputError: an input was not understood; nothing is judged then.
        ConfigError: the file of `topic_config`, or of `accepted`, was not understood.
    """
    progress = progress or Progress()
    if settings.topic_config is not None:
        read_topic_configs(settings.topic_config)  # refused now, not after hours of reading
    read_decisions(settings)
    warehouse = open_warehouse(spark, settings.warehouse)
    ingested = read_inputs(warehouse, paths, settings, progress)
    settings = settings.model_copy(update={"capture": ingested.capture})
    give_back_memory()
    run = start_run(warehouse, settings)  # the ingest has prepared the tables
    with ExitStack() as kept:
        with progress.stage("linking logs") as tell, followed(tell):
            linked = kept.enter_context(linked_logs(run))
            give_back_memory()
        with progress.stage("judging") as tell, followed(tell):
            judged, _ = in_parallel(partial(judged_of, run, linked.logs), partial(linked.write, run))
    with progress.stage("writing"):
        judged.write()
    capture_inputs = [item for item in run.evidence.inputs if item.capture_rank == 0]
    since = since_last_night(warehouse, judged.record, judged.findings)
    accepted = accepted_of(warehouse, settings, judged.record, judged.findings)
    report = build_report(
        *(judged.record, capture_inputs, judged.health, judged.findings),
        engine=run.engine.name,
        since=since,
        accepted=accepted,
        prunes=prunes_of(warehouse, settings.cluster),
    )
    if not ingested.earlier_count:
        return report
    earlier = EarlierFiles(file_count=ingested.earlier_count, newest_moment_ms=ingested.earlier_moment_ms)
    return report.model_copy(update={"run": report.run.model_copy(update={"earlier_files": earlier})})


def reconstruct(spark: Spark, settings: Settings, progress: Progress | None = None) -> Run:
    """Write `transactions` and `partition_health` of the run for a capture."""
    run = _run_to_write(spark, settings)
    with (progress or Progress()).stage("linking logs") as tell, followed(tell), linked_logs(run) as linked:
        linked.write(run)
    return run


def _run_to_write(spark: Spark, settings: Settings) -> Run:
    """The run for a capture, with its tables prepared: for steps that are called by themselves."""
    warehouse = open_warehouse(spark, settings.warehouse)
    run = start_run(warehouse, settings)
    warehouse.create()
    return run


def judge(spark: Spark, settings: Settings, progress: Progress | None = None) -> Run:
    """Write `findings` and `abort_plan` of a reconstructed run, and complete it with its row of `runs`.

    Raises:
        WarehouseError: the capture was not reconstructed with these settings; nothing open would look like all is well.
    """
    run = _run_to_write(spark, settings)
    logs = written_logs(run)
    if not logs.health[ONLY] and any(s.kind == "log" for item in run.evidence.inputs for s in item.sections):
        raise _not_yet(run, "reconstructed", "jobs/reconstruct.py", PARTITION_HEALTH)
    with (progress or Progress()).stage("judging") as tell, followed(tell):
        judged_of(run, logs).write()
    return run


def _not_yet(run: Run, what: str, job: str, table: Table) -> WarehouseError:
    """The error of a step whose step before was not done, or was done with other settings: then it is another run.

    Args:
        run: of this step.
        what: is not done with the settings of this step.
        job: that does it.
        table: which that job writes.
    """
    effective_settings, capture = parameters(run.settings), run.evidence.capture
    notes = map(json.loads, run.warehouse.notes(table))
    of_capture = (note for note in notes if (note["cluster"], note["capture"]) == (run.settings.cluster, capture))
    before = next((note["parameters"] for note in of_capture), effective_settings)
    which = f"{run.settings.warehouse}: capture {escape(capture)} is not {what} with the settings of this step"
    if before == effective_settings:  # nobody did it, or more files came since
        usual = _unlike(effective_settings, parameters(Settings()))
        return WarehouseError(f"{which} ({escape(usual)}). Run {job} with the same ones first.")
    here, there = _unlike(effective_settings, before), _unlike(before, effective_settings)
    return WarehouseError(f"{which} ({escape(here)}), but with others ({escape(there)}). Give both the same ones.")


def _unlike(values: Mapping[str, JsonValue], others: Mapping[str, JsonValue]) -> str:
    """The settings that others have otherwise."""
    differing = [f"{name} {values.get(name)}" for name in {**values, **others} if values.get(name) != others.get(name)]
    return ", ".join(differing) or "all as they are by default"


def plan_aborts(spark: Spark, settings: Settings, progress: Progress | None = None) -> Run:
    """Write `abort_plan` of a complete run anew: one row per hanging transaction, and nothing else.

    Raises:
        WarehouseError: the capture was not judged with these settings.
    """
    run = _run_to_write(spark, settings)
    if not len(run.result_rows(RUNS, "run_id")):
        raise _not_yet(run, "judged", "jobs/judge.py", FINDINGS)
    with (progress or Progress()).stage("planning") as tell, followed(tell):
        run.replace(plan_of(run).to_batches(), ABORT_PLAN)
    return run
