"""What the coordinator knows of one open transaction: its id's current state, and what its history says.

Pure Python over the histories of the few ids that have, or had, its producer id. Where open data can have come from,
`Origins`, is what the causes (`judge.causes`) are read from; no verdict is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.columns.records import Int32
from txn_analysis.coordinator.history import (
    EndMarker,
    WithoutMarker,
    current_transaction,
    decides,
    decisions,
    decisions_of,
    left_over,
    marker_record,
    raises_commits,
    that_matter,
    written_by_ms,
)
from txn_analysis.kafka.transactions import EMPTY, LIVE, TOMBSTONE, StateRecord, TopicPartition
from txn_analysis.logic import Truth, more

VERSION_2 = 2
"""Of transactions, with which every end raises the epoch (KIP-890)."""


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


Views = dict[tuple["TopicPartition", int], "CoordinatorView"]
"""By `Transaction.key`; without those whose producer id no transactional id has, or had."""
_LISTED: tuple[Truth, ...] = (False, None, True)


class Asked(NamedTuple):
    """An open transaction, as far as the coordinator is asked about it: fields as of `Transaction`.

    `place` is its place among all.
    """

    place: int
    topic: str
    partition: Int32
    producer_id: int
    first_producer_epoch: Int32 | None
    last_marker_ms: int | None
    first_appended_after_ms: int | None

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it is."""
        return TopicPartition(self.topic, self.partition)

    @property
    def key(self) -> tuple[TopicPartition, int]:
        """The partition and the producer id."""
        return self.topic_partition, self.producer_id


class CoordinatorView(NamedTuple):
    """The transactional id that has, or had, the producer id of an open transaction; moments in epoch milliseconds.

    Attributes:
        transactional_id: the id.
        state_partition: the partition of `__transaction_state` that holds it.
        state: its current state; `Tombstone` where it was removed.
        producer_id: its current producer id; `producer_epoch` is the epoch of its last record.
        start_ms: when its current transaction began; None where none is in progress, or nothing tells.
        update_ms: the last change of its state.
        timeout_ms: of its transactions.
        txn_epoch: the producer epoch at which its current transaction runs, if that is under the open data's producer
            id; None where compaction has removed what would tell.
        is_listed: its current transaction contains the partition and runs under the producer id; None where its newest
            record is hidden, or has fields of a newer Kafka that may say so.
        is_newest_hidden: a later record of it could not be decoded.
        runs_under_producer_id: its last record stands for the producer id.
        is_producer_live: it has a transaction in progress under the producer id.
        producer_may_return: the producer id is its current one, and it is not removed, so that its client may add the
            partition again, whatever its state. A tombstone of an uncertain id removes nothing here.
        state_epoch: epoch of its last record, where that is of the producer id.
        changed_ms: moment of its last record.
        recorded_ms: the latest moment at which the coordinator can have recorded something for it, under whatever
            producer id.
        export_gap_ms: in a console export, when its first record was written at the latest: what came before is not
            there. None where that record says that the id was new.
        without_marker: the decisions on the partition whose end marker is not in its log.
        origins: what happened to the id around the open data.
    """

    transactional_id: str
    state_partition: int | None
    state: str | None
    producer_id: int | None
    producer_epoch: int | None
    start_ms: int | None
    update_ms: int | None
    timeout_ms: int | None
    txn_epoch: int | None
    is_listed: Truth
    runs_under_producer_id: bool
    is_producer_live: bool
    producer_may_return: bool
    state_epoch: int | None
    changed_ms: int | None
    recorded_ms: int
    export_gap_ms: int | None
    without_marker: WithoutMarker
    origins: Origins
    is_newest_hidden: bool = False

    @property
    def bears_on_others(self) -> bool:
        """A commit of it may be lost, which disproves an assurance."""
        return self.without_marker.commit is not None

    def as_hidden(self) -> CoordinatorView:
        """The same, where a later record of it could not be decoded: what is known of it proves nothing of now."""
        return self._replace(is_listed=None, state_epoch=None, is_newest_hidden=True)


def view_of(
    history: Sequence[StateRecord], opened: Asked, markers: Iterable[EndMarker], max_clock_skew_ms: int
) -> CoordinatorView:
    """What the history of one transactional id says of an open transaction whose producer id it has, or had.

    `markers` are the end markers of that producer in the partition's log.
    """
    last, where, producer_id = history[-1], opened.topic_partition, opened.producer_id
    certain = next((record for record in reversed(history) if not record.is_id_uncertain), last)
    start_ms, txn_epoch = current_transaction(history)
    runs_under_it = not last.is_tombstone and last.names(producer_id)
    written_ms = written_by_ms(history)
    unserved = left_over(decisions_of(history, written_ms, where, producer_id), markers, max_clock_skew_ms)
    is_listed = not last.is_tombstone and last.lists(where, producer_id)
    view = CoordinatorView(
        transactional_id=last.transactional_id,
        state_partition=last.state_partition,
        state=TOMBSTONE if last.is_tombstone else last.state,
        producer_id=last.producer_id,
        producer_epoch=last.producer_epoch,
        start_ms=start_ms,
        update_ms=last.last_update_ms,
        timeout_ms=last.timeout_ms,
        txn_epoch=txn_epoch if runs_under_it else None,
        is_listed=None if not is_listed and last.may_list(producer_id) else is_listed,
        runs_under_producer_id=runs_under_it,
        is_producer_live=runs_under_it and last.state in LIVE,
        producer_may_return=not certain.is_tombstone and certain.producer_id == producer_id,
        state_epoch=certain.producer_epoch if not certain.is_tombstone and certain.producer_id == producer_id else None,
        changed_ms=last.moment_ms,
        recorded_ms=max(written_ms),
        export_gap_ms=None if history[0].is_of_a_new_id else written_ms[0],
        without_marker=that_matter(unserved, opened.first_appended_after_ms, max_clock_skew_ms),
        origins=origins_of(history, opened, max_clock_skew_ms),
    )
    # Kafka expires no id that is in a transaction: a tombstone that would be another id's.
    is_in_transaction = last.is_id_uncertain and certain.state in LIVE
    return view.as_hidden() if last.is_hidden or is_in_transaction else view


def views_of(
    histories: Iterable[Sequence[StateRecord]],
    opened: Sequence[Asked],
    markers: Mapping[TopicPartition, Sequence[EndMarker]],
    max_clock_skew_ms: int,
) -> Views:
    """What the coordinator knows of open transactions of one producer id.

    Args:
        histories: of the ids that have, or had, the producer id, the records in order.
        opened: the open transactions of that producer id.
        markers: its end markers, by partition.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
    """
    views_of: defaultdict[tuple[TopicPartition, int], list[CoordinatorView]] = defaultdict(list)
    for history in histories:
        for transaction in opened:
            of_partition = markers.get(transaction.topic_partition, ())
            views_of[transaction.key].append(view_of(history, transaction, of_partition, max_clock_skew_ms))
    return {key: best_of(views) for key, views in views_of.items()}


def best_of(views: Iterable[CoordinatorView]) -> CoordinatorView:
    """Of what several ids say of one open transaction, what counts.

    The id whose newest record lists the partition, or may, then the one that changed last.
    """
    return max(views, key=lambda v: (_LISTED.index(v.is_listed), v.changed_ms or 0, v.transactional_id))
