"""Brokers that are busy are audited as they run: nothing of theirs is refused, and nothing that lives is accused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.captures import PARAMETERS
from tests.systems.e2e.hangs import HOUR_MS
from tests.systems.e2e.stage import staged
from txn_analysis.pipeline.steps import audit
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e

VERSION = "4.2.0"
NODES = 3
TIMES = 20
PARTITIONS = 3
# Everything is on all nodes; files roll every second, and are deleted soon, while they may be being read.
_EVERYWHERE = {
    "offsets.topic.replication.factor": NODES,
    "transaction.state.log.replication.factor": NODES,
    "log.retention.check.interval.ms": 1000,
    "log.initial.task.delay.ms": 1000,
}
_ROLLING = {"segment.ms": 1000, "retention.ms": 10_000, "file.delete.delay.ms": 100}


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes under a load of transactions, and a topic that is never written."""
    folder = tmp_path_factory.mktemp("running")
    cluster = Cluster(VERSION, folder / "brokers", nodes=NODES, properties=_EVERYWHERE)
    everywhere = [tuple((first + node) % NODES for node in range(NODES)) for first in range(PARTITIONS)]
    with staged(cluster, {"busy": (everywhere, _ROLLING), "never-written": (everywhere, {})}) as stage:
        names = [f"busy-{number}" for number in range(6)]
        places = [("busy", partition) for partition in range(PARTITIONS)]
        stage.driver.start_load(names, places, age_ms=3 * HOUR_MS, pause_ms=300)
        yield cluster


def audited(spark: SparkSession, warehouse: Path, *folders: Path) -> AuditReport:
    """What a first audit of the folders says, as they are now."""
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(warehouse)})
    return audit(spark, [str(folder) for folder in folders], settings)


@pytest.mark.lengthy
def test_one_running_broker_is_audited_twenty_times_in_a_row(
    spark: SparkSession, tmp_path: Path, busy: Cluster
) -> None:
    reports = [audited(spark, tmp_path / f"night-{n}", busy.log_dir()) for n in range(TIMES)]
    assert {f.verdict for report in reports for f in report.findings} <= {"in_progress", "coordinated", "inconclusive"}
    assert len({report.coverage.parsed_bytes for report in reports}) > 1  # it went on


def test_the_folders_of_three_running_nodes_are_accepted_as_they_are(
    spark: SparkSession, tmp_path: Path, busy: Cluster
) -> None:
    nodes = [busy.log_dir(node) for node in range(NODES)]
    empty = [f for node in nodes for f in node.glob("never-written-*/leader-epoch-checkpoint") if not f.stat().st_size]
    assert empty, "a follower of a partition that was never written has a checkpoint of zero bytes"
    together = audited(spark, tmp_path / "together", *nodes)
    alone = [audited(spark, tmp_path / folder.name, folder) for folder in nodes]
    for report in (together, *alone):
        assert report.coverage.partitions_seen >= PARTITIONS
        assert "hanging" not in {f.verdict for f in report.findings}
