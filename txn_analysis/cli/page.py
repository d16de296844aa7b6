"""Where the HTML page goes, and beside it the table of what is too much for a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.cli.output import emit
from txn_analysis.report.escape import shell_word

if TYPE_CHECKING:
    from txn_analysis.config import Settings
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures


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
    emit(html_report(report, pictures, warehouse_option(settings), table.name if table else None), output, flag)


def warehouse_option(settings: Settings) -> str:
    """What the commands in a report need to find the same warehouse."""
    is_default = settings.warehouse == type(settings).model_fields["warehouse"].default
    return "" if is_default else f" --warehouse {shell_word(settings.warehouse)}"
