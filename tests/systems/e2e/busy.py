"""A healthy, busy cluster of transaction version 2: ids that used up two producer ids each, and a compacted state.

`python -m tests.systems.e2e.busy data/cases/kafka-4.3-busy` makes the capture anew, in a few minutes: 196,000
epochs are used.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.copying import copy_nodes
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import HOUR_MS, Hang, Hanger, now_ms
from tests.systems.e2e.kept import STATE, are_checkpointed, expect, made_anew, row, tell, write_json
from tests.systems.e2e.raw_client import Producer, RawClient
from tests.systems.e2e.requests import Requests
from tests.systems.e2e.rotation import OF_STATE, PROPERTIES, let_clean, used_up, write_2
from tests.systems.e2e.running import clients, start, witnessed
from tests.tools.processes import wait_until

VERSION = "4.3.1"
TOPIC = "orders"
TRAFFIC = tuple((TOPIC, number) for number in range(3))
LEFT_OPEN, LATE, NOBODYS, QUIET = ((TOPIC, number) for number in range(3, 7))
WITNESSED = (*TRAFFIC, LEFT_OPEN, LATE, NOBODYS)
PARTITIONS = len(WITNESSED) + 1
BUSY = tuple(f"shop-{number}" for number in range(3))
USED_UP = 2
"""How many producer ids each busy id leaves behind."""

_IDLE = tuple(f"nightly-{number}" for number in range(8))
_TRANSACTIONS = 8
_NOTE = (
    "Each of three ids used up two producer ids of 32,767 epochs, with some transactions of version 2 at the first "
    "epochs of each and a commit at the last; then the cleaner took their records. Expected with --state-copied-last "
    "and --no-records-lost, both true. The one in the quiet partition hangs as well, and no file here proves it; "
    "shop-2 has a transaction in progress."
)


def make(folder: Path, case: Path) -> None:
    """Let it happen on one broker in `folder`, and keep its files in `case`."""
    with ExitStack() as running:
        cluster = Cluster(VERSION, folder, properties=PROPERTIES)
        driver = start(running, cluster)
        cluster.create_topic(STATE, [(0,)] * STATE_PARTITIONS, **OF_STATE)
        cluster.create_topic(TOPIC, [(0,)] * PARTITIONS)
        raw, requests = clients(running, cluster)
        wait_until(lambda: all(requests.is_led((TOPIC, number)) for number in range(PARTITIONS)), "the leader")
        for name in _IDLE:
            _transact(raw, name)
        hangs = _hang(raw, driver)
        witnessed(raw, requests, (*WITNESSED, QUIET))
        with ThreadPoolExecutor(len(BUSY)) as pool:
            rotated = dict(zip(BUSY, pool.map(lambda name: _rotated(cluster, name), BUSY), strict=True))
        let_clean(raw, requests, cluster, WITNESSED)
        hangs.append(_begun(requests, rotated[BUSY[-1]][-1]))
        witnessed(raw, requests, WITNESSED)
        wait_until(lambda: are_checkpointed(cluster, TOPIC, PARTITIONS), "the high watermarks")
        (case / "capture-1/oracle").mkdir(parents=True)
        (case / "capture-1/oracle/find-hanging.txt").write_text(cluster.find_hanging(minutes=15))
        copy_nodes(cluster, case / "capture-1/log-dirs", (0,))
    write_json(case / "clients.json", {name: _told(producers) for name, producers in rotated.items()})
    tell(case, hangs)
    expect(case / "capture-1", VERSION, _NOTE, list(_expected(hangs)))


def _hang(raw: RawClient, driver: Driver) -> list[Hang]:
    """What nobody will ever end; the id of the first one is busy from then on."""
    hanger = Hanger(raw, driver, now_ms() - 3 * HOUR_MS)
    return [
        hanger.dated(BUSY[0], LEFT_OPEN, "left under a producer id that was used up", now_ms() - 3 * HOUR_MS),
        hanger.late_write_after_the_abort("billing-worker", LATE),
        hanger.unknown_producer(NOBODYS),
        hanger.unknown_producer(QUIET),
    ]


def _transact(raw: RawClient, name: str) -> None:
    producer = raw.init_producer_id(name)
    raw.add_partition(producer, TRAFFIC[0])
    raw.write(producer, TRAFFIC[0], 0, at_ms=now_ms())
    raw.end(producer, commit=True)


def _rotated(cluster: Cluster, name: str) -> list[Producer]:
    """Transactions at the first epochs of a producer id and one at its last, again and again.

    Returns:
        what the id was at the end of each producer id that it had.
    """
    raw, requests = RawClient(cluster.ports[0]), Requests(cluster.ports[0])
    producer, had = raw.init_producer_id(name), []
    for _ in range(USED_UP):
        producer = _committed(requests, producer, _TRANSACTIONS)
        had.append(used_up(raw, requests, name))
        assert had[-1].producer_id == producer.producer_id
        producer = _committed(requests, had[-1], 1)
        assert producer.producer_id != had[-1].producer_id
    had.append(_committed(requests, producer, _TRANSACTIONS))
    raw.close()
    requests.close()
    return had


def _told(producers: list[Producer]) -> list[dict[str, Any]]:
    """Each producer id of an id, and how many of its transactions were committed."""
    *used, newest = ({"producer_id": each.producer_id, "committed": _TRANSACTIONS} for each in producers)
    return [*(each | {"committed": _TRANSACTIONS + 1} for each in used), newest]


def _begun(requests: Requests, producer: Producer) -> Hang:
    """A transaction of version 2 that is in progress; its client's clock is three hours late."""
    start = write_2(requests, producer, TRAFFIC[0])
    return Hang(
        "in progress", *TRAFFIC[0], producer.producer_id, producer.producer_epoch, start, producer.transactional_id
    )


def _committed(requests: Requests, producer: Producer, count: int) -> Producer:
    """Commit some transactions of version 2; the producer with the epoch, or the producer id, that comes next."""
    for _ in range(count):
        for place in TRAFFIC:
            write_2(requests, producer, place)
        code, producer = requests.end_2(producer, commit=True)
        assert code == 0, code
    return producer


def _expected(hangs: list[Hang]) -> Iterator[dict[str, Any]]:
    left, late, nobodys, quiet, live = hangs
    yield row(live, "coordinated", "in_coordinator", coordinator_epoch=0)
    yield row(
        Hang(left.cause, *left.place, left.producer_epoch, left.txn_start_offset, None), "hanging", "unknown_producer"
    )
    yield row(late, "hanging", "partition_not_in_transaction", coordinator_epoch=0)
    yield row(nobodys, "hanging", "unknown_producer")
    yield row(quiet, "inconclusive", "log_may_end_early")


if __name__ == "__main__":
    made_anew(Path(sys.argv[1]), make)
