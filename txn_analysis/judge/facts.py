"""Facts: one open transaction with everything that the rules ask, each condition under its own name.

Lateness, clocks and bounds follow the contract's section 5. All moments are epoch milliseconds of some broker's
clock; wherever those of two brokers are compared, `max_clock_skew_ms` is allowed for. What cannot be told is None, and
None is decided explicitly in each fact: an accusation needs proof, and so does an acquittal of the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txn_analysis.config import LATE_TRANSACTION_BUFFER_MS
from txn_analysis.judge.coordinator import COORDINATOR_FACTS

if TYPE_CHECKING:
    from txn_analysis.config import Settings
    from txn_analysis.judge.state_coverage import StateEvidence, StatePartition

Row = dict[str, Any]

# KIP-939: such a transaction is a two-phase commit that only its owner may end.
NEVER_TIMES_OUT_MS = 2**31 - 1


def facts(
    opened: Row,
    partition: Row,
    coordinator: Row | None,
    state: StateEvidence,
    settings: Settings,
    as_of_ms: int | None,
) -> Row:
    """One open transaction: its own columns, its partition's, the coordinator's, and the conditions.

    Args:
        opened: its row of `transactions`, with `evidence_gaps`.
        partition: the row of `partition_health` of its partition.
        coordinator: its row of `coordinator_facts`; None where no transactional id has, or had, its producer id.
        state: what was seen of `__transaction_state`.
        settings: bounds, and what the operator gave their word for.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
    """
    row = {name: value for name, value in opened.items() if name != "run_id"}
    row |= _of_partition(opened, partition)
    row |= {name: None if coordinator is None else coordinator[name] for name in COORDINATOR_FACTS}
    holder = state.partition(row["state_partition"])
    return (
        row
        | _lateness(row, settings, as_of_ms)
        | _against_live_transaction(row, settings, as_of_ms)
        | _against_state(row, holder, state, settings)
        | _against_log(row, holder, settings, as_of_ms)
    )


def _of_partition(opened: Row, partition: Row) -> Row:
    stable = partition["last_stable_offset"]
    return {
        "log_end_offset": partition["end_offset"],
        "last_stable_offset": stable,
        "last_moment_ms": partition["last_moment_ms"],
        "last_credible_timestamp_ms": partition["last_credible_timestamp_ms"],
        # Brokers do not let it fall behind the log start, so that several may hold it there.
        "blocks_partition": None if stable is None else opened["txn_start_offset"] <= stable,
    }


def _plus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _minus(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left - right


def _is_more(left: int | None, right: int | None) -> bool | None:
    return None if left is None or right is None else left > right


def _is_proven(condition: bool | None) -> bool:
    """The condition with None as false, for conditions that accuse only on proof."""
    return condition is True


def _is_possible(condition: bool | None) -> bool:
    """The condition with None as true, for conditions that only proof can rule out."""
    return condition is not False


def _lateness(row: Row, settings: Settings, as_of_ms: int | None) -> Row:
    """Late means strictly beyond the bound (`ProducerStateManager.hasLateTransaction`), by the best clock there is."""
    last_ms, before_ms, bound_ms = row["last_timestamp_ms"], row["appended_before_ms"], settings.late_after_ms
    is_credible = as_of_ms is not None and last_ms is not None and 0 < last_ms <= as_of_ms
    quiet_ms = _minus(as_of_ms, last_ms if is_credible else before_ms)
    basis = "last_timestamp" if is_credible else "broker_clock"
    return {
        "idle_ms": _minus(as_of_ms, last_ms),
        "lateness_basis": None if quiet_ms is None else basis,
        "late_by_ms": _minus(quiet_ms, bound_ms),
        "is_late": _is_more(quiet_ms, bound_ms),
    }


def _against_live_transaction(row: Row, settings: Settings, as_of_ms: int | None) -> Row:
    """Is the coordinator's transaction another one than the open data's, and is it past its own times?

    Older data is stale only if the transaction that it belongs to is over. A busy producer's is over as well where the
    state was copied after the log, but there its end marker came in between: `was_ended_after_log`.
    """
    is_stale = not row["was_ended_after_log"]
    start_ms, timeout_ms = row["coordinator_start_ms"], row["coordinator_timeout_ms"]
    first_before_ms = _plus(row["first_appended_before_ms"], settings.max_clock_skew_ms)
    unmoved_ms = _minus(as_of_ms, row["coordinator_update_ms"])
    ends_ms = _plus(_plus(start_ms, timeout_ms), LATE_TRANSACTION_BUFFER_MS)
    return {
        "is_older_by_clock": is_stale and _is_proven(_is_more(start_ms, first_before_ms)),
        "is_older_by_epoch": is_stale and _is_proven(_is_more(row["coordinator_txn_epoch"], row["max_producer_epoch"])),
        "is_update_overdue": _is_proven(_is_more(unmoved_ms, settings.late_after_ms)),
        "is_transaction_overdue": timeout_ms != NEVER_TIMES_OUT_MS and _is_proven(_is_more(as_of_ms, ends_ms)),
        "is_producer_live": _is_proven(row["is_producer_live"]),
    }


def _against_state(row: Row, holder: StatePartition | None, state: StateEvidence, settings: Settings) -> Row:
    """Does the state reach up to the open data, and could it hold the answer at all?

    An id's answer lies in the one partition that holds the id; the answer that there is none lies in all of them.
    """
    must_reach, before_ms = not settings.state_copied_last, row["appended_before_ms"]
    is_known, waived = row["transactional_id"] is not None, settings.transaction_state_complete
    if not is_known:
        reached_ms, gaps = state.oldest_moment_ms(), state.gaps(holes_waived=waived)
    elif holder is None:
        reached_ms, gaps = None, [*state.misfits, "the partition that holds the id is not in the capture"]
    else:
        reached_ms, gaps = holder.moment_ms, [*state.misfits, *holder.gaps(holes_waived=waived)]
    is_behind = _is_more(_plus(before_ms, settings.max_clock_skew_ms), reached_ms)
    return {
        "is_unbounded": must_reach and before_ms is None,
        "is_state_behind": must_reach and before_ms is not None and _is_possible(is_behind),
        "is_epoch_ahead": _is_proven(_is_more(row["max_producer_epoch"], row["state_epoch"])),
        "state_gaps": gaps,
        "state_partitions_seen": state.seen_count,
        "state_partitions_expected": state.expected_count,
    }


def _against_log(row: Row, holder: StatePartition | None, settings: Settings, as_of_ms: int | None) -> Row:
    """Could the transaction have been ended after this partition's log was copied?"""
    if row["transactional_id"] is None:
        seen_to_ms = row["last_moment_ms"] if row["last_moment_ms"] is not None else row["last_credible_timestamp_ms"]
        known_since_ms = _minus(as_of_ms, settings.transactional_id_expiration_ms)
        return {"may_log_end_early": _is_possible(_is_more(known_since_ms, seen_to_ms)), "has_history_gap": None}
    log_end_ms = _minus(row["last_moment_ms"], settings.max_clock_skew_ms)
    recorded_later = _is_possible(_is_more(row["recorded_after_ms"], log_end_ms))
    has_gap = holder is not None and _has_gap(row, holder, settings)
    may_end_early = recorded_later and (has_gap or row["has_prepare_since_marker"])
    return {"may_log_end_early": may_end_early, "has_history_gap": has_gap}


def _has_gap(row: Row, holder: StatePartition, settings: Settings) -> bool:
    """The id's history from the producer's last end marker on may lack records; without a marker, all of it counts."""
    since_ms = _minus(row["last_marker_ms"], settings.max_clock_skew_ms)
    if holder.is_console:
        first = row["first_recorded_ms"]
        return not settings.transaction_state_complete or since_ms is None or first is None or first >= since_ms
    return holder.gap_ms is not None and (since_ms is None or holder.gap_ms >= since_ms)
