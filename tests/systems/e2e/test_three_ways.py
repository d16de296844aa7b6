"""One cluster of three nodes, copied by the kit, dumped by the kit and fetched by `txn-capture`: one table of open
transactions, that of the brokers; and under load, what differs is what began or ended while it was read.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from tests.systems.e2e.broker import STATE_PARTITIONS
from tests.systems.e2e.captures import ASSURANCES, PARAMETERS
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import HOUR_MS, Hang, now_ms
from tests.systems.e2e.kit import run_kit, write_tools
from tests.systems.e2e.recipes import LAYOUTS, MAY_CHROOT, SSHD, HousedCluster, furnish, sshd, taken
from tests.systems.e2e.stage import STATE, staged
from tests.tools.processes import wait_until
from tests.tools.sessions import no_session
from txn_analysis.kafka.names import java_hash, state_partition
from txn_analysis.pipeline import steps
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings

pytest.importorskip("kafka.net.manager", reason="kafka-python is not installed")
pytestmark = pytest.mark.e2e

VERSION, NODES, TOPIC, PARTITIONS = "4.3.1", 3, "orders", 6
PROGRAM = Path(sys.executable).with_name("txn-capture")
WAYS = ("copied", "dumped", "fetched")
LIVE, BUSY = "shop", [f"busy-{number}" for number in range(6)]
# Of what is open, all that the files of each way must agree about; a shallow dump prints no coordinator epochs.
SAME = (
    *("verdict", "producer_epoch", "is_txn_start_exact", "last_offset", "record_count", "last_timestamp_ms"),
    "transactional_id",
)
# When a broker wrote an end marker, as it says, may be a little before that is in the log.
SOON_MS = 1000
PROPERTIES = {"replica.high.watermark.checkpoint.interval.ms": 200, "transaction.max.timeout.ms": 900_000}


class Opened(NamedTuple):
    """Which transaction is open, on which partition."""

    partition: int
    producer_id: int
    start: int


class Read(NamedTuple):
    """What one way of copying says of one partition's log: where its copy ends, and when it was read."""

    end: int
    began_ms: int
    ended_ms: int


@dataclass(frozen=True)
class Told:
    """One way of copying: what its audit says is open, with what all ways must agree about, and how it was read."""

    report: AuditReport
    opened: dict[Opened, list[Any]]
    read: dict[int, Read]


