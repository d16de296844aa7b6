"""Three transactional ids use up the epochs of their producer ids, and get the next ones in three ways."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.hangs import HOUR_MS, Hang, now_ms
from tests.systems.e2e.raw_client import Producer, RawClient
from tests.systems.e2e.requests import Requests
from tests.systems.e2e.scenario import Expected, Happened, Row, Scenario, row, stories
from tests.systems.e2e.stage import STATE, Stage, Topics, on_node
from tests.systems.e2e.wire import Place, batch
from tests.tools.kafka_jars import config_tool
from tests.tools.processes import wait_until

TOPIC = "ledger"
LEFT_OPEN, ROTATED, COMMITTED, TIMED_OUT = ((TOPIC, number) for number in range(4))
PLACES = (LEFT_OPEN, ROTATED, COMMITTED, TIMED_OUT)
LEAVER, COMMITTER, SLEEPER = "nightly-ledger", "hourly-ledger", "sleeping-ledger"

_LAST_EPOCH = 32_766  # `TransactionMetadata.isProducerEpochExhausted`
PROPERTIES = {
    "transaction.max.timeout.ms": 900_000,
    "replica.high.watermark.checkpoint.interval.ms": 200,
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.dedupe.buffer.size": 4_000_000,
    "log.initial.task.delay.ms": 100,
}
# What 98,000 epochs leave in the state, the cleaner takes; what comes then stays.
CLEANED_STATE: Topics = {
    STATE: on_node(STATE_PARTITIONS, cleanup_policy="compact", segment_ms=1000, min_cleanable_dirty_ratio=0.01)
}
_NO_NEW_SEGMENTS = "segment.ms=3600000"
_STATE_BYTES = 100_000
_TIMEOUT_MS, _NO_TIMEOUT_MS = 3000, 900_000
_NOTE = (
    "Each id had used up the epochs of its producer id, and got the next one: by a new instance, while data was open "
    "that no transaction listed; with the answer to a commit of transaction version 2; by a new instance after a "
    "timeout. Each then goes on under its next producer id. The cleaner took most of the 98,000 records of before."
)


def _rotate(stage: Stage, case: Path) -> Happened:
    raw, requests, capture = stage.raw, stage.requests, case / "capture-1"
    stage.is_led(PLACES)
    old = {name: used_up(raw, requests, name) for name in (LEAVER, COMMITTER, SLEEPER)}
    let_clean(stage, PLACES)
    answers = {
        LEAVER: _leave_open(raw, old[LEAVER]),
        COMMITTER: _commit(requests, old[COMMITTER]),
        SLEEPER: _sleep(raw, requests, old[SLEEPER]),
    }
    stage.witnessed(PLACES)
    stage.checkpointed(TOPIC, len(PLACES))
    stage.asked(capture)
    stage.copied(capture / "log-dirs", 0)
    expected = Expected(_expected(answers), _NOTE, {"transaction_max_timeout_ms": _NO_TIMEOUT_MS})
    hung = _hang(LEAVER, LEFT_OPEN, answers[LEAVER]["used_up"], None)
    return Happened({capture.name: expected}, stories([hung]), answers)


def used_up(raw: RawClient, requests: Requests, name: str) -> Producer:
    """A producer with its last epoch: each new instance takes one."""
    timeout_ms = _TIMEOUT_MS if name == SLEEPER else _NO_TIMEOUT_MS
    producer = raw.init_producer_id(name, timeout_ms)
    while producer.producer_epoch < _LAST_EPOCH:
        code, given = requests.init_producer_id(name, timeout_ms)
        producer = given if code == 0 else producer
    return producer


def _leave_open(raw: RawClient, old: Producer) -> dict[str, Any]:
    """Data that no transaction lists, and a new instance, which gets the next producer id and goes on elsewhere."""
    start = raw.write(old, LEFT_OPEN, 0, at_ms=now_ms() - 3 * HOUR_MS)
    new = raw.init_producer_id(LEAVER, _NO_TIMEOUT_MS)
    raw.add_partition(new, ROTATED)
    next_start = raw.write(new, ROTATED, 0, at_ms=now_ms() - 3 * HOUR_MS)
    return {"used_up": _numbers(old), "offset": start, "next": _numbers(new), "next_offset": next_start}


def _commit(requests: Requests, old: Producer) -> dict[str, Any]:
    """A client of transaction version 2: the commit at its last epoch gives it the next producer id."""
    start = write_2(requests, old, COMMITTED)
    code, new = requests.end_2(old, commit=True)
    wait_until(lambda: not is_open(requests, old, COMMITTED), "the end marker")
    late, _ = requests.produce_2(COMMITTER, COMMITTED, _batch(old))
    told = {"used_up": _numbers(old), "offset": start, "commit": code, "next": _numbers(new), "late_write": late}
    return told | {"next_offset": write_2(requests, new, COMMITTED)}


def _sleep(raw: RawClient, requests: Requests, old: Producer) -> dict[str, Any]:
    """One of version 2 whose transaction times out at its last epoch: only a new instance gets the next producer id."""
    start = write_2(requests, old, TIMED_OUT)
    wait_until(lambda: not is_open(requests, old, TIMED_OUT), "the abort marker")
    late, _ = requests.end_2(old, commit=True)
    new = raw.init_producer_id(SLEEPER, _NO_TIMEOUT_MS)
    told = {"used_up": _numbers(old), "offset": start, "late_commit": late, "next": _numbers(new)}
    return told | {"next_offset": write_2(requests, new, TIMED_OUT)}


def _numbers(producer: Producer) -> list[int]:
    return [producer.producer_id, producer.producer_epoch]


def _batch(producer: Producer) -> bytes:
    records = [(None, b"value %d" % number) for number in range(2)]
    return batch(producer.producer_id, producer.producer_epoch, 0, records, at_ms=now_ms() - 3 * HOUR_MS)


def write_2(requests: Requests, producer: Producer, place: Place) -> int:
    """A batch of two records by a client of transaction version 2; its base offset."""
    codes: list[int] = []

    def is_written() -> bool:
        code, offset = requests.produce_2(producer.transactional_id, place, _batch(producer))
        codes.append(offset)
        return code == 0

    wait_until(is_written, f"a write to {place}")
    return codes[-1]


def is_open(requests: Requests, producer: Producer, place: Place) -> bool:
    """Whether a partition waits for the producer's end marker."""
    found = [known for known in requests.producers(place) if known.producer_id == producer.producer_id]
    return any(known.txn_start_offset >= 0 for known in found)


