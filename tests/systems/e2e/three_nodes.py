"""Three nodes that are killed at random moments of transactions, and what the clients were answered."""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Timer

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.driver import Driver, KafkaError
from tests.systems.e2e.hangs import HOUR_MS, Hang, now_ms
from tests.systems.e2e.scenario import Expected, Happened, Row, Scenario
from tests.systems.e2e.stage import STATE, Stage
from tests.systems.e2e.wire import Place
from tests.tools.processes import wait_until

NODES = 3
TOPIC = "orders"
PARTITIONS = 6
HANGS_AT: Place = (TOPIC, 0)
_IDS = 8
COMPLETED = {"CompleteCommit", "CompleteAbort", "Empty"}


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

    stage: Stage
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
        self.stage.copied(target, *range(NODES))
        answers = {told.name: told.answer for told in self.told.values()}
        still_open = {told.name: set(told.places) for told in self.told.values() if told.answer == "open"}
        unknown = {name for name, answer in answers.items() if answer == "unknown"}
        producer_ids = {name: self.driver.described(name)["producer_id"] for name in still_open}
        return Copy(target, dead, still_open, unknown, producer_ids, answers)

    def _is_completed(self, name: str) -> bool:
        try:
            return self.driver.described(name)["state"] in COMPLETED
        except KafkaError:
            return False  # its coordinator has just died


def kill_and_copy(stage: Stage, *, rounds: int, seed: int) -> tuple[ThreeNodes, list[Copy]]:
    """Kill one node a round, at a random moment, let clients go on, and copy while it is dead and when it is back.

    The first node stays: it is the controller.
    """
    copies, cluster = [], stage.cluster
    scene = ThreeNodes(stage, stage.driver, random.Random(seed), stage.hanger.unknown_producer(HANGS_AT))
    stage.driver.witness([HANGS_AT])
    for number in range(rounds):
        victim = scene.dice.choice((1, 2))
        scene.transact(scene.dice.randrange(3, 12))
        killer = Timer(scene.dice.random(), cluster.nodes[victim].kill)
        killer.start()
        scene.transact(scene.dice.randrange(3, 12))
        killer.join()
        copies.append(scene.copy(stage.folder / f"copy-{number}-dead", victim))
        cluster.restart(victim)
        scene.transact(scene.dice.randrange(3, 12))
        wait_until(lambda: _are_alike(cluster), "all replicas")
        copies.append(scene.copy(stage.folder / f"copy-{number}-back"))
    return scene, copies


def _are_alike(cluster: Cluster) -> bool:
    """Whether every replica of every log is as long as the others."""
    sizes = [
        {f"{file.parent.name}/{file.name}": file.stat().st_size for file in cluster.log_dir(node).glob("[_o]*-*/*.log")}
        for node in range(NODES)
    ]
    known = [{name: size for name, size in own.items() if "__cluster" not in name} for own in sizes]
    return all(own == known[0] for own in known)


def _expected(copy: Copy, hang: Hang) -> Iterator[Row]:
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


def _keep(stage: Stage, case: Path) -> Happened:
    """One round.

    Raises:
        AssertionError: a client does not know what came of its transaction, so that nothing is expected of it.
    """
    scene, copies = kill_and_copy(stage, rounds=1, seed=1)
    captures, answers = {}, {}
    for number, copy in enumerate(copies, start=1):
        assert not copy.unknown, "try again"
        name = f"capture-{number}"
        shutil.copytree(copy.folder, case / name / "log-dirs")
        dead = None if copy.dead is None else f"n{copy.dead + 1}"
        captures[name] = Expected(list(_expected(copy, scene.hang)), more={"dead_node": dead})
        answers[name] = copy.answers
    nobody = {"kind": "unknown-pid-first", "producer_id": scene.hang.producer_id}
    return Happened(captures, [nobody | {"topic": scene.hang.topic, "partition": scene.hang.partition}], answers)


_PROPERTIES = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "replica.high.watermark.checkpoint.interval.ms": 200,
}
_LEADERS = [(node % NODES, (node + 1) % NODES, (node + 2) % NODES) for node in range(PARTITIONS)]
SCENARIO = Scenario(
    "kafka-4.2-three-nodes",
    partial(Cluster, "4.2.0", nodes=NODES, properties=_PROPERTIES),
    _keep,
    topics={
        STATE: (_LEADERS[:STATE_PARTITIONS], {"cleanup.policy": "compact", "min.insync.replicas": 2}),
        TOPIC: (_LEADERS, {"min.insync.replicas": 2}),
    },
)
