"""Where open data can have come from: what one transactional id's history says of the time before and after it.

Pure Python over the records of one id, in the order of its partition of `__transaction_state`. The causes
(`judge.causes`) are read from these facts; no verdict is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.coordinator.history import decides
from txn_analysis.kafka.transactions import EMPTY, LIVE, ONGOING, PREPARE_COMMIT
from txn_analysis.logic import more

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.coordinator.view import Asked
    from txn_analysis.kafka.transactions import StateRecord, TopicPartition

VERSION_2 = 2
"""Of transactions, with which every end raises the epoch (KIP-890)."""
_AFTER_ALL = 2**63


class Origins(NamedTuple):
    """What happened to the id around the open data; moments in epoch milliseconds, None where it did not happen.

    Attributes:
        ended_state: the decision that the producer's last end marker in the partition carried out; `ended_ms` is its
            moment, `ended_again_after_ms` how soon after an equal decision it came.
        listed_since_ms: the last record after it that lists the partition in a transaction.
        prepared_state: the last decision after it that lists the partition; `prepared_ms` is its moment,
            `completed_ms` that of its completion.
        began_since_ms: the first transaction after it, which does not list the partition.
        new_epoch: of the first record with which an instance took the id over after the data's first epoch;
            `new_epoch_ms` is its moment.
        rotated_to: the first other producer id; `rotated_ms` is its moment, `is_rotation_recorded` says that the
            records link the two ids.
        last_own_epoch: the last epoch under the data's producer id.
        tombstone_ms: the last removal of the id.
        first_own_ms: its first record under the data's producer id.
        is_order_doubtful: another decision could be the one behind the marker.
        is_version_2: its client ended transactions by version 2 (KIP-890): a record says so, or a commit raised the
            epoch.
    """

    ended_state: str | None = None
    ended_ms: int | None = None
    ended_again_after_ms: int | None = None
    listed_since_ms: int | None = None
    prepared_state: str | None = None
    prepared_ms: int | None = None
    completed_ms: int | None = None
    began_since_ms: int | None = None
    new_epoch: int | None = None
    new_epoch_ms: int | None = None
    rotated_to: int | None = None
    rotated_ms: int | None = None
    is_rotation_recorded: bool = False
    last_own_epoch: int | None = None
    tombstone_ms: int | None = None
    first_own_ms: int | None = None
    is_order_doubtful: bool = False
    is_version_2: bool = False


def origins_of(history: Sequence[StateRecord], opened: Asked, max_clock_skew_ms: int) -> Origins:
    """What the history of one id that has, or had, the producer id says of the origin of open data."""
    where, producer_id = opened.topic_partition, opened.producer_id
    decided = decisions(history, where, producer_id)
    marked, is_doubtful = marker_record(decided, opened.last_marker_ms, max_clock_skew_ms)
    since = _since(history, opened.last_marker_ms, marked)
    taken_over = _taken_over(since, opened)
    named = (r for r in history if not r.is_tombstone and r.names(producer_id))
    first_own = next(named, None)
    return Origins(
        **_ended(history, marked),
        **_listed(since, where, producer_id),
        **_rotated(history, producer_id),
        began_since_ms=_began_ms(since, where, producer_id),
        new_epoch=None if taken_over is None else taken_over.producer_epoch,
        new_epoch_ms=None if taken_over is None else taken_over.moment_ms,
        tombstone_ms=next((r.moment_ms for r in reversed(history) if r.is_tombstone), None),
        first_own_ms=None if first_own is None else first_own.moment_ms,
        is_order_doubtful=is_doubtful,
        is_version_2=any((r.client_transaction_version or 0) >= VERSION_2 for r in history)
        or bool(raises_commits(history)),
    )


def raises_commits(history: Sequence[StateRecord]) -> bool | None:
    """Whether a commit raised the epoch, as only transaction version 2 does; None where no commit is left."""
    are_raised = [
        more(decision.producer_epoch, ongoing.producer_epoch) is True
        for ongoing, decision in pairwise(history)
        if ongoing.state == ONGOING and decision.state == PREPARE_COMMIT and ongoing.producer_id == decision.producer_id
    ]
    return any(are_raised) if are_raised else None


def decisions(history: Sequence[StateRecord], where: TopicPartition, producer_id: int) -> list[tuple[int, int]]:
    """The decisions under a producer id that list a partition, by time: their moment and place in the history."""
    return sorted(
        (at_ms, i)
        for i, r in enumerate(history)
        if decides(r, where, producer_id) and (at_ms := r.moment_ms) is not None
    )


def marker_record(decided: list[tuple[int, int]], marker_ms: int | None, max_clock_skew_ms: int) -> tuple[int, bool]:
    """The place of the decision behind an end marker, and whether it could be another one; see `decisions`.

    By time it is the nearest one, as far as clocks may differ, or else the last one before the marker; `ABSENT`
    where there is none, as after compaction.
    """
    if marker_ms is None:
        return ABSENT, False
    first = bisect_left(decided, (marker_ms - max_clock_skew_ms, ABSENT))
    after = bisect_right(decided, (marker_ms + max_clock_skew_ms, _AFTER_ALL))
    if first < after:
        nearest = min(decided[first:after], key=lambda d: (abs(d[0] - marker_ms), -d[1]))
        return nearest[1], after - first > 1
    return (decided[first - 1][1] if first else ABSENT), False


def _since(history: Sequence[StateRecord], marker_ms: int | None, marked: int) -> Sequence[StateRecord]:
    if marked != ABSENT or marker_ms is None:
        return history[marked + 1 :]
    return [r for r in history if (at_ms := r.moment_ms) is None or at_ms > marker_ms]


def _ended(history: Sequence[StateRecord], marked: int) -> dict[str, Any]:
    """Of `Origins`, what the decision says that the producer's last end marker in the partition carried out."""
    if marked == ABSENT:
        return {}
    decision = history[marked]
    equal = next((r for r in reversed(history[:marked]) if r.state == decision.state), None)
    at_ms, before_ms = decision.moment_ms, None if equal is None else equal.moment_ms
    again_after_ms = None if at_ms is None or before_ms is None else at_ms - before_ms
    return {"ended_state": decision.state, "ended_ms": at_ms, "ended_again_after_ms": again_after_ms}


