"""Where the HTML page goes, and beside it the table of what is too much for a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.cli.output import emit
from txn_analysis.text.escape import shell_word

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures
    from txn_analysis.settings import Settings


def emit_page(
    report: AuditReport, pictures: Pictures | None, settings: Settings, output: str | None, flag: str = "-o"
) -> None:
    """Writes the page to stdout or a file; a page that cannot hold all findings links a table file beside it.

    Args:
        report: what was found.
        pictures: its series over time.
        settings: say where the warehouse is.
        output: the file; None for stdout.
        flag: the option that named it.

    Raises:
        AuditError: a file cannot be written.
    """
    # Not needed for --help.
    from txn_analysis.report.findings_csv import findings_csv
    from txn_analysis.report.html.page import MOST_FINDINGS, html_report

    table = None
    if output is not None and len(report.findings) > MOST_FINDINGS:
        table = Path(output).with_suffix(".findings.csv")
        emit(findings_csv(report), str(table), flag)
    emit(
        html_report(
            report, pictures, run_options(settings, report.run.cluster), table.name if table else None, settings.fail_on
        ),
        output,
        flag,
    )


def run_options(settings: Settings, cluster: str) -> str:
    """What printed commands need to find the runs of the same cluster, from the same folder.

    Defaults are left out, unless the environment says otherwise: it does so to the printed command as well.
    """
    said = (("warehouse", settings.warehouse), ("cluster", cluster))
    return "".join(f" --{name} {shell_word(value)}" for name, value in said if not _is_default(name, value))


def _is_default(name: str, value: str) -> bool:
    from txn_analysis.settings import ENVIRONMENT_PREFIX, Settings

    return value == Settings.model_fields[name].default and f"{ENVIRONMENT_PREFIX}{name.upper()}" not in os.environ
