"""The report for a tired person: what hangs, how sure that is, what to do; then the rest; then what was read."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.judge.verdicts import Verdict
from txn_analysis.report.coverage_text import coverage_lines
from txn_analysis.report.escape import clip, escape
from txn_analysis.report.finding_text import block_lines, why_line
from txn_analysis.report.impact_text import cause_line, cluster_lines, warning_lines
from txn_analysis.report.style import Line, rule_line
from txn_analysis.report.words import count, duration, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.report.model import AuditReport, FindingItem

WIDTH = 110
_MOST_BLOCKS = 20
_MOST_PARTITIONS_IN_HEADLINE = 5
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
    hanging = report.hanging
    if hanging:
        places = sorted({escape(finding.topic_partition) for finding in hanging})
        yield Line(
            f"HANGING: {count(len(hanging), 'transaction')} on {count(len(places), 'partition')}: "
            f"{listed(places, _MOST_PARTITIONS_IN_HEADLINE)}",
            "bold red",
        )
        yield from _wrapped(_how_sure(report), width)
    else:
        yield Line("Nothing hangs in what was read.", "bold green")
    yield from cluster_lines(report, width)
    yield from _doubts(report, width)


def _how_sure(report: AuditReport) -> str:
    waived = [
        option
        for name, option in (
            ("state_copied_last", "--state-copied-last"),
            ("transaction_state_complete", "--transaction-state-complete"),
        )
        if report.run.parameters.get(name)
    ]
    word = f", where your word was taken for {' and '.join(waived)}" if waived else ""
    return (
        "Nobody will ever end them. Their logs are proven whole to the end, and the coordinator's state reaches past "
        f"them{word}. Check each precondition before you abort."
    )


def _doubts(report: AuditReport, width: int) -> Iterator[Line]:
    counts = report.run.verdict_counts
    inconclusive, suspect = (counts.get(verdict, 0) for verdict in (Verdict.INCONCLUSIVE, Verdict.SUSPECT))
    if suspect:
        text = f"{count(suspect, 'open transaction')} suspect: look at the list below; an abort is not the remedy."
        yield from _wrapped(text, width, "yellow")
    if inconclusive:
        text = f"{count(inconclusive, 'open transaction')} without an answer: what is missing is listed below."
        yield from _wrapped(text, width, "magenta")
    if report.coverage.skipped_inputs or report.coverage.rejected_bytes:
        text = "Not everything could be read; see the end of this report for what was skipped."
        yield from _wrapped(text, width, "yellow")


def _wrapped(text: str, width: int, style: str = "") -> Iterator[Line]:
    return (Line(part, style) for part in textwrap.wrap(text, width))


@dataclass(frozen=True)
class _Column:
    header: str
    cells: list[str]

    @property
    def width(self) -> int:
        return max(len(cell) for cell in [self.header, *self.cells])


def _table(report: AuditReport, more_hanging: Sequence[FindingItem], width: int) -> Iterator[Line]:
    """Two lines each: the columns of the transaction, and why it has its verdict or what is missing."""
    rows = [*more_hanging, *(f for f in report.findings if f.verdict is not Verdict.HANGING)]
    if not rows:
        return
    columns = _columns(rows)
    yield Line("")
    yield rule_line("Other open transactions" if report.hanging else "Open transactions", width)
    yield Line("  ".join(c.header.ljust(c.width) for c in columns).rstrip(), "bold")
    for index, finding in enumerate(rows):
        cells = "  ".join(c.cells[index].ljust(c.width) for c in columns).rstrip()
        yield Line(cells, _VERDICT_STYLES.get(finding.verdict, ""))
        yield Line("    " + clip(why_line(finding), width - 4), "dim")
        if finding.cause is not None and finding.cause.name != "transaction_in_progress":
            yield Line("    " + clip(f"cause: {cause_line(finding.cause)}", width - 4), "dim")


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
