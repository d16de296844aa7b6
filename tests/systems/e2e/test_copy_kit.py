"""The copy kit on a broker that is written to: the copy says what the broker says, and its manifest proves it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.systems.e2e.broker import TRANSACTION_MAX_TIMEOUT_MS, Cluster
from tests.systems.e2e.captures import wait_for_high_watermarks
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import Hang
from tests.systems.e2e.kit import run_kit, write_tools
from tests.systems.e2e.stage import COMPACT_STATE, on_node, staged
from tests.tools.sessions import no_session
from txn_analysis.pipeline import steps
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings

pytestmark = pytest.mark.e2e

VERSION = "4.3.1"
ORDERS = [("orders", number) for number in range(3)]


@dataclass(frozen=True)
class Scene:
    """A broker with hanging transactions and one that is in progress, and where its tools are."""

    cluster: Cluster
    driver: Driver
    folder: Path
    hangs: tuple[Hang, ...]

    def kit(self, name: str, *words: str) -> dict[str, Any]:
        """One call of the kit, by the leaders that the broker says; its manifest."""
        return run_kit(self.cluster, self.folder / "bin", self.folder / name, *words)

    def audited(self, name: str, **said: Any) -> AuditReport:
        """The audit of a copy."""
        settings = {
            "warehouse": str(self.folder / f"warehouse-{name}"),
            "transaction_max_timeout_ms": TRANSACTION_MAX_TIMEOUT_MS,
        }
        return steps.audit(no_session, [str(self.folder / name)], Settings.model_validate(settings | said))

    def commits(self, count: int) -> None:
        """Others go on."""
        for number in range(count):
            self.driver.transact("busy", [ORDERS[number % 2]], 2)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("kit")
    with staged(Cluster(VERSION, folder / "broker"), {**COMPACT_STATE, "orders": on_node(len(ORDERS))}) as stage:
        cluster, driver, hanger = stage.cluster, stage.driver, stage.hanger
        write_tools(folder / "bin", VERSION)
        made = Scene(cluster, driver, folder, ())
        made.commits(6)
        hangs = [hanger.unknown_producer(ORDERS[0]), hanger.left_open_by_fencing("fenced", ORDERS[2])]
        made.commits(4)
        driver.begin("in-progress")
        driver.send("in-progress", ORDERS[1])
        wait_for_high_watermarks(cluster)  # what lies above one may be a dead leader's tail
        yield Scene(cluster, driver, folder, tuple(hangs))


def opened(report: AuditReport) -> set[tuple[str, int, int]]:
    return {(f.topic, f.partition, f.producer_id) for f in report.findings}


def test_the_copy_says_what_the_broker_says(scene: Scene) -> None:
    said = scene.kit("copy")
    of_partition = [file for file in said["files"] if file["topic"] is not None]
    assert of_partition
    assert all(file["is_leader_confirmed"] and file["is_end_confirmed"] for file in of_partition)
    report = scene.audited("copy")
    copied = report.coverage.transaction_state["copied"]
    assert copied["is_state_last"], copied
    assert copied["reached_count"] >= len(ORDERS)
    assert {(h.topic, h.partition, h.producer_id) for h in scene.hangs} == {
        (f.topic, f.partition, f.producer_id) for f in report.hanging
    }
    asked = scene.cluster.find_hanging()
    assert all(str(hang.producer_id) in asked for hang in scene.hangs)


def test_dumps_of_the_same_broker_say_the_same(scene: Scene) -> None:
    scene.kit("copied")
    said = scene.kit("dumped", "--dump")
    assert len(said["files"]) == len({file["path"] for file in said["files"]}) < 6
    hangs = {hang.place for hang in scene.hangs}
    assert hangs <= opened(scene.audited("dumped"))
    assert hangs <= opened(scene.audited("copied"))


def test_while_others_write_it_proves_its_order(scene: Scene) -> None:
    with ThreadPoolExecutor(1) as others:
        busy = others.submit(scene.commits, 30)
        said = scene.kit("under-load", "--bytes-per-second", "1048576")
        busy.result()
    assert said["is_complete"]
    assert scene.audited("under-load").coverage.transaction_state["copied"]["is_state_last"]
