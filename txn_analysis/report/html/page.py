"""One HTML page from a report and its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from txn_analysis.judge.words import words_named
from txn_analysis.report import figures, headline, nights
from txn_analysis.report.alike import Alike, alike
from txn_analysis.report.figures import Reader
from txn_analysis.report.finding_text import command_beside, report_command, run_option, scene_of, telling, what
from txn_analysis.report.html.charts import Section
from txn_analysis.report.html.drawings import sections
from txn_analysis.report.html.rendering import template
from txn_analysis.report.model import AuditReport
from txn_analysis.report.owner import whose
from txn_analysis.report.pictures import Pictures
from txn_analysis.report.steps import steps_of
from txn_analysis.report.what_was_read import statements
from txn_analysis.tables import PartitionHealth
from txn_analysis.text import count, escape

_MOST_PARTITIONS = 300
_MOST_ALIKE = 50  # of one application and cause, while others have findings that are not shown


def html_report(
    report: AuditReport,
    pictures: Pictures | None = None,
    reader: Reader = figures.ANYBODY,
    table_file: str | None = None,
) -> str:
    """The whole page.

    Args:
        report: what was found.
        pictures: series over time; without them the page has only the pictures that the report itself can give.
        reader: who reads it.
        table_file: where all findings are, relative to the page; for reports with more than `figures.MOST_FINDINGS`.
    """
    ended = command_beside(report, reader, f"ended --by application{run_option(report)}")
    shown = sections(report, pictures or Pictures(), ended)
    open_partitions = [item for item in report.partitions if item.open_transaction_count]
    open_partitions.sort(key=lambda item: (-(item.hidden_record_count or 0), item.topic, item.partition))
    groups = alike(figures.by_damage(report, report.unaccepted), figures.MOST_FINDINGS, _MOST_ALIKE)
    views = _finding_views(report, reader, groups, shown)
    again = report_command(report, reader)
    context = {
        "report": report,
        "headline": headline.headline(report, reader.fail_on),
        "lead": list(headline.lead(report, reader))[1:],
        "since_rows": _since_rows(report, views),
        "since_title": nights.title(report),
        "history_command": nights.history_command(report, reader),
        "steps": steps_of(report, reader),
        "findings": views,
        "table_file": table_file,
        "all_command": again and f"{again} --format json",
        "report_command": again and f"{again} --format html -o report.html",
        "blocked": open_partitions[:_MOST_PARTITIONS],
        "blocked_note": _what_is_counted(open_partitions),
        "sections": shown,
        "read": [
            (label, list(group)) for label, group in groupby(statements(report, reader.now_ms), attrgetter("label"))
        ],
        "age": figures.age(report, reader.now_ms),
    }
    return template().render(context)


def _finding_views(
    report: AuditReport, reader: Reader, groups: Sequence[Alike], sections_shown: Sequence[Section]
) -> list[dict[str, Any]]:
    """The findings as the page shows them.

    `is_by_client` says that its age is by its client's clock, and that the brokers' would not call it late;
    `picture` is the anchor of its partition's picture, if there is one. `number` names its place on the page, and
    `group` what it is alike with. `more` says of the first of several how many there are.
    """
    anchors = {
        chart.partition: f"{section.name}-{number}"
        for section in sections_shown
        for number, chart in enumerate(section.charts, start=1)
    }
    # At once: what findings are kept in is opened by hundreds.
    findings = report.unaccepted[:0].followed_by(*(group.findings[: group.shown] for group in groups))
    shown = [(number, group, at) for number, group in enumerate(groups) for at in range(group.shown)]
    views = []
    for place, (finding, (number, group, at)) in enumerate(zip(findings, shown, strict=True), start=1):
        view = {
            "finding": finding,
            "what": what(finding, report.coverage.connect_groups),
            "whose": whose(finding.transactional_id, report.coverage.connect_groups).removeprefix(", "),
            "hidden_record_count": figures.hidden_by(report, finding),
            "age_ms": figures.judged_idle_ms(report.run, finding),
            "is_by_client": figures.clock_line(report.run, finding) is not None,
            "paragraphs": tuple(telling(scene_of(report, finding), finding, reader)),
            "reason": "" if (words := words_named(finding.rule)) is None else words.reason,
            "picture": anchors.get(escape(finding.topic_partition)),
            "number": place,
            "group": number,
            "more": group.sentence(report) if at == 0 and len(group.findings) > 1 else None,
        }
        views.append(view)
    return views


def _since_rows(report: AuditReport, views: Sequence[dict[str, Any]]) -> dict[str, list[tuple[str, str | None]]]:
    """What is new, gone and still there, each with the anchor of its row on the page, if it has one."""
    anchors = {view["finding"].finding_id: f"finding-{view['number']}" for view in views}
    by_kind = groupby(nights.night_rows(report, shows_accepted=True), attrgetter("kind"))
    return {kind: [(row.text, anchors.get(row.finding_id or "")) for row in rows] for kind, rows in by_kind}


def _what_is_counted(partitions: Sequence[PartitionHealth]) -> str:
    """What the table counts beside the first lines of the page."""
    hidden = figures.all_hidden_records([item.hidden_record_count for item in partitions])
    is_cut = len(partitions) > _MOST_PARTITIONS
    cut = f"The table has {_MOST_PARTITIONS} of them, those with most hidden records. " if is_cut else ""
    return (
        f"Every partition with an open transaction, also one in progress: {count(len(partitions), 'partition')}, "
        f"{hidden}. {cut}The first lines of this page leave out what only transactions in progress hold. "
        "Since when is by the brokers' clocks."
    )
