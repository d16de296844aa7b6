"""Brokers and clients that run until a block ends."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.driver import WITNESSES, Driver
from tests.systems.e2e.hangs import now_ms
from tests.systems.e2e.raw_client import RawClient
from tests.systems.e2e.requests import Requests
from tests.systems.e2e.wire import Place
from tests.tools.processes import wait_until


def start(running: ExitStack, cluster: Cluster, first_topic: Callable[[Cluster], None] | None = None) -> Driver:
    """Start all nodes, and Kafka's own clients of them; `first_topic` as of `Cluster.start`."""
    running.callback(cluster.stop)
    cluster.start(first_topic)
    return running.enter_context(closing(Driver(cluster.version, cluster.bootstrap, cluster.folder / "driver.log")))


def clients(running: ExitStack, cluster: Cluster) -> tuple[RawClient, Requests]:
    """Two that speak to the first node byte by byte."""
    port = cluster.ports[0]
    return running.enter_context(closing(RawClient(port))), running.enter_context(closing(Requests(port)))


def witnessed(raw: RawClient, requests: Requests, places: Sequence[Place]) -> None:
    """As `Driver.witness`, a partition each, until the last one has ended; where ids expire at once it may be gone."""
    for number in range(WITNESSES):
        producer = raw.init_producer_id(f"witness-{number}")
        place = places[number % len(places)]
        raw.add_partition(producer, place)
        raw.write(producer, place, 0, at_ms=now_ms())
        raw.end(producer, commit=True)
    last = f"witness-{WITNESSES - 1}"
    wait_until(lambda: (known := requests.transaction(last)) is None or known.state == "CompleteCommit", last)
