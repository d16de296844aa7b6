"""Fill the input tables from files; the first of the steps of which `nightly_audit.py` is all."""

from __future__ import annotations

from txn_analysis.cli.options import READING, Paths, Request
from txn_analysis.cli.output import deliver_text
from txn_analysis.cli.spark import spark_session
from txn_analysis.cli.verbs import job
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.reading.inputs.find_files import standard_input


@job("ingest", "--warehouse txn-warehouse --capture tonight segments/ transaction-state/", uses=READING)
def ingest(request: Request, paths: Paths) -> int:
    """Fill the input tables of the warehouse from files, without judging."""
    settings = request.settings()
    with standard_input(paths), spark_session(settings) as spark:
        ingested = pipeline.ingest(spark, paths, settings)
    deliver_text(
        request.targets, f"{settings.warehouse}: {ingested.input_count} inputs in capture {ingested.capture}\n"
    )
    return 0


if __name__ == "__main__":
    ingest()
