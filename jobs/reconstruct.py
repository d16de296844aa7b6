"""Reconstruct the transactions of an ingested capture."""

from __future__ import annotations

from txn_analysis.cli.options import Request
from txn_analysis.cli.output import deliver_text
from txn_analysis.cli.spark import progress, spark_when_needed
from txn_analysis.cli.verbs import job
from txn_analysis.pipeline import steps as pipeline


@job("reconstruct", "--warehouse txn-warehouse --capture tonight")
def reconstruct(request: Request) -> int:
    """Write the tables `transactions` and `partition_health` of a capture; by default of the newest."""
    settings = request.settings()
    with spark_when_needed(settings, 0) as spark:
        run = pipeline.reconstruct(spark, settings, progress())
    deliver_text(request.targets, f"{settings.warehouse}: transactions and partition_health of {run.run_id}\n")
    return 0


if __name__ == "__main__":
    reconstruct()
