"""Captures of one cluster are fed one after another, in any order: every run is right, and earlier runs stay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.acceptance.captures import CASES, by_place, rows_of, run_audit
from txn_analysis import audit
from txn_analysis.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A later capture comes first, and an older one last.
CAPTURES = ("kafka-4.2/capture-2", "kafka-4.2/capture-3", "kafka-4.2/capture-1")
PARTS = ("segments", "transaction-state", "producer-snapshots")


def expected_of(capture: str) -> dict[tuple[str, int, int], tuple[str, str]]:
    rows = json.loads((CASES / capture / "expected.json").read_text())["open_transactions"]
    return {place: (row["verdict"], row["rule"]) for place, row in by_place(rows).items()}


def test_three_captures_in_any_order(spark: SparkSession, warehouse: str) -> None:
    cluster = "nights in any order"
    first_answers = {}
    for capture in CAPTURES:
        paths = [str(p) for part in PARTS if (p := CASES / capture / part).exists()]
        report = run_audit(spark, warehouse, paths, cluster=cluster, capture=capture)
        found = {place: (row["verdict"], row["rule"]) for place, row in by_place(rows_of(report)).items()}
        assert found == expected_of(capture)
        first_answers[report.run.run_id] = report
    for run_id, report in first_answers.items():
        again = audit.load_report(spark, Settings(warehouse=warehouse, cluster=cluster), run_id)
        assert again == report
