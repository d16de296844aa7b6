"""The state of a real broker is copied before its logs, by mistake, while four transactions begin."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster, copy_folder
from tests.systems.e2e.driver import WITNESSES
from tests.systems.e2e.hangs import Hang, begun
from tests.systems.e2e.scenario import Expected, Happened, Scenario, dump_text, row
from tests.systems.e2e.stage import COMPACT_STATE, STATE, Stage, on_node
from tests.tools.captures import TRUE_WORDS

TOPIC = "orders"
IDS = ("shop-0", "shop-1", "newcomer-2", "newcomer-3")
_KNOWN_BEFORE = IDS[:2]
_LATER_THAN_THE_SKEW_S = 1.5
_NOTE = (
    "Four transactions are in progress in the logs, and were committed seconds later. The state was copied before they "
    "began: expected with the wrong word that it was copied last, which end markers of unknown kind disprove."
)
_NOTE_OF_RIGHT_ORDER = "The same shallow dumps, with the state as it was after them."


def _copy_in_the_wrong_order(stage: Stage, case: Path) -> Happened:
    """Copy the state, begin the transactions, copy the logs and the state again; then commit them."""
    driver = stage.driver
    for name in _KNOWN_BEFORE:
        _write(stage, name)
        driver.commit(name)
    _witnessed(stage)
    _copy_state(stage, "first", case / "capture-1/state")
    time.sleep(_LATER_THAN_THE_SKEW_S)
    opened = [_write(stage, name) for name in IDS]
    _witnessed(stage)
    stage.checkpointed(TOPIC, len(IDS))
    _copy(stage, "logs", case / "capture-1/shallow", [f"{TOPIC}-{number}" for number in range(len(IDS))])
    _copy_state(stage, "last", case / "capture-2/state")
    for name in IDS:
        driver.commit(name)
        stage.driver.ended(name)
    unnamed = [replace(each, transactional_id=None) for each in opened[len(_KNOWN_BEFORE) :]]
    too_early = [*opened[: len(_KNOWN_BEFORE)], *unnamed]
    captures = {
        "capture-1": Expected([row(each, "inconclusive", "state_older_than_log") for each in too_early], _NOTE),
        "capture-2": Expected([row(each, "coordinated", "in_coordinator") for each in opened], _NOTE_OF_RIGHT_ORDER),
    }
    return Happened(captures, clients=dict.fromkeys(IDS, "CompleteCommit"))


def _write(stage: Stage, name: str) -> Hang:
    """Begin a transaction and write to the partition of the id; the client's time is three hours old."""
    return begun(stage.driver, name, (TOPIC, IDS.index(name)))


def _witnessed(stage: Stage) -> None:
    """End markers in every partition, and moments in all of the state."""
    stage.driver.witness([(TOPIC, partition) for partition in range(len(IDS))])
    stage.driver.ended(f"witness-{WITNESSES - 1}")


def _copy_state(stage: Stage, name: str, target: Path) -> None:
    partitions = [f"{STATE}-{number}" for number in range(STATE_PARTITIONS)]
    _copy(stage, name, target, partitions, "--transaction-log-decoder")


def _copy(stage: Stage, name: str, target: Path, partitions: Sequence[str], *options: str) -> None:
    """Copy some partitions, all of them before the tool is asked for any."""
    folder = stage.folder / name
    target.mkdir(parents=True)
    for partition in partitions:
        copy_folder(stage.cluster.log_dir() / partition, folder / partition)
    for partition in partitions:
        (log,) = (folder / partition).glob("*.log")
        (target / f"n1.{partition}.txt").write_text(dump_text(stage.cluster, log, *options))


SCENARIO = Scenario(
    "kafka-4.3-wrong-order",
    partial(Cluster, "4.3.1", properties={"replica.high.watermark.checkpoint.interval.ms": 200}),
    _copy_in_the_wrong_order,
    topics={**COMPACT_STATE, TOPIC: on_node(len(IDS))},
    files={"capture-1": ("shallow", "state"), "capture-2": ("../capture-1/shallow", "state")},
    settings=TRUE_WORDS[:1],
)
