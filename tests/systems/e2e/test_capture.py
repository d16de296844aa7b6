"""`txn-capture` on real brokers: what it fetches is what the log directories hold, for whoever may ask, and when."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.captures import ASSURANCES, PARAMETERS, by_place
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import HOUR_MS, now_ms
from tests.systems.e2e.secured import USER, SecuredCluster
from tests.systems.e2e.stage import STATE, Stage, on_node, staged
from tests.systems.e2e.stuck_topic import FREE, STUCK, TOPIC, stuck_topic
from txn_analysis.errors import InputError
from txn_analysis.pipeline import steps
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings

pytest.importorskip("kafka.net.manager", reason="kafka-python is not installed")
pytestmark = pytest.mark.e2e

VERSION = "4.3.1"
PROGRAM = Path(sys.executable).with_name("txn-capture")
LIVE = "shop"
# Of a transaction on a partition, what both ways of copying must agree about.
SAME = (
    *("verdict", "rule", "producer_epoch", "coordinator_epoch", "coordinator_epoch_basis", "txn_start_offset"),
    *("is_txn_start_exact", "last_offset", "record_count", "last_timestamp_ms", "transactional_id"),
)


def run(bootstrap: str, to: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, as it is typed."""
    command = [str(PROGRAM), "--bootstrap-server", bootstrap, "--to", str(to), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def audited(spark: SparkSession, warehouse: Path, folder: Path, **known: Any) -> AuditReport:
    """What an audit says of a capture, or of a copy that was made in the right order while nothing moved."""
    paths = [str(path) for path in sorted(folder.iterdir()) if path.name != "txn-capture.json"]
    return steps.audit(spark, paths, Settings(warehouse=str(warehouse), **(ASSURANCES | known)))


def answers(report: AuditReport, *names: str) -> dict[tuple[str, int, int], list[Any]]:
    return {place: [getattr(finding, name) for name in names] for place, finding in by_place(report).items()}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Driver]]:
    """One partition hangs; on the other one a transaction is alive, late by its client's clock."""
    with stuck_topic(VERSION, tmp_path_factory.mktemp("capture")) as (cluster, driver):
        driver.begin(LIVE, timeout_ms=800_000)
        driver.send(LIVE, (TOPIC, FREE), 3, at_ms=now_ms() - 3 * HOUR_MS)
        yield cluster, driver


@pytest.mark.parametrize("look_back_bytes", [1 << 20, 0])
def test_a_capture_says_what_a_copy_of_the_log_directory_says(
    spark: SparkSession, tmp_path: Path, stuck: tuple[Cluster, Driver], look_back_bytes: int
) -> None:
    """Without a look back nothing bounds when the data was appended: less may be said of it, never more."""
    cluster, _ = stuck
    done = run(cluster.bootstrap, tmp_path / "capture", "--look-back-bytes", str(look_back_bytes))
    assert done.returncode == 0, done.stderr
    copied = audited(spark, tmp_path / "w1", cluster.copy_logs(tmp_path / "copy"))
    captured = audited(spark, tmp_path / "w2", tmp_path / "capture")
    if look_back_bytes:
        assert answers(captured, *SAME) == answers(copied, *SAME)
        assert {f.verdict for f in captured.findings} == {"hanging", "coordinated"}
    else:
        same = [name for name in SAME if name not in {"verdict", "rule", "coordinator_epoch_basis"}]
        assert answers(captured, *same) == answers(copied, *same)


def test_what_is_open_in_a_capture_is_what_the_broker_answers(
    spark: SparkSession, tmp_path: Path, stuck: tuple[Cluster, Driver]
) -> None:
    cluster, driver = stuck
    assert run(cluster.bootstrap, tmp_path / "capture").returncode == 0
    found = answers(audited(spark, tmp_path / "w", tmp_path / "capture"), "txn_start_offset", "coordinator_epoch")
    asked = {
        (TOPIC, partition, producer_id): row
        for partition in (STUCK, FREE)
        for producer_id, row in driver.open_in((TOPIC, partition)).items()
    }
    assert {place: start for place, (start, _) in found.items()} == {
        place: row["txn_start_offset"] for place, row in asked.items()
    }


def test_segments_are_the_brokers_own_bytes(tmp_path: Path, stuck: tuple[Cluster, Driver]) -> None:
    cluster, _ = stuck
    assert run(cluster.bootstrap, tmp_path / "capture", "--all").returncode == 0
    segments = sorted((tmp_path / "capture").glob("*/*.log"))
    assert len(segments) > 2
    for segment in segments:
        assert segment.read_bytes() == (cluster.log_dir() / segment.parent.name / segment.name).read_bytes()
    for name in ("partition.metadata", "leader-epoch-checkpoint"):
        beside = f"{TOPIC}-{STUCK}/{name}"
        assert (tmp_path / "capture" / beside).read_text().split() == (cluster.log_dir() / beside).read_text().split()


