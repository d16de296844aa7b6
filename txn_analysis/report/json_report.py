"""The report for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport


def json_report(report: AuditReport) -> str:
    """One JSON object and a newline; ASCII only, so that no id can reach a terminal unescaped."""
    return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=True) + "\n"
