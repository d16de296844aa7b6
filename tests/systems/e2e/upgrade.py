"""`transaction.version` is raised from 1 to 2 under load; and quiet partitions beside a compacted state."""

import time
from collections.abc import Iterator
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.hangs import Hang, begun, now_ms
from tests.systems.e2e.requests import Requests
from tests.systems.e2e.rotation import CLEANED_STATE, PROPERTIES, is_open, let_clean
from tests.systems.e2e.scenario import Expected, Happened, Row, Scenario, row, stories, write_json
from tests.systems.e2e.stage import Stage, on_node
from tests.tools.captures import TRUE_WORDS
from tests.tools.processes import wait_until

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


def _upgrade(stage: Stage, case: Path) -> Happened:
    capture = case / "capture-1"
    stage.is_led(PLACES)
    stage.witnessed(PLACES)
    hangs = _hang(stage)
    stage.witnessed(PLACES)
    opened = [begun(stage.driver, STRADDLER, LOADED[0], _TIMEOUT_MS)]
    _upgrade_under_load(stage)
    opened.append(begun(stage.driver, NEWCOMER, LOADED[1], _TIMEOUT_MS))
    let_clean(stage, WITNESSED)
    _go_on(stage)
    stage.witnessed(WITNESSED)
    stage.checkpointed("orders", len(WITNESSED))
    stage.copied(capture / "log-dirs", 0)
    (capture / "oracle").mkdir()
    write_json(capture / "oracle/producers.json", dict(_told(stage.requests)))
    return Happened({capture.name: Expected(list(_expected(hangs, opened)), _NOTE)}, stories(hangs))


def _hang(stage: Stage) -> list[Hang]:
    hanger = stage.hanger
    return [
        hanger.unknown_producer(NOBODYS),
        hanger.late_write_after_the_abort("billing-worker", LATE),
        hanger.unknown_producer(QUIET_NOBODYS),
        hanger.left_open_by_fencing(FENCED, QUIET_FENCED),
    ]


def _upgrade_under_load(stage: Stage) -> None:
    """Clients that are connected go on as they began; only new instances of them take the new version."""
    driver = stage.driver
    driver.start_load(_LOAD_IDS, LOADED, pause_ms=50)
    time.sleep(_LOAD_S)
    words = ("--bootstrap-server", stage.cluster.bootstrap, "upgrade", "--feature", "transaction.version=2")
    stage.cluster.run("org.apache.kafka.tools.FeatureCommand", *words)
    time.sleep(_LOAD_S)
    driver.call("stop_load")
    driver.start_load(_LOAD_IDS, LOADED, pause_ms=50)
    time.sleep(_LOAD_S)
    driver.call("stop_load")


def _go_on(stage: Stage) -> None:
    """The new instance of the id that was fenced works on, elsewhere: the coordinator records something for it."""
    raw, place = stage.raw, LOADED[2]
    producer = raw.init_producer_id(FENCED)
    raw.add_partition(producer, place)
    raw.write(producer, place, 0, at_ms=now_ms())
    raw.end(producer, commit=True)
    wait_until(lambda: not is_open(stage.requests, producer, place), "the end marker")


def _told(requests: Requests) -> Iterator[tuple[str, list[Any]]]:
    """What the broker says of the producers of each partition, as `ActiveProducer` has it."""
    for topic, partition in PLACES:
        yield f"{topic}-{partition}", [astuple(producer) for producer in requests.producers((topic, partition))]


def _expected(hangs: list[Hang], opened: list[Hang]) -> Iterator[Row]:
    nobodys, late, quiet_nobodys, quiet_fenced = hangs
    for each in opened:
        yield row(each, "coordinated", "in_coordinator")
    yield row(nobodys, "hanging", "unknown_producer")
    yield row(late, "hanging", "partition_not_in_transaction", coordinator_epoch=0)
    yield row(quiet_nobodys, "inconclusive", "log_may_end_early")
    yield row(quiet_fenced, "inconclusive", "log_may_end_early")


SCENARIO = Scenario(
    "kafka-4.4-upgrade",
    partial(Cluster, "4.4.0", properties=PROPERTIES, features=("transaction.version=1",)),
    _upgrade,
    topics={
        **CLEANED_STATE,
        **{topic: on_node(sum(topic == name for name, _ in PLACES)) for topic in ("orders", "quiet")},
    },
    settings=TRUE_WORDS,
)
