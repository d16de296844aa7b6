"""One broker with real traffic, and with transactions that hang."""

import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import HOUR_MS, LATE_JOINER, Hang, Hanger, now_ms
from tests.systems.e2e.raw_client import Producer, RawClient
from tests.systems.e2e.stage import staged
from tests.systems.e2e.wire import Place

TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "orders": (3, {}),
    "payments": (2, {}),
    "ledger.events": (2, {}),
    "accounts": (2, {}),
    "trades": (1, {"segment.ms": "1000"}),
    "trades-eu": (1, {"message.timestamp.type": "LogAppendTime"}),
    "late": (1, {}),
}
PLACES: list[Place] = [(topic, partition) for topic, (count, _) in TOPICS.items() for partition in range(count)]
OFFSETS: list[Place] = [("__consumer_offsets", partition) for partition in range(3)]
# Without `late`, where a test wants to know of every record, and `trades`, which would roll a segment each second.
LOADED = [place for place in PLACES if place[0] not in {"late", "trades"}]
LOAD_IDS = ["shop-1", "shop-2"]
BUSY = ("payments", 1)
MINUTE_MS = 60_000
_BEAT_S = 15.0


class Pulse(threading.Thread):
    """Keeps a rude producer's own transaction alive: it commits and begins another one before each time-out."""

    def __init__(self, port: int, producer: Producer) -> None:
        super().__init__(daemon=True)
        self.producer = producer
        self._raw, self._sequence, self._enough = RawClient(port), 2, threading.Event()
        self.still = threading.Lock()  # no beat while somebody holds it

    def run(self) -> None:
        """Beats until it is stopped."""
        while not self._enough.wait(_BEAT_S):
            self._beat()

    def _beat(self) -> None:
        with self.still:
            self._raw.end(self.producer, commit=True)
            self._raw.add_partition(self.producer, BUSY)
            self._raw.write(self.producer, BUSY, self._sequence, at_ms=now_ms())
            self._sequence += 2

    def stop(self) -> None:
        """Leaves a transaction behind that has just begun."""
        self._enough.set()
        self.join()
        self._beat()

    def close(self) -> None:
        """Beats no more, and closes its connection."""
        self._enough.set()
        self.join()
        self._raw.close()


@dataclass
class Scene:
    """A running broker, its clients, and what was made to hang on it.

    `stale` joined a live transaction, so that no abort is due; `committed` are the offsets of records whose commit was
    acknowledged, by partition.
    """

    cluster: Cluster
    driver: Driver
    raw: RawClient
    hangs: list[Hang] = field(default_factory=list)
    stale: list[Hang] = field(default_factory=list)
    pulses: dict[str, Pulse] = field(default_factory=dict)
    committed: dict[str, set[int]] = field(default_factory=dict)
    running: ExitStack = field(default_factory=ExitStack)

    @property
    def version(self) -> str:
        """Of the brokers."""
        return self.cluster.version

    def hang(self, cause: str) -> Hang:
        """The transaction that hangs for some reason."""
        return next(hang for hang in self.hangs if hang.cause == cause)

    def producer_of(self, hang: Hang) -> Producer:
        """The producer that wrote it."""
        return Producer(hang.transactional_id, hang.producer_id, hang.producer_epoch)

    def start_load(self) -> None:
        """Let clients run transactions, committed and aborted ones, on nearly all partitions."""
        self.driver.start_load(LOAD_IDS, LOADED, pause_ms=1500)

    def stop_load(self) -> None:
        """Let them end what they have begun."""
        for name, offsets in self.driver.call("stop_load").items():
            self.committed.setdefault(name, set()).update(offsets)

    def open_by_the_broker(self) -> dict[tuple[str, int, int], dict[str, Any]]:
        """Every open transaction that `describe-producers` knows, by topic, partition and producer id."""
        return {
            (*place, producer_id): row
            for place in PLACES + OFFSETS
            for producer_id, row in self.driver.open_in(place).items()
        }

    def consume(self, place: Place, timeout_ms: int = 60_000) -> dict[str, Any]:
        """What a read_committed consumer gets of a partition: offsets, its position, and the log's end."""
        return self.driver.consume(place, timeout_ms)

    def close(self) -> None:
        """End clients and broker."""
        for pulse in self.pulses.values():
            pulse.close()
        self.running.close()


def set_scene(version: str, folder: Path) -> Scene:
    """Start a broker, let clients work on it, and let transactions hang."""
    with ExitStack() as on_failure:
        topics = {topic: ([(0,)] * count, configs) for topic, (count, configs) in TOPICS.items()}
        stage = on_failure.enter_context(staged(Cluster(version, folder), topics))
        scene = Scene(stage.cluster, stage.driver, stage.raw)
        _ordinary_traffic(stage.driver)
        _let_hang(scene, stage.hanger)
        scene.start_load()
        scene.running = on_failure.pop_all()
    return scene


def _ordinary_traffic(driver: Driver) -> None:
    for number, place in enumerate(PLACES):
        transactional_id = f"importer-{number % 3}"
        driver.transact(transactional_id, [place], 3)
        driver.begin(transactional_id)
        driver.send(transactional_id, place, 2)
        driver.abort(transactional_id)
    driver.begin("stream-app")
    driver.send("stream-app", ("orders", 0))
    driver.call("send_offsets", id="stream-app", topic="orders", partition=0, offset=3, group="stream-readers")
    driver.commit("stream-app")


def _let_hang(scene: Scene, hanger: Hanger) -> None:
    add = scene.hangs.append
    add(hanger.late_write_after_the_abort("billing-worker-17", ("orders", 0)))
    for transactional_id, place in (("inventory-sync", ("payments", 0)), (LATE_JOINER, ("late", 0))):
        hang, producer = hanger.write_without_adding(transactional_id, place, BUSY)
        add(hang)
        scene.pulses[transactional_id] = Pulse(scene.cluster.ports[0], producer)
        scene.pulses[transactional_id].start()
    add(hanger.unknown_producer(("orders", 2)))
    add(hanger.left_open_by_fencing("ledger-writer", ("ledger.events", 1)))
    add(hanger.two_epochs("reindexer", ("accounts", 1)))
    add(hanger.group_offsets("stream-app-7", ("orders", 0)))
    add(hanger.start_deleted("old-importer", ("trades", 0)))
    add(hanger.after_a_commit("cdc-accounts", ("orders", 1)))
    add(hanger.dated("eu-loader", ("trades-eu", 0), "log append time", now_ms()))
    add(hanger.dated("clockless", ("accounts", 0), "client's clock in the future", now_ms() + HOUR_MS // 2))
    add(hanger.dated("young-writer", ("orders", 1), "idle for four minutes", now_ms() - 4 * MINUTE_MS))
    add(hanger.dated("latecomer", ("orders", 2), "ended later by its coordinator", now_ms() - HOUR_MS))
    scene.stale.append(hanger.joins_the_next("settlement", ("ledger.events", 0)))
    scene.stale.append(hanger.joins_at_a_newer_epoch("settlement-2", ("ledger.events", 0)))
    # An end marker behind each of them: the brokers' clocks then say when it was written at the latest.
    scene.driver.transact("witness", PLACES)
