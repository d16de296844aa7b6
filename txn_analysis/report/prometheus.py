"""The figures of one run as a Prometheus textfile, for the node exporter's textfile collector.

Names follow KIP-664's metrics of brokers, computed from the copied files. Labels are bounded: partitions with an open
transaction, the worst ones first, and verdicts, causes and warnings by name; never a transactional id. The metrics of
KIP-890's verification (`VerificationTimeMs`, `VerificationFailureRate`) live in brokers alone: no file tells them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from txn_analysis.judge.causes import CAUSES
from txn_analysis.judge.outcome import Outcome
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport, PartitionItem

MOST_PARTITIONS = 200
_MS_PER_S = 1000
_OF_PARTITION = ("cluster", "topic", "partition")


def prometheus_text(report: AuditReport, finished_ms: int) -> str:
    """The exposition format, one gauge a figure; times and durations in seconds, as Prometheus wants them.

    Args:
        report: of the run.
        finished_ms: when the run succeeded, by this machine's clock; epoch milliseconds.
    """
    registry = CollectorRegistry()
    _of_cluster(registry, report, finished_ms)
    _of_partitions(registry, report)
    return generate_latest(registry).decode("utf-8")


def _of_cluster(registry: CollectorRegistry, report: AuditReport, finished_ms: int) -> None:
    cluster = report.run.cluster

    def gauge(name: str, about: str, value: float | None) -> None:
        if value is not None:
            Gauge(name, about, ("cluster",), registry=registry).labels(cluster).set(value)

    gauge("txn_analysis_last_success_timestamp_seconds", "When an audit last succeeded.", finished_ms / _MS_PER_S)
    as_of_ms = report.run.as_of_ms
    gauge(
        "txn_analysis_as_of_timestamp_seconds",
        "When the files were copied.",
        None if as_of_ms is None else as_of_ms / _MS_PER_S,
    )
    gauge(
        "txn_analysis_could_not_tell",
        "1 where nothing is known to hang, but it could not be told of some open transaction.",
        report.outcome.answer is Outcome.COULD_NOT_TELL,
    )
    gauge(
        "txn_analysis_open_transactions_in_doubt",
        "Open transactions of which it could not be told whether they hang.",
        report.outcome.doubtful_count,
    )
    late = _late_places(report)
    gauge(
        "txn_analysis_partitions_with_late_transactions_count",
        "Partitions with a transaction idle for more than transaction.max.timeout.ms + 300000, by the clients' "
        "timestamps (PartitionsWithLateTransactionsCount).",
        len(late),
    )
    durations = [d for d in (_duration_s(report, item) for item in report.partitions) if d is not None]
    gauge(
        "txn_analysis_max_active_transaction_duration_seconds",
        "How long the longest open transaction has been open, by the brokers' clocks; not by clients' "
        "timestamps, which may differ (MaxActiveTransactionDuration).",
        max(durations, default=0),
    )
    gauge(
        "txn_analysis_partitions_blocked",
        "Partitions that a transaction blocks which is not in progress, as the first line of the report counts them.",
        None if report.impact is None else report.impact.partitions_blocked,
    )
    verdicts = Gauge("txn_analysis_open_transactions", "Open transactions.", ("cluster", "verdict"), registry=registry)
    for verdict in Verdict:
        verdicts.labels(cluster, verdict.value).set(sum(f.verdict is verdict for f in report.findings))
    causes = Gauge("txn_analysis_hanging_by_cause", "Hanging ones.", ("cluster", "cause"), registry=registry)
    for name in [cause.name for cause in CAUSES]:
        found = (f for f in report.hanging if f.cause is not None and f.cause.name == name)
        causes.labels(cluster, name).set(sum(1 for _ in found))


def _of_partitions(registry: CollectorRegistry, report: AuditReport) -> None:
    blocked = sorted(
        (item for item in report.partitions if item.open_transaction_count),
        key=lambda item: (-(_lag(item) or 0), item.topic, item.partition),
    )
    late = _late_places(report)
    cluster = report.run.cluster
    lag = Gauge(
        "txn_analysis_last_stable_offset_lag", "Offsets from the LSO to the end.", _OF_PARTITION, registry=registry
    )
    duration = Gauge(
        "txn_analysis_partition_max_active_transaction_duration_seconds",
        "How long the longest open transaction of the partition has been open, by the brokers' clocks.",
        _OF_PARTITION,
        registry=registry,
    )
    is_late = Gauge(
        "txn_analysis_partition_has_late_transaction",
        "1 with a late transaction, by the clients' timestamps.",
        _OF_PARTITION,
        registry=registry,
    )
    for item in blocked[:MOST_PARTITIONS]:
        labels = (cluster, item.topic, str(item.partition))
        is_late.labels(*labels).set((item.topic, item.partition) in late)
        for gauge, value in ((lag, _lag(item)), (duration, _duration_s(report, item))):
            if value is not None:
                gauge.labels(*labels).set(value)
    Gauge(
        "txn_analysis_partitions_left_out",
        "Open ones beyond those with metrics of their own.",
        ("cluster",),
        registry=registry,
    ).labels(cluster).set(max(len(blocked) - MOST_PARTITIONS, 0))


def _late_places(report: AuditReport) -> set[tuple[str, int]]:
    """As `ProducerStateManager.hasLateTransaction`: the transaction that begins first, by its last timestamp alone."""
    bound_ms = report.run.late_after_ms
    return {
        (f.topic, f.partition)
        for f in report.findings
        if f.impact is not None and f.idle_ms is not None and (f.last_timestamp_ms or 0) > 0 and f.idle_ms > bound_ms
    }


def _lag(item: PartitionItem) -> int | None:
    if item.end_offset is None or item.last_stable_offset is None:
        return None
    return max(item.end_offset - item.last_stable_offset, 0)


def _duration_s(report: AuditReport, item: PartitionItem) -> float | None:
    """Since the first append of the transaction that holds the last stable offset, which began first."""
    since_ms = None if item.impact is None else item.impact.hidden_since_ms
    if since_ms is None or report.run.as_of_ms is None:
        return None
    return max(report.run.as_of_ms - since_ms, 0) / _MS_PER_S