def let_clean(stage: Stage, places: Sequence[Place]) -> None:
    """Until the cleaner has taken what many epochs left in the state; what is written from then on stays there."""

    def is_cleaned() -> bool:
        """No segment is cleaned before the next one begins."""
        stage.witnessed(places)
        logs = stage.cluster.log_dir().glob(f"{STATE}-*/*.log")
        return sum(log.stat().st_size for log in logs) < _STATE_BYTES

    wait_until(is_cleaned, "the cleaner")
    state = ("--bootstrap-server", stage.cluster.bootstrap, "--entity-type", "topics", "--entity-name", STATE)
    stage.cluster.run(config_tool(stage.cluster.version), *state, "--alter", "--add-config", _NO_NEW_SEGMENTS)


def _expected(answers: dict[str, Any]) -> list[Row]:
    """What is open, and the verdicts that it must get, by what the clients were answered."""
    listed = ("coordinated", "in_coordinator")
    rows = [
        (LEAVER, LEFT_OPEN, "used_up", "offset", ("hanging", "partition_not_in_transaction")),
        (LEAVER, ROTATED, "next", "next_offset", listed),
        (COMMITTER, COMMITTED, "next", "next_offset", listed),
        (SLEEPER, TIMED_OUT, "next", "next_offset", listed),
    ]
    return [
        row(_hang(name, place, answers[name][which], answers[name][at]), verdict, rule)
        for name, place, which, at, (verdict, rule) in rows
    ]


def _hang(name: str, place: Place, numbers: list[int], start: int | None) -> Hang:
    producer_id, epoch = numbers
    return Hang("rotated", *place, producer_id, epoch, start, name)


SCENARIO = Scenario(
    "kafka-4.2-rotation",
    partial(Cluster, "4.2.0", properties=PROPERTIES),
    _rotate,
    topics={**CLEANED_STATE, TOPIC: on_node(len(PLACES))},
)
