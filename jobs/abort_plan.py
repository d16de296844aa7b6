"""Plan the abort markers for the hanging transactions of a judged capture, and print them for whoever sends them."""

from __future__ import annotations

from txn_analysis.cli import plan_verbs
from txn_analysis.cli.options import Rendering, Request
from txn_analysis.cli.spark import progress, spark_when_needed
from txn_analysis.cli.verbs import job
from txn_analysis.pipeline import steps as pipeline


@job(
    "abort_plan",
    "--warehouse txn-warehouse --capture tonight --format write-txn-markers -o plan.json",
    form=Rendering,
)
def abort_plan(
    request: Request,
    api_version: plan_verbs.ApiVersion = 1,
    ended: plan_verbs.Ended = None,
    expired: plan_verbs.Expired = False,
    yes_many: plan_verbs.YesMany = False,
) -> int:
    """Write the table `abort_plan` of a judged capture, and print its records; by default of the newest.

    Nothing is sent anywhere. The forms are those of `txn-analysis abort-plan`.

    Exit code: 0 also if there is something to abort, 2 the capture is not judged, or its plan has expired.
    """
    settings = request.settings()
    with spark_when_needed(settings, 0) as spark:
        run = pipeline.plan_aborts(spark, settings, progress())
    return plan_verbs.abort_plan(
        request, run_id=run.run_id, api_version=api_version, ended=ended, expired=expired, yes_many=yes_many
    )


if __name__ == "__main__":
    abort_plan()
