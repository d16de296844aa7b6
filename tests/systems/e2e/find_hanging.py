"""The cases of Kafka's own test of `find-hanging`, `TransactionsCommandTest`, which mocks brokers, on a real one."""

from functools import partial
from pathlib import Path

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.hangs import HOUR_MS, Hang, now_ms
from tests.systems.e2e.raw_client import Producer, RawClient
from tests.systems.e2e.scenario import Expected, Happened, Scenario, row, stories
from tests.systems.e2e.stage import Stage, on_node
from tests.systems.e2e.wire import Place
from tests.tools.processes import wait_until

TOPIC = "audit-log"
NO_MAPPED_ID, NO_DESCRIPTION, OTHER_PARTITIONS, THIS_ONE, ELSEWHERE = ((TOPIC, number) for number in range(5))
PLACES = (NO_MAPPED_ID, NO_DESCRIPTION, OTHER_PARTITIONS, THIS_ONE, ELSEWHERE)

_MAX_TIMEOUT_MS = 900_000
_NOTE = (
    "The cases of Kafka's TransactionsCommandTest: no transactional id has the producer id; the coordinator cannot "
    "describe the id, which has expired; its transaction is in progress with other partitions; with this one."
)


def _hang(stage: Stage, case: Path) -> Happened:
    """Make every case, and copy the files, and what the tool says."""
    stage.is_led(PLACES)
    opened = _cases(stage.raw)
    wait_until(lambda: stage.requests.transaction("expired-writer") is None, "the id expires")
    stage.witnessed(PLACES)
    stage.checkpointed(TOPIC, len(PLACES))
    capture = case / "capture-1"
    stage.asked(capture)
    stage.asked(capture, 1, "--topic", TOPIC, "--partition", "2", name="find-hanging-partition-2")
    stage.copied(capture / "log-dirs", 0)
    listed = ("coordinated", "in_coordinator")
    verdicts = [("hanging", "unknown_producer"), *[("hanging", "partition_not_in_transaction")] * 2, listed, listed]
    rows = [row(each, *verdict) for each, verdict in zip(opened, verdicts, strict=True)]
    expected = Expected(rows, _NOTE, {"transaction_max_timeout_ms": _MAX_TIMEOUT_MS})
    return Happened({capture.name: expected}, stories(opened[:-1]))


def _cases(raw: RawClient) -> list[Hang]:
    """What each of them wrote is three hours old by its client's clock."""
    old_ms = now_ms() - 3 * HOUR_MS
    nobody = Producer("nobody", 987_654_321, 3)  # Produce wants an id, which no broker compares with the producer id
    raw.write(nobody, NO_MAPPED_ID, 0, at_ms=old_ms)
    expired = raw.init_producer_id("expired-writer")
    raw.write(expired, NO_DESCRIPTION, 0, at_ms=old_ms)
    busy = raw.init_producer_id("busy-writer", timeout_ms=_MAX_TIMEOUT_MS)
    raw.write(busy, OTHER_PARTITIONS, 0, at_ms=old_ms)
    raw.add_partition(busy, ELSEWHERE)
    raw.write(busy, ELSEWHERE, 0, at_ms=old_ms)
    live = raw.init_producer_id("live-writer", timeout_ms=_MAX_TIMEOUT_MS)
    raw.add_partition(live, THIS_ONE)
    raw.write(live, THIS_ONE, 0, at_ms=old_ms)

    def opened(kind: str, producer: Producer, place: Place, transactional_id: str | None) -> Hang:
        return Hang(kind, *place, producer.producer_id, producer.producer_epoch, 0, transactional_id)

    return [
        opened("no-mapped-id", nobody, NO_MAPPED_ID, None),
        opened("id-expired", expired, NO_DESCRIPTION, "expired-writer"),
        opened("never-added", busy, OTHER_PARTITIONS, "busy-writer"),
        opened("ongoing", live, THIS_ONE, "live-writer"),
        opened("", busy, ELSEWHERE, "busy-writer"),
    ]


SCENARIO = Scenario(
    "kafka-4.3-find-hanging",
    partial(
        Cluster,
        "4.3.1",
        properties={
            "transactional.id.expiration.ms": 3000,
            "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
            "replica.high.watermark.checkpoint.interval.ms": 200,
            "transaction.max.timeout.ms": _MAX_TIMEOUT_MS,
        },
    ),
    _hang,
    topics={TOPIC: on_node(len(PLACES))},
    # An id that is not used expires at once: the coordinator then lists none, describes none, and leaves a tombstone.
    takes_long=False,
)
