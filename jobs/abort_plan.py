"""Plan the abort markers for the hanging transactions of a judged capture."""

from __future__ import annotations

from txn_analysis.cli.options import Request
from txn_analysis.cli.output import deliver_text
from txn_analysis.cli.spark import spark_session
from txn_analysis.cli.verbs import job
from txn_analysis.pipeline import steps as pipeline


@job("abort_plan", "--warehouse txn-warehouse --capture tonight")
def abort_plan(request: Request) -> int:
    """Write the table `abort_plan` of a judged capture; by default of the newest. Nothing is sent anywhere."""
    settings = request.settings()
    with spark_session(settings) as spark:
        run = pipeline.plan_aborts(spark, settings)
    deliver_text(request.targets, f"{settings.warehouse}: abort_plan of {run.run_id}\n")
    return 0


if __name__ == "__main__":
    abort_plan()
