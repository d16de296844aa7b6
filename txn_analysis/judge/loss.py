"""Whether a transaction was committed, and its marker lost: what its log and the coordinator's history say of that.

An unclean election or a lost disk can take an acknowledged marker (KAFKA-7408), and a coordinator that takes a
partition for deleted completes a commit without sending it one
(`TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue`). An abort would then destroy acknowledged data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.coordinator.end_markers import COMMIT
from txn_analysis.judge.facts import Loss
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH
from txn_analysis.logic import UNBOUNDED_MS, is_before, minus
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.coordinator.chain import Rise
    from txn_analysis.coordinator.coverage import StatePartition
    from txn_analysis.judge.fact_finding import Case


class Hidden(NamedTuple):
    """What of the coordinator's history can have held a decision on the transaction, and is gone.

    `gap_ends_ms` are the moments behind the newest gap of each part of the history, UNBOUNDED_MS where nothing tells;
    `rises` are where the leader of such a part changed.
    """

    gap_ends_ms: tuple[int, ...]
    rises: tuple[Rise, ...]

    @property
    def is_any(self) -> bool:
        """There is a gap."""
        return bool(self.gap_ends_ms)


def hidden_in(case: Case) -> Hidden:
    """Of a known id its own history since the producer's last end marker; else every partition of the state."""
    if case.known is None:
        parts = case.state.expected
        ends = [_gap_of_unknown_ms(case, p) for p in parts]
    else:
        parts = [p for p in [case.state.partition(case.known.state_partition)] if p is not None]
        ends = [_own_gap_ms(case)]
    since_ms = case.since_ms if case.known is not None else None
    counting = [ms for ms in ends if ms is not None and (since_ms is None or ms >= since_ms)]
    return Hidden(tuple(counting), tuple(rise for p in parts for rise in p.chain.rises))


def _own_gap_ms(case: Case) -> int | None:
    """The end of the newest gap in a known id's history; an export shows none but before its first record."""
    known = case.known
    assert known is not None
    holder = case.state.partition(known.state_partition)
    if holder is None:
        return UNBOUNDED_MS
    if holder.is_console and not holder.undecodable_count:
        return known.export_gap_ms if case.settings.transaction_state_complete else UNBOUNDED_MS
    return holder.chain.gap_end_ms


def _gap_of_unknown_ms(case: Case, partition: StatePartition) -> int | None:
    """The end of the newest gap in which an unknown producer's history can be gone.

    In an export that is what came before the first record of each id: whatever producer ids it had used up by then.
    """
    if not partition.is_console:
        return partition.chain.gap_end_ms
    return UNBOUNDED_MS if _is_lost_in_export(case) else partition.chain.export_gap_ms


def _is_lost_in_export(case: Case) -> bool:
    """An export may lack all of an unknown producer: nobody vouches for it, its id expired, or rotated away."""
    known_since_ms = minus(case.moments.reach_ms, case.settings.transactional_id_expiration_ms)
    first_ms = case.opened.first_appended_after_ms
    has_expired = first_ms is None or is_before(first_ms, known_since_ms)
    is_rotating = (case.opened.producer_epoch or 0) >= EXHAUSTED_EPOCH
    return not case.settings.transaction_state_complete or has_expired or is_rotating


def loss_of(case: Case, hidden: Hidden) -> Loss:
    """What is known of a lost commit marker."""
    opened, last_ms, skew_ms = case.opened, case.last_moment_ms, case.settings.max_clock_skew_ms
    unserved = None if case.known is None else case.known.without_marker
    commit = None if unserved is None else unserved.commit
    abort = None if unserved is None else unserved.abort
    is_settled = [last_ms is not None and d.settled_ms <= last_ms - skew_ms for d in (abort,) if d is not None]
    gaps = _gaps_since_written(case, hidden)
    return Loss(
        commit=commit
        if commit is not None and last_ms is not None and commit.settled_ms <= last_ms - skew_ms
        else None,
        other_copy_offset=opened.other_copy_commit_offset,
        doubts=tuple(_doubts(case, hidden, gaps)),
        is_ruled_out=case.settings.no_records_lost,
        hides_no_commit=last_ms is not None and commit is None and all(is_settled) and not gaps,
    )


def _gaps_since_written(case: Case, hidden: Hidden) -> list[int]:
    """The gaps that can hide a decision on the transaction: those that end before its first batch cannot."""
    opened = case.opened
    first_ms = opened.first_appended_after_ms if opened.is_txn_start_exact else None
    since_ms = minus(first_ms, case.settings.max_clock_skew_ms)
    return [ms for ms in hidden.gap_ends_ms if since_ms is None or ms >= since_ms]


def _doubts(case: Case, hidden: Hidden, gaps: list[int]) -> list[str]:
    opened, skew_ms = case.opened, case.settings.max_clock_skew_ms
    first_ms, last_ms, is_exact = (
        opened.first_appended_after_ms,
        opened.first_appended_before_ms,
        opened.is_txn_start_exact,
    )
    rises = [r for r in hidden.rises if r.may_touch(first_ms if is_exact else None, last_ms, skew_ms)]
    doubts = []
    if gaps:
        until = "" if max(gaps) == UNBOUNDED_MS else f" up to {utc(max(gaps))}"
        doubts.append(f"compaction or retention took records of __transaction_state{until} that may have decided it")
    if rises:
        at = utc(rises[-1].by_ms) or "an unknown moment"
        doubts.append(f"the leader of __transaction_state changed by {at}: records of its end may have been cut off")
    if not is_exact and case.known is not None and case.known.without_marker.has_commit_of_any_age:
        doubts.append(f"a {COMMIT} of its producer has no marker here, and its start may lie before the first file")
    return doubts
