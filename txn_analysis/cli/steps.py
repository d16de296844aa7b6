"""The commands of the scripts in `jobs/`: the steps of an audit one by one, the whole, and what ends a night."""

from __future__ import annotations

from collections.abc import Callable

from txn_analysis.cli.audit_verbs import audit_files
from txn_analysis.cli.audit_verbs import ingest as ingest_files
from txn_analysis.cli.keeping_verbs import ForgetOld, forget_old
from txn_analysis.cli.options import AUDIT, ENDING, JUDGING, ONE, PLAN, READING, Request
from txn_analysis.cli.output import deliver_text
from txn_analysis.cli.plan_verbs import Printed, print_plan
from txn_analysis.cli.spark import progress, spark_when_needed
from txn_analysis.cli.verbs import job
from txn_analysis.pipeline import steps
from txn_analysis.pipeline.run import Run
from txn_analysis.plan.plan_file import Part

_OF_ONE = "--warehouse txn-warehouse --capture tonight"
ingest = job("ingest", f"{_OF_ONE} segments/ transaction-state/", ONE, READING)(ingest_files)
nightly_audit = job(
    "nightly_audit", "--config conf/nightly.toml segments/ transaction-state/", AUDIT, (*JUDGING, *ENDING)
)(audit_files)


def _done(asked: Request, step: Callable[..., Run]) -> str:
    """Runs a step; the run that it made."""
    settings = asked.settings()
    with spark_when_needed(settings, 0) as spark:
        return step(spark, settings, progress()).run_id


@job("reconstruct", _OF_ONE)
def reconstruct(asked: Request) -> int:
    """Write the tables `transactions` and `partition_health` of a capture; by default of the newest."""
    run_id = _done(asked, steps.reconstruct)
    text = f"{asked.settings().warehouse}: transactions and partition_health of {run_id}\n"
    return deliver_text(asked.targets, text)


@job("judge", _OF_ONE)
def judge(asked: Request) -> int:
    """Write the table `findings` of a reconstructed capture; by default of the newest."""
    run_id = _done(asked, steps.judge)
    return deliver_text(asked.targets, f"{asked.settings().warehouse}: findings of {run_id}\n")


@job("abort_plan", f"{_OF_ONE} --format write-txn-markers -o plan.json", PLAN)
def abort_plan(asked: Printed) -> int:
    """Write the table `abort_plan` of a judged capture, and print its records; by default of the newest.

    Nothing is sent anywhere. The forms are those of `txn-analysis abort-plan`.

    Exit code: 0 also if there is something to abort, 2 the capture is not judged, or its plan has expired.
    """
    return print_plan(asked, _done(asked, steps.plan_aborts), Part())


@job("prune", "--warehouse txn-warehouse --older-than 90d", ONE, uses=())
def prune(asked: ForgetOld) -> int:
    """Take captures, runs and the files behind them out of the warehouse that are older than an age.

    What newer captures need stays. Exit code: 0, or 2 where there is no such warehouse, or no age is given.
    """
    return forget_old(asked)
