"""The calendar of nights beside the pages of single nights, in one folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.cli.output import run_options
from txn_analysis.text import shell_option, shell_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.report.night_calendar import ClusterNights
    from txn_analysis.settings import Settings

_HEAD_BYTES = 2048
_RUN = re.compile(rb'<meta name="txn-analysis-run" content="([\w-]+)">')


def calendar_page(
    clusters: Sequence[ClusterNights], settings: Settings, cluster: str | None, output: str | None
) -> str:
    """The calendar of nights as a page.

    Args:
        clusters: with their nights.
        settings: of the command that prints it.
        cluster: what it was asked for alone; None for all.
        output: the file that it is written to, beside which pages of nights may lie; None for stdout.
    """
    # Not needed for --help.
    from txn_analysis.report.html.nights_page import Typed, nights_page

    pages = {} if output is None else pages_beside(Path(output))
    where = run_options(settings, None) + ("" if cluster is None else f" {shell_option('--cluster', cluster)}")
    again = f"txn-analysis captures{where} -o {shell_word(output or 'nights.html')}"
    return nights_page(clusters, pages, Typed(again, _of_night(clusters, settings, pages, output)))


def pages_beside(file: Path) -> dict[str, str]:
    """Of each run whose page lies in the folder of a file the name of that page, the first one by name.

    Each page names its run in its head. What cannot be read is none.
    """
    found: dict[str, str] = {}
    for page in sorted(file.absolute().parent.glob("*.html")):
        run_id = _run_of(page)
        if run_id is not None:
            found.setdefault(run_id, page.name)
    return found


def _run_of(page: Path) -> str | None:
    if not page.is_file():  # to open a named pipe waits for whoever writes into it
        return None
    try:
        with page.open("rb") as stream:
            named = _RUN.search(stream.read(_HEAD_BYTES))
    except OSError:
        return None
    return None if named is None else named[1].decode()


def _of_night(
    clusters: Sequence[ClusterNights], settings: Settings, pages: dict[str, str], output: str | None
) -> str | None:
    """The command that writes the page of the newest night without one beside the calendar."""
    judged = [(night.copied_ms or 0, night.run_id, one.cluster) for one in clusters for night in one.nights]
    lacking = [(at_ms, run_id, name) for at_ms, run_id, name in judged if run_id is not None and run_id not in pages]
    if output is None or not lacking:
        return None
    _, run_id, name = max(lacking)
    file = Path(output).with_name(f"{run_id}.html")
    return f"txn-analysis report --run {shell_word(run_id)}{run_options(settings, name)} -o {shell_word(str(file))}"
