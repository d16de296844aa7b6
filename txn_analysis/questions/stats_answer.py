"""What `stats` answers, as data: one row for each application, transactional id or topic, and what it cannot say."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

from txn_analysis.report.ended_slices import EndedSlice  # noqa: TC001 pydantic reads it
from txn_analysis.report.model import InJson, Item
from txn_analysis.text.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    of them; a marker's wait is from the coordinator's decision to the marker, of `decided_count`, by two brokers'
    clocks. What is known of none is None.
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


GroupItem = Annotated[Group, InJson("Group")]


class StatsAnswer(Item):
    """What transactions did; `groups` with most ended ones first, of which `left_out_count` more are not shown.

    `total` is of all groups. Ended ones and end markers count from `since_ms` to before `until_ms`, by the broker's
    time of the marker; None is no bound. `longest` are the longest of all, `over_time` the ended ones by time.
    `cannot_say` is what the tables do not tell, in words.
    """

    run_id: str
    by: By
    since_ms: int | None
    until_ms: int | None
    total: GroupItem
    groups: tuple[GroupItem, ...]
    left_out_count: int
    longest: tuple[Annotated[LongTransaction, InJson("LongTransaction")], ...]
    over_time: tuple[Annotated[EndedSlice, InJson("EndedSlice")], ...]
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
        yield "no partition of __transaction_state was given: no transactional id, no cause and no wait is known"
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
