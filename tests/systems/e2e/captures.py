"""What is copied off a broker, in both forms: its log directory, and what its own tools print of it."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.systems.e2e.broker import STATE_PARTITIONS, TRANSACTION_MAX_TIMEOUT_MS, Cluster
from tests.systems.e2e.scene import Scene
from tests.tools.kafka_jars import dump_tool, tools_version
from tests.tools.processes import wait_until
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings
from txn_analysis.tables import Finding

PARAMETERS: dict[str, Any] = {
    "transaction_state_partitions": STATE_PARTITIONS,
    "transaction_max_timeout_ms": TRANSACTION_MAX_TIMEOUT_MS,
    "max_clock_skew_ms": 0,
}
# What is true of these brokers: the copy is made while nothing moves, and no record was ever lost.
ASSURANCES = {"state_copied_last": True, "no_records_lost": True}
_STATE = "__transaction_state-"


@dataclass(frozen=True)
class Capture:
    """A broker's files at one moment, and what the broker said of its transactions at that moment."""

    log_dir: Path
    open_by_the_broker: dict[tuple[str, int, int], dict[str, Any]]
    hanging_by_the_broker: set[tuple[str, int, int]] | None


@dataclass
class Audits:
    """The audits of one broker's captures, from log directories and from dumps; a cluster name each."""

    spark: SparkSession
    warehouse: str
    version: str
    reports: dict[str, AuditReport] = field(default_factory=dict)

    def cluster(self, form: str) -> str:
        """The name under which the files of one form are audited."""
        return f"kafka-{self.version}-{form}"

    def of(self, path: Path, form: str, **settings: Any) -> AuditReport:
        """Audit the copies of one moment."""
        named = {"warehouse": self.warehouse, "cluster": self.cluster(form)} | ASSURANCES
        return pipeline.audit(self.spark, [str(path)], Settings.model_validate(PARAMETERS | named | settings))


def take_capture(scene: Scene, folder: Path) -> Capture:
    """Copy the files while no load changes what the broker would answer."""
    cluster = scene.cluster
    folder.mkdir(parents=True)
    with ExitStack() as quiet:
        for pulse in scene.pulses.values():
            quiet.enter_context(pulse.still)
        wait_for_high_watermarks(cluster)
        log_dir = cluster.copy_logs(folder / "log-dir")
        answers = scene.open_by_the_broker()
        hanging = None if cluster.has_zookeeper else _places(cluster.find_hanging())
    return Capture(log_dir, answers, hanging)


def wait_for_high_watermarks(cluster: Cluster) -> None:
    """The broker writes them down every few seconds; what lies above one may be a dead leader's own."""
    file, since = cluster.log_dir() / "replication-offset-checkpoint", time.time_ns()
    wait_until(lambda: file.exists() and file.stat().st_mtime_ns > since, "the checkpoint of the high watermarks")


def dump(cluster: Cluster, log_dir: Path, target: Path) -> Path:
    """What that version's own tool prints of copied files: logs, snapshots and the coordinator's state."""
    target.mkdir()
    partitions = [p for p in sorted(log_dir.iterdir()) if p.is_dir() and not p.name.startswith("__cluster_metadata")]
    states = [str(file) for p in partitions if p.name.startswith(_STATE) for file in sorted(p.glob("*.log"))]
    logs = [str(file) for p in partitions if not p.name.startswith(_STATE) for file in sorted(p.glob("*.log"))]
    snapshots = [str(f) for p in partitions if not p.name.startswith(_STATE) for f in sorted(p.glob("*.snapshot"))]
    for name, words, files in (
        ("logs.txt", ("--deep-iteration",), logs),
        ("snapshots.txt", (), snapshots),
        ("state.txt", ("--transaction-log-decoder",), states),
    ):
        (target / name).write_text(
            cluster.run(dump_tool(tools_version(cluster.version)), *words, "--files", ",".join(files))
        )
    return target


def _places(table: str) -> set[tuple[str, int, int]]:
    """Topic, partition and producer id of each row that `kafka-transactions.sh` printed."""
    rows = [line.split() for line in table.splitlines()[1:] if line.strip()]
    return {(row[0], int(row[1]), int(row[2])) for row in rows}


def by_place(report: AuditReport) -> dict[tuple[str, int, int], Finding]:
    """The findings of a report by topic, partition and producer id."""
    return {(finding.topic, finding.partition, finding.producer_id): finding for finding in report.findings}
