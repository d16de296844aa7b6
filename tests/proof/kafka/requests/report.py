"""Random requests to real brokers, and the audit of their files against what the brokers say."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

from tests.proof.kafka.log.report import memory
from tests.proof.kafka.requests.checkpoint import GROUPS as GROUP_TOPIC
from tests.proof.kafka.requests.checkpoint import Asked, take
from tests.proof.kafka.requests.compare import Comparison, compare
from tests.proof.kafka.requests.librdkafka import IS_INSTALLED, LibrdkafkaRequests
from tests.proof.kafka.requests.random_requests import RandomRequests
from tests.proof.kafka.requests.writers import GROUPS
from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.hangs import HOUR_MS
from tests.systems.e2e.requests import Requests
from tests.systems.e2e.wire import Place
from tests.tools.kafka_jars import kafka_jars
from tests.tools.log_dirs.at_hand import Kept
from tests.tools.processes import wait_until

CHECKPOINTS = 2
PARTITIONS = 3
LIBRDKAFKA_EVERY = 8
CLEANING_S = 1.0
RUDENESS = (1.0, 0.0, 0.3)

# What a running broker writes down every 5 s or 60 s, it writes down at once; it cleans while it is written to.
_PROPERTIES = {
    "replica.high.watermark.checkpoint.interval.ms": 50,
    "log.flush.start.offset.checkpoint.interval.ms": 50,
    "log.initial.task.delay.ms": 100,
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.dedupe.buffer.size": 2_000_000,
    "transaction.state.log.segment.bytes": 1_048_576,
}


@dataclass(frozen=True)
class Broker:
    """One broker to ask: its version, and the newest transaction version that it takes."""

    version: str
    transaction_version: int

    def __str__(self) -> str:
        """As a report calls it."""
        return f"Kafka {self.version}, transaction version {self.transaction_version}"

    @property
    def knows_transactions(self) -> bool:
        """Whether it can be asked for transactions (KIP-664)."""
        return not self.version.startswith("2.")


def brokers_of(version: str) -> list[Broker]:
    """Of 4.x one that takes clients of version 2, and one that does not."""
    return [Broker(version, 1)] + ([Broker(version, 2)] if version >= "4" else [])


@dataclass
class RequestsReport:
    """What came of some requests; `differences` must be empty."""

    requests: int = 0
    checkpoints: int = 0
    producers: int = 0
    cleaned: int = 0
    opened: int = 0
    ids: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    @property
    def by_librdkafka(self) -> int:
        """How many requests were those of librdkafka."""
        return sum(count for what, count in self.answers.items() if "librdkafka" in what)

    @property
    def refused(self) -> int:
        """How many requests the broker refused."""
        return sum(count for what, count in self.answers.items() if "refused" in what)

    def add(self, found: Comparison, where: str) -> None:
        """Count what was found at one checkpoint."""
        self.checkpoints += 1
        self.producers += found.producers
        self.cleaned += found.cleaned
        self.opened += found.opened
        self.ids += found.ids
        self.differences += [f"{where}: {words}" for words in found.differences]

    def join(self, other: RequestsReport) -> None:
        """Count what another one counted."""
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))


@dataclass
class _Running:
    """A broker that runs; `kept` is what was read of its files, `stuck` are ids that it cannot end any more."""

    kind: Broker
    cluster: Cluster
    client: Requests
    kept: Kept = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)

    def sender(
        self, source: random.Random, places: list[Place], topic: str, number: int
    ) -> RandomRequests | LibrdkafkaRequests:
        """Who sends the requests of a list: librdkafka sends each eighth, where it is installed."""
        behind_ms = source.choice((0, 3 * HOUR_MS, 3 * HOUR_MS))
        if IS_INSTALLED and number % LIBRDKAFKA_EVERY == LIBRDKAFKA_EVERY - 1:
            return LibrdkafkaRequests(source, self.cluster.bootstrap, places, topic, behind_ms)
        rudeness = RUDENESS[number % len(RUDENESS)]
        may_speak_2 = self.kind.transaction_version == 2
        return RandomRequests(source, self.client, places, topic, rudeness, may_speak_2, behind_ms=behind_ms)

    def forget(self, topic: str) -> None:
        """What was read of a topic that is gone."""
        for key in [key for key in self.kept if key[0].startswith(f"{topic}-")]:
            del self.kept[key]


def report_of(kind: Broker, requests: int, seed: int, only: int | None = None) -> RequestsReport:
    """Send requests to one broker, list by list, and compare at checkpoints.

    Raises:
        FetchError: the jars of that version are not to be had.
    """
    report = RequestsReport()
    with _running(kind) as broker:
        if only is not None:
            _one_list(broker, str(seed), only, report)
        number = 0
        while only is None and report.requests < requests:
            _one_list(broker, str(seed), number, report)
            number += 1
    return report


def version_report(version: str, requests: int, seed: int, only: int | None = None) -> RequestsReport:
    """The same for a version: of 4.x each half of the requests goes to a broker of its own.

    Raises:
        FetchError: the jars of that version are not to be had.
    """
    kinds, report = brokers_of(version), RequestsReport()
    for kind in kinds:
        report.join(report_of(kind, requests // len(kinds), seed, only))
    return report


@contextmanager
def _running(kind: Broker) -> Iterator[_Running]:
    kafka_jars(kind.version)
    features = ("transaction.version=1",) if kind.transaction_version == 1 and kind.version >= "4" else ()
    with tempfile.TemporaryDirectory(prefix="kafka-requests-", dir=memory()) as root, ExitStack() as on_exit:
        cluster = Cluster(kind.version, Path(root) / "broker", properties=_PROPERTIES, features=features)
        on_exit.callback(cluster.stop)
        cluster.start()
        client = Requests(cluster.ports[0])
        on_exit.callback(client.close)
        _make_internal_topics(client)
        yield _Running(kind, cluster, client)


def _one_list(broker: _Running, seed: str, number: int, report: RequestsReport) -> None:
    """A topic of its own, some requests, and a look at broker and files in the middle and at the end."""
    source = random.Random(f"{seed}/{number}")
    topic, config = f"r{seed}-{number}", _config(source, broker.kind.version)
    broker.client.create_topic(topic, PARTITIONS, config)
    places: list[Place] = [(topic, partition) for partition in range(PARTITIONS)]
    wait_until(lambda: all(broker.client.is_led(place) for place in places), topic)
    sender = broker.sender(source, places, topic, number)
    groups: list[Place] = [(GROUP_TOPIC, partition) for partition in range(3)]
    for checkpoint in range(CHECKPOINTS):
        while sender.count < sender.at_once * (checkpoint + 1) // CHECKPOINTS:
            sender.step()
        if "cleanup.policy" in config:
            time.sleep(CLEANING_S)
        broker.stuck.update(sender.stuck)
        asked = Asked(places + groups, sender.ids, broker.stuck, knows_transactions=broker.kind.knows_transactions)
        taken = take(broker.client, broker.cluster.log_dir(), broker.cluster.folder / "copy", asked)
        report.add(compare(taken, broker.kept), f"{broker.kind}, {seed}/{number}, checkpoint {checkpoint}")
    sender.close()
    broker.client.delete_topic(topic)
    broker.forget(topic)
    report.requests += sender.count
    report.answers += sender.answers


def _config(source: random.Random, version: str) -> dict[str, str]:
    """Of a topic; its segments are small."""
    size = "internal.segment.bytes" if version >= "4" else "segment.bytes"
    config = {size: str(source.choice((300, 1000, 3000))), "segment.index.bytes": "4096", "file.delete.delay.ms": "0"}
    if source.random() < 0.3:
        config["segment.ms"] = str(source.choice((100, 10_000)))
    if source.random() < 0.2:
        config |= {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
    if source.random() < 0.15:
        config["message.timestamp.type"] = "LogAppendTime"
    return config


def _make_internal_topics(client: Requests) -> None:
    wait_until(lambda: client.find_coordinator("any") == 0, "the coordinator of transactions")
    wait_until(lambda: client.find_coordinator(GROUPS[0], of_group=True) == 0, "the coordinator of groups")
    wait_until(lambda: client.init_producer_id("any", 60_000)[0] == 0, "the coordinator of transactions")
    wait_until(lambda: all(client.is_led((GROUP_TOPIC, n)) for n in range(3)), "the leader of groups")
