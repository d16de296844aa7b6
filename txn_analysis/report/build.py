"""From the rows of a run to its report."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from txn_analysis.judge.outcome import Outcome, Sight, in_doubt, outcome_of
from txn_analysis.report.model import (
    AuditReport,
    ClusterImpact,
    Coverage,
    FindingItem,
    InputItem,
    OutcomeItem,
    PartitionItem,
    RunItem,
    SkippedInput,
    WarningItem,
)
from txn_analysis.report.settling import remedies, what_shows
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


def build_report(
    run: Mapping[str, Any],
    inputs: Iterable[Mapping[str, Any]],
    health: Iterable[Mapping[str, Any]],
    findings: Iterable[Mapping[str, Any]],
    topics: Collection[str] = (),
) -> AuditReport:
    """The report of one run from its rows, as plain dictionaries.

    Args:
        run: its row of `runs`.
        inputs: the rows of `inputs` of the captures it read.
        health: its rows of `partition_health`.
        findings: its rows of `findings`.
        topics: those that the report is about; none for all of the run. What was read is said of the whole run.
    """
    input_items = sorted((InputItem.model_validate(row) for row in inputs), key=lambda item: item.path)
    finding_items = sorted((FindingItem.model_validate(row) for row in findings), key=_worst_first)
    impacts = {(item.topic, item.partition): item.impact for item in finding_items if item.impact is not None}
    partitions = sorted(
        (
            PartitionItem.model_validate({**row, "impact": impacts.get((row["topic"], row["partition"]))})
            for row in health
        ),
        key=lambda item: (item.topic, item.partition),
    )
    run_item, coverage = _run_item(run), _coverage(run, input_items, partitions)
    if topics:
        partitions = [item for item in partitions if item.topic in topics]
        finding_items = [item for item in finding_items if item.topic in topics]
        run_item = run_item.model_copy(update={"verdict_counts": _counts(Counter(f.verdict for f in finding_items))})
    sight = Sight.of(item.seen for item in partitions)._replace(has_logs=coverage.has_logs)
    of_run = [] if topics else json.loads(run["warnings"])
    return AuditReport(
        run=run_item,
        inputs=tuple(input_items),
        coverage=coverage,
        partitions=tuple(partitions),
        findings=tuple(finding_items),
        impact=_cluster_impact(partitions, finding_items),
        warnings=tuple(WarningItem.model_validate(row) for row in of_run),
        outcome=_outcome(finding_items, run_item, coverage, sight),
        topics=tuple(sorted(topics)),
    )


def _outcome(findings: list[FindingItem], run: RunItem, coverage: Coverage, sight: Sight) -> OutcomeItem:
    doubtful = in_doubt(findings, has_state=coverage.has_state)
    answer = outcome_of(findings, has_state=coverage.has_state, sight=sight)
    hanging = [finding for finding in findings if finding.verdict is Verdict.HANGING]
    meant = {Outcome.FINDINGS: hanging, Outcome.COULD_NOT_TELL: doubtful}.get(answer, [])
    is_blind = bool(sight.contested) or not findings
    of_sight = what_shows(sight) if is_blind and answer is Outcome.COULD_NOT_TELL else ()
    return OutcomeItem(
        answer=answer,
        transaction_count=len(meant),
        partitions=_places(meant),
        doubtful_count=len(doubtful),
        doubtful_partitions=_places(doubtful),
        settled_by=(*remedies(doubtful, run, coverage.transaction_state), *of_sight),
    )


def _places(findings: list[FindingItem]) -> tuple[str, ...]:
    return tuple(sorted({finding.topic_partition for finding in findings}))


def _cluster_impact(partitions: list[PartitionItem], findings: list[FindingItem]) -> ClusterImpact:
    late = {(f.topic, f.partition) for f in findings if f.impact is not None and f.verdict is not Verdict.IN_PROGRESS}
    blocked = [item for item in partitions if (item.topic, item.partition) in late]
    since = {item: item.impact.hidden_since_ms for item in blocked if item.impact and item.impact.hidden_since_ms}
    oldest = min(since, key=lambda item: since[item] or 0, default=None)
    counted = [item for item in blocked if item.hidden_record_count is not None]
    worst = max(counted, key=lambda item: item.hidden_record_count or 0, default=None)
    days = [item.impact.days_until_full for item in blocked if item.impact and item.impact.days_until_full]
    return ClusterImpact(
        partitions_blocked=len(blocked),
        hidden_record_count=_sum(item.hidden_record_count for item in blocked),
        hidden_bytes=_sum(item.hidden_bytes for item in blocked),
        oldest_partition=None if oldest is None else oldest.topic_partition,
        oldest_since_ms=None if oldest is None else since[oldest],
        worst_partition=None if worst is None else worst.topic_partition,
        worst_hidden_record_count=None if worst is None else worst.hidden_record_count,
        # All of them fill the same space: their rates add up.
        days_until_full=1 / sum(1 / each for each in days) if days else None,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _worst_first(finding: FindingItem) -> tuple[int, str, int, int, int]:
    return (
        -finding.verdict.severity,
        finding.topic,
        finding.partition,
        finding.txn_start_offset,
        finding.producer_id,
    )


def _run_item(run: Mapping[str, Any]) -> RunItem:
    return RunItem.model_validate(
        {
            **run,
            "earlier_captures": run["earlier_captures"] or (),
            "parameters": json.loads(run["parameters"]),
            "verdict_counts": _counts(run["verdict_counts"] or {}),
        }
    )


def _counts(counted: Mapping[Any, int]) -> dict[str, int]:
    return {verdict.value: counted.get(verdict, 0) for verdict in Verdict}


def _coverage(run: Mapping[str, Any], inputs: list[InputItem], partitions: list[PartitionItem]) -> Coverage:
    return Coverage(
        transaction_state=json.loads(run["state_coverage"]),
        has_logs=Sight.of(item.seen for item in partitions).has_logs,
        partitions_seen=sum(item.is_in_capture for item in partitions),
        partitions_missing=tuple(item.topic_partition for item in partitions if not item.is_in_capture),
        parsed_bytes=sum(item.parsed_bytes for item in inputs),
        rejected_bytes=sum(item.rejected_bytes for item in inputs),
        skipped_inputs=tuple(
            SkippedInput(path=item.path, problem=item.problem) for item in inputs if item.problem is not None
        ),
    )
