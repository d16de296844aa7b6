"""The report for programs."""

from __future__ import annotations

import json
from typing import Any

from txn_analysis.report.model import SCHEMA_VERSION, AuditReport

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report_schema() -> dict[str, Any]:
    """The JSON schema of what `json_report` gives; of `schema_version`, the version that it describes."""
    schema = AuditReport.model_json_schema(mode="serialization")
    schema["properties"]["schema_version"]["const"] = SCHEMA_VERSION
    return {"$schema": _DIALECT} | schema


def json_report(report: AuditReport) -> str:
    """One JSON object and a newline; ASCII only, so that no id can reach a terminal unescaped."""
    return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=True) + "\n"
