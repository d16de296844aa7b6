"""The report at 3 a.m.: the answer, what is new, what is blocked; each finding; the rest; what was read; what to do."""

from __future__ import annotations

from collections.abc import Iterator

from txn_analysis.report import figures, headline
from txn_analysis.report.figures import Reader
from txn_analysis.report.headline import Kind
from txn_analysis.report.model import AuditReport
from txn_analysis.report.parts import Form, Part, parts
from txn_analysis.report.terminal import WIDTH, Line, lines_of, paragraph, rule_line
from txn_analysis.verdict import Verdict

_STYLES: dict[str, str] = {
    Verdict.HANGING: "bold red",
    Verdict.SUSPECT: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
}
_TEXT_FROM = 18


def text_report(report: AuditReport, width: int = WIDTH, reader: Reader = figures.ANYBODY) -> str:
    """The whole report as plain text, without any escape sequence; see `report_lines`."""
    return "".join(line.text + "\n" for line in report_lines(report, width, reader))


def report_lines(report: AuditReport, width: int = WIDTH, reader: Reader = figures.ANYBODY) -> Iterator[Line]:
    """The lines of the report, of at most `width` columns, with the styles that a terminal may give them."""
    first, *others = headline.lead(report, reader)
    style = "green" if first.verdict is None else _STYLES.get(first.verdict, "yellow")
    yield from paragraph(first.text, width, style=style if style.startswith("bold") else f"bold {style}")
    for kind, text, verdict in others:
        if kind is not Kind.DOUBT:
            yield from paragraph(text, width, style=_STYLES.get(verdict or "", ""))
    for part in parts(report, reader):
        yield from _part(part, width)


def _part(part: Part, width: int) -> Iterator[Line]:
    is_finding = part.form is Form.FINDING
    yield rule_line(part.title, width) if part.title and not is_finding else Line("")
    if is_finding:
        yield from paragraph(part.title, width, rest="   ", style="bold red")
        yield from lines_of(part.paragraphs, width, has_facts=False)
    elif part.form is Form.FACTS:
        yield from lines_of(part.paragraphs, width, _TEXT_FROM, "")
    elif part.form is Form.ROWS:
        yield from _rows(part, width)
    else:
        for number, (label, text, _, command, _) in enumerate(part.paragraphs, start=1):
            is_step, is_of_more = part.form is Form.STEPS, not part.title or command is not None
            first, rest = (f"{number}. ", "   ") if is_step else ("", "" if is_of_more else "    ")
            yield from paragraph(text, width, first, rest, _STYLES.get(label, ""))
            if command is not None:
                yield Line(f"   {command}", "bold")


def _rows(part: Part, width: int) -> Iterator[Line]:
    """One line each; behind what is suspect, or without an answer, why, or what is missing."""
    widths = [max(map(len, column)) for column in zip(*part.table, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > width:
        for verdict, first, texts, *_ in part.paragraphs:
            yield Line(first, _STYLES.get(verdict, ""))
            for text in texts:
                yield from paragraph(text, width, "  ", "    ")
        return
    header, *lines = ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in part.table)
    yield Line(header, "bold")
    for (verdict, _, (_, *reasons), *_), line in zip(part.paragraphs, lines, strict=True):
        yield Line(line, _STYLES.get(verdict, ""))
        for reason in reasons:
            yield from paragraph(reason, width, "    ", "      ", "dim")
