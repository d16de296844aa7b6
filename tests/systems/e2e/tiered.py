"""Logs whose old segments are in remote storage (KIP-405), by Kafka's own `LocalTieredStorage` of its test jars.

`python -m tests.systems.e2e.tiered data/cases/kafka-4.3-tiered` makes the capture anew, in a minute. A transaction
hangs on `clicks`, so that nothing above its start leaves the local disk; what is below is gone from there. On `views`
nothing is open, and its follower began at the last offset that is tiered, above its leader's first file (KIP-1023).
"""

import json
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.captures import wait_for_high_watermarks
from tests.systems.e2e.copying import copy_nodes
from tests.systems.e2e.driver import Driver, first_transaction
from tests.systems.e2e.hangs import HOUR_MS, Hanger, now_ms
from tests.systems.e2e.kept import made_anew, write_json
from tests.systems.e2e.raw_client import RawClient
from tests.systems.e2e.running import start
from tests.tools.kafka_jars import TRANSACTIONS_TOOL, test_jars
from tests.tools.processes import wait_until

VERSION = "4.3.1"
HELD, MOVED = "clicks", "views"
_LOCAL_MS = {HELD: 1000, MOVED: 45_000}
_TIERED = {"remote.storage.enable": "true", "segment.ms": "500", "retention.ms": "86400000"}
_OFFSETS = ("earliest", "earliest-local", "latest-tiered", "latest")


def properties(folder: Path) -> dict[str, object]:
    """Of brokers that keep what is tiered in a folder."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": f"{test_jars(VERSION)}/*",
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": folder,
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "remote.log.manager.task.interval.ms": 300,
        "follower.fetch.last.tiered.offset.enable": "true",
        "log.initial.task.delay.ms": 500,
        "log.retention.check.interval.ms": 300,
        "transaction.max.timeout.ms": 900_000,
    }


def tier(folder: Path, target: Path) -> list[dict[str, Any]]:
    """Make both logs on a cluster in `folder`, and copy its files, and what its tools say, into `target`.

    Returns:
        what hangs: its topic, partition, producer id and start.
    """
    with ExitStack() as running:
        cluster = Cluster(VERSION, folder / "cluster", nodes=2, properties=properties(folder / "remote"))
        driver = start(running, cluster, first_transaction)
        for topic, local_ms in _LOCAL_MS.items():
            driver.create_topic(topic, [1], **_TIERED, **{"local.retention.ms": str(local_ms)})
        _write(driver, 5)
        raw = running.enter_context(closing(RawClient(cluster.ports[0])))
        hang = Hanger(raw, driver, now_ms() - 3 * HOUR_MS).unknown_producer((HELD, 0))
        _write(driver, 5)
        wait_until(lambda: _has_left(cluster, driver), "deletion of what is tiered")
        _add_follower(cluster, folder, driver)
        wait_for_high_watermarks(cluster)
        (target / "oracle").mkdir(parents=True)
        offsets = {which: _offsets(cluster, which) for which in _OFFSETS}
        copy_nodes(cluster, target / "log-dirs", (0, 1))
        write_json(target / "oracle/offsets.json", offsets)
        _keep_answers(cluster, target / "oracle")
    return [
        {
            "kind": "unknown-producer",
            "topic": hang.topic,
            "partition": hang.partition,
            "producer_id": hang.producer_id,
            "txn_start_offset": hang.txn_start_offset,
        }
    ]


def _write(driver: Driver, count: int) -> None:
    """Transactions, each of which rolls a segment."""
    for _ in range(count):
        driver.begin("importer")
        for topic in (HELD, MOVED):
            driver.send("importer", (topic, 0), 2)
        driver.commit("importer")
        time.sleep(0.6)


def _has_left(cluster: Cluster, driver: Driver) -> bool:
    """The first segments of both are gone from the local disk; meanwhile more are written."""
    _write(driver, 1)
    time.sleep(1)
    return all(offset > 0 for offset in _offsets(cluster, "earliest-local").values())


def _offsets(cluster: Cluster, which: str) -> dict[str, int]:
    places = f"{HELD}:0,{MOVED}:0"
    words = ("--bootstrap-server", cluster.bootstrap, "--topic-partitions", places, "--time", which)
    printed = cluster.run("org.apache.kafka.tools.GetOffsetShell", *words).split()
    return {topic: int(offset or -1) for topic, _, offset in (line.split(":") for line in printed)}


def _add_follower(cluster: Cluster, folder: Path, driver: Driver) -> None:
    """Reassign a partition to the second node as well, which can begin only while something waits for its upload."""
    plan = folder / "reassign.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": MOVED, "partition": 0, "replicas": [1, 2]}]}))
    words = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan))
    main_class = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    cluster.run(main_class, *words, "--execute")

    def has_joined() -> bool:
        _write(driver, 1)
        return "is completed" in cluster.run(main_class, *words, "--verify")

    wait_until(has_joined, "the follower")


def _keep_answers(cluster: Cluster, oracle: Path) -> None:
    """What Kafka's tools say of transactions, and of the topic's configuration."""
    words = ("--bootstrap-server", cluster.bootstrap)
    of_place = ("describe-producers", "--topic", HELD, "--partition", "0")
    (oracle / "find-hanging.txt").write_text(cluster.find_hanging(minutes=15))
    (oracle / "describe-producers.txt").write_text(cluster.run(TRANSACTIONS_TOOL, *words, *of_place))
    of_topic = ("--describe", "--all", "--entity-type", "topics", "--entity-name", HELD)
    (oracle.parent / "topics.txt").write_text(cluster.run("kafka.admin.ConfigCommand", *words, *of_topic))


def keep(folder: Path, case: Path) -> None:
    """The capture, and what hangs in it."""
    write_json(case / "scenario.json", tier(folder, case / "capture-1"))


if __name__ == "__main__":
    made_anew(Path(sys.argv[1]), keep)
