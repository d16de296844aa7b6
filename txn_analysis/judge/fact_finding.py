"""How the facts of one open transaction follow from its log, the coordinator's view and the settings.

Lateness, clocks and bounds follow the contract's section 5. Wherever the clocks of two brokers are compared,
`max_clock_skew_ms` is allowed for. What cannot be told is None, and None is decided explicitly in each fact: an
accusation needs proof, and so does an acquittal of the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.config import LATE_TRANSACTION_BUFFER_MS
from txn_analysis.judge.facts import AgainstTransaction, Facts, Lateness, LogReach, StateReach
from txn_analysis.judge.logic import minus, more, plus, possible, proven
from txn_analysis.judge.records import NEVER_TIMES_OUT_MS

if TYPE_CHECKING:
    from txn_analysis.config import Settings
    from txn_analysis.judge.coordinator_view import CoordinatorView
    from txn_analysis.judge.records import OpenTransaction, PartitionView
    from txn_analysis.judge.state_coverage import StateEvidence, StatePartition


def facts_of(
    opened: OpenTransaction,
    partition: PartitionView,
    coordinator: CoordinatorView | None,
    state: StateEvidence,
    settings: Settings,
    as_of_ms: int | None,
    state_leader_epoch: int | None = None,
) -> Facts:
    """The facts of one open transaction.

    Args:
        opened: what its own log says.
        partition: the health of its partition.
        coordinator: what the coordinator knows; None where no transactional id has, or had, its producer id.
        state: what was seen of `__transaction_state`.
        settings: bounds, and what the operator gave their word for.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
        state_leader_epoch: leader epoch of the partition of the state that decides, as far as that was read.
    """
    holder = None if coordinator is None else state.partition(coordinator.state_partition)
    return Facts(
        open=opened,
        partition=partition,
        coordinator=coordinator,
        lateness=_lateness(opened, settings, as_of_ms),
        live=_against_transaction(opened, coordinator, settings, as_of_ms),
        state=_state_reach(opened, coordinator, holder, state, settings, state_leader_epoch),
        log=_log_reach(opened, partition, coordinator, holder, settings, as_of_ms),
        max_clock_skew_ms=settings.max_clock_skew_ms,
        expired_before_ms=minus(as_of_ms, settings.transactional_id_expiration_ms),
    )


def _lateness(opened: OpenTransaction, settings: Settings, as_of_ms: int | None) -> Lateness:
    last_ms, bound_ms = opened.last_timestamp_ms, settings.late_after_ms
    is_credible = as_of_ms is not None and last_ms is not None and 0 < last_ms <= as_of_ms
    quiet_ms = minus(as_of_ms, last_ms if is_credible else opened.appended_before_ms)
    basis = "last_timestamp" if is_credible else "broker_clock"
    return Lateness(
        idle_ms=minus(as_of_ms, last_ms),
        basis=None if quiet_ms is None else basis,
        late_by_ms=minus(quiet_ms, bound_ms),
        is_late=more(quiet_ms, bound_ms),
    )


def _against_transaction(
    opened: OpenTransaction, known: CoordinatorView | None, settings: Settings, as_of_ms: int | None
) -> AgainstTransaction:
    """Older data is stale only if the transaction that it belongs to is over.

    A busy producer's is over as well where the state was copied after the log, but there its end marker came in
    between: `was_ended_after_log`.
    """
    if known is None:
        return AgainstTransaction(
            is_older_by_clock=False, is_older_by_epoch=False, is_update_overdue=False, is_transaction_overdue=False
        )
    is_stale = not known.was_ended_after_log
    first_before_ms = plus(opened.first_appended_before_ms, settings.max_clock_skew_ms)
    unmoved_ms = minus(as_of_ms, known.update_ms)
    ends_ms = plus(plus(known.start_ms, known.timeout_ms), LATE_TRANSACTION_BUFFER_MS)
    return AgainstTransaction(
        is_older_by_clock=is_stale and proven(more(known.start_ms, first_before_ms)),
        is_older_by_epoch=is_stale and proven(more(known.txn_epoch, opened.max_producer_epoch)),
        is_update_overdue=proven(more(unmoved_ms, settings.late_after_ms)),
        is_transaction_overdue=known.timeout_ms != NEVER_TIMES_OUT_MS and proven(more(as_of_ms, ends_ms)),
    )


def _state_reach(
    opened: OpenTransaction,
    known: CoordinatorView | None,
    holder: StatePartition | None,
    state: StateEvidence,
    settings: Settings,
    leader_epoch: int | None,
) -> StateReach:
    """An id's answer lies in the one partition that holds the id; the answer that there is none lies in all of them."""
    must_reach, before_ms = not settings.state_copied_last, opened.appended_before_ms
    waived = settings.transaction_state_complete
    if known is None:
        reached_ms, gaps = state.oldest_moment_ms(), state.gaps(holes_waived=waived)
    elif holder is None:
        reached_ms, gaps = None, [*state.misfits, "the partition that holds the id is not in the capture"]
    else:
        reached_ms, gaps = holder.moment_ms, [*state.misfits, *holder.gaps(holes_waived=waived)]
    is_behind = more(plus(before_ms, settings.max_clock_skew_ms), reached_ms)
    return StateReach(
        is_unbounded=must_reach and before_ms is None,
        is_behind=must_reach and before_ms is not None and possible(is_behind),
        is_epoch_ahead=known is not None and proven(more(opened.max_producer_epoch, known.state_epoch)),
        gaps=tuple(gaps),
        partitions_seen=state.seen_count,
        partitions_expected=state.expected_count,
        leader_epoch=leader_epoch,
    )


def _log_reach(
    opened: OpenTransaction,
    partition: PartitionView,
    known: CoordinatorView | None,
    holder: StatePartition | None,
    settings: Settings,
    as_of_ms: int | None,
) -> LogReach:
    last_ms = partition.last_moment_ms
    if known is None:
        seen_to_ms = last_ms if last_ms is not None else partition.last_credible_timestamp_ms
        known_since_ms = minus(as_of_ms, settings.transactional_id_expiration_ms)
        return LogReach(may_end_early=possible(more(known_since_ms, seen_to_ms)), has_history_gap=None)
    log_end_ms = minus(last_ms, settings.max_clock_skew_ms)
    recorded_later = possible(more(known.recorded_after_ms, log_end_ms))
    has_gap = holder is not None and _has_gap(opened, known, holder, settings)
    return LogReach(
        may_end_early=recorded_later and (has_gap or known.has_prepare_since_marker), has_history_gap=has_gap
    )


def _has_gap(opened: OpenTransaction, known: CoordinatorView, holder: StatePartition, settings: Settings) -> bool:
    """The id's history from the producer's last end marker on may lack records; without a marker, all of it counts."""
    since_ms = minus(opened.last_marker_ms, settings.max_clock_skew_ms)
    if holder.is_console:
        first_ms = known.first_recorded_ms
        return not settings.transaction_state_complete or since_ms is None or first_ms is None or first_ms >= since_ms
    return holder.gap_ms is not None and (since_ms is None or holder.gap_ms >= since_ms)
