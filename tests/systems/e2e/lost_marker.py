"""An unclean election loses the end markers of a commit and of an abort that were both acknowledged.

`python -m tests.systems.e2e.lost_marker data/cases/kafka-4.2-lost-marker` makes the capture anew, in about a minute.
"""

import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.copying import copy_nodes
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import HOUR_MS, now_ms
from tests.systems.e2e.kept import STATE, made_anew, write_json
from tests.systems.e2e.running import start
from tests.tools.processes import wait_until

VERSION = "4.2.0"
COMMITTED, ABORTED = ("payouts", 0), ("payouts", 1)
PLACES = (COMMITTED, ABORTED)
PAYER, CANCELLER = "payout-batch-9", "cancelled-batch-9"
COORDINATOR, LEADER, FOLLOWER = 0, 1, 2

_PROPERTIES = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "transaction.max.timeout.ms": 900_000,
    "replica.high.watermark.checkpoint.interval.ms": 500,
}


def lose_markers(folder: Path, target: Path) -> dict[str, Any]:
    """Let it happen on three nodes in `folder`, and copy them into `target`.

    The leader of two partitions takes both end markers while its only follower is down, and dies; the follower, which
    has the data and not the markers, becomes the leader. `capture-1` is copied then, with the log directory that the
    dead leader left; `capture-2` once it is back, and has cut its log to the new leader's.

    Returns:
        what the clients were answered, and what the new leader says is open.
    """
    with ExitStack() as running:
        cluster = Cluster(VERSION, folder, nodes=3, properties=_PROPERTIES)
        driver = start(running, cluster)
        everywhere = [(COORDINATOR, LEADER, FOLLOWER)] * STATE_PARTITIONS
        cluster.create_topic(STATE, everywhere, cleanup_policy="compact", min_insync_replicas=1)
        unclean = {"unclean_leader_election_enable": "true", "min_insync_replicas": 1}
        cluster.create_topic("payouts", [(LEADER, FOLLOWER)] * 2, **unclean)
        answers = _written_and_ended(cluster, driver)
        cluster.nodes[LEADER].kill()
        cluster.restart(FOLLOWER)
        driver.witness(PLACES)
        wait_until(lambda: len(_open(driver)) == 2, "the new leader, which has no markers")
        answers["open"] = _open(driver)
        (target / "capture-1/oracle").mkdir(parents=True)
        (target / "capture-1/oracle/find-hanging.txt").write_text(cluster.find_hanging(broker_id=FOLLOWER + 1))
        time.sleep(2)  # the brokers write their high watermarks down
        copy_nodes(cluster, target / "capture-1/log-dirs", (FOLLOWER, LEADER, COORDINATOR))
        cluster.restart(LEADER)
        driver.witness(PLACES, 4)
        wait_until(lambda: _sizes(cluster, LEADER) == _sizes(cluster, FOLLOWER), "the old leader's log is cut")
        time.sleep(2)
        copy_nodes(cluster, target / "capture-2/log-dirs", (FOLLOWER, LEADER, COORDINATOR))
        return answers


def _written_and_ended(cluster: Cluster, driver: Driver) -> dict[str, Any]:
    """Both transactions have their data on both replicas, and their end markers on the leader alone."""
    driver.witness(PLACES)
    answers: dict[str, Any] = {}
    for name, place in ((PAYER, COMMITTED), (CANCELLER, ABORTED)):
        driver.begin(name)
        answers[name] = {"offsets": driver.send(name, place, at_ms=now_ms() - 3 * HOUR_MS)}
    wait_until(lambda: _sizes(cluster, LEADER) == _sizes(cluster, FOLLOWER), "the follower has all data")
    driver.witness(PLACES)
    wait_until(lambda: _sizes(cluster, LEADER) == _sizes(cluster, FOLLOWER), "the follower has all data")
    cluster.nodes[FOLLOWER].kill()
    driver.commit(PAYER)
    driver.abort(CANCELLER)
    for name, state in ((PAYER, "CompleteCommit"), (CANCELLER, "CompleteAbort")):
        answers[name]["state"] = state
        wait_until(partial(driver.is_in, name, state), state)
    return answers


def _open(driver: Driver) -> list[dict[str, Any]]:
    found = []
    for topic, partition in PLACES:
        rows = driver.call("describe_producers", topic=topic, partition=partition)
        found += [{"partition": partition, **row} for row in rows if row["txn_start_offset"] is not None]
    return found


def _sizes(cluster: Cluster, node: int) -> list[int]:
    """Of the segments of a node."""
    return [file.stat().st_size for file in sorted(cluster.log_dir(node).glob("payouts-*/*.log"))]


def keep(folder: Path, case: Path) -> None:
    """The captures, what the clients were answered, and what is open in them."""
    answers = lose_markers(folder, case)
    topic, _ = COMMITTED
    stories = [
        {"kind": "marker-lost", "topic": topic, "partition": row["partition"], "producer_id": row["producer_id"]}
        for row in answers["open"]
    ]
    write_json(case / "clients.json", answers)
    write_json(case / "scenario.json", stories)


if __name__ == "__main__":
    made_anew(Path(sys.argv[1]), keep)
