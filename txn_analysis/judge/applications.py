"""Whose a transactional id is: what its shape says, and what is remarked where its owner may come back for it.

A shape is a guess from the name alone. It groups ids and is worth a remark; it changes no verdict and no plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NUMBER = r"[0-9]{1,19}"
# Names are bounded, so that no id can make the search slow.
_NAME = r".{1,512}?"


@dataclass(frozen=True)
class Shape:
    """A way in which a framework names its transactional ids; `pattern` has the application as its first group."""

    framework: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Application:
    """The application that an id seems to belong to; `framework` is None where the name says nothing."""

    name: str
    framework: str | None


SHAPES = (
    # StreamsProducer, exactly_once_v2: applicationId-processId-threadIndex; exactly_once: applicationId-taskId.
    Shape("Kafka Streams", re.compile(rf"({_NAME})-{_UUID}(?:-{_NUMBER})?", re.DOTALL)),
    Shape("Kafka Streams", re.compile(rf"({_NAME})-{_NUMBER}_{_NUMBER}", re.DOTALL)),
    # TransactionalIdFactory.buildTransactionalId of Flink's KafkaSink: prefix-subtask-checkpoint (or -pool number).
    Shape("Flink", re.compile(rf"({_NAME})-{_NUMBER}-{_NUMBER}", re.DOTALL)),
    # Worker.taskTransactionalId of Connect: group-connector-task; its leader: connect-cluster-group.
    Shape("Kafka Connect", re.compile(r"(connect-cluster-.{1,512})", re.DOTALL)),
    Shape("Kafka Connect", re.compile(rf"(connect-{_NAME})-{_NUMBER}", re.DOTALL)),
    # DefaultKafkaProducerFactory of Spring: prefix + group.topic.partition, or prefix + number.
    Shape("Spring", re.compile(rf"({_NAME})\.[a-zA-Z0-9._-]{{1,249}}\.{_NUMBER}", re.DOTALL)),
    Shape("Spring", re.compile(rf"(.*\btx[-_.]){_NUMBER}", re.DOTALL)),
)
_NUMBERED = re.compile(rf"({_NAME})[-_.]?{_NUMBER}", re.DOTALL)


def application_of(transactional_id: str) -> Application:
    """The application that an id seems to belong to: what is left of it without the numbers of its instances."""
    for shape in SHAPES:
        match = shape.pattern.fullmatch(transactional_id)
        if match:
            return Application(match[1], shape.framework)
    numbered = _NUMBERED.fullmatch(transactional_id)
    return Application(numbered[1] if numbered else transactional_id, None)


def remark_on(transactional_id: str | None, timeout_ms: int | None) -> str | None:
    """What to know of the owner of a transaction that hangs; None where nothing speaks for its coming back.

    A Flink job commits what it wrote before a checkpoint when it is restored from it, days later (FLIP-572); a
    two-phase commit has no timeout, and only its owner ends it (KIP-939). The coordinator sends markers only to the
    partitions that its own transaction lists (`TransactionCoordinator.endTransaction`), whoever asks, and whenever.
    """
    if timeout_ms == NEVER_TIMES_OUT_MS:
        whose = "its transactions never time out, as those of two-phase commits (KIP-939)"
    elif transactional_id is not None and application_of(transactional_id).framework == "Flink":
        whose = "its transactional id is shaped like Flink's"
    else:
        return None
    return f"{whose}: its owner may still ask to commit, which reaches only what the coordinator's transaction lists"
