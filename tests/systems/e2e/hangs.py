"""Transactions that hang on a real broker, in every way that is known."""

import time
from dataclasses import dataclass
from typing import Any

from tests.systems.e2e.driver import Driver
from tests.systems.e2e.raw_client import Producer, RawClient
from tests.systems.e2e.wire import Place
from tests.tools.processes import wait_until

HOUR_MS = 3_600_000
GROUP = "billing-readers"
# Hostile on purpose: commas, quotes and a newline go through every rendering of the plan into a shell.
LATE_JOINER = "inventory,eu=west \"q\"\n'$(touch /tmp/owned)'"


@dataclass(frozen=True)
class Hang:
    """A transaction that nobody will end: what the client did, and where it is."""

    cause: str
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    txn_start_offset: int | None
    transactional_id: str | None

    @property
    def place(self) -> tuple[str, int, int]:
        """Topic, partition and producer id: the key of an open transaction."""
        return self.topic, self.partition, self.producer_id


def now_ms() -> int:
    """The clock of this machine, which is the brokers' clock."""
    return time.time_ns() // 1_000_000


class Hanger:
    """Makes transactions hang; `at_ms` is the client's time of what they write."""

    def __init__(self, raw: RawClient, driver: Driver, at_ms: int) -> None:
        self._raw, self._driver, self._at_ms = raw, driver, at_ms

    def late_write_after_the_abort(self, transactional_id: str, place: Place) -> Hang:
        """A batch that was on its way arrives after the abort marker."""
        producer = self._raw.init_producer_id(transactional_id)
        self._raw.add_partition(producer, place)
        self._raw.write(producer, place, 0, at_ms=self._at_ms)
        self._raw.end(producer, commit=False)
        # The coordinator answers before its markers are written.
        wait_until(lambda: producer.producer_id not in self._driver.open_in(place), "the abort marker")
        return self._hang("late write after the abort marker", producer, place, self._write(producer, place, 2))

    def write_without_adding(self, transactional_id: str, place: Place, elsewhere: Place) -> tuple[Hang, Producer]:
        """A client writes to a partition that it never added, while its transaction goes on elsewhere."""
        producer = self._raw.init_producer_id(transactional_id)
        start = self._write(producer, place, 0)
        self._raw.add_partition(producer, elsewhere)
        self._raw.write(producer, elsewhere, 0, at_ms=self._at_ms)
        return self._hang("written without adding the partition", producer, place, start), producer

    def unknown_producer(self, place: Place) -> Hang:
        """A producer id that the coordinator never gave, or has forgotten."""
        # Produce wants a transactional id, which no broker compares with the producer id.
        start = self._write(Producer("nobody", 987_654_321, 3), place, 0)
        return self._hang("unknown producer id", Producer(None, 987_654_321, 3), place, start)

    def left_open_by_fencing(self, transactional_id: str, place: Place) -> Hang:
        """Written without adding, then a new instance takes over with the next epoch."""
        producer = self._raw.init_producer_id(transactional_id)
        start = self._write(producer, place, 0)
        self._raw.init_producer_id(transactional_id)
        return self._hang("old epoch left open after fencing", producer, place, start)

    def two_epochs(self, transactional_id: str, place: Place) -> Hang:
        """Both instances write without adding: one open transaction, two epochs."""
        first = self._raw.init_producer_id(transactional_id)
        start = self._write(first, place, 0)
        second = self._raw.init_producer_id(transactional_id)
        self._write(second, place, 0)
        return self._hang("two epochs in one transaction", second, place, start)

    def group_offsets(self, transactional_id: str, read: Place) -> Hang:
        """A group's offsets are committed without adding the group: open in `__consumer_offsets`."""
        producer = self._raw.init_producer_id(transactional_id)
        self._raw.commit_group_offset(producer, GROUP, read, 7)
        partition = java_hash(GROUP) % 3
        return self._hang("group offsets left open", producer, ("__consumer_offsets", partition), None)

    def start_deleted(self, transactional_id: str, place: Place) -> Hang:
        """The segments with the start of the open transaction are deleted."""
        producer = self._raw.init_producer_id(transactional_id)
        start = self._write(producer, place, 0)
        self._driver.begin("filler")
        last = self._driver.send("filler", place, 20)[-1]
        time.sleep(1.1)  # segment.ms of the topic: the next batch begins a segment, with a snapshot before it
        self._driver.send("filler", place, 2)
        self._driver.commit("filler")
        self._driver.call("delete_records", topic=place[0], partition=place[1], before=last)
        return self._hang("start of the open transaction deleted", producer, place, start)

    def after_a_commit(self, transactional_id: str, place: Place) -> Hang:
        """An official client commits; then something writes on with its id and its new epoch."""
        self._driver.begin(transactional_id)
        self._driver.send(transactional_id, place)
        self._driver.commit(transactional_id)
        # The commit is answered before its marker is written, and a marker of transaction version 2 raises the epoch.
        wait_until(lambda: self._newest(place)["txn_start_offset"] is None, "the commit marker")
        row = self._newest(place)
        producer = Producer(transactional_id, row["producer_id"], row["producer_epoch"])
        start = self._write(producer, place, row["last_sequence"] + 1)
        return self._hang("written on after a commit", producer, place, start)

    def joins_the_next(self, transactional_id: str, place: Place) -> Hang:
        """Stale data that the producer's next transaction takes in: the next commit would publish it."""
        producer = self._raw.init_producer_id(transactional_id)
        start = self._write(producer, place, 0)
        time.sleep(1.5)
        # The end marker in between is the broker's clock that proves the order.
        self._driver.begin("witness")
        self._driver.send("witness", place)
        self._driver.commit("witness")
        time.sleep(0.1)
        self._raw.add_partition(producer, place)
        return self._hang("late write joined by the next transaction", producer, place, start)

    def joins_at_a_newer_epoch(self, transactional_id: str, place: Place) -> Hang:
        """Data of an old epoch in a partition that the new instance has just added (KIP-664: epoch mismatch)."""
        first = self._raw.init_producer_id(transactional_id)
        start = self._write(first, place, 0)
        self._raw.add_partition(self._raw.init_producer_id(transactional_id), place)
        return self._hang("old epoch joined by the next transaction", first, place, start)

    def dated(self, transactional_id: str, place: Place, cause: str, at_ms: int) -> Hang:
        """Written without adding, with a client's time of the caller's choice."""
        producer = self._raw.init_producer_id(transactional_id)
        start = self._raw.write(producer, place, 0, at_ms=at_ms)
        return self._hang(cause, producer, place, start)

    def _newest(self, place: Place) -> dict[str, Any]:
        """The producer of the partition that got its id last."""
        rows = self._driver.call("describe_producers", topic=place[0], partition=place[1])
        return max(rows, key=lambda row: int(row["producer_id"]))

    def _write(self, producer: Producer, place: Place, sequence: int) -> int:
        return self._raw.write(producer, place, sequence, at_ms=self._at_ms)

    @staticmethod
    def _hang(cause: str, producer: Producer, place: Place, start: int | None) -> Hang:
        topic, partition = place
        epochs = (producer.producer_id, producer.producer_epoch)
        return Hang(cause, topic, partition, *epochs, start, producer.transactional_id)


def begun(driver: Driver, transactional_id: str, place: Place, timeout_ms: int = 180_000) -> Hang:
    """A transaction of an official client that stays open; the client's time is three hours old."""
    driver.begin(transactional_id, timeout_ms)
    start = driver.send(transactional_id, place, at_ms=now_ms() - 3 * HOUR_MS)[0]
    described = driver.described(transactional_id)
    return Hang("", *place, described["producer_id"], described["producer_epoch"], start, transactional_id)


def java_hash(text: str) -> int:
    """Kafka's hash of a group or a transactional id, of which the rest is its partition."""
    value = 0
    for char in text.encode("utf-16-be")[1::2]:
        value = (31 * value + char) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
