"""The parts of a report behind its first statements, in the order in which text and Markdown have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from txn_analysis.kafka.address import Address
from txn_analysis.report import figures, headline, nights, upcoming
from txn_analysis.report.alike import Alike, shown_of
from txn_analysis.report.figures import Reader
from txn_analysis.report.finding_text import facts, name_of, report_command, scene_of, telling, what
from txn_analysis.report.model import AuditReport
from txn_analysis.report.owner import whose
from txn_analysis.report.steps import steps_of
from txn_analysis.report.terminal import Paragraph, Weight
from txn_analysis.report.what_was_read import capped, statements
from txn_analysis.tables import Finding
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.text import clip, count, duration, escape, iso_utc
from txn_analysis.verdict import Verdict

_MOST_TOPICS = 5
_MOST_MISSING = 3
_IN_COLUMN, _NO_COLUMN = 20, 200
_COLUMNS = ("VERDICT", "RULE", "TRANSACTION", "TRANSACTIONAL ID", "IDLE", "ENDS BY")
_NOT_KNOWN = "not known"
_WITHOUT_REASONS = frozenset({Verdict.COORDINATED, Verdict.IN_PROGRESS})


class Form(Enum):
    """What a part is made of."""

    STEPS = auto()  # to be done in this order
    FINDING = auto()  # one that hangs; its title says which
    ROWS = auto()  # open transactions, a line each; their label is the verdict
    LINES = auto()  # whole sentences; a label is the verdict whose colour it has
    FACTS = auto()  # words beside their labels


class Part(NamedTuple):
    """One part: its title, if it has one, and what it says; `table` has a row for each of `ROWS` below its header."""

    title: str
    form: Form
    paragraphs: Sequence[Paragraph]
    table: Sequence[tuple[str, ...]] = ()


def parts(report: AuditReport, reader: Reader) -> Iterator[Part]:
    """Those that have something to say."""
    steps, shown = steps_of(report, reader), shown_of(report)
    again = report_command(report, reader)
    doubts = [Paragraph(one.verdict or "", one.text) for one in headline.doubts(report)]
    every = [Part("Do now", Form.STEPS, steps.now), Part("", Form.LINES, doubts)]
    for number, finding in enumerate(shown.blocks, start=1):
        block = tuple(_block(report, finding, reader, shown.groups))
        every.append(Part(f"{number}. {what(finding, report.coverage.connect_groups)}", Form.FINDING, block))
    title = "Other open transactions" if report.hanging else "Open transactions"
    rows = [Paragraph(one.verdict, *_row(report, one, shown.groups)) for one in shown.rows]
    every.append(Part(title, Form.ROWS, rows, _table(report, shown.rows)))
    if shown.left_out:
        ndjson = again and f"{again} --format ndjson"
        every.append(Part("", Form.LINES, [Paragraph("", _left_out(shown.left_out), command=ndjson)]))
    every += [
        Part(nights.title(report), Form.FACTS, _since(report, reader)),
        Part(upcoming.TITLE, Form.LINES, [Paragraph("", text) for text in upcoming.shown(report)]),
        Part("Early warning", Form.LINES, [*_warnings(report, again)]),
        Part("To know more", Form.STEPS, steps.later),
        Part("What was read", Form.FACTS, [*statements(report, reader.now_ms), *steps.notes]),
    ]
    return (part for part in every if part.paragraphs)


def _block(report: AuditReport, finding: Finding, reader: Reader, groups: Mapping[str, Alike]) -> Iterator[Paragraph]:
    """What is said of a finding that hangs to somebody who acts or wants to know."""
    for one in telling(scene_of(report, finding), finding, reader):
        if one.weight is not Weight.EVIDENCE:
            yield one
    if (group := groups.get(finding.finding_id)) is not None:
        yield Paragraph("alike", f"{group.summary(report)}: {group.others}")


def _left_out(rows: FindingRows) -> str:
    """How many findings are not shown, and of which topics; escaped."""
    topics = Counter(rows.column("topic").to_pylist()).most_common()
    named = [f"{number} of {clip(topic, 40)}" for topic, number in topics[:_MOST_TOPICS]]
    if rest := len(topics) - len(named):
        named.append(f"the rest of {count(rest, 'other topic')}")
    by_verdict = ", ".join(f"{number} {verdict.value}" for verdict, number in rows.verdict_counts.most_common())
    return f"{count(len(rows), 'more open transaction')} not shown: {by_verdict}; {', '.join(named)}."


def _row(report: AuditReport, finding: Finding, groups: Mapping[str, Alike]) -> tuple[str, tuple[str, ...]]:
    """A finding where there is no room for columns, as in a mail: its verdict and rule; which it is, and why."""
    verdict, rule, address, name, idle, ends = _cells(report, finding, _NO_COLUMN)
    owner = whose(finding.transactional_id, report.coverage.connect_groups)
    which = f"{address}, {name}{owner}, idle {idle}{'' if ends == _NOT_KNOWN else f', ends by {ends}'}"
    return f"{verdict}: {rule}", (which, *_reasons(report, finding, groups))


def _reasons(report: AuditReport, finding: Finding, groups: Mapping[str, Alike]) -> Iterator[str]:
    """Of what has an answer nothing, but what is alike: `explain` says more."""
    if finding.verdict not in _WITHOUT_REASONS:
        for label, text, facts_behind, _, weight in facts(scene_of(report, finding), finding):
            if weight is Weight.EVIDENCE:
                continue
            if label == "missing":
                more = len(facts_behind) - _MOST_MISSING
                rest = f"; and {more} more, which `--format json` lists" if more > 0 else ""
                yield f"missing: {'; '.join(facts_behind[:_MOST_MISSING])}{rest}"
            elif label in {"why", "cause"}:
                yield f"{label}: {text.removeprefix(f'{finding.rule}: ')}"
        if clocks := figures.clock_line(report.run, finding):
            yield f"clocks: {clocks}"
    if (group := groups.get(finding.finding_id)) is not None:
        yield f"alike: {group.summary(report)}: {group.others}"


def _table(report: AuditReport, rows: Sequence[Finding]) -> list[tuple[str, ...]]:
    """A header and a line each; when they end, where that is known of any."""
    cells = [_cells(report, one) for one in rows]
    is_any_known = any(ends != _NOT_KNOWN for *_, ends in cells)
    return [one if is_any_known else one[:-1] for one in (_COLUMNS, *cells)]


def _cells(report: AuditReport, finding: Finding, most: int = _IN_COLUMN) -> tuple[str, ...]:
    # Else nobody knows whether the end of the id's transaction reaches this partition.
    ending = finding.ending if finding.verdict is Verdict.COORDINATED else None
    by = iso_utc(None if ending is None else ending.aborted_by_ms)
    to_the_second = by if by == "unknown" else f"{by[:-5]}Z"
    return (
        finding.verdict.value,
        clip(finding.rule, max(most, 30)),
        clip(Address.of_transaction(finding).words, most + 14),
        name_of(finding, most),
        duration(figures.judged_idle_ms(report.run, finding)),
        _NOT_KNOWN if ending is None else "never" if ending.never_times_out else to_the_second,
    )


def _since(report: AuditReport, reader: Reader) -> list[Paragraph]:
    """What is new, gone and still there, and the command that tells how it went on; empty where nothing is."""
    by_kind = groupby(nights.night_rows(report, shows_accepted=reader.shows_accepted), attrgetter("kind"))
    shown = [one for kind, rows in by_kind for one in capped(kind, [row.text for row in rows])]
    if shown and (command := nights.history_command(report, reader)) is not None:
        shown.append(Paragraph("history", command=command))
    return shown


def _warnings(report: AuditReport, again: str | None) -> Iterator[Paragraph]:
    """What does not hang yet and will, one line an application: a few, and how many more there are."""
    for item in figures.soonest_warnings(report):
        yield Paragraph("", f"{item.kind}: {figures.warning_subject(item)}: {escape(item.text)}")
    if (more := figures.warnings_left_out(report)) is not None:
        yield Paragraph("", more, command=again and f"{again} --format json")
