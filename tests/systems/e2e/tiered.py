"""Logs whose old segments are in remote storage (KIP-405), by Kafka's own `LocalTieredStorage` of its test jars.

A transaction hangs on `clicks`, so that nothing above its start leaves the local disk; what is below is gone from
there. On `views` nothing is open, and its follower began at the last offset that is tiered, above its leader's first
file (KIP-1023).
"""

import json
import time
from pathlib import Path

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.captures import wait_for_high_watermarks
from tests.systems.e2e.driver import first_transaction
from tests.systems.e2e.scenario import Expected, Happened, Scenario, row, stories, write_json
from tests.systems.e2e.stage import Stage
from tests.tools.captures import TRUE_WORDS
from tests.tools.kafka_jars import TRANSACTIONS_TOOL, config_tool, test_jars
from tests.tools.processes import wait_until

VERSION = "4.3.1"
HELD, MOVED = "clicks", "views"
_LOCAL_MS = {HELD: 1000, MOVED: 45_000}
_TIERED = {"remote.storage.enable": "true", "segment.ms": "500", "retention.ms": "86400000"}
_NOTE = (
    "A transaction hangs on a topic whose segments below it are in remote storage, and are gone from the local disk."
)
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


def _tier(stage: Stage, case: Path) -> Happened:
    """Make both logs, and copy the files, and what Kafka's tools say."""
    cluster, capture = stage.cluster, case / "capture-1"
    _write(stage, 5)
    hang = stage.hanger.unknown_producer((HELD, 0))
    _write(stage, 5)
    wait_until(lambda: _has_left(stage), "deletion of what is tiered")
    _add_follower(stage)
    wait_for_high_watermarks(cluster)
    (capture / "oracle").mkdir(parents=True)
    offsets = {which: _offsets(cluster, which) for which in _OFFSETS}
    stage.copied(capture / "log-dirs", 0, 1)
    write_json(capture / "oracle/offsets.json", offsets)
    _keep_answers(stage, capture)
    (story,) = stories([hang])
    known = [story | {"kind": "unknown-producer", "txn_start_offset": hang.txn_start_offset}]
    expected = Expected([row(hang, "hanging", "unknown_producer")], _NOTE)
    return Happened({capture.name: expected}, known)


def _write(stage: Stage, count: int) -> None:
    """Transactions, each of which rolls a segment."""
    for _ in range(count):
        stage.driver.transact("importer", [(topic, 0) for topic in (HELD, MOVED)], 2)
        time.sleep(0.6)


def _has_left(stage: Stage) -> bool:
    """The first segments of both are gone from the local disk; meanwhile more are written."""
    _write(stage, 1)
    time.sleep(1)
    return all(offset > 0 for offset in _offsets(stage.cluster, "earliest-local").values())


def _offsets(cluster: Cluster, which: str) -> dict[str, int]:
    places = f"{HELD}:0,{MOVED}:0"
    words = ("--bootstrap-server", cluster.bootstrap, "--topic-partitions", places, "--time", which)
    printed = cluster.run("org.apache.kafka.tools.GetOffsetShell", *words).split()
    return {topic: int(offset or -1) for topic, _, offset in (line.split(":") for line in printed)}


def _add_follower(stage: Stage) -> None:
    """Reassign a partition to the second node as well, which can begin only while something waits for its upload."""
    cluster, plan = stage.cluster, stage.folder / "reassign.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": MOVED, "partition": 0, "replicas": [1, 2]}]}))
    words = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan))
    main_class = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    cluster.run(main_class, *words, "--execute")

    def has_joined() -> bool:
        _write(stage, 1)
        return "is completed" in cluster.run(main_class, *words, "--verify")

    wait_until(has_joined, "the follower")


def _keep_answers(stage: Stage, capture: Path) -> None:
    """What Kafka's tools say of transactions, and of the topic's configuration."""
    cluster, words = stage.cluster, ("--bootstrap-server", stage.cluster.bootstrap)
    of_place = ("describe-producers", "--topic", HELD, "--partition", "0")
    stage.asked(capture)
    (capture / "oracle/describe-producers.txt").write_text(cluster.run(TRANSACTIONS_TOOL, *words, *of_place))
    of_topic = ("--describe", "--all", "--entity-type", "topics", "--entity-name", HELD)
    (capture / "topics.txt").write_text(cluster.run(config_tool(VERSION), *words, *of_topic))


SCENARIO = Scenario(
    "kafka-4.3-tiered",
    lambda folder: Cluster(VERSION, folder / "cluster", nodes=2, properties=properties(folder / "remote")),
    _tier,
    topics={topic: ([(0,)], {**_TIERED, "local.retention.ms": local_ms}) for topic, local_ms in _LOCAL_MS.items()},
    settings=TRUE_WORDS,
    first_topic=first_transaction,
)
