"""A commit that was acknowledged, and whose marker cannot be written: the leader of the partition does not answer."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.captures import PARAMETERS
from tests.systems.e2e.driver import first_transaction
from tests.systems.e2e.hangs import HOUR_MS, now_ms
from tests.systems.e2e.stage import on_node, staged
from tests.tools.processes import wait_until
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e

PLACE = ("payouts", 0)
ID = "payout-batch-1"


def test_pending_commit_is_never_planned_and_completes_when_the_node_is_back(
    spark: SparkSession, warehouse: str, tmp_path: Path
) -> None:
    # Two nodes: the first coordinates everything, since the second one comes later.
    two = Cluster("4.2.0", tmp_path / "cluster", nodes=2)
    with staged(two, {PLACE[0]: on_node(1, node=1)}, first_transaction) as stage:
        cluster, driver = stage.cluster, stage.driver
        driver.begin(ID)
        offsets = driver.send(ID, PLACE, at_ms=now_ms() - 3 * HOUR_MS)
        cluster.nodes[1].pause()
        driver.commit(ID)
        for node in (1, 0):  # the first node has the state, which is copied last
            cluster.copy_logs(tmp_path / "copy" / f"node-{node + 1}", node)
        settings = {"warehouse": warehouse, "cluster": "pending commit", "state_copied_last": True}
        report = pipeline.audit(spark, [str(tmp_path / "copy")], Settings.model_validate(PARAMETERS | settings))
        found = {(f.topic, f.partition): (f.verdict.value, f.rule) for f in report.findings}
        assert found == {PLACE: ("coordinated", "marker_pending_commit")}
        cluster.nodes[1].go_on()
        wait_until(lambda: driver.consume(PLACE, 2000)["offsets"] == offsets, ID)