def test_where_nothing_is_stuck_it_says_so(tmp_path: Path, stuck: tuple[Cluster, Driver]) -> None:
    done = run(stuck[0].bootstrap, tmp_path / "capture", "--topic", "payments")
    assert done.returncode == 4
    assert "nothing is stuck" in done.stderr
    assert not (tmp_path / "capture").exists()


def test_a_broker_that_stops_answering_is_given_up(tmp_path: Path, stuck: tuple[Cluster, Driver]) -> None:
    """It freezes when the first batch is asked for, and goes on when it was given up."""
    cluster, _ = stuck
    try:
        done = meddled(cluster, cluster.nodes[0].process.pid, "SIGSTOP", tmp_path, "--give-up-after-ms", "3000")
    finally:
        cluster.nodes[0].go_on()
    (failure,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert ("Given up after" in failure, done.returncode) == (True, 2)
    assert json.loads((tmp_path / "capture" / "txn-capture.json").read_text())["is_complete"] is False


def meddled(
    cluster: Cluster, pid: int | str, signal: str, folder: Path, *words: str, node: int = 0
) -> subprocess.CompletedProcess[str]:
    """A capture of the topic during which a process gets a signal, when a node is asked for its first batch."""
    (folder / "client.properties").write_text("request.timeout.ms=2000\n")
    meddling = ["-m", "tests.systems.e2e.meddling", str(pid), signal, str(node + 1)]
    asked = ["--bootstrap-server", cluster.bootstrap, "--to", str(folder / "capture"), "--topic", TOPIC]
    asked += ["--command-config", str(folder / "client.properties"), *words]
    return subprocess.run([sys.executable, *meddling, *asked], capture_output=True, text=True, check=False)


def is_complete_in(folder: Path) -> bool:
    is_complete: bool = json.loads((folder / "txn-capture.json").read_text())["is_complete"]
    return is_complete


def test_one_that_was_killed_is_never_taken_for_whole_and_begins_anew(
    tmp_path: Path, stuck: tuple[Cluster, Driver]
) -> None:
    """What it left is refused by the audit, and so is its folder by the next capture, until somebody removes it."""
    cluster, _ = stuck
    capture = tmp_path / "capture"
    assert meddled(cluster, "self", "SIGKILL", tmp_path).returncode == -SIGKILL
    assert not is_complete_in(capture)
    with pytest.raises(InputError):
        steps.audit(lambda: pytest.fail("Spark was started"), [str(capture)], Settings(warehouse=str(tmp_path / "w")))
    again = run(cluster.bootstrap, capture, "--topic", TOPIC)
    assert (again.returncode, "the folder is not empty" in again.stderr) == (2, True)
    shutil.rmtree(capture)
    assert run(cluster.bootstrap, capture, "--topic", TOPIC).returncode == 0
    assert is_complete_in(capture)


def test_on_a_full_disk_it_says_which_file_and_leaves_no_whole_capture(
    tmp_path: Path, stuck: tuple[Cluster, Driver]
) -> None:
    """The system refuses to write files beyond so many bytes, as it does on a disk without room."""
    cluster, _ = stuck
    command = [str(PROGRAM), "--bootstrap-server", cluster.bootstrap, "--to", str(tmp_path / "capture")]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{tmp_path}/capture/{TOPIC}-{STUCK}/" in done.stderr
    assert "Free space, or give another folder" in done.stderr
    assert not is_complete_in(tmp_path / "capture")


def test_a_broker_that_dies_and_comes_back_is_asked_again_from_the_beginning(
    tmp_path: Path, stuck: tuple[Cluster, Driver]
) -> None:
    """It leads under a higher epoch then, so that nothing of before is kept."""
    cluster, _ = stuck
    broker = cluster.nodes[0].process

    def revive() -> None:
        broker.wait()
        cluster.restart(0)

    with ThreadPoolExecutor(1) as other:
        back = other.submit(revive)
        done = meddled(cluster, broker.pid, "SIGKILL", tmp_path)
        back.result()
    assert done.returncode == 0, done.stderr
    assert f"{TOPIC}-{STUCK}: its leader changed while it was fetched; it begins again" in done.stderr
    assert is_complete_in(tmp_path / "capture")


def test_who_may_not_is_told_which_right_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    """SCRAM over TLS; right after right is granted, until the capture is whole."""
    with staged(SecuredCluster(VERSION, tmp_path / "brokers"), {TOPIC: on_node(2)}) as stage:
        cluster = stage.cluster
        assert isinstance(cluster, SecuredCluster)
        cluster.admit()
        hung(stage)
        config = tmp_path / "client.properties"
        config.write_text(cluster.guest_config)
        words = ("--command-config", str(config), "--give-up-after-ms", "10000")
        told: list[bool] = []
        for operation, topic in (
            *(("Describe", "__transaction_state"), ("Describe", TOPIC), ("Read", TOPIC)),
            ("Read", "__transaction_state"),
        ):
            only = ("--topic", TOPIC)
            done = run(cluster.guest_bootstrap, tmp_path / f"refused-{len(told)}", *words, *only)
            assert done.returncode == 2
            told.append(f"ACL {operation.upper()} on Topic:{topic} is missing" in done.stderr)
            cluster.grant(operation, "--topic", topic)
        assert told == [True] * 4
        done = run(cluster.guest_bootstrap, tmp_path / "capture", *words, "--topic", TOPIC)
        assert done.returncode == 0, done.stderr
        assert "stored" not in done.stdout  # which takes DESCRIBE on the cluster
        (finding,) = audited(spark, tmp_path / "w", tmp_path / "capture", **PARAMETERS).findings
        assert (finding.verdict, finding.topic, finding.partition) == ("hanging", TOPIC, STUCK)
        config.write_text(cluster.guest_config.replace(f'username="{USER}"', 'username="nobody"'))
        done = run(cluster.guest_bootstrap, tmp_path / "stranger", *words)
        assert (done.returncode, "the broker hangs up when it is told who asks" in done.stderr) == (2, True)


def hung(stage: Stage) -> None:
    """The topic's first partition is stuck behind a late write, with commits before and behind it."""
    places = [(TOPIC, STUCK)]
    stage.driver.transact("importer", places, 5)
    stage.hanger.late_write_after_the_abort("owner", places[0])
    stage.driver.transact("importer", places, 5)
    for name, state in (("importer", "CompleteCommit"), ("owner", "CompleteAbort")):
        stage.driver.ended(name, state)


@pytest.mark.lengthy
def test_an_election_in_the_middle_begins_the_partition_again(spark: SparkSession, tmp_path: Path) -> None:
    """The leader is killed when its first batch is asked for: the next one is asked, from the beginning."""
    everywhere = {
        "transaction.state.log.replication.factor": 3,
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
    }
    brokers = Cluster(VERSION, tmp_path / "brokers", nodes=3, properties=everywhere)
    topics = {STATE: ([(0, 1, 2)] * STATE_PARTITIONS, {"cleanup.policy": "compact"}), TOPIC: ([(0, 1, 2)], {})}
    with staged(brokers, topics) as stage:
        cluster = stage.cluster
        hung(stage)
        # The first node is the controller; another one is to lead, and to die.
        cluster.run(
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            *("--bootstrap-server", cluster.bootstrap, "--execute", "--reassignment-json-file"),
            str(reassigned(tmp_path, [3, 1, 2])),
        )
        cluster.run(
            "org.apache.kafka.tools.LeaderElectionCommand",
            *("--bootstrap-server", cluster.bootstrap, "--election-type", "preferred"),
            *("--topic", TOPIC, "--partition", "0"),
        )
        done = meddled(cluster, cluster.nodes[2].process.pid, "SIGKILL", tmp_path, node=2)
        assert f"{TOPIC}-0: its leader changed while it was fetched; it begins again" in done.stderr
        assert done.returncode == 0, done.stderr
        manifest = json.loads((tmp_path / "capture" / "txn-capture.json").read_text())
        (entry,) = [e for e in manifest["files"] if e["path"].startswith(f"{TOPIC}-0/0")]
        assert (entry["leader_id"] in {1, 2}, entry["is_leader_confirmed"]) == (True, True)
        beside = f"{TOPIC}-0/leader-epoch-checkpoint"
        of_broker = (cluster.log_dir(entry["leader_id"] - 1) / beside).read_text().splitlines()
        assert (tmp_path / "capture" / beside).read_text().splitlines()[2:] == of_broker[-1:]
        (finding,) = audited(spark, tmp_path / "w", tmp_path / "capture", **PARAMETERS).findings
        assert (finding.verdict, finding.is_txn_start_exact) == ("hanging", True)


def reassigned(folder: Path, nodes: list[int]) -> Path:
    file = folder / "reassignment.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": nodes}]}))
    return file
