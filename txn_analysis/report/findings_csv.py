"""All findings as one CSV file, for reports with more of them than a page can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txn_analysis.report.escape import csv_cell

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
    """One line a finding, worst first, under a header; RFC 4180. What is unknown is an empty cell."""
    lines = [",".join(COLUMNS)]
    lines += [",".join(_cell(getattr(finding, name)) for name in COLUMNS) for finding in report.findings]
    return "".join(line + "\r\n" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)  # a negative number stays a number
    return csv_cell("; ".join(value) if isinstance(value, tuple) else str(value))