def _listed(since: Sequence[StateRecord], where: TopicPartition, producer_id: int) -> dict[str, Any]:
    """Of `Origins`, what the last record after it that lists the partition says, and the last decision among those."""
    listed = [(i, r) for i, r in enumerate(since) if r.concerns(where, producer_id)]
    if not listed:
        return {}
    listed_since_ms = listed[-1][1].moment_ms
    prepared = [(i, r) for i, r in listed if decides(r, where, producer_id)]
    if not prepared:
        return {"listed_since_ms": listed_since_ms}
    index, record = prepared[-1]
    done = next((r for r in since[index + 1 :] if r.is_completed), None)
    return {
        "listed_since_ms": listed_since_ms,
        "prepared_state": record.state,
        "prepared_ms": record.moment_ms,
        "completed_ms": None if done is None else done.moment_ms,
    }


def _began_ms(since: Sequence[StateRecord], where: TopicPartition, producer_id: int) -> int | None:
    others = (r for r in since if r.state in LIVE and r.names(producer_id) and where not in r.topic_partitions)
    record = next(others, None)
    if record is None:
        return None
    return record.start_ms if record.start_ms is not None else record.moment_ms


def _taken_over(since: Sequence[StateRecord], opened: Asked) -> StateRecord | None:
    """InitProducerId alone writes an Empty record; with transaction version 2 every transaction raises the epoch."""
    first_epoch = opened.first_producer_epoch
    begun = (r for r in since if r.state == EMPTY and r.producer_id == opened.producer_id)
    return next((r for r in begun if more(r.producer_epoch, first_epoch) is True), None)


def _rotated(history: Sequence[StateRecord], producer_id: int) -> dict[str, Any]:
    """Of `Origins`, what the first record of another producer id says, and the last one under the data's own."""
    places = [i for i, r in enumerate(history) if r.producer_id == producer_id]
    if not places:
        return {}
    old = history[places[-1]]
    later = next((r for r in history[places[-1] + 1 :] if r.producer_id is not None), None)
    if later is None:
        return {"last_own_epoch": old.producer_epoch}
    return {
        "rotated_to": later.producer_id,
        "rotated_ms": later.moment_ms,
        "is_rotation_recorded": producer_id == later.previous_producer_id or old.next_producer_id == later.producer_id,
        "last_own_epoch": old.producer_epoch,
    }
