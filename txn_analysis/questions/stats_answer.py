"""What `stats` answers, as data and as text: one row for each application, transactional id or topic."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, NamedTuple

from txn_analysis.judge.applications import FLINK
from txn_analysis.judge.endings import ADMINISTRATOR, CLIENT_ABORT, FENCING, TIMEOUT
from txn_analysis.kafka.address import Address
from txn_analysis.report.model import InJson, Item
from txn_analysis.report.pictures import EndedSlice
from txn_analysis.report.terminal import labelled
from txn_analysis.text import clip, count, duration, escape, iso_utc, size

CAUSES = {name: f"{name}_count" for name in (CLIENT_ABORT, TIMEOUT, FENCING, ADMINISTRATOR)}
"""The causes of an abort that are counted, and the columns of their counts; the others are unexplained."""


class By(StrEnum):
    """By what transactions are put together."""

    APPLICATION = "application"
    ID = "id"
    TOPIC = "topic"


class Group(NamedTuple):
    """What the transactions of one application, transactional id or topic did.

    `name` is None where no record of the coordinator has their producer ids. `framework` is whose an application's ids
    look. `aborted_count` is the sum of the four causes and `unexplained_abort_count`; `unknown_outcome_count` are those
    whose dump does not print how they ended. An end marker is empty (`empty_count`, of which `empty_commit_count` are
    commits) with no data of its producer before it in the files; `start_unseen_count` ended with some data that is not
    in the files, or may be. `open_count` are open at the end of the logs. Records and bytes are those of
    `sized_count` transactions. A duration is from the timestamp of the first batch to the end marker, of `timed_count`
    of them, by the client's clock unless the topic has LogAppendTime; `coordinator_duration` is from the coordinator's
    start to its decision, by its clock, of `coordinator_timed_count`. A marker's wait is from that decision to the
    marker, of `decided_count`, by two brokers' clocks. What is known of none is None.
    """

    name: str | None
    framework: str | None
    committed_count: int
    aborted_count: int
    client_abort_count: int
    coordinator_timeout_count: int
    fenced_by_new_instance_count: int
    administrator_marker_count: int
    unexplained_abort_count: int
    unknown_outcome_count: int
    empty_count: int
    empty_commit_count: int
    open_count: int
    start_unseen_count: int
    sized_count: int
    record_count: int
    max_record_count: int | None
    size_bytes: int
    max_size_bytes: int | None
    timed_count: int
    backwards_count: int
    duration_sum_ms: int
    min_duration_ms: int | None
    mean_duration_ms: int | None
    max_duration_ms: int | None
    coordinator_timed_count: int
    coordinator_duration_sum_ms: int
    min_coordinator_duration_ms: int | None
    mean_coordinator_duration_ms: int | None
    max_coordinator_duration_ms: int | None
    decided_count: int
    min_marker_wait_ms: int | None
    mean_marker_wait_ms: int | None
    max_marker_wait_ms: int | None

    @property
    def ended_count(self) -> int:
        """Transactions that ended, whatever is known of how."""
        return self.committed_count + self.aborted_count + self.unknown_outcome_count


class LongTransaction(NamedTuple):
    """One of the longest ended transactions; its duration as in `Group`."""

    topic: str
    partition: int
    txn_start_offset: int
    end_offset: int
    outcome: str
    end_timestamp_ms: int | None
    producer_id: int
    transactional_id: str | None
    duration_ms: int


GroupItem = Annotated[Group, InJson(Group)]


class StatsAnswer(Item):
    """What transactions did; `groups` with most ended ones first, of which `left_out_count` more are not shown.

    `total` is of all groups. Ended ones and end markers count from `since_ms` to before `until_ms`, by the broker's
    time of the marker; None is no bound. `longest` are the longest of all by the client's clock,
    `longest_by_coordinator` by the coordinator's, `over_time` the ended ones by time.
    `cannot_say` is what the tables do not tell, in words.
    """

    run_id: str
    by: By
    since_ms: int | None
    until_ms: int | None
    total: GroupItem
    groups: tuple[GroupItem, ...]
    left_out_count: int
    longest: tuple[Annotated[LongTransaction, InJson(LongTransaction)], ...]
    longest_by_coordinator: tuple[Annotated[LongTransaction, InJson(LongTransaction)], ...]
    over_time: tuple[Annotated[EndedSlice, InJson(EndedSlice)], ...]
    cannot_say: tuple[str, ...]


def cannot_say(total: Group, *, has_state: bool, is_in_window: bool) -> Iterator[str]:
    """What the tables do not tell of some transactions, in words that need no escaping.

    Args:
        total: all of them.
        has_state: some of `__transaction_state` was given.
        is_in_window: only those of some time are asked about.
    """
    ended = total.ended_count
    if not has_state:
        yield "no partition of __transaction_state was read: no transactional id, no cause and no wait is known"
    elif total.unexplained_abort_count:
        yield (
            f"why {total.unexplained_abort_count} of {count(total.aborted_count, 'abort')} came: the coordinator's "
            "records of them are not in the files, as after compaction"
        )
    if has_state and total.decided_count < ended:
        number = count(ended - total.decided_count, "transaction")
        yield f"how long the marker of {number} took: the record of the decision is not in the files"
    if total.start_unseen_count:
        number = count(total.start_unseen_count, "transaction")
        yield f"where {number} began: some of the data may lie below the first offset that was read"
    if total.empty_count:
        yield (
            f"whether each of {count(total.empty_count, 'empty end marker')} ended no data: it may lie below the first "
            "offset that was read, or be gone by compaction"
        )
    if total.unknown_outcome_count:
        yield f"how {count(total.unknown_outcome_count, 'transaction')} ended: their dumps do not print it"
    if untimed := ended - total.timed_count - total.backwards_count:
        yield f"how long {count(untimed, 'transaction')} took: the first batch, or a time of it, is not in the files"
    if total.backwards_count:
        number = count(total.backwards_count, "transaction")
        yield f"how long {number} took: by the client's timestamp the end came before the beginning"
    if is_in_window:
        yield "when those ended whose end marker has no broker's time: they are left out"


WIDTH = 110
_TEXT_FROM = 12
_NAME_WIDTH = 32
_ID_WIDTH = 60
_MOST_LONGEST = 3
_TITLES = {By.APPLICATION: "APPLICATION", By.ID: "TRANSACTIONAL ID", By.TOPIC: "TOPIC"}
_COLUMNS = ("COMMITTED", "ABORTED", "EMPTY", "OPEN", "RECORDS", "SIZE", "MEAN", "LONGEST", "MARKER AFTER")
_WORDS = {
    "client_abort": "by their client",
    "coordinator_timeout": "by a timeout",
    "fenced_by_new_instance": "by a new instance",
    "administrator_marker": "by an administrator",
}


def stats_text(answer: StatsAnswer) -> str:
    """The answer as text of bounded length: the rows that it holds, and how many more there are."""
    lines = [_title(answer), "", *_table(answer), ""]
    for label, text in _below(answer):
        lines += (line.text for line in labelled(label, text, WIDTH, _TEXT_FROM))
    return "".join(f"{line}\n" for line in lines)


def _title(answer: StatsAnswer) -> str:
    bounds = [("from", answer.since_ms), ("to before", answer.until_ms)]
    when = "".join(f" {word} {iso_utc(ms)}" for word, ms in bounds if ms is not None)
    ended = f"{count(answer.total.ended_count, 'transaction')} ended{when}"
    return f"{ended}, {count(answer.total.open_count, 'open one')} at the end, each on one partition"


def _table(answer: StatsAnswer) -> Iterator[str]:
    total = [("all", answer.total)] if len(answer.groups) != 1 else []
    rows = [*((_name(one), one) for one in answer.groups), *total]
    table = [(_TITLES[answer.by], *_COLUMNS), *((name, *_cells(one)) for name, one in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for (name, *cells), of_some in zip(table, ("", *(_of_some(one) for _, one in rows)), strict=True):
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join((name.ljust(widths[0]), *numbers)).rstrip()
        if of_some:
            yield f"  MEAN and LONGEST {of_some}"


def _of_some(one: Group) -> str:
    """Of how many transactions a row's durations are, where not of all; one that is missing may be the longest.

    The coordinator's clock times none that held stale data, nor any whose record is gone.
    """
    timed = one.coordinator_timed_count or one.timed_count
    if not timed or timed >= one.ended_count:
        return ""
    longest_ms = one.max_duration_ms if one.coordinator_timed_count else None
    of_all = "" if longest_ms is None else f"; the longest by the client's clock: {_span(longest_ms)}{_BY_CLIENT}"
    return f"of {timed} of {one.ended_count} transactions{of_all}"


def _name(one: Group) -> str:
    return "(id not known)" if one.name is None else clip(one.name, _NAME_WIDTH)


def _cells(one: Group) -> tuple[str, ...]:
    waited = "-" if one.max_marker_wait_ms is None else f"{one.max_marker_wait_ms} ms"
    took = (one.mean_coordinator_duration_ms, one.max_coordinator_duration_ms)
    is_by_client = not one.coordinator_timed_count
    if is_by_client:
        took = (one.mean_duration_ms, one.max_duration_ms)
    return (
        str(one.committed_count),
        str(one.aborted_count),
        str(one.empty_count),
        str(one.open_count),
        str(one.record_count),
        size(one.size_bytes),
        *("-" if ms is None else f"{_span(ms)}{_BY_CLIENT if is_by_client else ''}" for ms in took),
        waited,
    )


_BY_CLIENT = " *"


def _span(duration_ms: int) -> str:
    return f"{duration_ms} ms" if duration_ms < 1000 else duration(duration_ms)


def _below(answer: StatsAnswer) -> Iterator[tuple[str, str]]:
    """What stands below the table, as label and text."""
    if answer.left_out_count:
        yield "not shown", f"{answer.left_out_count} more; --limit shows more of them, and the last row has all"
    total = answer.total
    if total.aborted_count:
        known = [f"{number} {_WORDS[name]}" for name, column in CAUSES.items() if (number := getattr(total, column))]
        unknown = [f"{total.unexplained_abort_count} not known"] if total.unexplained_abort_count else []
        yield "aborted", ", ".join((*known, *unknown))
        if any(one.framework == FLINK.name and one.coordinator_timeout_count for one in answer.groups):
            yield "", f"of an id like Flink's {FLINK.costs}"
    yield from _each("longest", _longest(answer)[:_MOST_LONGEST])
    yield (
        "durations",
        (
            f"by the coordinator's clock, from its start to its decision, of "
            f"{count(total.coordinator_timed_count, 'transaction')} whose record is left. Those with{_BY_CLIENT} are "
            "from the timestamp of the first batch to the end marker: by the client's clock unless the topic has "
            "LogAppendTime, so that records with event time look long. MARKER AFTER is the longest wait from the "
            "coordinator's decision to its marker, by two brokers' clocks"
        ),
    )
    yield from _each("cannot say", list(answer.cannot_say))


def _each(label: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    return ((label if not place else "", text) for place, text in enumerate(texts))


def _longest(answer: StatsAnswer) -> list[str]:
    """Those that the coordinator's clock timed come first; behind them others, by the client's."""
    timed = {(one.topic, one.partition, one.end_offset) for one in answer.longest_by_coordinator}
    others = [one for one in answer.longest if (one.topic, one.partition, one.end_offset) not in timed]
    return [*(_long(one, "") for one in answer.longest_by_coordinator), *(_long(one, _BY_CLIENT) for one in others)]


def _long(one: LongTransaction, mark: str) -> str:
    whose = f"producer id {one.producer_id}" if one.transactional_id is None else clip(one.transactional_id, _ID_WIDTH)
    where = f"{escape(str(Address.of_transaction(one)))} to offset {one.end_offset}"
    return f"{_span(one.duration_ms)}{mark}: {where}, {whose}, {one.outcome}"
