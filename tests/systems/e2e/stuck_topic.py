"""A broker on which one topic is stuck, as anybody may meet it: Kafka's defaults, one late batch, traffic behind it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import HOUR_MS, Hanger, now_ms
from tests.systems.e2e.raw_client import RawClient
from tests.tools.processes import wait_until

TOPIC, STUCK, FREE = "orders", 0, 1
OWNER = "billing-worker-17"
_DEFAULTS = {"transaction.max.timeout.ms": 900_000, "transaction.state.log.num.partitions": 50}


@contextmanager
def stuck_topic(version: str, folder: Path) -> Iterator[tuple[Cluster, Driver]]:
    """A running broker of a version, and a client of it."""
    cluster = Cluster(version, folder / "broker", properties=_DEFAULTS)
    try:
        cluster.start()
        driver = Driver(version, cluster.bootstrap, folder / "driver.log")
        try:
            _get_stuck(cluster, driver)
            yield cluster, driver
        finally:
            driver.close()
    finally:
        cluster.stop()


def _get_stuck(cluster: Cluster, driver: Driver) -> None:
    """A batch with a client's time of three hours ago comes after the abort of its transaction."""
    driver.create_topic(TOPIC, [1, 1])
    driver.create_topic("payments", [1])
    raw = RawClient(cluster.ports[0])
    _orders_come_in(driver)
    Hanger(raw, driver, now_ms() - 3 * HOUR_MS).late_write_after_the_abort(OWNER, (TOPIC, STUCK))
    raw.close()
    _orders_come_in(driver)
    # A commit is answered before its markers are written.
    wait_until(lambda: [_open_in(driver, place) for place in (STUCK, FREE)] == [1, 0], "the markers of what came in")
    ends = {place: _end_of(driver, place) for place in (STUCK, FREE)}
    # It is written every few seconds; what lies above it may be a dead leader's own.
    wait_until(lambda: high_watermarks(cluster, TOPIC) == ends, "the checkpoint of the high watermarks")


def _open_in(driver: Driver, place: int) -> int:
    rows = driver.call("describe_producers", topic=TOPIC, partition=place)
    return sum(row["txn_start_offset"] is not None for row in rows)


def _end_of(driver: Driver, place: int) -> int:
    end: int = driver.call("consume", topic=TOPIC, partition=place, timeout_ms=500)["end"]
    return end


def _orders_come_in(driver: Driver) -> None:
    for _ in range(3):
        driver.begin("importer")
        for place in (STUCK, FREE):
            driver.send("importer", (TOPIC, place), 5)
        driver.commit("importer")


def high_watermarks(cluster: Cluster, topic: str) -> dict[int, int]:
    """What the broker has written down of a topic's partitions."""
    file = cluster.log_dir() / "replication-offset-checkpoint"
    lines = file.read_text().splitlines()[2:] if file.exists() else []
    return {int(number): int(offset) for name, number, offset in map(str.split, lines) if name == topic}
