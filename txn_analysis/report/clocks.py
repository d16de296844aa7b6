"""Whose clock a duration is by: the client's timestamps, or the moments that brokers' clocks wrote around them.

Kafka measures how long a transaction has been idle by its last timestamp, which under CreateTime is the client's word
(`ProducerStateManager.hasLateTransaction`). Where the brokers' moments around the data contradict it, each duration
says by which of the two it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.text.words import count, duration

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport, FindingItem


def judged_idle_ms(report: AuditReport, finding: FindingItem) -> int | None:
    """How long it has been idle by the clock that lateness is judged by, the brokers' where the client's is not
    credible; None where no clock tells.
    """
    return None if finding.late_by_ms is None else finding.late_by_ms + report.run.late_after_ms


def is_contradicted(report: AuditReport, finding: FindingItem) -> bool:
    """The brokers' clocks say that its last record was not written when its client's timestamp says so."""
    skew_ms = int(report.run.parameters.get("max_clock_skew_ms") or 0)
    last_ms, after_ms, before_ms = finding.last_timestamp_ms, finding.appended_after_ms, finding.appended_before_ms
    if last_ms is None:
        return False
    is_before = after_ms is not None and last_ms < after_ms - skew_ms
    return is_before or (before_ms is not None and last_ms > before_ms + skew_ms)


def idle_by_brokers(report: AuditReport, finding: FindingItem) -> str:
    """How long it has been idle by the brokers' clocks, as close as they say, such as `56 s to 58 s`."""
    as_of_ms = report.run.as_of_ms
    ends = (finding.appended_before_ms, finding.appended_after_ms)
    least, most = (None if end is None or as_of_ms is None else duration(max(as_of_ms - end, 0)) for end in ends)
    if least is None or most is None:
        known = f"at least {least}" if least is not None else f"at most {most}"
        return "unknown" if least is most else known
    return least if least == most else f"{least} to {most}"


def clock_line(report: AuditReport, finding: FindingItem) -> str | None:
    """Both durations with their clocks, where the two contradict each other."""
    if not is_contradicted(report, finding):
        return None
    by_client, by_brokers = duration(finding.idle_ms), idle_by_brokers(report, finding)
    return f"idle {by_client} by its client's clock, {by_brokers} by the brokers'"


def clock_sentence(report: AuditReport) -> str | None:
    """That two clocks tell different times, and which times are by which; None where they agree."""
    number = sum(is_contradicted(report, finding) for finding in report.findings)
    if not number:
        return None
    of, have = count(len(report.findings), "open transaction"), "has" if number == 1 else "have"
    return (
        f"Two clocks: {number} of {of} {have} a timestamp of the client's clock that the brokers' clocks "
        "contradict. How long something is idle is by its client's clock, which is how Kafka measures what is late; "
        "since when it blocks, and from when on an abort may be sent, is by the brokers'."
    )
