"""Two audits at once on one warehouse: both succeed, and the tables are those of one after the other."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.faults.processes import start_audit, wait_until
from tests.faults.scene import EARLIER, LATER, WORDS, Tables, differences, duplicates, settings, tables
from txn_analysis import audit
from txn_analysis.tables import INPUTS, LOG_BATCHES, RUNS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

    from tests.faults.scene import Scene


def run_numbers(found: Tables) -> list[int]:
    return sorted(json.loads(row)["run_number"] for row in found[RUNS.name])


def test_two_threads_make_the_same_run(scene: Scene, tmp_path: Path) -> None:
    shared = scene.copied_to(tmp_path / "shared")
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: scene.audit(shared), range(2)))
    assert reports[0] == reports[1]
    assert differences(scene.rows(shared), scene.after) == []


def test_two_processes_share_content_in_two_captures(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    warehouse = tmp_path / "shared"
    other = start_audit(EARLIER, warehouse, "--cluster", "other", *WORDS)
    wait_until(lambda: (warehouse / ".locks").exists() or other.poll() is not None, "the other audit's first table")
    audit.audit(spark, LATER, settings(warehouse))
    _, errors = other.communicate()
    assert other.returncode == 0, errors[-2000:]
    found = tables(spark, warehouse)
    assert duplicates(found) == []
    assert run_numbers(found) == [1, 2]
    assert len(found[INPUTS.name]) == 7 + 5
    contents = {(json.loads(row)["input_id"], json.loads(row)["ingest_id"]) for row in found[INPUTS.name]}
    assert len(contents) == 7, "some content was read twice, and both readings count"
    assert {json.loads(row)["ingest_id"] for row in found[LOG_BATCHES.name]} <= {ingest for _, ingest in contents}
