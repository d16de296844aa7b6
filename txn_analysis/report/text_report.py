"""The report for a tired person: what hangs, how sure that is, what to do; then the rest; then what was read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from txn_analysis.judge.outcome import Outcome
from txn_analysis.report.coverage_text import coverage_lines
from txn_analysis.report.figures import by_damage, clock_line, judged_idle_ms
from txn_analysis.report.finding_text import block_lines, why_line
from txn_analysis.report.headline import doubts, headline, how_sure, narrowed, next_steps, what_settles
from txn_analysis.report.impact_text import cause_line, cluster_lines, warning_lines
from txn_analysis.report.sending import expired_sentence
from txn_analysis.report.terminal import Line, rule_line, wrapped
from txn_analysis.text.escape import clip, escape
from txn_analysis.text.words import duration
from txn_analysis.verdict import Verdict

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


def text_report(
    report: AuditReport,
    width: int = WIDTH,
    options: str = "",
    fail_on: Verdict = Verdict.HANGING,
    now_ms: int | None = None,
) -> str:
    """The whole report as plain text, without any escape sequence; see `report_lines`."""
    return "".join(line.text + "\n" for line in report_lines(report, width, options, fail_on, now_ms))


def report_lines(
    report: AuditReport,
    width: int = WIDTH,
    options: str = "",
    fail_on: Verdict = Verdict.HANGING,
    now_ms: int | None = None,
) -> Iterator[Line]:
    """The lines of the report with the styles that a terminal may give them.

    Args:
        report: what was found.
        width: of its lines.
        options: what the commands in it need to find the run, such as ` --warehouse /data/audit`.
        fail_on: the verdict that is asked about; the first line says the same as the exit code.
        now_ms: the time at which it is read: a plan from old files has expired. None where nobody says.
    """
    yield from _headline(report, width, fail_on, now_ms)
    ordered = by_damage(report, report.findings)
    hanging = [finding for finding in ordered if finding.verdict is Verdict.HANGING]
    others = [finding for finding in ordered if finding.verdict is not Verdict.HANGING]
    for number, finding in enumerate(hanging[:_MOST_BLOCKS], start=1):
        yield Line("")
        yield from block_lines(report, finding, number, width, options, now_ms)
    yield from _table(report, [*hanging[_MOST_BLOCKS:], *others], width)
    yield from warning_lines(report, width)
    yield Line("")
    yield from coverage_lines(report, width, now_ms)
    yield from _next(report, width, options, now_ms)


def _next(report: AuditReport, width: int, options: str, now_ms: int | None) -> Iterator[Line]:
    """What to do now, as the last thing that is read."""
    yield Line("")
    yield rule_line("Next", width)
    for number, step in enumerate(next_steps(report, options, now_ms), start=1):
        yield from (Line(part) for part in wrapped(step.text, width, f"{number}. ", "   "))
        if step.command is not None:
            yield Line(f"   {step.command}", "bold")


def _headline(report: AuditReport, width: int, fail_on: Verdict, now_ms: int | None) -> Iterator[Line]:
    first = headline(report, fail_on)
    style = "green" if first.verdict is None else _VERDICT_STYLES.get(first.verdict, "yellow")
    yield Line(first.text, style if style.startswith("bold") else f"bold {style}")
    if (about := narrowed(report)) is not None:
        yield from _paragraph(about, width)
    if report.hanging:
        yield from _paragraph(how_sure(report), width)
    if (too_old := expired_sentence(report, now_ms)) is not None:
        yield from _paragraph(too_old, width, _VERDICT_STYLES[Verdict.SUSPECT])
    if report.outcome.answer is Outcome.COULD_NOT_TELL:
        yield from _paragraph(what_settles(report), width)
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


def _table(report: AuditReport, rows: Sequence[FindingItem], width: int) -> Iterator[Line]:
    """Two lines each: the columns of the transaction, and why it has its verdict or what is missing."""
    if not rows:
        return
    yield Line("")
    yield rule_line("Other open transactions" if report.hanging else "Open transactions", width)
    columns = _columns(report, rows)
    is_wide = sum(column.width for column in columns) + 2 * (len(columns) - 1) <= width
    is_stacked = width < _NARROW and not is_wide
    yield from _stacked(report, rows, width) if is_stacked else _aligned(report, rows, columns, width)


def _aligned(
    report: AuditReport, rows: Sequence[FindingItem], columns: Sequence[_Column], width: int
) -> Iterator[Line]:
    yield Line("  ".join(c.header.ljust(c.width) for c in columns).rstrip(), "bold")
    for index, finding in enumerate(rows):
        cells = "  ".join(c.cells[index].ljust(c.width) for c in columns).rstrip()
        yield Line(cells, _VERDICT_STYLES.get(finding.verdict, ""))
        for reason in _reasons(report, finding):
            yield from (Line(part, "dim") for part in wrapped(reason, width, "    ", "      "))


def _stacked(report: AuditReport, rows: Sequence[FindingItem], width: int) -> Iterator[Line]:
    """Findings one below the other, where the page is too narrow for columns, as in a mail."""
    for finding in rows:
        yield Line(f"{finding.verdict.value}: {finding.rule}", _VERDICT_STYLES.get(finding.verdict, ""))
        name = "-" if finding.transactional_id is None else clip(finding.transactional_id, _ID_WIDTH)
        idle = duration(judged_idle_ms(report, finding))
        where = f"{escape(finding.topic_partition)} from {finding.txn_start_offset}, idle {idle}"
        for text in (where, f"producer id {finding.producer_id}, transactional id {name}", *_reasons(report, finding)):
            yield from (Line(line) for line in wrapped(text, width, "  ", "    "))


def _reasons(report: AuditReport, finding: FindingItem) -> Iterator[str]:
    yield why_line(finding)
    if clocks := clock_line(report, finding):
        yield f"clocks: {clocks}"
    if finding.cause is not None and finding.cause.name != "transaction_in_progress":
        yield f"cause: {cause_line(finding.cause)}"


def _columns(report: AuditReport, rows: Sequence[FindingItem]) -> list[_Column]:
    ids = [f.transactional_id for f in rows]
    return [
        _Column("VERDICT", [f.verdict.value for f in rows]),
        _Column("RULE", [clip(f.rule, 30) for f in rows]),
        _Column("PARTITION", [clip(f.topic_partition, 24) for f in rows]),
        _Column("START", [str(f.txn_start_offset) for f in rows]),
        _Column("PRODUCER ID", [str(f.producer_id) for f in rows]),
        _Column("IDLE", [duration(judged_idle_ms(report, f)) for f in rows]),
        _Column("TRANSACTIONAL ID", ["-" if i is None else clip(i, 24) for i in ids]),
    ]
