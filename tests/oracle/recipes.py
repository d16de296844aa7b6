"""The known ways to leave a transaction open, right and wrong ones, each by the steps of its clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.oracle.cluster import GROUP_TOPIC, TWO_PHASE_TIMEOUT_MS, Cluster
from tests.oracle.copies import OpenKey, Truth
from tests.oracle.model import TopicPartition

TOPICS = {"orders": 2, "payments-eu": 1, "clicks": 1, GROUP_TOPIC: 1}
LOG_APPEND_TIME = ("clicks",)
HOUR_MS = 3_600_000
LONG_AGO_MS = -3 * HOUR_MS
ORDERS: TopicPartition = ("orders", 0)
PAYMENTS: TopicPartition = ("payments-eu", 0)
INVENTED_PRODUCER_ID = 987_654_321


def new_cluster(*, transaction_version: int = 0, skew_ms: dict[TopicPartition, int] | None = None) -> Cluster:
    """The cluster that recipes and random stories are written for."""
    return Cluster(TOPICS, transaction_version=transaction_version, log_append_time=LOG_APPEND_TIME, skew_ms=skew_ms)


@dataclass
class Client:
    """One instance of an application: the producer id and epoch that it believes to have."""

    cluster: Cluster
    name: str
    producer_id: int = -1
    epoch: int = -1

    def init(self, *, timeout_ms: int = 60_000) -> Client:
        """Start, or start again."""
        if self.cluster.init_producer(self.name, timeout_ms=timeout_ms):
            self.learn()
        return self

    def learn(self) -> None:
        """Take over what the coordinator answered."""
        value = self.cluster.ids[self.name].value
        self.producer_id, self.epoch = value.producer_id, value.producer_epoch

    def write(self, to: TopicPartition, *, records: int = 2, clock_ms: int = 0) -> int:
        """Produce without asking anybody; the offset of the first record."""
        offset = self.cluster.logs[to].state.end_offset
        self.cluster.produce(to, self.producer_id, self.epoch, records=records, client_clock_ms=clock_ms)
        return offset

    def transact(self, to: TopicPartition, *, clock_ms: int = 0) -> int:
        """Add the partition and produce, as a correct client does."""
        self.cluster.add_partitions(self.name, to)
        return self.write(to, clock_ms=clock_ms)

    def end(self, outcome: str) -> None:
        """Commit or abort; under transaction version 2 the answer carries the next epoch."""
        if self.cluster.end_transaction(self.name, outcome) and self.cluster.transaction_version >= 2:
            self.learn()


def late_write_after_abort(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """A batch that was on its way arrives after the marker, with the same epoch (transaction version below 2)."""
    client = Client(cluster, "billing").init()
    client.transact(ORDERS)
    client.end("Abort")
    return (*ORDERS, client.producer_id, client.write(ORDERS, clock_ms=LONG_AGO_MS)), Truth.HANGING


def never_added(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """A client writes before adding the partition, while it has a transaction elsewhere."""
    client = Client(cluster, "billing").init()
    start = client.write(PAYMENTS, clock_ms=LONG_AGO_MS)
    client.transact(ORDERS)
    return (*PAYMENTS, client.producer_id, start), Truth.HANGING


def unknown_producer(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """A producer id that no coordinator ever gave out."""
    client = Client(cluster, "nobody", INVENTED_PRODUCER_ID, 3)
    return (*ORDERS, INVENTED_PRODUCER_ID, client.write(ORDERS, clock_ms=LONG_AGO_MS)), Truth.HANGING


def expired_id(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """The coordinator forgot the id after the client had left data behind."""
    client = Client(cluster, "billing").init()
    start = client.write(ORDERS, clock_ms=LONG_AGO_MS)
    cluster.expire("billing")
    return (*ORDERS, client.producer_id, start), Truth.HANGING


def joins_next(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """A late write waits, and the producer's next transaction adds the same partition."""
    (*_, producer, start), _ = late_write_after_abort(cluster)
    cluster.sleep(1000)
    cluster.add_partitions("billing", ORDERS)
    cluster.produce(ORDERS, producer, cluster.ids["billing"].value.producer_epoch)
    return (*ORDERS, producer, start), Truth.LIVE


def old_epoch_left_open(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """Data without adding, then a new instance: the epoch moves on and nothing ends the old data."""
    client = Client(cluster, "billing").init()
    start = client.write(ORDERS, clock_ms=LONG_AGO_MS)
    Client(cluster, "billing").init()
    return (*ORDERS, client.producer_id, start), Truth.HANGING


def two_epochs(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """The same, and the new instance writes into the same open transaction."""
    key, truth = old_epoch_left_open(cluster)
    client = Client(cluster, "billing")
    client.learn()
    client.write(ORDERS, clock_ms=LONG_AGO_MS)
    return key, truth


def group_offsets(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """Offsets committed without AddOffsetsToTxn."""
    client = Client(cluster, "billing").init()
    start = client.write((GROUP_TOPIC, 0), records=1)
    cluster.sleep(HOUR_MS)
    return (GROUP_TOPIC, 0, client.producer_id, start), Truth.HANGING


def start_deleted(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """DeleteRecords past the start of an open transaction: only the snapshot still knows it."""
    key, truth = unknown_producer(cluster)
    cluster.roll(ORDERS)
    client = Client(cluster, "billing").init()
    client.transact(ORDERS)
    client.end("Commit")
    cluster.roll(ORDERS)
    cluster.delete_records(ORDERS, cluster.logs[ORDERS].rolls[0][1])
    return key, truth


def ongoing(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """A transaction that its coordinator knows, by a client whose clock is late."""
    client = Client(cluster, "billing").init(timeout_ms=TWO_PHASE_TIMEOUT_MS)
    return (*ORDERS, client.producer_id, client.transact(ORDERS, clock_ms=LONG_AGO_MS)), Truth.LIVE


def pending_commit(cluster: Cluster) -> tuple[OpenKey, Truth]:
    """The commit is acknowledged, one partition cannot be reached."""
    client = Client(cluster, "billing").init()
    client.transact(PAYMENTS)
    start = client.transact(ORDERS, clock_ms=LONG_AGO_MS)
    cluster.unreachable.add(ORDERS)
    client.end("Commit")
    return (*ORDERS, client.producer_id, start), Truth.PENDING


RECIPES: dict[str, Callable[[Cluster], tuple[OpenKey, Truth]]] = {
    recipe.__name__: recipe
    for recipe in (
        late_write_after_abort,
        never_added,
        unknown_producer,
        expired_id,
        joins_next,
        old_epoch_left_open,
        two_epochs,
        group_offsets,
        start_deleted,
        ongoing,
        pending_commit,
    )
}
