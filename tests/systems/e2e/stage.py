"""Brokers that run until a block ends, with their topics, what speaks to them, and what is copied off them."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from pathlib import Path

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.driver import WITNESSES, Driver
from tests.systems.e2e.hangs import HOUR_MS, Hanger, now_ms
from tests.systems.e2e.raw_client import RawClient
from tests.systems.e2e.requests import Requests
from tests.systems.e2e.wire import Place
from tests.tools.processes import wait_until

STATE = "__transaction_state"
Topics = Mapping[str, tuple[Sequence[Sequence[int]], Mapping[str, object]]]
"""By name the nodes of each partition's replicas, the leader first, and what is configured."""

_OF_LOG_DIR = ("replication-offset-checkpoint", "log-start-offset-checkpoint", "meta.properties")
_EVIDENCE = {".log", ".snapshot", ".txnindex"}
_OF_PARTITION = {"leader-epoch-checkpoint", "partition.metadata"}


def on_node(partitions: int, node: int = 0, **configs: object) -> tuple[list[tuple[int]], dict[str, object]]:
    """A topic of so many partitions with one replica each; what is configured has `_` for `.` in its names."""
    return [(node,)] * partitions, {name.replace("_", "."): value for name, value in configs.items()}


COMPACT_STATE: Topics = {STATE: on_node(STATE_PARTITIONS, cleanup_policy="compact")}


class Stage:
    """A running cluster, and clients of it, each of which is started when it is first asked for."""

    def __init__(self, cluster: Cluster, running: ExitStack) -> None:
        self.cluster, self.running = cluster, running

    @property
    def folder(self) -> Path:
        """Where everything that runs here writes."""
        return self.cluster.folder

    @cached_property
    def driver(self) -> Driver:
        """Kafka's own clients."""
        log = self.folder / "driver.log"
        return self.running.enter_context(closing(Driver(self.cluster.version, self.cluster.bootstrap, log)))

    @cached_property
    def raw(self) -> RawClient:
        """The rude client, which speaks to the first node."""
        return self.raw_of(0)

    @cached_property
    def requests(self) -> Requests:
        """Speaks to the first node byte by byte."""
        return self.running.enter_context(closing(Requests(self.cluster.ports[0])))

    @property
    def hanger(self) -> Hanger:
        """Makes transactions hang that are three hours old by their client's clock."""
        return Hanger(self.raw, self.driver, now_ms() - 3 * HOUR_MS)

    def raw_of(self, node: int) -> RawClient:
        """Another rude client, which speaks to some node."""
        return self.running.enter_context(closing(RawClient(self.cluster.ports[node])))

    def is_led(self, places: Iterable[Place]) -> None:
        """Wait until the first node leads some partitions."""
        wait_until(lambda: all(map(self.requests.is_led, places)), "the leader")

    def witnessed(self, places: Sequence[Place]) -> None:
        """As `Driver.witness`, a partition each, until the last one has ended; ids that expire may be gone by then."""
        for number in range(WITNESSES):
            producer = self.raw.init_producer_id(f"witness-{number}")
            place = places[number % len(places)]
            self.raw.add_partition(producer, place)
            self.raw.write(producer, place, 0, at_ms=now_ms())
            self.raw.end(producer, commit=True)
        last = f"witness-{WITNESSES - 1}"
        wait_until(lambda: (known := self.requests.transaction(last)) is None or known.state == "CompleteCommit", last)

    def checkpointed(self, topic: str, partitions: int, node: int = 0) -> None:
        """Wait until a node has written down high watermarks of all partitions of a topic."""
        file = self.cluster.log_dir(node) / "replication-offset-checkpoint"
        wait_until(lambda: file.read_text().count(f"{topic} ") == partitions, "the high watermarks")

    def written_down(self, topic: str, partitions: int) -> None:
        """Wait until the first node's high watermarks of a topic are the ends of its logs.

        They are written every few seconds; what lies above them may be a dead leader's own.
        """
        ends = {partition: self.driver.consume((topic, partition), 500)["end"] for partition in range(partitions)}
        file = self.cluster.log_dir() / "replication-offset-checkpoint"

        def are_ends() -> bool:
            rows = [line.split() for line in file.read_text().splitlines()[2:]] if file.exists() else []
            return {int(number): int(offset) for name, number, offset in rows if name == topic} == ends

        wait_until(are_ends, "the checkpoint of the high watermarks")

    def asked(self, capture: Path, broker_id: int = 1, *place: str, name: str = "find-hanging") -> None:
        """Keep what `kafka-transactions.sh find-hanging` says beside a capture."""
        (capture / "oracle").mkdir(parents=True, exist_ok=True)
        (capture / f"oracle/{name}.txt").write_text(self.cluster.find_hanging(broker_id, *place, minutes=15))

    def copied(self, target: Path, *nodes: int) -> None:
        """Copy what is kept of nodes into `n1` and so on, the logs of all before the state of any.

        No indexes, nothing of the cluster's metadata.
        """
        for is_state in (False, True):
            for node in nodes:
                _copy(self.cluster.log_dir(node), target / f"n{node + 1}", is_state=is_state)


@contextmanager
def staged(
    cluster: Cluster, topics: Topics | None = None, first_topic: Callable[[Cluster], None] | None = None
) -> Iterator[Stage]:
    """Start all nodes and make topics; in the end all clients and brokers stop. `first_topic` as of `Cluster.start`."""
    with ExitStack() as running:
        running.callback(cluster.stop)
        cluster.start(first_topic)
        stage = Stage(cluster, running)
        for topic, (replicas, configs) in (topics or {}).items():
            stage.driver.create_topic(topic, replicas, configs)
        yield stage


def _copy(source: Path, target: Path, *, is_state: bool) -> None:
    for folder in sorted(source.iterdir()):
        if folder.is_dir() and folder.name.startswith(f"{STATE}-") == is_state:
            files = [file for file in sorted(folder.iterdir()) if _is_evidence(file)]
            if files and not folder.name.startswith("__cluster_metadata"):
                (target / folder.name).mkdir(parents=True)
                for file in files:
                    shutil.copy2(file, target / folder.name / file.name)
    for name in _OF_LOG_DIR if is_state else ():
        shutil.copy2(source / name, target / name)


def _is_evidence(file: Path) -> bool:
    return file.suffix in _EVIDENCE or file.name in _OF_PARTITION
