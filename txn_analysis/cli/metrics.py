"""The option `--prometheus`, and how its file is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.output import emit
from txn_analysis.storage.wall_clock import now_ms

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport

Prometheus = Annotated[
    str | None,
    typer.Option("--prometheus", metavar="FILE", help="Write the run's metrics to FILE, for a textfile collector."),
]


def write_metrics(report: AuditReport, file: str) -> None:
    """Writes the metrics of a run; the file appears whole or not at all.

    Raises:
        AuditError: it cannot be written.
    """
    # Not needed for --help.
    from txn_analysis.report.prometheus import prometheus_text

    # The one figure that is of this machine's clock: an alert must see that no audit succeeded any more.
    emit(prometheus_text(report, now_ms()), file, "--prometheus")
