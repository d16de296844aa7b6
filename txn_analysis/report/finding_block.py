"""One hanging transaction in at most a dozen lines: what it blocks, why, what to do. `explain` prints the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.applications import is_remark
from txn_analysis.judge.facts import RENAMED
from txn_analysis.report.figures import ANYBODY, cause_meaning, hidden_records, urgent
from txn_analysis.report.finding_text import (
    Paragraph,
    explanation,
    lines_of,
    partition_of,
    shown,
    then_sentence,
    to_do,
    what,
    why_sentence,
)
from txn_analysis.report.terminal import Line
from txn_analysis.text.escape import escape
from txn_analysis.text.words import iso_utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.report.alike import Alike
    from txn_analysis.report.figures import Reader
    from txn_analysis.report.model import AuditReport
    from txn_analysis.tables import Finding


def block_lines(
    report: AuditReport,
    finding: Finding,
    number: int,
    width: int,
    reader: Reader = ANYBODY,
    group: Alike | None = None,
) -> Iterator[Line]:
    """The block of one finding: its first line says which transaction it is, its last one which others are alike."""
    yield Line(f"{number}. {what(finding)}", "bold red")
    said = [*_said(report, finding, reader)]
    if group is not None:
        said.append(Paragraph("alike", f"{group.summary(report)}: {group.others}"))
    yield from lines_of(shown(report, said), width)


def _said(report: AuditReport, finding: Finding, reader: Reader) -> Iterator[Paragraph]:
    """What it blocks, why, what to do now, and what follows; all of it is escaped."""
    yield Paragraph("blocks", _blocks(report, finding))
    yield Paragraph("why", why_sentence(finding))
    cause = finding.cause
    if cause is not None and cause.confidence != "unknown":
        yield Paragraph("cause", f"{cause.confidence}: {cause_meaning(cause)}")
    # Facts that speak for looking twice before an abort; all other evidence is what `explain` prints.
    for fact in finding.evidence:
        if is_remark(fact) or fact.endswith(RENAMED):
            yield Paragraph("caution", escape(fact))
    yield from to_do(report, finding, reader)
    after = then_sentence(report, finding, partition_of(report, finding))
    if after is not None and finding.verdict is Verdict.HANGING:
        yield Paragraph("then", after)
    yield explanation(report, finding, reader)


def _blocks(report: AuditReport, finding: Finding) -> str:
    """How much is hidden, since when, and what is urgent about it."""
    partition = partition_of(report, finding)
    if partition is None:
        return "unknown: nothing else is known of the partition"
    if not finding.blocks_partition:
        stable = partition.last_stable_offset
        return f"nothing yet: another open transaction holds the last stable offset at {stable}"
    impact = finding.impact
    since_ms = None if impact is None else impact.hidden_since_ms
    since = "" if since_ms is None else f" since {iso_utc(since_ms)}"
    hidden = f"{hidden_records(partition.hidden_record_count)} hidden from offset {finding.txn_start_offset} on{since}"
    return "; ".join([hidden, *urgent(impact)])
