"""The whole audit, for a scheduler: ingest, reconstruct, judge, plan, report."""

from __future__ import annotations

from txn_analysis.cli.audit_verbs import deliver_report
from txn_analysis.cli.keeping_verbs import prune_after
from txn_analysis.cli.options import ENDING, JUDGING, AuditFormat, Paths, Request, ShowAccepted, Width
from txn_analysis.cli.output import check_metrics, read_at, reader_of
from txn_analysis.cli.spark import spark_session
from txn_analysis.cli.verbs import job
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.questions.loaded_report import pictures as pictures_of_report
from txn_analysis.reading.inputs.find_files import standard_input
from txn_analysis.storage.opening import open_warehouse


@job(
    "nightly_audit",
    "--config conf/nightly.toml segments/ transaction-state/",
    uses=(*JUDGING, *ENDING),
    form=AuditFormat,
)
def nightly_audit(
    request: Request,
    paths: Paths,
    width: Width = None,
    show_accepted: ShowAccepted = False,
) -> int:
    """Audit the files of a night and print the report.

    Exit code: 0 nothing hangs, 1 something does (see --fail-on), 2 something could not be read or done, 3 it could
    not be told (see --accept-inconclusive).
    """
    settings = request.settings()
    check_metrics(request, settings)
    read_ms = read_at(None)
    with standard_input(paths), spark_session(settings) as spark:
        report = pipeline.audit(spark, paths, settings)
        pictures = (
            pictures_of_report(open_warehouse(spark, settings.warehouse), report) if request.prints("html") else None
        )
    reader = reader_of(report, settings, read_ms, shows_accepted=show_accepted)
    code = deliver_report(report, request, settings, width, pictures, reader)
    prune_after(settings)
    return code


if __name__ == "__main__":
    nightly_audit()
