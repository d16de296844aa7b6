"""One method for each request of Kafka's protocol that the tests send; what comes back are Kafka's error codes.

Versions are the oldest that brokers 2.8 to 4.4 share. Those of the methods ending in `_2` make a broker take
the client for one of transaction version 2 (KIP-890): it adds what is written to the transaction by itself, and every
end raises the epoch.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from tests.systems.e2e.wire import (
    NO_ID,
    NO_TAGS,
    Answer,
    Connection,
    Place,
    compact_bytes,
    compact_items,
    compact_text,
    items,
    text,
)

EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

_ACKS_ALL, _WAIT_MS = -1, 30_000
_TRANSACTION = b"\x01"
_GROUP = b"\x00"


class RefusedError(Exception):
    """The broker answered with an error; `code` is Kafka's."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: Kafka's error {code}")
        self.code = code


@dataclass(frozen=True)
class Producer:
    """What a producer got from its coordinator; without a transactional id it is an idempotent one."""

    transactional_id: str | None
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True)
class ActiveProducer:
    """One producer of a partition as `DescribeProducers` answers; -1 is none."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    txn_start_offset: int


@dataclass(frozen=True)
class Transaction:
    """One transactional id as `DescribeTransactions` answers; -1 is none."""

    transactional_id: str
    state: str
    timeout_ms: int
    start_ms: int
    producer_id: int
    producer_epoch: int
    places: frozenset[Place]


class Requests(Connection):
    """A connection to a broker that leads and coordinates everything."""

    def find_coordinator(self, name: str, *, of_group: bool = False) -> int:
        """The first one of a cluster makes the topic that holds the state."""
        answer = self.call(10, 1, text(name) + (_GROUP if of_group else _TRANSACTION))
        return answer.numbers("ih")[1]

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, producer_id: int = NO_ID, producer_epoch: int = NO_ID
    ) -> tuple[int, Producer]:
        """A producer id; for an id that has one, the next epoch, and its open transaction is aborted."""
        body = compact_text(transactional_id) + struct.pack(">iqh", timeout_ms, producer_id, producer_epoch) + NO_TAGS
        _, code, *given = self.call(22, 3, body, is_flexible=True).numbers("ihqh")
        return code, Producer(transactional_id, *given)

    def add_partition(self, producer: Producer, place: Place) -> int:
        """Tell the coordinator that a partition is part of the transaction."""
        answer = self.call(24, 0, _head(producer) + _one(place))
        answer.number("i")
        return answer.to_only_place().numbers("ih")[1]

    def add_group(self, producer: Producer, group: str) -> int:
        """Tell the coordinator that a group's offsets are part of the transaction."""
        return self.call(25, 0, _head(producer) + text(group)).numbers("ih")[1]

    def end(self, producer: Producer, *, commit: bool) -> int:
        """End the transaction."""
        return self.call(26, 0, _head(producer) + struct.pack(">?", commit)).numbers("ih")[1]

    def end_2(self, producer: Producer, *, commit: bool) -> tuple[int, Producer]:
        """The same as a client of transaction version 2, which gets its next epoch with the answer."""
        body = compact_text(producer.transactional_id) + _epochs(producer) + struct.pack(">?", commit) + NO_TAGS
        _, code, *given = self.call(26, 5, body, is_flexible=True).numbers("ihqh")
        return code, Producer(producer.transactional_id, *given)

    def produce(self, transactional_id: str | None, place: Place, batch: bytes) -> tuple[int, int]:
        """Write one batch; the code and the batch's base offset."""
        body = text(transactional_id) + struct.pack(">hi", _ACKS_ALL, _WAIT_MS)
        body += _one(place, struct.pack(">i", len(batch)) + batch)
        _, code, offset = self.call(0, 3, body).to_only_place().numbers("ihq")
        return code, offset

    def produce_2(self, transactional_id: str | None, place: Place, batch: bytes) -> tuple[int, int]:
        """The same as a client of transaction version 2: the broker adds the partition to the transaction."""
        body = compact_text(transactional_id) + struct.pack(">hi", _ACKS_ALL, _WAIT_MS)
        body += _compact_one(place, compact_bytes(batch) + NO_TAGS) + NO_TAGS
        _, code, offset = self.call(0, 12, body, is_flexible=True).to_only_place(is_flexible=True).numbers("ihq")
        return code, offset

    def commit_group_offset(self, producer: Producer, group: str, place: Place, offset: int) -> int:
        """Write a group's offset (TxnOffsetCommit)."""
        body = text(producer.transactional_id) + text(group) + _epochs(producer)
        answer = self.call(28, 0, body + _one(place, struct.pack(">q", offset) + text("")))
        answer.number("i")
        return answer.to_only_place().numbers("ih")[1]

    def write_marker(self, producer: Producer, place: Place, *, commit: bool, coordinator_epoch: int) -> int:
        """An end marker, as coordinators and administrators send it."""
        marker = _epochs(producer) + struct.pack(">?", commit) + _compact_one(place)
        body = compact_items([marker + struct.pack(">i", coordinator_epoch) + NO_TAGS]) + NO_TAGS
        answer = self.call(27, 1, body, is_flexible=True)
        (code,) = answer.compact_items(lambda: _code_of_marker(answer))
        return code

    def delete_records(self, place: Place, before: int) -> int:
        """Move the log start to an offset."""
        answer = self.call(21, 0, _one(place, struct.pack(">q", before)) + struct.pack(">i", _WAIT_MS))
        answer.number("i")
        return answer.to_only_place().numbers("iqh")[2]

    def offset(self, place: Place, at: int, isolation: int = READ_UNCOMMITTED) -> int:
        """Where a log begins (`EARLIEST`), or where a consumer finds its end (`LATEST`)."""
        topic, partition = place
        asked = items([text(topic) + items([struct.pack(">iq", partition, at)])])
        answer = self.call(2, 2, struct.pack(">ib", NO_ID, isolation) + asked)
        answer.number("i")
        _, code, _, offset = answer.to_only_place().numbers("ihqq")
        return offset if code == 0 else refuse(f"ListOffsets {topic}-{partition}", code)

    def is_led(self, place: Place) -> bool:
        """Whether the broker knows that it leads a partition."""
        try:
            self.offset(place, LATEST)
        except RefusedError:
            return False
        return True

    def producers(self, place: Place) -> list[ActiveProducer]:
        """What the leader of a partition knows of its producers."""
        body = _compact_one(place) + NO_TAGS
        answer = self.call(61, 0, body, is_flexible=True)
        answer.number("i")
        _, code = answer.to_only_place(is_flexible=True).numbers("ih")
        answer.compact_text()
        return answer.compact_items(lambda: _active(answer)) if code == 0 else refuse("DescribeProducers", code)

    def transactional_ids(self) -> dict[str, str]:
        """Every transactional id with its state; brokers before 3.0 cannot be asked."""
        answer = self.call(66, 0, compact_items([]) + compact_items([]) + NO_TAGS, is_flexible=True)
        answer.numbers("ih")
        answer.compact_items(answer.compact_text)
        return dict(answer.compact_items(lambda: _listed(answer)))

    def transaction(self, transactional_id: str) -> Transaction | None:
        """What the coordinator knows of one id; brokers before 3.0 cannot be asked."""
        body = compact_items([compact_text(transactional_id)]) + NO_TAGS
        answer = self.call(65, 0, body, is_flexible=True)
        answer.number("i")
        (found,) = answer.compact_items(lambda: _transaction(answer))
        return found

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        """A topic with one replica."""
        given = items([text(name) + text(value) for name, value in configs.items()])
        asked = text(topic) + struct.pack(">ih", partitions, 1) + items([]) + given
        answer = self.call(19, 2, items([asked]) + struct.pack(">i?", _WAIT_MS, False))
        answer.number("i")
        ((_, code, why),) = answer.items(lambda: (answer.text(), answer.number("h"), answer.text()))
        if code:
            refuse(f"CreateTopics {topic} ({why})", code)

    def delete_topic(self, topic: str) -> int:
        """Delete a topic."""
        answer = self.call(20, 1, items([text(topic)]) + struct.pack(">i", _WAIT_MS))
        answer.number("i")
        ((_, code),) = answer.items(lambda: (answer.text(), answer.number("h")))
        return code


