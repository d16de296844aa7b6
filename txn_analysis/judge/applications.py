"""Whose a transactional id is: what its shape says, and whether its owner may still commit what looks abandoned.

A shape is a guess from the name alone. It groups ids, and it makes us more careful; it never makes a verdict worse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from txn_analysis.judge.records import NEVER_TIMES_OUT_MS

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


def why_to_hold(transactional_id: str | None, timeout_ms: int | None) -> str | None:
    """Why the owner of a transaction may still commit it; None where nothing speaks for that.

    Flink commits what it wrote before a checkpoint when it is restored from it, days later (FLIP-572); a two-phase
    commit has no timeout at all, and only its owner may end it (KIP-939).
    """
    if timeout_ms == NEVER_TIMES_OUT_MS:
        return "it never times out: a two-phase commit, which only its owner may end. Ask the application first"
    if transactional_id is not None and application_of(transactional_id).framework == "Flink":
        return "its transactional id is shaped like Flink's: a job that is restored may still commit it. Ask first"
    return None
