"""Group names come from what was read once: a run made again says the same, whatever became of the copies."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.captures import CASES, PARAMETERS, run_audit
from tests.table_rows import committed
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.tables import FINDINGS, GROUP_OFFSETS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Row = dict[str, Any]
CAPTURE = CASES / "kafka-4.2-edge/capture-2"
PARTS = ("group-offsets", "transaction-state")
PLACE = ("topic", "partition", "producer_id", "txn_start_offset")


@dataclass(frozen=True)
class Audited:
    """A warehouse after one audit, whose copies were deleted."""

    spark: SparkSession
    root: str
    run_id: str
    capture: str
    findings: list[Row]

    def judged_again(self) -> list[Row]:
        """The findings after the same run was made again."""
        settings = Settings.model_validate(PARAMETERS | {"warehouse": self.root, "capture": self.capture})
        pipeline.reconstruct(self.spark, settings)
        assert pipeline.judge(self.spark, settings).run_id == self.run_id
        return stored(self.spark, self.root)


def stored(spark: SparkSession, root: str) -> list[Row]:
    rows = [row.asDict(recursive=True) for row in committed(open_warehouse(spark, root), FINDINGS).collect()]
    return sorted(rows, key=lambda row: [row[name] for name in PLACE])


def groups(findings: list[Row]) -> list[tuple[Any, Any]]:
    impacts = [row["impact"] for row in findings if row["topic"] == "__consumer_offsets"]
    return [(impact["pending_groups"], impact["waiting_groups"]) for impact in impacts]


@pytest.fixture(scope="module")
def audited(spark: SparkSession, empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    folder = tmp_path_factory.mktemp("copies-that-are-deleted")
    copies = [shutil.copytree(CAPTURE / part, folder / part) for part in PARTS]
    root = str(shutil.copytree(empty_warehouse, folder / "warehouse"))
    report = run_audit(spark, root, [str(copy) for copy in copies])
    for copy in copies:
        shutil.rmtree(copy)
    return Audited(spark, root, report.run.run_id, report.run.capture, stored(spark, root))


def test_a_run_made_again_without_the_copies_says_the_same(audited: Audited) -> None:
    assert groups(audited.findings) == [(["billing-readers"], [])]
    assert audited.judged_again() == audited.findings


def test_content_that_is_given_twice_is_stored_once(audited: Audited, spark: SparkSession) -> None:
    table = open_warehouse(spark, audited.root).frame(GROUP_OFFSETS)
    before = sorted(map(tuple, table.collect()), key=repr)
    settings = Settings.model_validate(PARAMETERS | {"warehouse": audited.root, "cluster": "another"})
    pipeline.ingest(spark, [str(CAPTURE / part) for part in PARTS], settings)
    after = open_warehouse(spark, audited.root).frame(GROUP_OFFSETS)
    assert sorted(map(tuple, after.collect()), key=repr) == before
