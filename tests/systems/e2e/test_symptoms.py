"""What docs/symptoms.md says of errors that clients get where nothing hangs, provoked on real brokers."""

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.captures import ASSURANCES, PARAMETERS
from tests.systems.e2e.driver import Driver, KafkaError
from tests.systems.e2e.stage import Stage, staged
from tests.systems.e2e.tiered import properties
from tests.tools.processes import wait_until
from tests.tools.sessions import no_session
from txn_analysis.pipeline import steps
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e

VERSION, PLACE = "4.3.1", ("orders", 0)
TIERED = {
    "remote.storage.enable": "true",
    "segment.ms": "500",
    "retention.ms": "86400000",
    "local.retention.ms": "1000",
}
INVALID_TXN_STATE, INVALID_PRODUCER_EPOCH = 48, 47


def broker(folder: Path, more: Mapping[str, object], **configs: str) -> AbstractContextManager[Stage]:
    """A broker with one topic of one partition."""
    return staged(Cluster(VERSION, folder / "broker", properties=more), {PLACE[0]: ([(0,)], configs)})


def timed_out(driver: Driver, name: str) -> None:
    """A transaction of two records that its coordinator has just ended."""
    driver.begin(name, timeout_ms=1500)
    driver.send(name, PLACE, 2)
    driver.ended(name, "CompleteAbort")


def test_a_commit_after_the_coordinators_own_abort_fails_for_good(tmp_path: Path) -> None:
    """KAFKA-20785: under transaction version 2 the client cannot go on; the audit says that its timeout ended it."""
    with broker(tmp_path, {"transaction.partition.verification.enable": "true"}) as stage:
        cluster, driver = stage.cluster, stage.driver
        timed_out(driver, "commits-late")
        with pytest.raises(KafkaError, match="InvalidTxnState") as refused:
            driver.commit("commits-late")
        assert refused.value.code == INVALID_TXN_STATE
        with pytest.raises(KafkaError, match="in an error state"):
            driver.begin("commits-late")
        # A write that comes late is refused by its epoch (KAFKA-19690), and an abort that comes late is none.
        timed_out(driver, "writes-late")
        with pytest.raises(KafkaError, match="old epoch") as refused:
            driver.send("writes-late", PLACE)
        assert refused.value.code == INVALID_PRODUCER_EPOCH
        timed_out(driver, "aborts-late")
        driver.abort("aborts-late")
        copy = cluster.copy_logs(tmp_path / "copy")
    settings = Settings(warehouse=str(tmp_path / "warehouse"), **(PARAMETERS | ASSURANCES))
    assert not steps.audit(no_session, [str(copy)], settings).findings
    asked = [sys.executable, "-m", "txn_analysis", "ended", "--warehouse", settings.warehouse]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert [line.split()[8] for line in told.splitlines()[1:]] == ["coordinator_timeout"] * 3


@pytest.mark.lengthy
def test_of_a_broken_remote_transaction_index_readers_get_nothing_or_what_was_aborted(tmp_path: Path) -> None:
    """Where it is cut or gone, aborted records are delivered without an error; where it is damaged, nothing is."""
    with broker(tmp_path, properties(tmp_path / "remote"), **TIERED) as stage:
        cluster, driver = stage.cluster, stage.driver
        committed, aborted = written(driver)
        wait_until(lambda: is_local_gone(driver, cluster), "deletion of what is tiered")
        assert read(driver, until=committed) == committed
        kept = {file: file.read_bytes() for file in (tmp_path / "remote").rglob("*.txnindex") if file.stat().st_size}
        assert len(kept) == len(aborted) // 2
        for damaged in (lambda data: data[:-5], lambda _: None):
            broken(cluster, {file: damaged(data) for file, data in kept.items()})
            assert read(driver, until=[*committed, *aborted]) == sorted([*committed, *aborted])
        broken(cluster, {file: bytes(len(data)) for file, data in kept.items()})
        wait_until(lambda: "CorruptIndexException" in brokers_log(cluster, driver), "the broker's error")
        assert read(driver, until=[])[:1] == []
        broken(cluster, kept)
        assert read(driver, until=committed) == committed


def written(driver: Driver) -> tuple[list[int], list[int]]:
    """Transactions that are committed and aborted in turns, each in a segment of its own."""
    committed: list[int] = []
    aborted: list[int] = []
    for number in range(7):
        driver.begin("importer")
        (aborted if number % 2 else committed).extend(driver.send("importer", PLACE, 2))
        (driver.abort if number % 2 else driver.commit)("importer")
        time.sleep(0.6)
    return committed, aborted


def is_local_gone(driver: Driver, cluster: Cluster) -> bool:
    """Nothing but the active segment is on the local disk."""
    words = ("--bootstrap-server", cluster.bootstrap, "--topic-partitions", "orders:0", "--time", "earliest-local")
    start = int(cluster.run("org.apache.kafka.tools.GetOffsetShell", *words).split(":")[-1])
    end: int = driver.consume(PLACE, 5000)["end"]
    return start >= end - 3


def read(driver: Driver, *, until: list[int]) -> list[int]:
    """What a `read_committed` consumer gets, once that is all that is waited for; the log's end is stable always."""
    found: list[int] = []

    def has_all() -> bool:
        nonlocal found
        answer = driver.consume(PLACE, 5000)
        assert answer["last_stable_offset"] == answer["end"]
        found = [int(offset) for offset in answer["offsets"]]
        return len(found) >= len(until)

    wait_until(has_all, "the records")
    return found


def broken(cluster: Cluster, files: Mapping[Path, bytes | None]) -> None:
    """Give the files of the remote storage another content, or none, to a broker that has not read them yet."""
    cluster.nodes[0].stop()
    shutil.rmtree(cluster.log_dir() / "remote-log-index-cache", ignore_errors=True)
    for file, data in files.items():
        file.unlink(missing_ok=True)
        if data is not None:
            file.write_bytes(data)
    cluster.restart(0)


def brokers_log(cluster: Cluster, driver: Driver) -> str:
    driver.consume(PLACE, 1000)
    return (cluster.folder / "node-1.log").read_text()
