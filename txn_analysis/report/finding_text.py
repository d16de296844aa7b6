"""One finding as a person reads it: what, where, since when, why, what it blocks, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.judge.rules import rule_named
from txn_analysis.kafka.topics import TRANSACTIONS
from txn_analysis.plan.fencing import fence_with_kafkas_tool
from txn_analysis.report.figures import idle_by_brokers, is_contradicted, is_decided_by_clock
from txn_analysis.report.impact_text import blocks_sentence, cause_sentence
from txn_analysis.report.sending import explain_command, has_expired, send_sentence, then_sentence
from txn_analysis.report.terminal import Line, wrapped
from txn_analysis.text.escape import clip, escape, shell_option
from txn_analysis.text.words import count, duration, iso_utc, size
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.report.model import AuditReport, FindingItem

_LABEL_WIDTH = 9
_ID_WIDTH = 200
_INDENT = "   "
_MOST_MISSING = 3


class Paragraph(NamedTuple):
    """One thing that is said of a finding, and the facts behind it; a command is to be typed as it stands."""

    label: str
    text: str
    facts: tuple[str, ...] = ()
    command: str | None = None


def block_lines(
    report: AuditReport, finding: FindingItem, number: int, width: int, options: str, now_ms: int | None = None
) -> Iterator[Line]:
    """The block of one hanging transaction; see `paragraphs`."""
    yield Line(f"{number}. {what(finding)}", "bold red")
    for label, text, facts, command in paragraphs(report, finding, options, now_ms):
        if command is not None:
            # Whole, however long: what is broken over two lines cannot be typed as it stands.
            yield Line(_INDENT + label.ljust(_LABEL_WIDTH) + command, "bold")
        yield from _labelled(label if command is None else "", text, width)
        for fact in facts:
            yield from _labelled("", f"- {fact}", width)


def paragraphs(
    report: AuditReport, finding: FindingItem, options: str, now_ms: int | None = None
) -> Iterator[Paragraph]:
    """What a person wants to know of a finding, in the order in which they ask; all of it is escaped.

    Args:
        report: what was found.
        finding: the one that it is about.
        options: complete the command, such as ` --warehouse /data/audit`.
        now_ms: the time at which this is read; None where nobody says.
    """
    yield Paragraph("where", _where(finding))
    yield Paragraph("since", _since(report, finding))
    rule = rule_named(finding.rule)
    meaning = "see the evidence" if rule is None else rule.meaning
    yield Paragraph("why", f"{finding.rule}: {meaning}", tuple(escape(fact) for fact in finding.evidence))
    if finding.missing_evidence:
        missing = tuple(escape(fact) for fact in finding.missing_evidence)
        yield Paragraph("missing", "what would allow an answer", missing)
    if finding.cause is not None:
        yield Paragraph("cause", cause_sentence(finding.cause))
    partition = report.partitions_by_place.get((finding.topic, finding.partition))
    yield Paragraph("blocks", blocks_sentence(finding, partition))
    if finding.verdict is Verdict.HANGING:
        yield from _to_do(report, finding, now_ms)
        if (after := then_sentence(report, finding, partition)) is not None:
            yield Paragraph("then", after)
    elif rule is not None:
        yield Paragraph("do", rule.remedy)
    yield Paragraph(
        "look", "what led to it, and what each rule said", command=explain_command(report, finding, options)
    )


def _to_do(report: AuditReport, finding: FindingItem, now_ms: int | None) -> Iterator[Paragraph]:
    """What a person does about a hanging one, and when."""
    if has_expired(report, finding, now_ms):
        yield Paragraph("do", "copy the files and audit again: a plan from these files has expired")
        return
    yield Paragraph("do", _advice(finding))
    if _must_end_first(finding):
        yield _fence(finding)
        yield _check(finding)
    yield Paragraph("send", send_sentence(report, finding))


def why_line(finding: FindingItem) -> str:
    """What is missing where the verdict is inconclusive, else why it was given; for a line or two of a table."""
    if not finding.missing_evidence:
        return escape("; ".join(finding.evidence)) or "-"
    shown, more = finding.missing_evidence[:_MOST_MISSING], len(finding.missing_evidence) - _MOST_MISSING
    rest = f"; and {more} more, which `--format json` lists" if more > 0 else ""
    return "missing: " + escape("; ".join(shown)) + rest


def what(finding: FindingItem) -> str:
    """Which transaction it is, in one line."""
    transactional_id = finding.transactional_id
    shown = "" if transactional_id is None else clip(transactional_id, _ID_WIDTH)
    named = f"transactional id {shown}" if shown else "no transactional id"
    epoch = "" if finding.producer_epoch is None else f", epoch {finding.producer_epoch}"
    return f"{escape(finding.topic_partition)}: producer id {finding.producer_id}{epoch}, {named}"


def _where(finding: FindingItem) -> str:
    last = "?" if finding.last_offset is None else finding.last_offset
    records = "record count unknown" if finding.record_count is None else count(finding.record_count, "record")
    exact = "" if finding.is_txn_start_exact else "; it may have begun earlier, in files that are gone"
    return f"offsets {finding.txn_start_offset} to {last}, {records}, {size(finding.size_bytes)}{exact}"


def _since(report: AuditReport, finding: FindingItem) -> str:
    basis = " (judged by the brokers' clocks)" if finding.lateness_basis == "broker_clock" else ""
    whose = " by its client's clock" if is_contradicted(report, finding) else ""
    theirs = f", idle {idle_by_brokers(report, finding)}" if is_decided_by_clock(report, finding) else ""
    last_ms, after_ms, before_ms = finding.last_timestamp_ms, finding.appended_after_ms, finding.appended_before_ms
    if last_ms is not None and last_ms == after_ms == before_ms:
        return f"last write {iso_utc(last_ms)} by the broker's clock, idle {duration(finding.idle_ms)}"
    return (
        f"last write {iso_utc(last_ms)}, idle {duration(finding.idle_ms)}{whose}{basis}; by the brokers' clocks after "
        f"{iso_utc(after_ms)} and before {iso_utc(before_ms)}{theirs}"
    )


def _advice(finding: FindingItem) -> str:
    if not _must_end_first(finding):
        return "abort it with the plan (see Next): no producer has to be ended first"
    why = "has a transaction in progress" if finding.is_producer_live else "may come back"
    return f"FIRST stop its application, and fence its id: it {why}, and what it writes would be aborted as well"


def _must_end_first(finding: FindingItem) -> bool:
    return finding.must_end_producer and finding.transactional_id is not None


def _fence(finding: FindingItem) -> Paragraph:
    """How the producer is kept from coming back, once its application is stopped."""
    way = fence_with_kafkas_tool(str(finding.transactional_id))
    return Paragraph("fence", f"{way.needs}; the script prints the lines for older ones", command=way.line)


def _check(finding: FindingItem) -> Paragraph:
    """How one sees that the producer was ended."""
    describe = shell_option("--transactional-id", str(finding.transactional_id))
    must_show = f"an epoch above {finding.producer_epoch} and not list {escape(finding.topic_partition)}"
    older = "; for brokers before 3.0 the script says how"
    return Paragraph("check", f"must show {must_show}{older}", command=f"{TRANSACTIONS} describe {describe}")


def _labelled(label: str, text: str, width: int) -> Iterator[Line]:
    """`text` wrapped beside its label."""
    indent = _INDENT + " " * _LABEL_WIDTH
    first = _INDENT + label.ljust(_LABEL_WIDTH)
    return (Line(part) for part in wrapped(text, width, first, indent))
