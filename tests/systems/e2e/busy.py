"""A healthy, busy cluster of transaction version 2: ids that used up two producer ids each, and a compacted state."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.hangs import HOUR_MS, Hang, now_ms
from tests.systems.e2e.raw_client import Producer, RawClient
from tests.systems.e2e.requests import Requests
from tests.systems.e2e.rotation import CLEANED_STATE, PROPERTIES, let_clean, used_up, write_2
from tests.systems.e2e.scenario import Expected, Happened, Row, Scenario, row, stories
from tests.systems.e2e.stage import Stage, on_node
from tests.tools.captures import TRUE_WORDS

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


def _work(stage: Stage, case: Path) -> Happened:
    capture = case / "capture-1"
    stage.is_led((TOPIC, number) for number in range(PARTITIONS))
    for name in _IDLE:
        _transact(stage.raw, name)
    hangs = _hang(stage)
    stage.witnessed((*WITNESSED, QUIET))
    with ThreadPoolExecutor(len(BUSY)) as pool:
        rotated = dict(zip(BUSY, pool.map(lambda name: _rotated(stage.cluster, name), BUSY), strict=True))
    let_clean(stage, WITNESSED)
    hangs.append(_begun(stage.requests, rotated[BUSY[-1]][-1]))
    stage.witnessed(WITNESSED)
    stage.checkpointed(TOPIC, PARTITIONS)
    stage.asked(capture)
    stage.copied(capture / "log-dirs", 0)
    expected = Expected(list(_expected(hangs)), _NOTE)
    answers = {name: _told(producers) for name, producers in rotated.items()}
    return Happened({capture.name: expected}, stories(hangs), answers)


def _hang(stage: Stage) -> list[Hang]:
    """What nobody will ever end; the id of the first one is busy from then on."""
    hanger = stage.hanger
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


def _expected(hangs: list[Hang]) -> Iterator[Row]:
    left, late, nobodys, quiet, live = hangs
    yield row(live, "coordinated", "in_coordinator", coordinator_epoch=0)
    yield row(
        Hang(left.cause, *left.place, left.producer_epoch, left.txn_start_offset, None), "hanging", "unknown_producer"
    )
    yield row(late, "hanging", "partition_not_in_transaction", coordinator_epoch=0)
    yield row(nobodys, "hanging", "unknown_producer")
    yield row(quiet, "inconclusive", "log_may_end_early")


SCENARIO = Scenario(
    "kafka-4.3-busy",
    partial(Cluster, "4.3.1", properties=PROPERTIES),
    _work,
    topics={**CLEANED_STATE, TOPIC: on_node(PARTITIONS)},
    settings=TRUE_WORDS,
)
