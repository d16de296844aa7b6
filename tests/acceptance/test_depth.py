"""`--depth quick` keeps less and says the same; what it did not keep is named where it is missed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, cast

from tests.acceptance.captures import VARIANTS, rows_of, run_audit
from txn_analysis.runs.evidence import Evidence
from txn_analysis.storage.on_spark.tables import committed
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.tables import LOG_BATCHES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.captures import Variant
    from txn_analysis.report.model import AuditReport
    from txn_analysis.storage.warehouse import Warehouse

# Its snapshots lie inside its segments.
VARIANT = next(v for v in VARIANTS if v.capture == "kafka-4.2-edge/capture-2")


def batch_count(spark: SparkSession, warehouse: str) -> int:
    return committed(open_warehouse(spark, warehouse), LOG_BATCHES).count()


def test_quick_says_what_full_says_and_full_can_follow(
    spark: SparkSession, empty_warehouse: Path, tmp_path: Path, audit_of: Callable[[Variant], AuditReport]
) -> None:
    full = audit_of(VARIANT)
    warehouse = str(shutil.copytree(empty_warehouse, tmp_path / "quick"))
    settings = dict(VARIANT.settings) | {"cluster": VARIANT.name}
    quick = run_audit(spark, warehouse, VARIANT.paths, depth="quick", **settings)
    assert rows_of(quick) == rows_of(full)
    assert quick.partitions == full.partitions
    kept = batch_count(spark, warehouse)
    deeper = run_audit(spark, warehouse, VARIANT.paths, **settings)
    assert deeper == quick
    assert batch_count(spark, warehouse) > kept


def test_a_snapshot_that_comes_later_cannot_cut_what_was_read_quickly() -> None:
    place = {"topic": "orders", "partition": 0, "is_start_proven": True, "grammar": "2.2+", "dump_path": "orders-0"}
    log = place | {"kind": "log", "section_index": 0, "file_base_offset": 0, "first_offset": 0, "end_offset": 9}
    snapshot = place | {"kind": "snapshot", "section_index": 0, "file_base_offset": 5, "has_batches": None}
    known = {"kind": "log_dump", "capture_rank": 0, "problem": None, "path": "dump.txt"}
    for has_batches in (True, False):
        logs = known | {"input_id": "a", "sections": [log | {"has_batches": has_batches}]}
        inputs = (logs, known | {"input_id": "b", "sections": [snapshot]})
        rows = Evidence(cast("Warehouse", None), "cluster", ("capture",), None, inputs).section_rows
        problem = next(row["input_problem"] for row in rows if row["kind"] == "log")
        assert (problem is None) is has_batches, problem
