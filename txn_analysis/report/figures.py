"""What is worked out of findings: the order in which people read them, and whose clock a duration is by.

Kafka measures how long a transaction has been idle by its last timestamp, which under CreateTime is the client's word
(`ProducerStateManager.hasLateTransaction`). Where the brokers' moments around the data contradict it, the duration
says whose it is; both are told where it depends on the clock whether the transaction is late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.text.words import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.report.model import AuditReport, FindingItem


def by_damage(report: AuditReport, findings: Iterable[FindingItem]) -> list[FindingItem]:
    """Findings in the order of their damage; ties by topic, partition and start offset.

    Tables and JSON keep the order of the contract instead, which does not change from run to run.
    """
    return sorted(
        findings,
        key=lambda finding: (
            *(-finding.verdict.severity, -(hidden_by(report, finding) or 0)),
            *(finding.topic, finding.partition, finding.txn_start_offset, finding.producer_id),
        ),
    )


def hidden_by(report: AuditReport, finding: FindingItem) -> int | None:
    """Records that `read_committed` consumers cannot read because of it; None where the files do not say.

    What an older open transaction hides counts for that one.
    """
    if not finding.blocks_partition:
        return 0
    partition = report.partitions_by_place.get((finding.topic, finding.partition))
    return None if partition is None else partition.hidden_record_count


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


def is_decided_by_clock(report: AuditReport, finding: FindingItem) -> bool:
    """Whether it is late depends on whose clock is asked, or may do: the brokers' do not clearly say what the client's
    says.
    """
    as_of_ms, bound_ms = report.run.as_of_ms, report.run.late_after_ms
    if not is_contradicted(report, finding) or as_of_ms is None or finding.last_timestamp_ms is None:
        return False
    if as_of_ms - finding.last_timestamp_ms > bound_ms:
        return finding.appended_before_ms is None or as_of_ms - finding.appended_before_ms <= bound_ms
    return finding.appended_after_ms is None or as_of_ms - finding.appended_after_ms > bound_ms


def clock_line(report: AuditReport, finding: FindingItem) -> str | None:
    """Both durations with their clocks, where it depends on the clock whether it is late."""
    if not is_decided_by_clock(report, finding):
        return None
    by_client, by_brokers = duration(finding.idle_ms), idle_by_brokers(report, finding)
    return f"idle {by_client} by its client's clock, {by_brokers} by the brokers'"


def clock_sentence(report: AuditReport) -> str | None:
    """That it depends on the clock what is late; None where it does not."""
    number = sum(is_decided_by_clock(report, finding) for finding in report.findings)
    if not number:
        return None
    return (
        f"Two clocks: for {number} of {count(len(report.findings), 'open transaction')} the client's timestamps and "
        "the brokers' clocks differ on whether it is late. Kafka measures by the timestamps; an abort may be sent only "
        "once the brokers' clocks agree."
    )


def clock_remark(report: AuditReport) -> str | None:
    """That clients' timestamps are contradicted without any effect; None where all that are have one."""
    contradicted = [finding for finding in report.findings if is_contradicted(report, finding)]
    number = sum(not is_decided_by_clock(report, finding) for finding in contradicted)
    if not number:
        return None
    of = count(len(report.findings), "open transaction")
    return f"the brokers' clocks contradict the client's timestamp of {number} of {of}; it is late, or not, by both"
