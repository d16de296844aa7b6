"""Brokers and clients that run until a block ends."""

from collections.abc import Callable
from contextlib import ExitStack, closing

from tests.e2e.broker import Cluster
from tests.e2e.driver import Driver
from tests.e2e.raw_client import RawClient
from tests.e2e.requests import Requests


def start(running: ExitStack, cluster: Cluster, first_topic: Callable[[Cluster], None] | None = None) -> Driver:
    """Start all nodes, and Kafka's own clients of them; `first_topic` as of `Cluster.start`."""
    running.callback(cluster.stop)
    cluster.start(first_topic)
    return running.enter_context(closing(Driver(cluster.version, cluster.bootstrap, cluster.folder / "driver.log")))


def clients(running: ExitStack, cluster: Cluster) -> tuple[RawClient, Requests]:
    """Two that speak to the first node byte by byte."""
    port = cluster.ports[0]
    return running.enter_context(closing(RawClient(port))), running.enter_context(closing(Requests(port)))
