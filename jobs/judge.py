"""Judge the open transactions of a reconstructed capture."""

from __future__ import annotations

from txn_analysis.cli.options import Request
from txn_analysis.cli.output import deliver_text
from txn_analysis.cli.spark import progress, spark_when_needed
from txn_analysis.cli.verbs import job
from txn_analysis.pipeline import steps as pipeline


@job("judge", "--warehouse txn-warehouse --capture tonight")
def judge(request: Request) -> int:
    """Write the table `findings` of a reconstructed capture; by default of the newest."""
    settings = request.settings()
    with spark_when_needed(settings, 0) as spark:
        run = pipeline.judge(spark, settings, progress())
    deliver_text(request.targets, f"{settings.warehouse}: findings of {run.run_id}\n")
    return 0


if __name__ == "__main__":
    judge()
