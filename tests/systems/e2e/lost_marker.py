"""An unclean election loses the end markers of a commit and of an abort that were both acknowledged."""

import time
from functools import partial
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.hangs import HOUR_MS, Hang, now_ms
from tests.systems.e2e.scenario import Expected, Happened, Scenario, row, stories
from tests.systems.e2e.stage import STATE, Stage
from tests.tools.processes import wait_until

COMMITTED, ABORTED = ("payouts", 0), ("payouts", 1)
PLACES = (COMMITTED, ABORTED)
COORDINATOR, LEADER, FOLLOWER = 0, 1, 2

_ENDED = {COMMITTED: ("payout-batch-9", "CompleteCommit"), ABORTED: ("cancelled-batch-9", "CompleteAbort")}
_RULES = {
    COMMITTED: ("suspect", "commit_marker_missing"),
    ABORTED: ("hanging", "partition_not_in_transaction"),
}
_NOTE = (
    "Node 2 led both partitions, took a COMMIT and an ABORT marker while its only follower, node 3, was down, and "
    "died. Node 3 was elected uncleanly: it has the data, and not the markers. Both were acknowledged. What node 2 "
    "left on its disk is here as well."
)
_NOTE_OF_2 = "Node 2 is back, and has cut its log to that of the new leader: no copy holds the markers any more."
_MAX_TIMEOUT_MS = 900_000


def _lose_markers(stage: Stage, case: Path) -> Happened:
    """The leader of two partitions takes both end markers while its only follower is down, and dies.

    The follower, which has the data and not the markers, becomes the leader. `capture-1` is copied then, with the log
    directory that the dead leader left; `capture-2` once it is back, and has cut its log to the new leader's.
    """
    cluster, driver = stage.cluster, stage.driver
    answers = _written_and_ended(stage)
    cluster.nodes[LEADER].kill()
    cluster.restart(FOLLOWER)
    driver.witness(PLACES)
    wait_until(lambda: all(len(driver.open_in(place)) == 1 for place in PLACES), "the new leader, which has no markers")
    answers["open"] = [{"partition": place[1], **found} for place in PLACES for found in driver.open_in(place).values()]
    stage.asked(case / "capture-1", FOLLOWER + 1)
    time.sleep(2)  # the brokers write their high watermarks down
    stage.copied(case / "capture-1/log-dirs", FOLLOWER, LEADER, COORDINATOR)
    cluster.restart(LEADER)
    driver.witness(PLACES, 4)
    _are_alike(stage, "the old leader's log is cut")
    time.sleep(2)
    stage.copied(case / "capture-2/log-dirs", FOLLOWER, LEADER, COORDINATOR)
    hangs = [
        Hang("marker-lost", *place, known["producer_id"], known["producer_epoch"], known["txn_start_offset"], name)
        for (place, (name, _)), known in zip(_ENDED.items(), answers["open"], strict=True)
    ]
    rows = [row(hang, *_RULES[hang.topic, hang.partition]) for hang in hangs]
    captures = {
        f"capture-{number}": Expected(
            rows, note, {"transaction_max_timeout_ms": _MAX_TIMEOUT_MS, "nothing_open_alone": empty}
        )
        for number, note, empty in ((1, _NOTE, ["n1", "n2"]), (2, _NOTE_OF_2, ["n1"]))
    }
    return Happened(captures, stories(hangs), answers)


def _written_and_ended(stage: Stage) -> dict[str, Any]:
    """Both transactions have their data on both replicas, and their end markers on the leader alone."""
    driver = stage.driver
    driver.witness(PLACES)
    answers: dict[str, Any] = {}
    for place, (name, state) in _ENDED.items():
        driver.begin(name)
        answers[name] = {"offsets": driver.send(name, place, at_ms=now_ms() - 3 * HOUR_MS), "state": state}
    _are_alike(stage, "the follower has all data")
    driver.witness(PLACES)
    _are_alike(stage, "the follower has all data")
    stage.cluster.nodes[FOLLOWER].kill()
    for place, end in ((COMMITTED, driver.commit), (ABORTED, driver.abort)):
        end(_ENDED[place][0])
    for name, state in _ENDED.values():
        stage.driver.ended(name, state)
    return answers


def _are_alike(stage: Stage, what: str) -> None:
    """Wait until the segments of leader and follower are of the same sizes."""

    def sizes(node: int) -> list[int]:
        return [file.stat().st_size for file in sorted(stage.cluster.log_dir(node).glob("payouts-*/*.log"))]

    wait_until(lambda: sizes(LEADER) == sizes(FOLLOWER), what)


SCENARIO = Scenario(
    "kafka-4.2-lost-marker",
    partial(
        Cluster,
        "4.2.0",
        nodes=3,
        properties={
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "replica.lag.time.max.ms": 3000,
            "transaction.max.timeout.ms": _MAX_TIMEOUT_MS,
            "replica.high.watermark.checkpoint.interval.ms": 500,
        },
    ),
    _lose_markers,
    topics={
        STATE: (
            [(COORDINATOR, LEADER, FOLLOWER)] * STATE_PARTITIONS,
            {"cleanup.policy": "compact", "min.insync.replicas": 1},
        ),
        "payouts": ([(LEADER, FOLLOWER)] * 2, {"unclean.leader.election.enable": "true", "min.insync.replicas": 1}),
    },
    takes_long=False,
)
