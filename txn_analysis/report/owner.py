"""Owners: the application behind a transactional id, by the id's shape, and how the id's transaction ends.

Nothing here judges: a shape is a remark, and a moment is a sum of what the coordinator recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from txn_analysis.judge.applications import (
    CONNECT_LEADER,
    FLINK,
    NO_FRAMEWORK,
    NO_GROUPS,
    ConnectGroups,
    Framework,
    application_of,
    framework_of,
    stopping,
)
from txn_analysis.kafka.transactions import (
    ABORT_INTERVAL_MS,
    COMPLETE_COMMIT,
    ONGOING,
    PREPARED,
    TOMBSTONE,
    Ending,
    StateRecord,
    ending_of,
)
from txn_analysis.plan.script import fence_with_kafkas_tool
from txn_analysis.report.model import EndingItem, InJson
from txn_analysis.text import clip, duration, iso_utc, shell_option

_NAME_WIDTH = 40
_FLINKS_TOOL = "java -jar flink-connector-kafka-transaction-tool-*-uber-jar.jar"


class Way(NamedTuple):
    """One command: a `commit` or `abort` of what is in progress, or a `fence` once nothing is; and its condition."""

    result: str
    needs: str
    command: str


class Owner(NamedTuple):
    """Whose one transactional id looks, and how its transaction ends.

    `framework` is the one whose ids look like it, None where its shape says nothing; `parts` are those of the id behind
    the application, such as `subtask 4`. `ending` is of the transaction that the coordinator has in progress, None
    without one. `ends` says in words how it ends, `ways` by which commands.
    """

    transactional_id: str
    application: str
    framework: str | None
    parts: tuple[str, ...]
    state: str | None
    ending: Annotated[EndingItem | None, "of a transaction in progress"]
    ends: tuple[str, ...]
    ways: tuple[Annotated[Way, InJson(Way)], ...]


def owner_of(
    transactional_id: str,
    history: Sequence[StateRecord],
    as_of_ms: int | None,
    groups: ConnectGroups = NO_GROUPS,
    max_timeout_ms: int | None = None,
) -> Owner:
    """The owner of a transactional id, by its shape and the coordinator's records of it.

    Args:
        transactional_id: the id.
        history: its records, oldest first; none where only its name is known.
        as_of_ms: when the files were copied; None where no clock says that.
        groups: of Kafka Connect, as the state names them.
        max_timeout_ms: transaction.max.timeout.ms of the brokers, above which they refuse a tool's own timeout.
    """
    last = history[-1] if history else None
    framework, parts = framework_of(transactional_id, groups)
    if framework is CONNECT_LEADER:
        parts = {"leader of group": parts["group"]}
    state = None if last is None else TOMBSTONE if last.is_tombstone else last.state
    return Owner(
        transactional_id=transactional_id,
        application=application_of(transactional_id, groups).name,
        framework=None if framework is NO_FRAMEWORK else framework.name,
        parts=tuple(f"{part} {value}" for part, value in parts.items()),
        state=state,
        ending=ending_of(last.start_ms, last.timeout_ms) if last is not None and state == ONGOING else None,
        ends=tuple(_ends(history, framework, as_of_ms)) if last is not None else (),
        ways=tuple(_ways(last, max_timeout_ms)) if last is not None and state == ONGOING else (),
    )


def ending_sentence(ending: Ending, as_of_ms: int | None = None) -> str:
    """When a transaction in progress ends by itself.

    Args:
        ending: of the transaction.
        as_of_ms: when the files were copied; what had passed by then is said so.
    """
    if ending.never_times_out:
        return "never by itself: a two-phase commit (KIP-939) has no timeout, and only its owner ends it"
    if ending.times_out_ms is None:
        return "nobody can tell when it ends by itself: the coordinator's record has no start or no timeout"
    by, overdue = iso_utc(ending.aborted_by_ms), iso_utc(ending.overdue_after_ms)
    times_out, looks = iso_utc(ending.times_out_ms), duration(ABORT_INTERVAL_MS)
    due = f"If it is still open after {overdue}, it is coordinator_overdue"
    if ending.should_have_ended(as_of_ms):
        is_overdue = as_of_ms is not None and as_of_ms > (ending.overdue_after_ms or as_of_ms)
        due = f"The files were copied after {overdue}, when it had become coordinator_overdue" if is_overdue else due
        return f"its time was over at {times_out}, and no record shows that its coordinator acted by {by}. {due}"
    return (
        f"its coordinator aborts it by {by}, at most {looks} (Kafka's default) after its timeout at {times_out}. {due}"
    )


def owner_sentence(owner: Owner) -> str:
    """Whose an id looks; not escaped."""
    if owner.framework is None:
        return f"{owner.application}, by the id alone: no framework that is known names ids like this"
    behind = "".join(f", {part}" for part in owner.parts)
    return f"looks like {owner.framework}: {owner.application}{behind}"


def behind_its_id(application: str, framework: str | None) -> str:
    """Which application an id looks like, behind the id in a first line; escaped, and empty without a framework."""
    return "" if framework is None else f", looks like {framework}: {clip(application, _NAME_WIDTH)}"


def whose(transactional_id: str | None, groups: ConnectGroups) -> str:
    """The same of an id, or of none."""
    application = application_of(transactional_id or "", groups)
    return behind_its_id(application.name, application.framework)


def stop_sentence(transactional_id: str, groups: ConnectGroups) -> str:
    """Whose an id looks, and what of that is stopped so that the id is used no more; not escaped."""
    framework, parts = framework_of(transactional_id, groups)
    thread = f" (its thread {parts['thread']})" if "thread" in parts else ""
    return f"{framework.name}{thread}: stop {stopping(transactional_id, groups).stop}"


def _ends(history: Sequence[StateRecord], framework: Framework, as_of_ms: int | None) -> Iterator[str]:
    last = history[-1]
    if last.state in PREPARED and not last.is_tombstone:
        yield f"{last.state} is decided: its coordinator writes the markers itself. Nobody may end it otherwise"
        return
    if last.state != ONGOING or last.is_tombstone:
        yield "nothing is in progress under this id"
        return
    ending = ending_of(last.start_ms, last.timeout_ms)
    yield f"what the coordinator's transaction lists: {ending_sentence(ending, as_of_ms)}"
    if ending.never_times_out:
        yield (
            "its owner's own records say whether it was prepared: a producer with the same id and "
            "transaction.two.phase.commit.enable asks to keep it (InitProducerId with keepPreparedTxn), and completes "
            "it as they say. The Java producers of 4.2 to 4.4 have no method for that yet (KAFKA-19414)"
        )
    elif framework.costs is not None:
        yield framework.costs
    yield framework.comes_back
    if framework is FLINK:
        yield from _of_flink(history)


def _of_flink(history: Sequence[StateRecord]) -> Iterator[str]:
    """Which checkpoint decides, and what a name that is used again means (FLINK-40626)."""
    last = history[-1]
    yield (
        "the checkpoint or savepoint from which the job would be restored decides which is right: commit it where that "
        f"holds this id with producer id {last.producer_id} and epoch {last.producer_epoch}, abort it where it does not"
    )
    before = {(one.producer_id, one.producer_epoch) for one in history if one.state == COMPLETE_COMMIT}
    if before - {(last.producer_id, last.producer_epoch)}:
        yield (
            "the id was committed before under another epoch, so its number is of a pool (POOLING). A checkpoint that "
            "holds the earlier pair leaves this transaction open, and after a downscale no subtask takes the id again: "
            "it stays until its timeout (FLINK-40626)"
        )


def _ways(last: StateRecord, max_timeout_ms: int | None) -> Iterator[Way]:
    name = last.transactional_id
    if framework_of(name)[0] is FLINK:
        tool = "Flink's tool (FLIP-572; flink-connector-kafka PR 296, in no release yet)"
        words = f'--bootstrap-servers "$BROKERS" {shell_option("--transactional-id", name)}'
        pair = f"--producer-id {last.producer_id} --epoch {last.producer_epoch}"
        is_held = "the checkpoint holds this pair, and the job does not run"
        yield Way("commit", f"{is_held}; {tool}", f"{_FLINKS_TOOL} --action commit {words} {pair}")
        yield Way(
            "abort", f"it does not hold it, and the job does not run; {tool}", f"{_FLINKS_TOOL} --action abort {words}"
        )
    way = fence_with_kafkas_tool(name, max_timeout_ms)
    yield Way("fence", f"its application is stopped, and what is above has ended; {way.needs}", way.line)