@dataclass(frozen=True)
class Scene:
    """The cluster, what hangs on it, and what is alive all the time."""

    cluster: HousedCluster
    driver: Driver
    folder: Path
    hangs: tuple[Hang, ...]

    def told(self, moment: str) -> dict[str, Told]:
        """The cluster in three ways at once, each of all its nodes."""
        tools = self.folder / "bin"
        with ThreadPoolExecutor(2 * NODES + 1) as pool:
            fetched = pool.submit(self.fetch, f"{moment}-fetched")
            of_kit = [
                pool.submit(run_kit, self.cluster, tools, self._target(moment, way, node), *words, node=node, asks=asks)
                for way, words, asks in (("copied", (), True), ("dumped", ("--dump",), False))
                for node in range(NODES)
            ]
            manifests = [each.result() for each in of_kit]
            of_fetch = fetched.result()
        return {
            "copied": self.told_of(f"{moment}-copied", manifests[:NODES]),
            "dumped": self.told_of(f"{moment}-dumped", manifests[NODES:]),
            "fetched": self.told_of(f"{moment}-fetched", [of_fetch]),
        }

    def _target(self, moment: str, way: str, node: int) -> Path:
        (self.folder / f"{moment}-{way}").mkdir(exist_ok=True)
        return self.folder / f"{moment}-{way}" / f"n{node + 1}"

    def fetch(self, name: str, *words: str) -> dict[str, Any]:
        """One call of `txn-capture`; its manifest."""
        asked = ["--bootstrap-server", self.cluster.bootstrap, "--to", str(self.folder / name), *words]
        done = subprocess.run([str(PROGRAM), *asked], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads((self.folder / name / "txn-capture.json").read_text())
        return said

    def told_of(self, name: str, manifests: list[dict[str, Any]]) -> Told:
        """By several clocks no manifest proves the order: the word is given, if their times show it to be true."""
        files = [file for manifest in manifests for file in manifest["files"]]
        word = is_state_last(files) if len(manifests) > 1 else None
        report = self.audited(name, **({} if word is None else {"state_copied_last": word}))
        return Told(
            report, opened(report), {p.partition: read_of(files, p.partition, p.end_offset or 0) for p in on(report)}
        )

    def audited(self, name: str, **said: Any) -> AuditReport:
        """The audit of one folder."""
        settings = PARAMETERS | ASSURANCES | {"state_copied_last": False, "transaction_max_timeout_ms": 900_000}
        settings |= {"warehouse": str(self.folder / f"w-{name}")} | said
        return steps.audit(no_session, [str(self.folder / name)], Settings.model_validate(settings))

    def answers(self) -> set[Opened]:
        """What the brokers say is open."""
        return {
            Opened(partition, row["producer_id"], row["txn_start_offset"])
            for partition in range(PARTITIONS)
            for row in self.driver.open_in((TOPIC, partition)).values()
        }


def on(report: AuditReport) -> list[Any]:
    return [each for each in report.partitions if each.topic == TOPIC]


def opened(report: AuditReport) -> dict[Opened, list[Any]]:
    return {
        Opened(f.partition, f.producer_id, f.txn_start_offset): [getattr(f, name) for name in SAME]
        for f in report.findings
        if f.topic == TOPIC
    }


def is_state_last(files: list[dict[str, Any]]) -> bool:
    """Whether the last byte of a log was read before the first one of the state, on all brokers."""
    segments = [file for file in files if file["path"].endswith((".log", ".txt"))]
    states = [f for f in segments if f["topic"] == "__transaction_state" or f["path"].startswith("state/")]
    logs = [f for f in segments if f not in states]
    return bool(states and logs) and max(f["ended_ms"] for f in logs) < min(f["began_ms"] for f in states)


def read_of(files: list[dict[str, Any]], partition: int, end: int) -> Read:
    """Of dumps, many files are one entry that is of no partition alone."""
    own = [f for f in files if (f["topic"], f["partition"]) == (TOPIC, partition) and f["path"].endswith(".log")]
    own = own or [f for f in files if f["path"].startswith("segments/")]
    return Read(end, min(f["began_ms"] for f in own), max(f["ended_ms"] for f in own))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("three-ways")
    cluster = HousedCluster(VERSION, folder / "brokers", nodes=NODES, properties=PROPERTIES)
    leaders = [(n % NODES, (n + 1) % NODES, (n + 2) % NODES) for n in range(PARTITIONS)]
    topics = {STATE: (leaders[:STATE_PARTITIONS], {"cleanup.policy": "compact"}), TOPIC: (leaders, {})}
    with staged(cluster, topics) as stage:
        driver, hanger = stage.driver, stage.hanger
        write_tools(folder / "bin", VERSION)
        hangs = (
            hanger.late_write_after_the_abort(_coordinated_by_the_first("late"), (TOPIC, 0)),
            hanger.left_open_by_fencing(_coordinated_by_the_first("fenced"), (TOPIC, 3)),
        )
        driver.begin(LIVE, timeout_ms=900_000)
        for partition in (1, 2):
            driver.send(LIVE, (TOPIC, partition), 3, at_ms=now_ms() - 3 * HOUR_MS)
        yield Scene(cluster, driver, folder, hangs)


def _coordinated_by_the_first(name: str) -> str:
    """An id whose partition of the state is led by the first node, to which the raw client speaks."""
    names = (f"{name}-{number}" for number in range(99))
    return next(each for each in names if state_partition(java_hash(each), STATE_PARTITIONS) % NODES == 0)


def load(scene: Scene) -> None:
    places = [(TOPIC, partition) for partition in range(PARTITIONS)]
    scene.driver.start_load(BUSY, places, pause_ms=300, timeout_ms=600_000)


def pause(scene: Scene) -> None:
    scene.driver.call("stop_load")
    wait_until(lambda: len(scene.answers()) == len(scene.hangs) + 2, "the markers of the load")


@pytest.fixture(scope="module")
def paused(scene: Scene) -> dict[str, Told]:
    """The cluster in three ways, when a load has paused."""
    load(scene)
    pause(scene)
    return scene.told("paused")


@pytest.fixture(scope="module")
def loaded(scene: Scene, paused: dict[str, Told]) -> dict[str, Told]:
    """The cluster in three ways under load."""
    assert paused
    load(scene)
    told = scene.told("loaded")
    pause(scene)
    return told


def hanging(told: Told) -> set[tuple[str, int, int]]:
    return {(f.topic, f.partition, f.producer_id) for f in told.report.hanging}


def test_while_the_load_pauses_three_ways_and_the_brokers_say_the_same(scene: Scene, paused: dict[str, Told]) -> None:
    first, *others = (paused[way].opened for way in WAYS)
    assert set(first) == scene.answers()
    assert others == [first, first]
    hangs = {hang.place for hang in scene.hangs}
    assert [hanging(paused[way]) for way in WAYS] == [hangs] * len(WAYS)


@pytest.mark.lengthy
@pytest.mark.skipif(SSHD is None, reason="no sshd is installed")
def test_by_ssh_three_brokers_say_the_same(scene: Scene, paused: dict[str, Told]) -> None:
    with sshd(scene.folder / "sshd") as config:
        log_dirs = {f"broker-{node + 1}": str(scene.cluster.log_dir(node)) for node in range(NODES)}
        manifests = taken(f"ssh -F {config} {{broker}}", log_dirs, scene.folder / "by-ssh")
    assert scene.told_of("by-ssh", manifests).opened == paused["copied"].opened


@pytest.mark.lengthy
@pytest.mark.skipif(not MAY_CHROOT, reason="another root takes root and busybox")
def test_from_within_containers_that_have_a_busybox_three_brokers_say_the_same(
    scene: Scene, paused: dict[str, Told]
) -> None:
    for node in range(NODES):
        furnish(scene.cluster.root(node))
    log_dirs = {f"root-{node + 1}": layout for node, layout in enumerate(LAYOUTS)}
    before = f"chroot {scene.cluster.folder}/{{broker}} /bin/busybox"
    manifests = taken(before, log_dirs, scene.folder / "by-exec")
    assert scene.told_of("by-exec", manifests).opened == paused["copied"].opened


@pytest.mark.lengthy
@pytest.mark.parametrize("way", WAYS)
def test_under_load_what_is_open_throughout_is_the_same(
    scene: Scene, paused: dict[str, Told], loaded: dict[str, Told], way: str
) -> None:
    assert {place: loaded[way].opened.get(place) for place in paused[way].opened} == paused[way].opened
    assert hanging(loaded[way]) == {hang.place for hang in scene.hangs}


@pytest.fixture(scope="module")
def ended(scene: Scene, loaded: dict[str, Told]) -> list[dict[str, Any]]:
    """Every transaction of the load, by its end marker."""
    assert loaded
    scene.fetch("afterwards", "--all")
    scene.audited("afterwards")
    table = DeltaTable(str(scene.folder / "w-afterwards" / "ended_transactions"))
    rows: list[dict[str, Any]] = table.to_pyarrow_table().to_pylist()
    return [row for row in rows if row["topic"] == TOPIC]


@pytest.mark.lengthy
@pytest.mark.parametrize("way", WAYS)
def test_under_load_the_rest_is_what_was_open_where_each_copy_ends(
    paused: dict[str, Told], loaded: dict[str, Told], ended: list[dict[str, Any]], way: str
) -> None:
    """And each copy ends between the times at which the manifest says that it was read."""
    one = loaded[way]
    reads = [(row, one.read[row["partition"]]) for row in ended if row["partition"] in one.read]
    cut = {
        Opened(row["partition"], row["producer_id"], row["txn_start_offset"]): (row, read)
        for row, read in reads
        if row["txn_start_offset"] < read.end <= row["end_offset"]
    }
    assert set(one.opened) - set(paused[way].opened) == set(cut)
    assert all(row["end_timestamp_ms"] > read.began_ms - SOON_MS for row, read in cut.values())
    before = [(row, read) for row, read in reads if row["end_offset"] < read.end]
    assert before
    assert all(row["end_timestamp_ms"] < read.ended_ms + SOON_MS for row, read in before)


@pytest.mark.lengthy
def test_under_load_something_is_open_where_copies_end(paused: dict[str, Told], loaded: dict[str, Told]) -> None:
    assert any(set(loaded[way].opened) - set(paused[way].opened) for way in WAYS)
