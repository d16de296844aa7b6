"""Three nodes that are killed at random moments of transactions, and what the clients were answered.

`python -m tests.systems.e2e.three_nodes data/cases/kafka-4.2-three-nodes` makes the capture anew, in a minute or two.
"""

import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.copying import copy_nodes
from tests.systems.e2e.driver import Driver, KafkaError
from tests.systems.e2e.hangs import HOUR_MS, Hang, Hanger, now_ms
from tests.systems.e2e.kept import made_anew, write_json
from tests.systems.e2e.raw_client import RawClient
from tests.systems.e2e.running import start
from tests.tools.processes import wait_until

Place = tuple[str, int]

NODES = 3
TOPIC = "orders"
PARTITIONS = 6
HANGS_AT: Place = (TOPIC, 0)
_IDS = 8
COMPLETED = {"CompleteCommit", "CompleteAbort", "Empty"}
KEPT_VERSION, KEPT_ROUNDS, KEPT_SEED = "4.2.0", 1, 1

_PROPERTIES = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "replica.high.watermark.checkpoint.interval.ms": 200,
}


@dataclass
class Told:
    """One transactional id, and what its client was answered last.

    Attributes:
        places: what its newest transaction has written.
        answer: `commit` and `abort` that were acknowledged, `open` where nobody asked for an end, `unknown` where the
            client got an error.
    """

    name: str
    places: set[Place] = field(default_factory=set)
    answer: str = "open"


@dataclass(frozen=True)
class Copy:
    """The folders of all nodes at one moment, and what clients knew then.

    Attributes:
        folder: with a folder for each node.
        dead: the node that was dead then; None where all were there.
        still_open: places of transactional ids whose transactions nobody had ended.
        unknown: ids whose clients do not know what came of their transactions.
        producer_ids: of the ids that are still open.
        answers: what the client of each id was answered last, as `Told` has it.
    """

    folder: Path
    dead: int | None
    still_open: dict[str, set[Place]]
    unknown: set[str]
    producer_ids: dict[str, int]
    answers: dict[str, str]


