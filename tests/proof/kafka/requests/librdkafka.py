"""Random transactions of clients that are not Kafka's own: librdkafka, by `confluent-kafka`."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from tests.proof.kafka.requests.writers import GROUPS
from tests.systems.e2e.hangs import now_ms
from tests.systems.e2e.wire import Place

IS_INSTALLED = find_spec("confluent_kafka") is not None

_WEIGHTS = {"write": 55, "end": 25, "offsets": 6, "new": 4, "take_over": 5, "plain": 5}
_MOST_CLIENTS = 4
_PATIENCE_S = 20.0
_TIMEOUT_MS = 60_000


@contextmanager
def _silent() -> Iterator[None]:
    """It prints what it raises as well, and its logger cannot be called while something is raised."""
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


@dataclass
class _Client:
    """One transactional producer of librdkafka."""

    name: str
    producer: Any
    is_in_transaction: bool = False


@dataclass
class LibrdkafkaRequests:
    """Lets clients of librdkafka do one random thing after another; attributes as of `RandomRequests`."""

    source: random.Random
    bootstrap: str
    places: list[Place]
    name: str
    behind_ms: int
    clients: list[_Client] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)

    # A commit of librdkafka takes a tenth of a second.
    at_once = 80

    @property
    def count(self) -> int:
        """How many requests were answered."""
        return self.answers.total()

    def step(self) -> None:
        """One call of a client."""
        if not self.clients:
            self._new()
        kind = self.source.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        steps: dict[str, Callable[[], None]] = {
            "write": self._write,
            "end": self._end,
            "offsets": self._offsets,
            "new": self._new,
            "take_over": self._take_over,
            "plain": self._plain,
        }
        steps[kind]()

    def close(self) -> None:
        """Clients go away; what they have open stays open."""
        self.clients.clear()

    def _called(self, what: str, client: _Client, call: Callable[[], object]) -> None:
        """A client that was fenced, or whose transaction was ended, goes away."""
        from confluent_kafka import KafkaException  # noqa: PLC0415 where it is installed

        try:
            with _silent():
                call()
            self.answers[f"{what} by librdkafka"] += 1
        except KafkaException as refused:
            self.answers[f"{what} by librdkafka refused: {refused.args[0].name()}"] += 1
            if client in self.clients:
                self.clients.remove(client)

    def _client(self, **config: Any) -> Any:
        from confluent_kafka import Producer  # noqa: PLC0415 where it is installed

        common = {"bootstrap.servers": self.bootstrap, "linger.ms": 0, "log_level": 0}
        return Producer(common | {name.replace("_", "."): value for name, value in config.items()})

    def _new(self) -> None:
        if len(self.clients) >= _MOST_CLIENTS:
            self.clients.pop(self.source.randrange(len(self.clients)))  # what it has open, nobody ends
        self.ids.append(f"{self.name}-{len(self.ids)}")
        self._begin(self.ids[-1])

    def _begin(self, name: str) -> None:
        client = _Client(name, self._client(transactional_id=name, transaction_timeout_ms=_TIMEOUT_MS))
        self.clients.append(client)
        self._called("init_transactions", client, lambda: client.producer.init_transactions(_PATIENCE_S))

    def _take_over(self) -> None:
        """A new instance; the old one goes on, and is told that it is fenced."""
        self._begin(self.source.choice(self.clients).name)

    def _write(self) -> None:
        client, place = self.source.choice(self.clients), self.source.choice(self.places)
        self._called("produce", client, lambda: self._produce(self._begun(client), place))

    def _begun(self, client: _Client) -> Any:
        if not client.is_in_transaction:
            client.producer.begin_transaction()
            client.is_in_transaction = True
        return client.producer

    def _produce(self, producer: Any, place: Place) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415 where it is installed

        failures: list[Any] = []
        for _ in range(self.source.randrange(1, 4)):
            key = self.source.choice("abcd")
            producer.produce(
                place[0],
                b"value",
                key,
                place[1],
                timestamp=now_ms() - self.behind_ms,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        producer.flush(_PATIENCE_S)
        if failures:
            raise KafkaException(failures[0])

    def _end(self) -> None:
        client, commit = self.source.choice(self.clients), self.source.random() < 0.6
        if not client.is_in_transaction:
            return  # nothing to end
        end = client.producer.commit_transaction if commit else client.producer.abort_transaction
        self._called("commit_transaction" if commit else "abort_transaction", client, lambda: end(_PATIENCE_S))
        client.is_in_transaction = False

    def _offsets(self) -> None:
        from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415 where it is installed

        client, place = self.source.choice(self.clients), self.source.choice(self.places)
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.source.choice(GROUPS)})
        offsets, group = [TopicPartition(*place, self.source.randrange(100))], consumer.consumer_group_metadata()
        self._called(
            "send_offsets_to_transaction",
            client,
            lambda: self._begun(client).send_offsets_to_transaction(offsets, group, _PATIENCE_S),
        )
        consumer.close()

    def _plain(self) -> None:
        """An idempotent client without transactions."""
        place = self.source.choice(self.places)
        client = _Client("", self._client(enable_idempotence=True))
        self._called("produce without a transaction", client, lambda: self._produce(client.producer, place))
