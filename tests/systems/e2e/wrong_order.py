"""The state of a real broker is copied before its logs, by mistake, while four transactions begin.

`python -m tests.systems.e2e.wrong_order data/cases/kafka-4.3-wrong-order` makes the capture anew, in half a minute.
"""

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster, copy_folder
from tests.systems.e2e.driver import WITNESSES, Driver
from tests.systems.e2e.hangs import Hang, begun
from tests.systems.e2e.kept import STATE, are_checkpointed, dump_text, expect, made_anew, row, write_json
from tests.systems.e2e.running import start
from tests.tools.processes import wait_until

VERSION = "4.3.1"
TOPIC = "orders"
IDS = ("shop-0", "shop-1", "newcomer-2", "newcomer-3")
_KNOWN_BEFORE = IDS[:2]
_LATER_THAN_THE_SKEW_S = 1.5
_PROPERTIES = {"replica.high.watermark.checkpoint.interval.ms": 200}
_NOTE = (
    "Four transactions are in progress in the logs, and were committed seconds later. The state was copied before they "
    "began: expected with the wrong word that it was copied last, which end markers of unknown kind disprove."
)
_NOTE_OF_RIGHT_ORDER = "The same shallow dumps, with the state as it was after them."


def make(folder: Path, case: Path) -> None:
    """Copy the state, begin the transactions, copy the logs and the state again; then commit them."""
    with ExitStack() as running:
        cluster = Cluster(VERSION, folder, properties=_PROPERTIES)
        driver = start(running, cluster)
        cluster.create_topic(STATE, [(0,)] * STATE_PARTITIONS, cleanup_policy="compact")
        cluster.create_topic(TOPIC, [(0,)] * len(IDS))
        for name in _KNOWN_BEFORE:
            _write(driver, name)
            driver.commit(name)
        _witnessed(driver)
        _copy_state(cluster, folder / "first", case / "capture-1/state")
        time.sleep(_LATER_THAN_THE_SKEW_S)
        opened = [_write(driver, name) for name in IDS]
        _witnessed(driver)
        wait_until(lambda: are_checkpointed(cluster, TOPIC, len(IDS)), "the high watermarks")
        _copy_logs(cluster, folder / "logs", case / "capture-1/shallow")
        _copy_state(cluster, folder / "last", case / "capture-2/state")
        for name in IDS:
            driver.commit(name)
            wait_until(partial(driver.is_in, name, "CompleteCommit"), name)
        write_json(case / "clients.json", dict.fromkeys(IDS, "CompleteCommit"))
    _expect(case, opened)


def _expect(case: Path, opened: Sequence[Hang]) -> None:
    unnamed = [replace(each, transactional_id=None) for each in opened[len(_KNOWN_BEFORE) :]]
    too_early = [*opened[: len(_KNOWN_BEFORE)], *unnamed]
    rows = [row(each, "inconclusive", "state_older_than_log") for each in too_early]
    expect(case / "capture-1", VERSION, _NOTE, rows)
    rows = [row(each, "coordinated", "in_coordinator") for each in opened]
    expect(case / "capture-2", VERSION, _NOTE_OF_RIGHT_ORDER, rows)


def _write(driver: Driver, name: str) -> Hang:
    """Begin a transaction and write to the partition of the id; the client's time is three hours old."""
    return begun(driver, name, (TOPIC, IDS.index(name)))


def _witnessed(driver: Driver) -> None:
    """End markers in every partition, and moments in all of the state."""
    driver.witness([(TOPIC, partition) for partition in range(len(IDS))])
    last = f"witness-{WITNESSES - 1}"
    wait_until(partial(driver.is_in, last, "CompleteCommit"), last)


def _copy_state(cluster: Cluster, folder: Path, target: Path) -> None:
    _copy(
        cluster,
        folder,
        target,
        [f"{STATE}-{number}" for number in range(STATE_PARTITIONS)],
        "--transaction-log-decoder",
    )


def _copy_logs(cluster: Cluster, folder: Path, target: Path) -> None:
    _copy(cluster, folder, target, [f"{TOPIC}-{number}" for number in range(len(IDS))])


def _copy(cluster: Cluster, folder: Path, target: Path, names: Sequence[str], *options: str) -> None:
    """Copy some partitions, all of them before the tool is asked for any."""
    target.mkdir(parents=True)
    for name in names:
        copy_folder(cluster.log_dir() / name, folder / name)
    for name in names:
        (log,) = (folder / name).glob("*.log")
        (target / f"n1.{name}.txt").write_text(dump_text(cluster, log, *options))


if __name__ == "__main__":
    made_anew(Path(sys.argv[1]), make)