def refuse(what: str, code: int) -> NoReturn:
    """Say that the broker refused something.

    Raises:
        RefusedError: always.
    """
    raise RefusedError(what, code)


def _head(producer: Producer) -> bytes:
    return text(producer.transactional_id) + _epochs(producer)


def _epochs(producer: Producer) -> bytes:
    return struct.pack(">qh", producer.producer_id, producer.producer_epoch)


def _one(place: Place, more: bytes = b"") -> bytes:
    topic, partition = place
    return items([text(topic) + items([struct.pack(">i", partition) + more])])


def _compact_one(place: Place, more: bytes = b"") -> bytes:
    topic, partition = place
    return compact_items([compact_text(topic) + compact_items([struct.pack(">i", partition) + more]) + NO_TAGS])


def _code_of_marker(answer: Answer) -> int:
    answer.number("q")
    _, code = answer.to_only_place(is_flexible=True).numbers("ih")
    for _ in range(3):
        answer.tags()
    return code


def _active(answer: Answer) -> ActiveProducer:
    found = ActiveProducer(*answer.numbers("qiiqiq"))
    answer.tags()
    return found


def _listed(answer: Answer) -> tuple[str, str]:
    name = answer.compact_text()
    answer.number("q")
    state = answer.compact_text()
    answer.tags()
    return name or "", state or ""


def _transaction(answer: Answer) -> Transaction | None:
    code, name, state = answer.number("h"), answer.compact_text(), answer.compact_text()
    timeout_ms, start_ms, producer_id, producer_epoch = answer.numbers("iqqh")
    places = frozenset(place for own in answer.compact_items(lambda: _places(answer)) for place in own)
    answer.tags()
    if code:
        return None
    return Transaction(name or "", state or "", timeout_ms, start_ms, producer_id, producer_epoch, places)


def _places(answer: Answer) -> list[Place]:
    topic, partitions = answer.compact_text(), answer.compact_items(lambda: answer.number("i"))
    answer.tags()
    return [(topic or "", partition) for partition in partitions]
