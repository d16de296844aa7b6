"""The option `--prometheus`, and how its file is written."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from txn_analysis.cli.output import write_whole
from txn_analysis.errors import AuditError

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

    try:
        # The one figure that is of this machine's clock: an alert must see that no audit succeeded any more.
        write_whole(Path(file), prometheus_text(report, time.time_ns() // 1_000_000))
    except OSError as error:
        raise AuditError(f"--prometheus {file}: cannot be written: {error.strerror or error}") from error
