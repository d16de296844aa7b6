"""A broker on which one topic is stuck, as anybody may meet it: Kafka's defaults, one late batch, traffic behind it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.stage import Stage, on_node, staged
from tests.tools.processes import wait_until

TOPIC, STUCK, FREE = "orders", 0, 1
OWNER = "billing-worker-17"
_DEFAULTS = {"transaction.max.timeout.ms": 900_000, "transaction.state.log.num.partitions": 50}


@contextmanager
def stuck_topic(version: str, folder: Path) -> Iterator[tuple[Cluster, Driver]]:
    """A running broker of a version, and a client of it."""
    cluster = Cluster(version, folder / "broker", properties=_DEFAULTS)
    with staged(cluster, {TOPIC: on_node(2), "payments": on_node(1)}) as stage:
        _get_stuck(stage)
        yield cluster, stage.driver


def _get_stuck(stage: Stage) -> None:
    """A batch with a client's time of three hours ago comes after the abort of its transaction."""
    places = [(TOPIC, partition) for partition in (STUCK, FREE)]

    def orders_come_in() -> None:
        for _ in range(3):
            stage.driver.transact("importer", places, 5)

    orders_come_in()
    stage.hanger.late_write_after_the_abort(OWNER, (TOPIC, STUCK))
    orders_come_in()
    # A commit is answered before its markers are written.
    wait_until(lambda: [len(stage.driver.open_in(place)) for place in places] == [1, 0], "the markers of what came in")
    stage.written_down(TOPIC, 2)
