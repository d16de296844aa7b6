"""The report for a tired person: what hangs, how sure that is, what to do; then the rest; then what was read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from txn_analysis.judge.verdicts import Verdict
from txn_analysis.report.coverage_text import coverage_lines
from txn_analysis.report.escape import clip, escape
from txn_analysis.report.finding_text import block_lines, why_line
from txn_analysis.report.headline import doubts, how_sure, what_hangs
from txn_analysis.report.impact_text import cause_line, cluster_lines, warning_lines
from txn_analysis.report.style import Line, rule_line, wrapped
from txn_analysis.report.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.report.model import AuditReport, FindingItem

WIDTH = 110
_NARROW = 100
_MOST_BLOCKS = 20
_ID_WIDTH = 200
_VERDICT_STYLES = {
    Verdict.HANGING: "bold red",
    Verdict.SUSPECT: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
}


def text_report(report: AuditReport, width: int = WIDTH, options: str = "") -> str:
    """The whole report as plain text, without any escape sequence; see `report_lines`."""
    return "".join(line.text + "\n" for line in report_lines(report, width, options))


def report_lines(report: AuditReport, width: int = WIDTH, options: str = "") -> Iterator[Line]:
    """The lines of the report with the styles that a terminal may give them.

    `options` are what the commands in it need to find the run, such as ` --warehouse /data/audit`.
    """
    yield from _headline(report, width)
    hanging = report.hanging
    for number, finding in enumerate(hanging[:_MOST_BLOCKS], start=1):
        yield Line("")
        yield from block_lines(report, finding, number, width, options)
    yield from _table(report, hanging[_MOST_BLOCKS:], width)
    yield from warning_lines(report, width)
    yield Line("")
    yield from coverage_lines(report, width)


def _headline(report: AuditReport, width: int) -> Iterator[Line]:
    if report.hanging:
        yield Line(f"HANGING: {what_hangs(report)}", "bold red")
        yield from _paragraph(how_sure(report), width)
    else:
        yield Line("Nothing hangs in what was read.", "bold green")
    yield from cluster_lines(report, width)
    for doubt in doubts(report):
        yield from _paragraph(doubt.text, width, _VERDICT_STYLES[doubt.verdict])


def _paragraph(text: str, width: int, style: str = "") -> Iterator[Line]:
    return (Line(part, style) for part in wrapped(text, width))


@dataclass(frozen=True)
class _Column:
    header: str
    cells: list[str]

    @cached_property
    def width(self) -> int:
        return max(len(cell) for cell in [self.header, *self.cells])


def _table(report: AuditReport, more_hanging: Sequence[FindingItem], width: int) -> Iterator[Line]:
    """Two lines each: the columns of the transaction, and why it has its verdict or what is missing."""
    rows = [*more_hanging, *(f for f in report.findings if f.verdict is not Verdict.HANGING)]
    if not rows:
        return
    yield Line("")
    yield rule_line("Other open transactions" if report.hanging else "Open transactions", width)
    columns = _columns(rows)
    is_wide = sum(column.width for column in columns) + 2 * (len(columns) - 1) <= width
    yield from _stacked(rows, width) if width < _NARROW and not is_wide else _aligned(rows, columns, width)


def _aligned(rows: Sequence[FindingItem], columns: Sequence[_Column], width: int) -> Iterator[Line]:
    yield Line("  ".join(c.header.ljust(c.width) for c in columns).rstrip(), "bold")
    for index, finding in enumerate(rows):
        cells = "  ".join(c.cells[index].ljust(c.width) for c in columns).rstrip()
        yield Line(cells, _VERDICT_STYLES.get(finding.verdict, ""))
        yield from (Line("    " + clip(reason, width - 4), "dim") for reason in _reasons(finding))


def _stacked(rows: Sequence[FindingItem], width: int) -> Iterator[Line]:
    """The same where the page is too narrow for columns, as in a mail."""
    for finding in rows:
        yield Line(f"{finding.verdict.value}: {finding.rule}", _VERDICT_STYLES.get(finding.verdict, ""))
        name = "-" if finding.transactional_id is None else clip(finding.transactional_id, _ID_WIDTH)
        where = f"{escape(finding.topic_partition)} from {finding.txn_start_offset}, idle {duration(finding.idle_ms)}"
        for text in (where, f"producer id {finding.producer_id}, transactional id {name}", *_reasons(finding)):
            yield from (Line(line) for line in wrapped(text, width, "  ", "    "))


def _reasons(finding: FindingItem) -> Iterator[str]:
    yield why_line(finding)
    if finding.cause is not None and finding.cause.name != "transaction_in_progress":
        yield f"cause: {cause_line(finding.cause)}"


def _columns(rows: Sequence[FindingItem]) -> list[_Column]:
    ids = [f.transactional_id for f in rows]
    return [
        _Column("VERDICT", [f.verdict.value for f in rows]),
        _Column("RULE", [clip(f.rule, 30) for f in rows]),
        _Column("PARTITION", [clip(f.topic_partition, 24) for f in rows]),
        _Column("START", [str(f.txn_start_offset) for f in rows]),
        _Column("PRODUCER ID", [str(f.producer_id) for f in rows]),
        _Column("IDLE", [duration(f.idle_ms) for f in rows]),
        _Column("TRANSACTIONAL ID", ["-" if i is None else clip(i, 24) for i in ids]),
    ]
