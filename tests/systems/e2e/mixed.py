"""Half of an upgrade: a coordinator of 4.2.0 cannot write end markers to a leader of 4.1.1 (KAFKA-20322).

It takes six minutes, most of which it waits until the decisions are overdue.
"""

import time
from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.hangs import HOUR_MS, Hang, begun, java_hash, now_ms
from tests.systems.e2e.raw_client import RawClient
from tests.systems.e2e.scenario import Expected, Happened, Scenario, row, write_json
from tests.systems.e2e.stage import COMPACT_STATE, Stage, on_node
from tests.tools.captures import OF_MIXED

NEW, OLD = "4.2.0", "4.1.1"
TOPIC, ON_NEW = "orders", ("audit", 0)
TRANSACTION_MAX_TIMEOUT_MS = 15_000
BOTH_LEADERS = 0
"""The transaction that also wrote to a partition of the new leader, whose marker is there."""

_LATE_AFTER_S = (TRANSACTION_MAX_TIMEOUT_MS + 300_000) / 1000
_TIMEOUT_MS = 10_000
_METADATA_OF_4_1 = 27  # `MetadataVersion.IBP_4_1_IV1`
_OF_WITNESS = STATE_PARTITIONS - 1
_NOTE = (
    "The coordinator of 4.2.0 sends WriteTxnMarkers in a version that the leader of 4.1.1 does not know, and tries for "
    "ever. The first three transactions are of version 2, the others of clients of version 1."
)


def _end(stage: Stage, case: Path) -> Happened:
    """End transactions on the older leader, and copy both nodes at once, and when the decisions are overdue."""
    stage.is_led([ON_NEW])
    opened = [_ended(stage.driver, name, number) for number, name in enumerate(_names(3, "ledger"))]
    old_raw = stage.raw_of(1)
    for number, name in enumerate(_names(2, "legacy"), start=len(opened)):
        opened.append(_ended_by_old_client(stage.raw, old_raw, name, number))
    captures = {}
    pending = [("coordinated", rule) for rule in ("marker_pending_commit", "marker_pending_abort")]
    for number, (commit, abort) in ((1, pending), (2, [("suspect", "marker_overdue")] * 2)):
        if number == 2:
            time.sleep(_LATE_AFTER_S + 2)
        _witness(stage)
        _copied(stage, case / f"capture-{number}", opened)
        rows = [row(each, *(commit if _is_commit(at) else abort)) for at, each in enumerate(opened)]
        captures[f"capture-{number}"] = Expected(
            rows, _NOTE, {"transaction_max_timeout_ms": TRANSACTION_MAX_TIMEOUT_MS}
        )
    return Happened(captures)


def _names(number: int, prefix: str, *, of_witness: bool = False) -> Iterator[str]:
    """Ids whose partition of the state is written by nobody else, or the one that only the witness writes to."""
    names = (f"{prefix}-{n}" for n in count())
    return islice((n for n in names if (_partition(n) == _OF_WITNESS) == of_witness), number)


def _partition(transactional_id: str) -> int:
    return java_hash(transactional_id) % STATE_PARTITIONS


def _is_commit(number: int) -> bool:
    return number % 2 == 0


def _ended(driver: Driver, name: str, number: int) -> Hang:
    """A transaction of version 2 that its client has ended; the client's time is three hours old."""
    hang = begun(driver, name, (TOPIC, number), _TIMEOUT_MS)
    if number == BOTH_LEADERS:
        driver.send(name, ON_NEW)
    (driver.commit if _is_commit(number) else driver.abort)(name)
    return hang


def _ended_by_old_client(raw: RawClient, leader: RawClient, name: str, number: int) -> Hang:
    """The same by a client that knows nothing of version 2."""
    producer = raw.init_producer_id(name, _TIMEOUT_MS)
    raw.add_partition(producer, (TOPIC, number))
    start = leader.write(producer, (TOPIC, number), 0, at_ms=now_ms() - 3 * HOUR_MS)
    raw.end(producer, commit=_is_commit(number))
    return Hang("", TOPIC, number, producer.producer_id, producer.producer_epoch, start, name)


def _witness(stage: Stage) -> None:
    """A transaction of another id, on the new leader, whose records stand in a partition of the state of its own."""
    (name,) = _names(1, "witness", of_witness=True)
    stage.driver.begin(name, _TIMEOUT_MS)
    stage.driver.send(name, ON_NEW)
    stage.driver.commit(name)
    stage.driver.ended(name)


def _copied(stage: Stage, capture: Path, opened: list[Hang]) -> None:
    stage.checkpointed(TOPIC, 5, node=1)
    told = {each.transactional_id: stage.requests.transaction(each.transactional_id or "") for each in opened}
    states = {name: found.state if found else None for name, found in told.items()}
    stage.copied(capture / "log-dirs", 0, 1)
    (capture / "oracle").mkdir()
    write_json(capture / "oracle/transactions.json", states)
    assert set(states.values()) <= {"PrepareCommit", "PrepareAbort"}, states


SCENARIO = Scenario(
    "kafka-4.2-mixed",
    partial(
        Cluster,
        NEW,
        nodes=2,
        node_versions=(NEW, OLD),
        features=(f"metadata.version={_METADATA_OF_4_1}", "transaction.version=2"),
        properties={
            "replica.high.watermark.checkpoint.interval.ms": 200,
            "transaction.max.timeout.ms": TRANSACTION_MAX_TIMEOUT_MS,
        },
    ),
    _end,
    topics={**COMPACT_STATE, TOPIC: on_node(5, node=1), ON_NEW[0]: on_node(1)},
    settings=OF_MIXED,
)
