"""However the text is split, and whatever a client wrote into it, the rows are the brokers' batches."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.acceptance.captures import CASES, VARIANTS, Variant, rows_of, run_audit
from tests.table_rows import committed, listed
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.tables import INPUTS, LOG_BATCHES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from txn_analysis.report.model import AuditReport

FORGED_PRODUCER = 666  # exists only in keys and values that imitate dump lines


def test_lines_forged_in_payloads_are_payload(spark: SparkSession, warehouse: str) -> None:
    folder = str(CASES / "forged-payload")
    ingested = pipeline.ingest(spark, [folder], Settings(warehouse=warehouse, cluster="forged"))
    ids = [row["input_id"] for row in listed(open_warehouse(spark, warehouse), INPUTS, "input_id", cluster=["forged"])]
    batches = committed(open_warehouse(spark, warehouse), LOG_BATCHES).where(f"input_id IN ('{ids[0]}', '{ids[1]}')")
    rows = batches.select("input_id", "producer_id", "is_contested").collect()
    assert ingested.rejected_bytes == 0
    assert sorted(sum(row["input_id"] == i for row in rows) for i in ids) == [127, 127]
    assert not any(row["producer_id"] == FORGED_PRODUCER or row["is_contested"] for row in rows)


def test_small_ranges_give_the_same_findings(
    spark: SparkSession, empty_warehouse: Path, tmp_path: Path, audit_of: Callable[[Variant], AuditReport]
) -> None:
    variant = next(v for v in VARIANTS if v.capture == "kafka-4.2/capture-1" and "segments" in v.parts)
    fresh = str(shutil.copytree(empty_warehouse, tmp_path / "warehouse"))
    split = run_audit(spark, fresh, variant.paths, cluster=variant.name, range_bytes=20_000)
    assert rows_of(split) == rows_of(audit_of(variant))
