"""`transaction.version` is raised from 1 to 2 under load; and quiet partitions beside a compacted state.

`python -m tests.systems.e2e.upgrade data/cases/kafka-4.4-upgrade` makes the capture anew, in a minute.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import astuple
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.copying import copy_nodes
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import HOUR_MS, Hang, Hanger, begun, now_ms
from tests.systems.e2e.kept import STATE, are_checkpointed, expect, made_anew, row, tell, write_json
from tests.systems.e2e.raw_client import RawClient
from tests.systems.e2e.requests import Requests
from tests.systems.e2e.rotation import OF_STATE, PROPERTIES, is_open, let_clean
from tests.systems.e2e.running import clients, start, witnessed
from tests.tools.processes import wait_until

VERSION = "4.4.0"
LOADED = tuple(("orders", number) for number in range(3))
NOBODYS, LATE = ("orders", 3), ("orders", 4)
QUIET_NOBODYS, QUIET_FENCED = ("quiet", 0), ("quiet", 1)
WITNESSED = (*LOADED, NOBODYS, LATE)
PLACES = (*WITNESSED, QUIET_NOBODYS, QUIET_FENCED)
FENCED, STRADDLER, NEWCOMER = "ledger-writer", "month-end", "fraud-scorer"

_LOAD_IDS = tuple(f"shop-{number}" for number in range(4))
_TIMEOUT_MS = 170_000
_LOAD_S = 2.0
_NOTE = (
    "transaction.version was raised from 1 to 2 while clients wrote; month-end has a transaction from before, "
    "fraud-scorer one from after. Expected with --state-copied-last and --no-records-lost, both true. What hangs in "
    "the quiet partitions hangs as well, and no file here proves it: the state is compacted up to a later moment."
)


def make(folder: Path, case: Path) -> None:
    """Let it happen on one broker in `folder`, and keep its files in `case`."""
    capture = case / "capture-1"
    with ExitStack() as running:
        cluster = Cluster(VERSION, folder, properties=PROPERTIES, features=("transaction.version=1",))
        driver = start(running, cluster)
        cluster.create_topic(STATE, [(0,)] * STATE_PARTITIONS, **OF_STATE)
        for topic in ("orders", "quiet"):
            cluster.create_topic(topic, [(0,)] * sum(topic == name for name, _ in PLACES))
        raw, requests = clients(running, cluster)
        wait_until(lambda: all(map(requests.is_led, PLACES)), "the leader")
        witnessed(raw, requests, PLACES)
        hangs = _hang(raw, driver)
        witnessed(raw, requests, PLACES)
        opened = [begun(driver, STRADDLER, LOADED[0], _TIMEOUT_MS)]
        _upgrade_under_load(cluster, driver)
        opened.append(begun(driver, NEWCOMER, LOADED[1], _TIMEOUT_MS))
        let_clean(raw, requests, cluster, WITNESSED)
        _go_on(raw, requests)
        witnessed(raw, requests, WITNESSED)
        wait_until(lambda: are_checkpointed(cluster, "orders", len(WITNESSED)), "the high watermarks")
        copy_nodes(cluster, capture / "log-dirs", (0,))
        (capture / "oracle").mkdir()
        write_json(capture / "oracle/producers.json", dict(_told(requests)))
    expect(capture, VERSION, _NOTE, list(_expected(hangs, opened)))
    tell(case, hangs)


def _hang(raw: RawClient, driver: Driver) -> list[Hang]:
    hanger = Hanger(raw, driver, now_ms() - 3 * HOUR_MS)
    return [
        hanger.unknown_producer(NOBODYS),
        hanger.late_write_after_the_abort("billing-worker", LATE),
        hanger.unknown_producer(QUIET_NOBODYS),
        hanger.left_open_by_fencing(FENCED, QUIET_FENCED),
    ]


def _upgrade_under_load(cluster: Cluster, driver: Driver) -> None:
    """Clients that are connected go on as they began; only new instances of them take the new version."""
    places = [{"topic": topic, "partition": partition} for topic, partition in LOADED]
    load = {"ids": _LOAD_IDS, "partitions": places, "timeout_ms": 60_000, "age_ms": 0, "pause_ms": 50}
    driver.call("start_load", **load)
    time.sleep(_LOAD_S)
    words = ("--bootstrap-server", cluster.bootstrap, "upgrade", "--feature", "transaction.version=2")
    cluster.run("org.apache.kafka.tools.FeatureCommand", *words)
    time.sleep(_LOAD_S)
    driver.call("stop_load")
    driver.call("start_load", **load)
    time.sleep(_LOAD_S)
    driver.call("stop_load")


def _go_on(raw: RawClient, requests: Requests) -> None:
    """The new instance of the id that was fenced works on, elsewhere: the coordinator records something for it."""
    producer = raw.init_producer_id(FENCED)
    raw.add_partition(producer, LOADED[2])
    raw.write(producer, LOADED[2], 0, at_ms=now_ms())
    raw.end(producer, commit=True)
    wait_until(lambda: not is_open(requests, producer, LOADED[2]), "the end marker")


def _told(requests: Requests) -> Iterator[tuple[str, list[Any]]]:
    """What the broker says of the producers of each partition, as `ActiveProducer` has it."""
    for topic, partition in PLACES:
        yield f"{topic}-{partition}", [astuple(producer) for producer in requests.producers((topic, partition))]


def _expected(hangs: list[Hang], opened: list[Hang]) -> Iterator[dict[str, Any]]:
    nobodys, late, quiet_nobodys, quiet_fenced = hangs
    for each in opened:
        yield row(each, "coordinated", "in_coordinator")
    yield row(nobodys, "hanging", "unknown_producer")
    yield row(late, "hanging", "partition_not_in_transaction", coordinator_epoch=0)
    yield row(quiet_nobodys, "inconclusive", "log_may_end_early")
    yield row(quiet_fenced, "inconclusive", "log_may_end_early")


if __name__ == "__main__":
    made_anew(Path(sys.argv[1]), make)