@dataclass
class ThreeNodes:
    """A cluster, its clients, and what they were answered."""

    cluster: Cluster
    driver: Driver
    dice: random.Random
    hang: Hang
    told: dict[str, Told] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)

    def transact(self, count: int) -> None:
        """Some transactions, one after another: most are ended, some stay open."""
        for _ in range(count):
            open_ids = [told for told in self.told.values() if told.answer == "open"]
            if len(open_ids) > 3 or (open_ids and self.dice.random() < 0.3):
                self._end(self.dice.choice(open_ids))
            else:
                self._write()

    def _write(self) -> None:
        ended = [told for told in self.told.values() if told.answer in {"commit", "abort"}]
        is_new = len(self.told) < _IDS or not ended
        told = Told(f"shop-{len(self.told)}") if is_new else self.dice.choice(ended)
        self.told[told.name] = told
        told.places, told.answer = set(), "open"
        try:
            self.driver.begin(told.name)
            for _ in range(self.dice.randrange(1, 4)):
                place = TOPIC, self.dice.randrange(PARTITIONS)
                told.places.add(place)
                self.driver.send(told.name, place, at_ms=now_ms() - 3 * HOUR_MS)
        except KafkaError:
            told.answer = "unknown"
        if told.answer == "open" and self.dice.random() < 0.8:
            self._end(told)

    def _end(self, told: Told) -> None:
        commit = self.dice.random() < 0.6
        try:
            (self.driver.commit if commit else self.driver.abort)(told.name)
            told.answer = "commit" if commit else "abort"
        except KafkaError:
            told.answer = "unknown"
        self.answers[told.answer] += 1

    def copy(self, target: Path, dead: int | None = None) -> Copy:
        """Copy all folders once every decision has reached its partitions."""
        for told in self.told.values():
            if told.answer in {"commit", "abort"}:
                wait_until(partial(self._is_completed, told.name), told.name)
        copy_nodes(self.cluster, target, range(NODES))
        answers = {told.name: told.answer for told in self.told.values()}
        still_open = {told.name: set(told.places) for told in self.told.values() if told.answer == "open"}
        unknown = {name for name, answer in answers.items() if answer == "unknown"}
        producer_ids = {name: self._described(name)["producer_id"] for name in still_open}
        return Copy(target, dead, still_open, unknown, producer_ids, answers)

    def _described(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.driver.call("describe_transaction", id=name)
        return found

    def _is_completed(self, name: str) -> bool:
        try:
            return self._described(name)["state"] in COMPLETED
        except KafkaError:
            return False  # its coordinator has just died


def kill_and_copy(version: str, folder: Path, *, rounds: int, seed: int) -> tuple[ThreeNodes, list[Copy]]:
    """Kill one node a round, at a random moment, let clients go on, and copy while it is dead and when it is back.

    The first node stays: it is the controller.
    """
    copies = []
    with ExitStack() as running:
        scene = _set_scene(version, folder, seed, running)
        for number in range(rounds):
            victim = scene.dice.choice((1, 2))
            scene.transact(scene.dice.randrange(3, 12))
            killer = Timer(scene.dice.random(), scene.cluster.nodes[victim].kill)
            killer.start()
            scene.transact(scene.dice.randrange(3, 12))
            killer.join()
            copies.append(scene.copy(folder / f"copy-{number}-dead", victim))
            scene.cluster.restart(victim)
            scene.transact(scene.dice.randrange(3, 12))
            wait_until(lambda: _are_alike(scene.cluster), "all replicas")
            copies.append(scene.copy(folder / f"copy-{number}-back"))
        return scene, copies


def _set_scene(version: str, folder: Path, seed: int, running: ExitStack) -> ThreeNodes:
    cluster = Cluster(version, folder / "cluster", nodes=NODES, properties=_PROPERTIES)
    driver = start(running, cluster)
    leaders = [(node % NODES, (node + 1) % NODES, (node + 2) % NODES) for node in range(PARTITIONS)]
    cluster.create_topic(
        "__transaction_state", leaders[:STATE_PARTITIONS], cleanup_policy="compact", min_insync_replicas=2
    )
    cluster.create_topic(TOPIC, leaders, min_insync_replicas=2)
    raw = running.enter_context(closing(RawClient(cluster.ports[0])))
    hang = Hanger(raw, driver, now_ms() - 3 * HOUR_MS).unknown_producer(HANGS_AT)
    scene = ThreeNodes(cluster, driver, random.Random(seed), hang)
    driver.witness([HANGS_AT])
    return scene


def _are_alike(cluster: Cluster) -> bool:
    """Whether every replica of every log is as long as the others."""
    sizes = [
        {f"{file.parent.name}/{file.name}": file.stat().st_size for file in cluster.log_dir(node).glob("[_o]*-*/*.log")}
        for node in range(NODES)
    ]
    known = [{name: size for name, size in own.items() if "__cluster" not in name} for own in sizes]
    return all(own == known[0] for own in known)


def expected(copy: Copy, hang: Hang) -> Iterator[dict[str, Any]]:
    """What is open in a copy, and the verdict that it must get."""
    yield {
        "topic": hang.topic,
        "partition": hang.partition,
        "producer_id": hang.producer_id,
        "producer_epoch": hang.producer_epoch,
        "verdict": "hanging",
        "rule": "unknown_producer",
        "transactional_id": None,
    }
    for name, places in sorted(copy.still_open.items()):
        for topic, partition in sorted(places):
            yield {
                "topic": topic,
                "partition": partition,
                "producer_id": copy.producer_ids[name],
                "verdict": "coordinated",
                "rule": "in_coordinator",
                "transactional_id": name,
            }


def keep(folder: Path, case: Path) -> None:
    """Let it happen in `folder`, and keep the copies as captures of a case, in place of those that were there.

    Raises:
        AssertionError: a client does not know what came of its transaction, so that nothing is expected of it.
    """
    scene, copies = kill_and_copy(KEPT_VERSION, folder, rounds=KEPT_ROUNDS, seed=KEPT_SEED)
    told = {}
    for number, copy in enumerate(copies, start=1):
        assert not copy.unknown, "try again"
        capture = case / f"capture-{number}"
        shutil.copytree(copy.folder, capture / "log-dirs")
        dead = None if copy.dead is None else f"n{copy.dead + 1}"
        rows = list(expected(copy, scene.hang))
        head = {"kafka_version": KEPT_VERSION, "transaction_state_partitions": STATE_PARTITIONS, "dead_node": dead}
        write_json(capture / "expected.json", head | {"open_transactions": rows})
        told[capture.name] = copy.answers
    write_json(case / "clients.json", told)
    nobody = {"kind": "unknown-pid-first", "producer_id": scene.hang.producer_id}
    write_json(case / "scenario.json", [nobody | {"topic": scene.hang.topic, "partition": scene.hang.partition}])


if __name__ == "__main__":
    made_anew(Path(sys.argv[1]), keep)
