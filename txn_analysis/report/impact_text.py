"""Why, what it costs, and what comes next, as people read it: causes, blocked partitions, early warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes import cause_named
from txn_analysis.report.figures import clock_sentence
from txn_analysis.report.terminal import Line, rule_line, wrapped
from txn_analysis.text.escape import clip, escape
from txn_analysis.text.words import count, duration, iso_utc, listed, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.report.model import AuditReport, CauseItem, FindingItem, ImpactItem, PartitionItem, WarningItem

_ID_WIDTH = 80
_MOST_GROUPS = 5


def cause_sentence(cause: CauseItem) -> str:
    """The cause in one sentence, with how sure it is."""
    return f"{_meaning(cause)} ({cause.name}, {cause.confidence})"


def cause_line(cause: CauseItem) -> str:
    """The cause on a line that may be cut: what counts comes first."""
    return f"{cause.name} ({cause.confidence}): {_meaning(cause)}"


def _meaning(cause: CauseItem) -> str:
    known = cause_named(cause.name)
    return cause.name if known is None else known.meaning


def blocks_sentence(finding: FindingItem, partition: PartitionItem | None) -> str:
    """What an open transaction costs its partition."""
    if partition is None:
        return "unknown: nothing else is known of the partition"
    if not finding.blocks_partition:
        stable = partition.last_stable_offset
        return f"nothing yet: the last stable offset is held at {stable} by another open transaction"
    hidden = partition.hidden_record_count
    records = "an unknown number of records" if hidden is None else count(hidden, "record")
    impact = finding.impact
    share = "" if impact is None or impact.hidden_share is None else f", {impact.hidden_share:.1%} of the log seen"
    bytes_hidden = f"{size(partition.hidden_bytes)}{share}"
    text = (
        f"the last stable offset stays at {finding.txn_start_offset}: {records} ({bytes_hidden}) "
        "hidden from read_committed consumers"
    )
    return text + "".join(f"{joint}{part}" for joint, part in consequences(impact))


def consequences(impact: ImpactItem | None) -> Iterator[tuple[str, str]]:
    """What follows for a blocked partition, each part with what joins it to the one before."""
    if impact is None or impact.is_compaction_stopped is not False:
        # Of topics that are not known to be compacted it is said as well: it is what fills disks.
        yield ", and ", "compaction stops there"
    if impact is None:
        return
    if impact.hidden_lost_at_ms is not None:
        yield "; ", f"retention may delete them unread from {iso_utc(impact.hidden_lost_at_ms)} on"
    if impact.log_growth_bytes_per_day is not None:
        grown, over = size(impact.log_growth_bytes_per_day), duration(impact.log_growth_measured_ms)
        yield "; ", f"the log grows by {grown} a day, as measured over {over}"
    if impact.days_until_full is not None:
        yield ", ", f"which fills the free space in {impact.days_until_full:.1f} days"
    for groups, what in ((impact.pending_groups, "wait for offsets in it"), (impact.waiting_groups, "share it")):
        if groups:
            yield "; ", f"groups that {what}: {listed([clip(g, _ID_WIDTH) for g in groups], _MOST_GROUPS)}"


def cluster_lines(report: AuditReport, width: int) -> Iterator[Line]:
    """What is blocked, and by whose clocks the times are, wrapped; nothing where there is nothing to say."""
    for sentence in (cluster_sentence(report), clock_sentence(report)):
        if sentence is not None:
            yield from (Line(part) for part in wrapped(sentence, width))


def cluster_sentence(report: AuditReport) -> str | None:
    """The cluster in one sentence: how much is blocked, where longest and where most; None where nothing is.

    What only transactions in progress hold does not count: it is released in time.
    """
    impact = report.impact
    if impact is None or not impact.partitions_blocked:
        return None
    hidden = impact.hidden_record_count
    records = "an unknown number of records" if hidden is None else count(hidden, "record")
    parts = [f"Blocked, without what is in progress: {count(impact.partitions_blocked, 'partition')}, {records} hidden"]
    if impact.oldest_partition is not None:
        since = f"since {iso_utc(impact.oldest_since_ms)} by the brokers' clocks"
        parts.append(f"longest {escape(impact.oldest_partition)}, {since}")
    if impact.worst_partition is not None:
        parts.append(
            f"most on {escape(impact.worst_partition)} ({count(impact.worst_hidden_record_count or 0, 'record')})"
        )
    if impact.days_until_full is not None:
        parts.append(f"the free space lasts {impact.days_until_full:.1f} days")
    return "; ".join(parts) + "."


def warning_lines(report: AuditReport, width: int) -> Iterator[Line]:
    """What does not hang yet and will, one line an application."""
    if not report.warnings:
        return
    yield Line("")
    yield rule_line("Early warning", width)
    for item in report.warnings:
        text = f"{item.kind}: {warning_subject(item)}: {escape(item.text)}"
        yield from (Line(p) for p in wrapped(text, width, rest="    "))


def warning_subject(item: WarningItem) -> str:
    """Whom a warning is about, and how many ids it stands for."""
    more = f" and {count(item.count - 1, 'other id')}" if item.count > 1 else ""
    is_same = item.example is None or item.example == item.subject
    example = "" if is_same else f", id {clip(item.example or '', _ID_WIDTH)}"
    return f"{clip(item.subject, _ID_WIDTH)}{example}{more}"
