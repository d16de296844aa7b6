"""Applications: the owner of a transactional id, by the shape in which frameworks name ids, and how it ends one.

A shape is no proof: anybody may name ids like a framework. So it is only ever remarked, and decides nothing.
Names of Kafka Connect's tasks begin with whatever its group is called; that is known by the id of the group's leader.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.values import BatchFunction, rows_of_values
from txn_analysis.kafka.names import INTERNAL_TOPICS
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NUMBER = r"[0-9]{1,19}"
# Names are bounded, so that no id can make the search slow.
_NAME = r".{1,512}?"
_MOST_DASHES = 64
_TASK = re.compile(rf"({_NAME})-({_NUMBER})", re.DOTALL)
CONNECT_LEADERS = "connect-cluster-"
"""How the ids of leaders of Connect's groups begin; the group follows."""


@dataclass(frozen=True)
class Framework:
    """What programs that name their ids for an application do with transactions that they left open.

    Attributes:
        name: of the framework.
        stop: what of it to stop, so that an id is used no more; `{…}` stands for a part of the id.
        ends: how its owner ends what an id has in progress, without losing any of it.
        comes_back: how the owner of an id ends its transaction.
        costs: what is lost where the coordinator ends it instead, after its timeout.
    """

    name: str
    stop: str
    ends: str
    comes_back: str
    costs: str | None = None


