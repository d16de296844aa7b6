"""Applications: the owner of a transactional id, by the shape in which frameworks name ids, and how it ends one.

A shape is no proof: anybody may name ids like a framework. So it is only ever remarked, and decides nothing.
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
class Framework:
    """What programs that name their ids for an application do with transactions that they left open.

    Attributes:
        name: of the framework.
        comes_back: how the owner of an id ends its transaction.
        costs: what is lost where the coordinator ends it instead, after its timeout.
    """

    name: str
    comes_back: str
    costs: str | None = None


STREAMS = Framework(
    "Kafka Streams",
    comes_back="an instance that starts again with the same state directory has the same process id, takes the id and "
    "ends it. Where the instance is gone for good, its timeout ends it (10000 ms by Streams' own default)",
)
FLINK = Framework(
    "Flink",
    comes_back="the job ends it when it is restored: it commits the transactions that its checkpoint or savepoint "
    "holds, and aborts the others of its ids",
    costs="the timeout aborts also what a completed checkpoint counts as delivered: a job that is restored from it "
    "cannot commit that data any more, and does not write it again (FLIP-572)",
)
CONNECT = Framework(
    "Kafka Connect",
    comes_back="the worker or the source task ends it when it starts again: its producer takes the id",
)
SPRING = Framework(
    "Spring",
    comes_back="the application ends it when it starts again with the same transaction-id-prefix, and one of its "
    "producers takes the id",
)
NO_FRAMEWORK = Framework(
    "no known framework",
    comes_back="the application chose the id itself, as with Kafka's own producer or librdkafka. It ends it when it "
    "starts again with the same transactional.id (initTransactions, init_transactions)",
)


@dataclass(frozen=True)
class Shape:
    """One form of transactional ids; the first group of `pattern` is the application, the others are its `parts`."""

    framework: Framework
    parts: tuple[str, ...]
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Application:
    """The application that an id seems to belong to; `framework` is None where the name says nothing."""

    name: str
    framework: str | None


SHAPES = (
    # StreamsProducer, exactly_once_v2: applicationId-processId-threadIndex; exactly_once: applicationId-taskId.
    Shape(STREAMS, ("process", "thread"), re.compile(rf"({_NAME})-({_UUID})(?:-({_NUMBER}))?", re.DOTALL)),
    Shape(STREAMS, ("task",), re.compile(rf"({_NAME})-({_NUMBER}_{_NUMBER})", re.DOTALL)),
    # TransactionalIdFactory.buildTransactionalId of Flink's KafkaSink. INCREMENTING names count about as checkpoints
    # do, POOLING names take the lowest number that is free: the form is the same.
    Shape(FLINK, ("subtask", "number"), re.compile(rf"({_NAME})-({_NUMBER})-({_NUMBER})", re.DOTALL)),
    # Worker.taskTransactionalId of Connect: group-connector-task; its leader: connect-cluster-group.
    Shape(CONNECT, (), re.compile(r"(connect-cluster-.{1,512})", re.DOTALL)),
    Shape(CONNECT, ("task",), re.compile(rf"(connect-{_NAME})-({_NUMBER})", re.DOTALL)),
    # DefaultKafkaProducerFactory of Spring: prefix + group.topic.partition, or prefix + number.
    Shape(
        SPRING,
        ("topic", "partition"),
        re.compile(rf"({_NAME})\.([a-zA-Z0-9._-]{{1,249}})\.({_NUMBER})", re.DOTALL),
    ),
    Shape(SPRING, ("number",), re.compile(rf"(.*\btx[-_.])({_NUMBER})", re.DOTALL)),
)
_NUMBERED = re.compile(rf"({_NAME})[-_.]?{_NUMBER}", re.DOTALL)


def application_of(transactional_id: str) -> Application:
    """The application that an id seems to belong to: what is left of it without the numbers of its instances."""
    found = _found(transactional_id)
    if found is not None:
        shape, match = found
        return Application(match[1], shape.framework.name)
    numbered = _NUMBERED.fullmatch(transactional_id)
    return Application(numbered[1] if numbered else transactional_id, None)


def framework_of(transactional_id: str) -> tuple[Framework, dict[str, str]]:
    """The framework whose ids look like this one, and by their names the parts of it behind the application."""
    found = _found(transactional_id)
    if found is None:
        return NO_FRAMEWORK, {}
    shape, match = found
    named = zip(shape.parts, match.groups()[1:], strict=True)
    return shape.framework, {part: value for part, value in named if value is not None}


def _found(transactional_id: str) -> tuple[Shape, re.Match[str]] | None:
    matches = ((shape, shape.pattern.fullmatch(transactional_id)) for shape in SHAPES)
    return next(((shape, match) for shape, match in matches if match is not None), None)


_MAY_COMMIT = ": its owner may still ask to commit"


def is_remark(fact: str) -> bool:
    """Some fact of a finding is a `remark_on` its owner."""
    return _MAY_COMMIT in fact


def remark_on(transactional_id: str | None, timeout_ms: int | None) -> str | None:
    """What to know of the owner of a transaction that hangs; None where nothing speaks for its coming back.

    A Flink job commits what it wrote before a checkpoint when it is restored from it, days later (FLIP-572); a
    two-phase commit has no timeout, and only its owner ends it (KIP-939). The coordinator sends markers only to the
    partitions that its own transaction lists (`TransactionCoordinator.endTransaction`), whoever asks, and whenever.
    """
    if timeout_ms == NEVER_TIMES_OUT_MS:
        whose = "its transactions never time out, as those of two-phase commits (KIP-939)"
    elif transactional_id is not None and framework_of(transactional_id)[0] is FLINK:
        whose = "its transactional id is shaped like Flink's"
    else:
        return None
    return f"{whose}{_MAY_COMMIT}, which reaches only what the coordinator's transaction lists"
