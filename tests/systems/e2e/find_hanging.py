"""The cases of Kafka's own test of `find-hanging` (`TransactionsCommandTest`), which mocks the brokers, on a real one.

`python -m tests.systems.e2e.find_hanging data/cases/kafka-4.3-find-hanging` makes the capture anew, in half a minute.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.copying import copy_nodes
from tests.systems.e2e.hangs import HOUR_MS, now_ms
from tests.systems.e2e.kept import are_checkpointed, made_anew, write_json
from tests.systems.e2e.raw_client import Producer, RawClient
from tests.systems.e2e.running import clients, witnessed
from tests.systems.e2e.wire import Place
from tests.tools.processes import wait_until

VERSION = "4.3.1"
TOPIC = "audit-log"
NO_MAPPED_ID, NO_DESCRIPTION, OTHER_PARTITIONS, THIS_ONE, ELSEWHERE = ((TOPIC, number) for number in range(5))
PLACES = (NO_MAPPED_ID, NO_DESCRIPTION, OTHER_PARTITIONS, THIS_ONE, ELSEWHERE)

# An id that is not used expires at once: the coordinator then lists none, and describes none, and leaves a tombstone.
_PROPERTIES = {
    "transactional.id.expiration.ms": 3000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
    "replica.high.watermark.checkpoint.interval.ms": 200,
    "transaction.max.timeout.ms": 900_000,
}


def hang(folder: Path, target: Path) -> list[dict[str, Any]]:
    """Make every case on one broker in `folder`, and copy its files, and what the tool says, into `target`.

    Returns:
        the producer id of each partition's open transaction, by its case.
    """
    with ExitStack() as running:
        cluster = Cluster(VERSION, folder, properties=_PROPERTIES)
        running.callback(cluster.stop)
        cluster.start()
        cluster.create_topic(TOPIC, [(0,)] * len(PLACES))
        raw, requests = clients(running, cluster)
        wait_until(lambda: all(map(requests.is_led, PLACES)), "the leader")
        made = _cases(raw)
        wait_until(lambda: requests.transaction("expired-writer") is None, "the id expires")
        witnessed(raw, requests, PLACES)
        wait_until(lambda: are_checkpointed(cluster, TOPIC, len(PLACES)), "the high watermarks are written down")
        (target / "oracle").mkdir(parents=True)
        of_one = ("--topic", TOPIC, "--partition", "2")
        (target / "oracle/find-hanging.txt").write_text(cluster.find_hanging(minutes=15))
        (target / "oracle/find-hanging-partition-2.txt").write_text(cluster.find_hanging(1, *of_one, minutes=15))
        copy_nodes(cluster, target / "log-dirs", (0,))
        return made


def _cases(raw: RawClient) -> list[dict[str, Any]]:
    """What each of them wrote is three hours old by its client's clock."""
    old_ms = now_ms() - 3 * HOUR_MS
    unknown = Producer("nobody", 987_654_321, 3)
    raw.write(unknown, NO_MAPPED_ID, 0, at_ms=old_ms)
    expired = raw.init_producer_id("expired-writer")
    raw.write(expired, NO_DESCRIPTION, 0, at_ms=old_ms)
    busy = raw.init_producer_id("busy-writer", timeout_ms=900_000)
    raw.write(busy, OTHER_PARTITIONS, 0, at_ms=old_ms)
    _write(raw, busy, ELSEWHERE, old_ms)
    live = raw.init_producer_id("live-writer", timeout_ms=900_000)
    _write(raw, live, THIS_ONE, old_ms)
    made = {
        "no-mapped-id": (unknown, NO_MAPPED_ID),
        "id-expired": (expired, NO_DESCRIPTION),
        "never-added": (busy, OTHER_PARTITIONS),
        "ongoing": (live, THIS_ONE),
    }
    return [
        {"kind": kind, "topic": topic, "partition": partition, "producer_id": producer.producer_id}
        for kind, (producer, (topic, partition)) in made.items()
    ]


def _write(raw: RawClient, producer: Producer, place: Place, at_ms: int) -> None:
    raw.add_partition(producer, place)
    raw.write(producer, place, 0, at_ms=at_ms)


def keep(folder: Path, case: Path) -> None:
    """The capture, and how what is open in it was made."""
    write_json(case / "scenario.json", hang(folder, case / "capture-1"))


if __name__ == "__main__":
    made_anew(Path(sys.argv[1]), keep)
