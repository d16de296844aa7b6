"""All findings as one CSV file, for reports with more of them than a page can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.report.csv_table import csv_table

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport

COLUMNS = (
    "verdict",
    "rule",
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "txn_start_offset",
    "last_offset",
    "record_count",
    "idle_ms",
    "late_by_ms",
    "transactional_id",
    "coordinator_state",
    "blocks_partition",
    "evidence",
    "missing_evidence",
    "finding_id",
)


def findings_csv(report: AuditReport) -> str:
    """One line a finding, worst first, under a header; see `csv_table`."""
    rows = ([getattr(finding, name) for name in COLUMNS] for finding in report.findings)
    return csv_table(COLUMNS, rows, separator="; ")
