"""What the coordinator knows of one open transaction: its id's current state, and what its history says.

Pure Python over the histories of the few ids that have, or had, its producer id.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.judge.history import current_transaction, in_order
from txn_analysis.judge.logic import latest, minus
from txn_analysis.judge.origins import Origins, origins_of
from txn_analysis.judge.records import LIVE, PREPARED, TOMBSTONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from txn_analysis.judge.records import OpenTransaction, StateRecord, TopicPartition

Views = dict[tuple["TopicPartition", int], "CoordinatorView"]
"""By `OpenTransaction.key`; without those whose producer id no transactional id has, or had."""


@dataclass(frozen=True, slots=True)
class CoordinatorView:
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
        is_listed: its current transaction contains the partition and runs under the producer id.
        runs_under_producer_id: its last record stands for the producer id.
        is_producer_live: it has a transaction in progress under the producer id.
        state_epoch: epoch of its last record, where that is of the producer id.
        recorded_after_ms: the latest moment at which the coordinator recorded something for the producer id.
        first_recorded_ms: moment of the first record that is left of the id.
        has_prepare_since_marker: since the producer's last end marker in the partition (- skew) a decision lists the
            partition: the transaction may have been ended after the log was copied.
        was_ended_after_log: it was: an earlier transaction than the current one, with this partition, was decided later
            than that marker by more than the skew, and its own marker is not in the log.
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
    is_listed: bool
    runs_under_producer_id: bool
    is_producer_live: bool
    state_epoch: int | None
    recorded_after_ms: int | None
    first_recorded_ms: int | None
    has_prepare_since_marker: bool
    was_ended_after_log: bool
    origins: Origins


def view_of(history: Sequence[StateRecord], opened: OpenTransaction, max_clock_skew_ms: int) -> CoordinatorView:
    """What the history of one transactional id says of an open transaction whose producer id it has, or had."""
    last, where, producer_id = history[-1], opened.topic_partition, opened.producer_id
    own = [r for r in history if r.is_tombstone or r.names(producer_id)]
    since_ms = minus(opened.last_marker_ms, max_clock_skew_ms)
    prepared = [
        r
        for r in own
        if r.state in PREPARED and r.lists(where, producer_id) and (since_ms is None or _is_after(r, since_ms))
    ]
    start_ms, txn_epoch = current_transaction(history)
    runs_under_it = not last.is_tombstone and last.names(producer_id)
    return CoordinatorView(
        transactional_id=last.transactional_id,
        state_partition=last.state_partition,
        state=TOMBSTONE if last.is_tombstone else last.state,
        producer_id=last.producer_id,
        producer_epoch=last.producer_epoch,
        start_ms=start_ms,
        update_ms=last.last_update_ms,
        timeout_ms=last.timeout_ms,
        txn_epoch=txn_epoch if runs_under_it else None,
        is_listed=not last.is_tombstone and last.lists(where, producer_id),
        runs_under_producer_id=runs_under_it,
        is_producer_live=runs_under_it and last.state in LIVE,
        state_epoch=last.producer_epoch if not last.is_tombstone and last.producer_id == producer_id else None,
        recorded_after_ms=latest(*(r.moment_ms for r in own)),
        first_recorded_ms=history[0].moment_ms,
        has_prepare_since_marker=bool(prepared),
        was_ended_after_log=any(
            r is not last and _is_proven_after(r, opened.last_marker_ms, max_clock_skew_ms) for r in prepared
        ),
        origins=origins_of(history, opened, max_clock_skew_ms),
    )


def _is_after(record: StateRecord, since_ms: int) -> bool:
    moment_ms = record.moment_ms
    return moment_ms is None or moment_ms > since_ms


def _is_proven_after(record: StateRecord, marker_ms: int | None, max_clock_skew_ms: int) -> bool:
    moment_ms = record.moment_ms
    return marker_ms is None or (moment_ms is not None and moment_ms > marker_ms + max_clock_skew_ms)


def views_of(
    histories: Mapping[str, Iterable[StateRecord]], opened: Sequence[OpenTransaction], max_clock_skew_ms: int
) -> Views:
    """What the coordinator knows of open transactions of one producer id.

    Args:
        histories: of the ids that have, or had, the producer id, the records in any order.
        opened: the open transactions of that producer id.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
    """
    found: defaultdict[tuple[TopicPartition, int], list[CoordinatorView]] = defaultdict(list)
    for records in histories.values():
        history = in_order(records)
        for transaction in opened:
            found[transaction.key].append(view_of(history, transaction, max_clock_skew_ms))
    return {key: best_of(views) for key, views in found.items()}


def best_of(views: Iterable[CoordinatorView]) -> CoordinatorView:
    """Of what several ids say of one open transaction, what counts.

    The id whose transaction lists the partition, then the one that runs under the producer id, then the one that was
    updated last.
    """
    return max(views, key=lambda v: (v.is_listed, v.runs_under_producer_id, v.update_ms or 0, v.transactional_id))
