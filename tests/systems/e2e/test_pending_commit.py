"""A commit that was acknowledged, and whose marker cannot be written: the leader of the partition does not answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.captures import PARAMETERS
from tests.systems.e2e.driver import Driver, first_transaction
from tests.systems.e2e.hangs import HOUR_MS, now_ms
from tests.tools.processes import wait_until
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e

PLACE = ("payouts", 0)
ID = "payout-batch-1"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two nodes: the first coordinates everything, since the second one comes later."""
    cluster = Cluster("4.2.0", tmp_path / "cluster", nodes=2)
    try:
        yield cluster.start(first_topic=first_transaction)
    finally:
        cluster.stop()


def test_pending_commit_is_never_planned_and_completes_when_the_node_is_back(
    cluster: Cluster, spark: SparkSession, warehouse: str, tmp_path: Path
) -> None:
    driver = Driver(cluster.version, cluster.bootstrap, tmp_path / "driver.log")
    driver.create_topic(PLACE[0], [2])
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
    wait_until(lambda: driver.call("consume", topic=PLACE[0], partition=0, timeout_ms=2000)["offsets"] == offsets, ID)
    driver.close()
