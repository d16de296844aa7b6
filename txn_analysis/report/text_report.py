"""The report at 3 a.m.: the answer, what is new, what is blocked; each finding; the rest; what was read; what to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from txn_analysis.kafka.address import Address
from txn_analysis.report import figures, headline, nights
from txn_analysis.report.alike import shown_of
from txn_analysis.report.finding_text import facts, report_command, scene_of, telling, what
from txn_analysis.report.headline import Kind
from txn_analysis.report.steps import steps_of
from txn_analysis.report.terminal import WIDTH, Line, Paragraph, Weight, lines_of, paragraph, rule_line
from txn_analysis.report.upcoming import upcoming_lines
from txn_analysis.report.what_was_read import capped, statements
from txn_analysis.text import clip, count, duration, escape, iso_utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from txn_analysis.kafka.transactions import Ending
    from txn_analysis.report.alike import Alike, Shown
    from txn_analysis.report.figures import Reader
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.steps import Step
    from txn_analysis.tables import Finding
    from txn_analysis.tables.finding_rows import FindingRows

_MOST_TOPICS = 5
_VERDICT_STYLES = {
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
    steps = steps_of(report, reader)
    doubts = yield from _lead(report, width, reader)
    yield from _numbered("Do now", steps.now, width)
    yield from doubts
    shown = shown_of(report)
    for number, finding in enumerate(shown.blocks, start=1):
        yield Line("")
        yield from _block(report, finding, number, width, reader, shown.groups)
    yield from _table(report, shown, width)
    yield from _left_out(report, shown.left_out, width, reader)
    yield from _since(report, width, reader)
    yield from upcoming_lines(report, width)
    yield from _warnings(report, width, reader)
    yield from _numbered("To know more", steps.later, width)
    yield rule_line("What was read", width)
    yield from lines_of([*statements(report, reader.now_ms), *steps.notes], width, _TEXT_FROM, "")


def _numbered(title: str, steps: Sequence[Step], width: int) -> Iterator[Line]:
    if not steps:
        return
    yield rule_line(title, width)
    for number, step in enumerate(steps, start=1):
        yield from paragraph(step.text, width, f"{number}. ", "   ")
        if step.command is not None:
            yield Line(f"   {step.command}", "bold")


def _lead(report: AuditReport, width: int, reader: Reader) -> Generator[Line, None, list[Line]]:
    """The first statements; it returns the lines of the doubts among them."""
    first, *others = headline.lead(report, reader)
    style = "green" if first.verdict is None else _VERDICT_STYLES.get(first.verdict, "yellow")
    yield from paragraph(first.text, width, style=style if style.startswith("bold") else f"bold {style}")
    doubts: list[Line] = []
    for kind, text, verdict in others:
        lines = paragraph(text, width, style="" if verdict is None else _VERDICT_STYLES[verdict])
        if kind is Kind.DOUBT:
            doubts += lines
        else:
            yield from lines
    return [Line(""), *doubts] if doubts else []


def _block(
    report: AuditReport, finding: Finding, number: int, width: int, reader: Reader, groups: Mapping[str, Alike]
) -> Iterator[Line]:
    """The block of one finding: its first line says which transaction it is, its last one which others are alike."""
    yield from paragraph(f"{number}. {what(finding)}", width, rest="   ", style="bold red")
    yield from lines_of(block(report, finding, reader, groups), width, has_facts=False)


def block(report: AuditReport, finding: Finding, reader: Reader, groups: Mapping[str, Alike]) -> Iterator[Paragraph]:
    """What is said of a finding that hangs to somebody who acts or wants to know."""
    for one in telling(scene_of(report, finding), finding, reader):
        if one.weight is not Weight.EVIDENCE:
            yield one
    if (group := groups.get(finding.finding_id)) is not None:
        yield Paragraph("alike", f"{group.summary(report)}: {group.others}")


def title_of_rows(report: AuditReport) -> str:
    """What stands above the findings that have a line each."""
    return "Other open transactions" if report.hanging else "Open transactions"


def _table(report: AuditReport, shown: Shown, width: int) -> Iterator[Line]:
    """One line each; behind what is suspect, or without an answer, why, or what is missing."""
    if not shown.rows:
        return
    yield rule_line(title_of_rows(report), width)
    table = [_COLUMNS, *(_cells(report, finding) for finding in shown.rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > width:
        for finding in shown.rows:
            first, *texts = stacked(report, finding, shown.groups)
            yield Line(first, _VERDICT_STYLES.get(finding.verdict, ""))
            for text in texts:
                yield from paragraph(text, width, "  ", "    ")
        return
    header, *lines = ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table)
    yield Line(header, "bold")
    for finding, line in zip(shown.rows, lines, strict=True):
        yield Line(line, _VERDICT_STYLES.get(finding.verdict, ""))
        for reason in _reasons(report, finding, shown.groups):
            yield from paragraph(reason, width, "    ", "      ", "dim")


def _left_out(report: AuditReport, rows: FindingRows, width: int, reader: Reader) -> Iterator[Line]:
    if rows:
        yield Line("")
        yield from paragraph(left_out(rows), width)
        if report.anonymized is None:
            yield Line(f"   {report_command(report, reader)} --format ndjson", "bold")


def left_out(rows: FindingRows) -> str:
    """How many findings are not shown, and of which topics; escaped."""
    topics = Counter(rows.column("topic").to_pylist()).most_common()
    named = [f"{number} of {clip(topic, 40)}" for topic, number in topics[:_MOST_TOPICS]]
    if rest := len(topics) - len(named):
        named.append(f"the rest of {count(rest, 'other topic')}")
    said = ", ".join(f"{number} {verdict.value}" for verdict, number in rows.verdict_counts.most_common())
    return f"{count(len(rows), 'more open transaction')} not shown: {said}; {', '.join(named)}."


def stacked(report: AuditReport, finding: Finding, groups: Mapping[str, Alike]) -> Iterator[str]:
    """A finding where there is no room for columns, as in a mail: its verdict and rule, which it is, and why."""
    verdict, rule, address, name, idle, ends = _cells(report, finding, _NO_COLUMN)
    yield f"{verdict}: {rule}"
    yield f"{address}, {name}, idle {idle}{'' if ends == '-' else f', ends by {ends}'}"
    yield from _reasons(report, finding, groups)


def _reasons(report: AuditReport, finding: Finding, groups: Mapping[str, Alike]) -> Iterator[str]:
    """Of what has an answer nothing, but what is alike: `explain` says more."""
    if finding.verdict not in _WITHOUT_REASONS:
        for label, text, facts_behind, *_ in facts(scene_of(report, finding), finding, Weight.KNOW):
            if label == "missing":
                more = len(facts_behind) - _MOST_MISSING
                rest = f"; and {more} more, which `--format json` lists" if more > 0 else ""
                yield f"missing: {'; '.join(facts_behind[:_MOST_MISSING])}{rest}"
            elif label in _REASONS:
                yield f"{label}: {text.removeprefix(f'{finding.rule}: ')}"
        if clocks := figures.clock_line(report.run, finding):
            yield f"clocks: {clocks}"
    if (group := groups.get(finding.finding_id)) is not None:
        yield f"alike: {group.summary(report)}: {group.others}"


_WITHOUT_REASONS = frozenset({Verdict.COORDINATED, Verdict.IN_PROGRESS})
_REASONS = frozenset({"why", "cause"})
_MOST_MISSING = 3
_IN_COLUMN, _NO_COLUMN = 20, 200
_COLUMNS = ("VERDICT", "RULE", "TRANSACTION", "TRANSACTIONAL ID", "IDLE", "ENDS BY")


def _cells(report: AuditReport, finding: Finding, most: int = _IN_COLUMN) -> tuple[str, ...]:
    # Else nobody knows whether the end of the id's transaction reaches this partition.
    ending = finding.ending if finding.verdict is Verdict.COORDINATED else None
    name = f"producer id {finding.producer_id}"
    return (
        finding.verdict.value,
        clip(finding.rule, max(most, 30)),
        clip(Address.of_transaction(finding).words, most + 14),
        name if finding.transactional_id is None else clip(finding.transactional_id, most),
        duration(figures.judged_idle_ms(report.run, finding)),
        "-" if ending is None else "never" if ending.never_times_out else _to_the_second(ending),
    )


def _to_the_second(ending: Ending) -> str:
    by = iso_utc(ending.aborted_by_ms)
    return by if ending.aborted_by_ms is None else f"{by[:-5]}Z"


def _since(report: AuditReport, width: int, reader: Reader) -> Iterator[Line]:
    if shown := since_told(report, reader):
        yield rule_line(nights.title(report), width)
        yield from lines_of(shown, width, _TEXT_FROM, "")


def since_told(report: AuditReport, reader: Reader) -> list[Paragraph]:
    """What is new, gone and still there, and the command that tells how it went on; empty where nothing is."""
    rows = list(nights.night_rows(report, shows_accepted=reader.shows_accepted))
    kinds = dict.fromkeys(row.kind for row in rows)
    shown = [one for kind in kinds for one in capped(kind, [row.text for row in rows if row.kind == kind])]
    if rows and report.since is not None and report.anonymized is None:
        shown.append(Paragraph("history", command=nights.history_command(reader)))
    return shown


def _warnings(report: AuditReport, width: int, reader: Reader) -> Iterator[Line]:
    """What does not hang yet and will, one line an application: a few, and how many more there are."""
    if not report.warnings:
        return
    yield rule_line("Early warning", width)
    for item in figures.soonest_warnings(report):
        text = f"{item.kind}: {figures.warning_subject(item)}: {escape(item.text)}"
        yield from paragraph(text, width, rest="    ")
    if (left_out := figures.warnings_left_out(report)) is not None:
        yield from paragraph(left_out, width)
        yield Line(f"   {report_command(report, reader)} --format json", "bold")
