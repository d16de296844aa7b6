"""The order in which people read findings: worst verdict first, then what hides most records."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
