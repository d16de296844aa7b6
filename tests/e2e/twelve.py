"""Twelve open transactions on one cluster: hanging, lost, pending, stale and live; see `tests.e2e.compared`."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.broker import Cluster
from tests.e2e.driver import Driver
from tests.e2e.hangs import HOUR_MS, Hanger, now_ms
from tests.e2e.raw_client import RawClient
from tests.e2e.requests import Requests
from tests.e2e.wire import Place
from tests.faults.processes import wait_until

NODES = 3
PROPERTIES = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
TOPICS = {"orders": 3, "payments": 2, "ledger.events": 2, "accounts": 2}
LOST, PENDING = ("payouts", 0), ("refunds", 0)
LED = [(topic, number) for topic, count in TOPICS.items() for number in range(count)] + [LOST, PENDING]
"""The partitions whose leaders are there, beside those that brokers make themselves."""


Key = tuple[str, int, int]


@dataclass(frozen=True)
class Case:
    """One open transaction: the kind of it, in words, and where it is."""

    kind: str
    words: str
    key: Key


def on_the_first_node(cluster: Cluster) -> None:
    """While the first node is alone, so that it has the state, the groups, and all topics but one."""
    driver = Driver(cluster.version, cluster.bootstrap, cluster.folder / "first.log")
    for topic, count in TOPICS.items():
        driver.create_topic(topic, [1] * count)
    driver.begin("first")
    driver.send("first", ("orders", 0))
    driver.call("send_offsets", id="first", topic="orders", partition=0, offset=1, group="first-readers")
    driver.commit("first")
    driver.close()


def twelve(cluster: Cluster, folder: Path) -> list[Case]:
    """The twelve; what clients wrote is three hours old by their clocks, as replayed data is, unless it is said."""
    raw, driver = RawClient(cluster.ports[0]), Driver(cluster.version, cluster.bootstrap, folder / "driver.log")
    at_ms = now_ms() - 3 * HOUR_MS
    lost, pending = _decided(cluster, driver, at_ms)
    hanger = Hanger(raw, driver, at_ms)
    joined, producer = hanger.write_without_adding("inventory-sync", ("payments", 0), ("payments", 1))
    live = raw.init_producer_id("orders-sink-4-17")
    raw.add_partition(live, ("orders", 0))
    raw.write(live, ("orders", 0), 0, at_ms=now_ms())
    stale, older = ("ledger.events", 0), ("accounts", 0)
    found = [
        ("hanging", "unknown producer id", hanger.unknown_producer(("orders", 2)).place),
        ("hanging", "late write after an abort", hanger.late_write_after_the_abort("billing", ("orders", 0)).place),
        ("hanging", "written without adding the partition", joined.place),
        ("hanging", "left open by fencing", hanger.left_open_by_fencing("ledger", ("ledger.events", 1)).place),
        ("hanging", "written on after a commit", hanger.after_a_commit("cdc", ("orders", 1)).place),
        ("hanging", "offsets of a group, a minute old", hanger.group_offsets("stream-app-7", ("orders", 0)).place),
        ("lost", "committed, its marker never sent (KAFKA-20734)", lost),
        ("pending", "committed, its marker refused for want of replicas", pending),
        ("stale", "joined by its producer's next one", hanger.joins_the_next("settle", stale).place),
        ("stale", "of an old epoch, joined by the new", hanger.joins_at_a_newer_epoch("settle-2", older).place),
        ("live", "in progress, its records three hours old", ("payments", 1, producer.producer_id)),
        ("live", "in progress, its records new", ("orders", 0, live.producer_id)),
    ]
    # An end marker behind each of them: the brokers' clocks then say when it was written at the latest.
    driver.begin("witness")
    for place in LED[:-1]:  # the last one takes nothing
        driver.send("witness", place, 1)
    driver.commit("witness")
    driver.close()
    raw.close()
    return [Case(*one) for one in found]


def _decided(cluster: Cluster, driver: Driver, at_ms: int) -> tuple[Key, Key]:
    """Two commits that are acknowledged: one marker is never sent, one cannot be written.

    The leader of the first is away until the coordinator takes its partition for deleted, and comes back. The second
    has one replica too few in sync: the third node never comes back.
    """
    driver.create_topic(LOST[0], [2])
    cluster.create_topic(PENDING[0], [(0, 2)], min_insync_replicas=2)
    keys = []
    for name, place in (("payout-batch", LOST), ("refund-batch", PENDING)):
        driver.begin(name)
        driver.send(name, place, at_ms=at_ms)
        (row,) = driver.call("describe_producers", topic=place[0], partition=place[1])
        keys.append((*place, row["producer_id"]))
    cluster.nodes[2].kill()
    cluster.nodes[1].pause()
    driver.commit("payout-batch")
    cluster.nodes[1].kill()
    wait_until(lambda: _state(driver, "payout-batch") == "CompleteCommit", "the coordinator drops the marker")
    driver.commit("refund-batch")
    cluster.restart(1)
    wait_until(lambda: _is_led(cluster, LOST), "the second node leads again")
    assert _state(driver, "refund-batch") == "PrepareCommit"
    lost, pending = keys
    return lost, pending


def _is_led(cluster: Cluster, place: Place) -> bool:
    with closing(Requests(cluster.ports[1])) as requests:
        return requests.is_led(place)


def _state(driver: Driver, transactional_id: str) -> str:
    return str(driver.call("describe_transaction", id=transactional_id)["state"])