STREAMS = Framework(
    "Kafka Streams",
    stop="the instance of application {application} with process id {process}; its other instances may go on",
    ends="stop the instance, which commits what it has in progress; if it died, start it again with the same state "
    "directory, or wait for its timeout",
    comes_back="an instance whose topology has a persistent store, and which starts again with the same state "
    "directory, has the same process id, takes the id and ends it. Without such a store the process id is new at each "
    "start, and as where the instance is gone for good its timeout ends it (10000 ms by Streams' own default)",
)
STREAMS_BY_TASK = replace(
    STREAMS, stop="the instance of application {application} that runs task {task}; its other instances may go on"
)
FLINK = Framework(
    "Flink",
    stop="the Flink job whose sink has the prefix {application}, with a savepoint",
    ends="restore the job from its last completed checkpoint, so that it commits or aborts what is in progress; then "
    "stop it with a savepoint",
    comes_back="the job ends it when it is restored: it commits the transactions that its checkpoint or savepoint "
    "holds, and aborts the others of its ids",
    costs="the timeout aborts also what a completed checkpoint counts as delivered: a job that is restored from it "
    "cannot commit that data any more, and does not write it again (FLIP-572)",
)
CONNECT = Framework(
    "Kafka Connect",
    stop="the connector {connector} of group {group}; the workers and its other connectors may go on",
    ends="stop the connector (PUT /connectors/NAME/stop), whose task commits what it has in progress; if the task "
    "died, start it again first, or wait for its timeout",
    comes_back="the worker or the source task ends it when it starts again: its producer takes the id",
)
CONNECT_OF_SOME_GROUP = replace(
    CONNECT, stop="the connector whose task has the id; the workers and other connectors may go on"
)
CONNECT_LEADER = replace(
    CONNECT,
    stop="the worker that leads group {group}; the connectors go on with the next leader",
    ends="stop the worker that leads the group: the next leader takes the id, and ends what is in progress",
)
SPRING = Framework(
    "Spring",
    stop="the instance of the application with transaction-id-prefix {application} that uses the id",
    ends="stop that instance, which ends what it has in progress; if it died, start it again, or wait for its timeout",
    comes_back="the application ends it when it starts again with the same transaction-id-prefix, and one of its "
    "producers takes the id",
)
NO_FRAMEWORK = Framework(
    "no known framework",
    stop="the program whose transactional.id it is",
    ends="stop that program so that it ends what it has in progress; if it died, start it again with the same "
    "transactional.id, or wait for its timeout",
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


class ConnectGroups(NamedTuple):
    """The groups of Kafka Connect that the coordinator's records name.

    Attributes:
        names: of groups whose leader has an id there.
        offsets: groups with their topic of offsets, where it is known by who writes it.
        tasks: ids of theirs that look like those of another framework too, and write to that topic.
    """

    names: frozenset[str] = frozenset()
    offsets: frozenset[tuple[str, str]] = frozenset()
    tasks: frozenset[str] = frozenset()

    @classmethod
    def in_coverage(cls, coverage: Mapping[str, Any]) -> ConnectGroups:
        """Those that a run recorded."""
        names, offsets, tasks = (coverage.get(name) or () for name in _IN_COVERAGE)
        return cls(frozenset(names), frozenset((group, topic) for group, topic in offsets), frozenset(tasks))

    @property
    def coverage(self) -> dict[str, Any]:
        """As a run records them: what is not empty."""
        return {name: sorted(value) for name, value in zip(_IN_COVERAGE, self, strict=True) if value}


_IN_COVERAGE = ("connect_groups", "connect_offset_topics", "connect_tasks")
NO_GROUPS = ConnectGroups()


def with_topics(names: frozenset[str], topics: Mapping[str, Collection[str]]) -> ConnectGroups:
    """Groups with their topics of offsets, and what these prove of ids that look like another framework's.

    Every task writes the offsets of its source to its group's topic, in each of its transactions (KIP-618). So the
    topic that all tasks of several connectors write is that one; of several such topics, the one with that name.

    Args:
        names: of groups.
        topics: of transactional ids, those that their transactions listed.
    """
    only_names = ConnectGroups(names)
    shared: dict[str, tuple[set[str], set[str]]] = {}
    for name, listed in topics.items():
        group, connector = _task_of(name, only_names)
        if listed and group is not None and connector is not None and not _is_anothers(_by_shape(name)):
            connectors, all_write = shared.setdefault(group, (set(), {*listed}))
            connectors.add(connector)
            all_write &= {*listed}
    offsets = dict[str, str]()
    for group, (connectors, all_write) in shared.items():
        named = [topic for topic in all_write if len(all_write) == 1 or "offset" in topic.lower()]
        if len(connectors) > 1 and len(named) == 1:
            offsets[group] = named[0]
    tasks = {
        name
        for name, listed in topics.items()
        if _is_anothers(_by_shape(name)) and offsets.get(_task_of(name, only_names)[0] or "") in listed
    }
    return ConnectGroups(names, frozenset(offsets.items()), frozenset(tasks))


def _task_of(transactional_id: str, groups: ConnectGroups) -> tuple[str | None, str | None]:
    """Group and connector of a task; None of any other id."""
    task = _of_a_group(transactional_id, groups.names)
    is_task = task is not None and task.framework is CONNECT
    return (task.parts["group"], task.parts["connector"]) if task is not None and is_task else (None, None)


def groups_led(transactional_ids: Iterable[str]) -> list[str]:
    """The groups of Connect whose leaders some ids are, in order.

    `connect-cluster-files-0` is more likely task 0 of a connector in the default group than the leader of `files-0`.
    """
    led = (name.removeprefix(CONNECT_LEADERS) for name in transactional_ids if name.startswith(CONNECT_LEADERS))
    return sorted({group for group in led if group and _TASK.fullmatch(group) is None})


def leaders(transactional_ids: pa.Array) -> list[str]:
    """The ids that look like those of leaders."""
    names: list[str] = transactional_ids.filter(pc.starts_with(transactional_ids, CONNECT_LEADERS)).to_pylist()
    return names


def topics_of_tasks(groups: Collection[str]) -> BatchFunction:
    """Values: of rows of `HISTORIES`, ids that begin like those of some groups' tasks, with their topics."""
    starts = tuple(f"{group}-" for group in groups)

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            records = rows["history"].flatten()
            is_theirs = pa.array([name.startswith(starts) for name in records.field("transactional_id").to_pylist()])
            of_tasks = records.filter(is_theirs)
            lists = of_tasks.field("topic_partitions")
            names = of_tasks.field("transactional_id").take(pc.list_parent_indices(lists)).to_pylist()
            topics = defaultdict[str, set[str]](set)
            for name, topic in zip(names, lists.flatten().field("topic").to_pylist(), strict=True):
                topics[name].add(topic)
            yield from rows_of_values([*topics.items()]).to_batches()

    return mapped


class Stopping(NamedTuple):
    """What of an application is stopped, so that one id is used no more; and how its owner ends what is in progress.

    `stop` goes on behind "stop "; `ends` is an order of its own, without a full stop. Neither is escaped.
    """

    stop: str
    ends: str


_LEADER = Shape(CONNECT_LEADER, ("group",), re.compile(rf"({CONNECT_LEADERS}(.{{1,512}}))", re.DOTALL))
_DEFAULT_TASK = Shape(
    CONNECT,
    ("group", "connector", "task"),
    re.compile(rf"((connect-cluster)-({_NAME}))-({_NUMBER})", re.DOTALL),
)
SHAPES = (
    # StreamsProducer, exactly_once_v2: applicationId-processId-threadIndex; exactly_once: applicationId-taskId.
    Shape(STREAMS, ("process", "thread"), re.compile(rf"({_NAME})-({_UUID})(?:-({_NUMBER}))?", re.DOTALL)),
    Shape(STREAMS_BY_TASK, ("task",), re.compile(rf"({_NAME})-({_NUMBER}_{_NUMBER})", re.DOTALL)),
    # TransactionalIdFactory.buildTransactionalId of Flink's KafkaSink. INCREMENTING names count about as checkpoints
    # do, POOLING names take the lowest number that is free: the form is the same.
    Shape(FLINK, ("subtask", "number"), re.compile(rf"({_NAME})-({_NUMBER})-({_NUMBER})", re.DOTALL)),
    # Worker.taskTransactionalId of Connect: group-connector-task, with `connect-cluster` for its default group;
    # DistributedHerder's leader: connect-cluster-group.
    _DEFAULT_TASK,
    _LEADER,
    Shape(CONNECT_OF_SOME_GROUP, ("task",), re.compile(rf"(connect-{_NAME})-({_NUMBER})", re.DOTALL)),
    # DefaultKafkaProducerFactory of Spring: prefix + group.topic.partition, or prefix + number.
    Shape(
        SPRING,
        ("topic", "partition"),
        re.compile(rf"({_NAME})\.([a-zA-Z0-9._-]{{1,249}})\.({_NUMBER})", re.DOTALL),
    ),
    Shape(SPRING, ("number",), re.compile(rf"(.*\btx[-_.])({_NUMBER})", re.DOTALL)),
)
_NUMBERED = re.compile(rf"({_NAME})[-_.]?{_NUMBER}", re.DOTALL)


def application_of(transactional_id: str, groups: ConnectGroups = NO_GROUPS) -> Application:
    """The application that an id seems to belong to: what is left of it without the numbers of its instances.

    Args:
        transactional_id: the id.
        groups: of Kafka Connect, as the coordinator's records name them.
    """
    likeness = _likeness_of(transactional_id, groups)
    if likeness is not None:
        return Application(likeness.application, likeness.framework.name)
    numbered = _NUMBERED.fullmatch(transactional_id)
    return Application(numbered[1] if numbered else transactional_id, None)


def framework_of(transactional_id: str, groups: ConnectGroups = NO_GROUPS) -> tuple[Framework, dict[str, str]]:
    """The framework whose ids look like this one, and by their names the parts of it behind the application."""
    likeness = _likeness_of(transactional_id, groups)
    return (NO_FRAMEWORK, {}) if likeness is None else (likeness.framework, likeness.parts)


def stopping(transactional_id: str, groups: ConnectGroups = NO_GROUPS) -> Stopping:
    """What is stopped so that an id is used no more, and how its owner ends what it has in progress."""
    framework, parts = framework_of(transactional_id, groups)
    application = application_of(transactional_id, groups).name
    return Stopping(framework.stop.format_map(parts | {"application": application}), framework.ends)


def blocked_start(transactional_id: str | None, topic: str, groups: ConnectGroups = NO_GROUPS) -> str | None:
    """What cannot start while an open transaction of an id hides the end of a topic; None where nothing says that.

    Workers of Connect read the topics of configurations and offsets to their end when they start
    (`KafkaBasedLog.start`), and tasks of Streams the changelogs that they restore from; all by `read_committed`.
    """
    if transactional_id is None or not _may_be_internal(transactional_id, topic, groups):
        return None
    framework, parts = framework_of(transactional_id, groups)
    workers = f"every worker of Connect group {parts.get('group')}"
    if framework is CONNECT_LEADER:
        return f"{workers}, which reads this topic of configurations to its end"
    known = dict(groups.offsets).get(parts.get("group", ""))
    if framework is CONNECT and topic == known:
        return f"{workers}, which reads this topic of offsets to its end"
    if framework is CONNECT and known is None and "offset" in topic.lower():
        return f"{workers}, if this is its topic of offsets, as its name says: each reads that to its end"
    application = application_of(transactional_id, groups).name
    if framework in {STREAMS, STREAMS_BY_TASK} and topic.startswith(f"{application}-") and topic.endswith(_CHANGELOG):
        return f"the tasks of Streams application {application} that restore from this changelog"
    return None


_CHANGELOG = "-changelog"


def _may_be_internal(transactional_id: str, topic: str, groups: ConnectGroups) -> bool:
    """Asked of many, before any shape is."""
    return (
        (topic.endswith(_CHANGELOG) or "offset" in topic.lower() or transactional_id.startswith(CONNECT_LEADERS))
        or any(topic == offsets for _, offsets in groups.offsets)
    ) and topic not in INTERNAL_TOPICS


class _Likeness(NamedTuple):
    framework: Framework
    application: str
    parts: dict[str, str]


def _likeness_of(transactional_id: str, groups: ConnectGroups) -> _Likeness | None:
    by_shape = _by_shape(transactional_id)
    if _is_anothers(by_shape) and transactional_id not in groups.tasks:
        return by_shape
    return _of_a_group(transactional_id, groups.names) or by_shape


def _is_anothers(by_shape: _Likeness | None) -> bool:
    return by_shape is not None and by_shape.framework in {STREAMS, STREAMS_BY_TASK, FLINK}


def _by_shape(transactional_id: str) -> _Likeness | None:
    matches = ((shape, shape.pattern.fullmatch(transactional_id)) for shape in SHAPES)
    shape, match = next(((shape, match) for shape, match in matches if match is not None), (None, None))
    if shape is None or match is None:
        return None
    named = zip(shape.parts, match.groups()[1:], strict=True)
    return _Likeness(shape.framework, match[1], {part: value for part, value in named if value is not None})


def _of_a_group(transactional_id: str, names: frozenset[str]) -> _Likeness | None:
    """A leader, or a task, of a group of Connect that is known; of several groups that fit, the longest name."""
    leads = transactional_id.removeprefix(CONNECT_LEADERS)
    if leads != transactional_id and leads in names:
        return _Likeness(CONNECT_LEADER, transactional_id, {"group": leads})
    places = (place for place, letter in enumerate(transactional_id) if letter == "-")
    for place in sorted(places, reverse=True)[:_MOST_DASHES]:
        group = transactional_id[:place]
        task = _TASK.fullmatch(transactional_id, place + 1) if group in names else None
        if task is not None:
            parts = {"group": group, "connector": task[1], "task": task[2]}
            return _Likeness(CONNECT, f"{group}-{task[1]}", parts)
    return None


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
