"""Where the HTML page goes, and beside it the table of what is too much for a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.cli.output import emit
from txn_analysis.errors import ConfigError
from txn_analysis.storage.wall_clock import now_ms
from txn_analysis.text.escape import clip, shell_word

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures
    from txn_analysis.settings import Settings


def read_at(now: str | None) -> int:
    """The moment at which a report is read, as `--now` gives it, or by this machine's clock; epoch milliseconds.

    Nothing is judged by it: it says how old the files are, and whether a plan from them has expired.

    Raises:
        ConfigError: it is no moment.
    """
    if now is None:
        return now_ms()
    # Pydantic is not needed for --help.
    from txn_analysis.settings import parse_time

    try:
        return parse_time(now)
    except ValueError as error:
        raise ConfigError(f"--now {clip(now, 80)}: {error}") from error


def emit_page(
    report: AuditReport,
    pictures: Pictures | None,
    settings: Settings,
    output: str | None,
    flag: str = "-o",
    read_ms: int | None = None,
) -> None:
    """Writes the page to stdout or a file; a page that cannot hold all findings links a table file beside it.

    Args:
        report: what was found.
        pictures: its series over time.
        settings: say where the warehouse is.
        output: the file; None for stdout.
        flag: the option that named it.
        read_ms: the moment at which it is read; None where nobody says.

    Raises:
        AuditError: a file cannot be written.
    """
    # Not needed for --help.
    from txn_analysis.report.formats import findings_csv
    from txn_analysis.report.html.page import MOST_FINDINGS, html_report

    table = None
    if output is not None and len(report.findings) > MOST_FINDINGS:
        table = Path(output).with_suffix(".findings.csv")
        emit(findings_csv(report), str(table), flag)
    emit(
        html_report(
            report,
            pictures,
            run_options(settings, report.run.cluster),
            table.name if table else None,
            settings.fail_on,
            read_ms,
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
