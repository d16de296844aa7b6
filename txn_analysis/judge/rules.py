"""The rules of docs/rules.md, in its order: the first that holds gives the verdict.

A rule reads terms of `judge.case` and nothing else; what is said of it is in `judge.words`, under its name. It holds on
True alone: None, for what the evidence cannot tell, matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from txn_analysis.judge.case import Case
from txn_analysis.kafka.transactions import ONGOING, PREPARE_ABORT, PREPARE_COMMIT, PREPARED
from txn_analysis.logic import Truth, both, either, minus, more, no, possible
from txn_analysis.verdict import Verdict


def evidence_broken(c: Case) -> Truth:
    """The partition's batches are not proven whole from the transaction's start to the end."""
    return bool(c.txn.evidence_gaps) or c.is_dead_leaders_tail


def stale_data_in_live_transaction(c: Case) -> Truth:
    """The current transaction lists the partition, the data is older, and no earlier decision can own it."""
    return both(not c.misfits, c.lists(ONGOING), c.is_older, not c.may_be_of_earlier_decision)


def not_late(c: Case) -> Truth:
    """Not late by section 5."""
    return no(c.is_late)


def clock_not_credible(c: Case) -> Truth:
    """No credible time, and no broker-clock bound either."""
    return c.is_late is None


def state_does_not_fit(c: Case) -> Truth:
    """The state does not fit the logs."""
    return bool(c.misfits)


def commit_marker_missing(c: Case) -> Truth:
    """The commit was acknowledged, and its marker is lost (KAFKA-7408); or another copy has the marker."""
    return c.lost_commit is not None or c.txn.other_copy_commit_offset is not None


def marker_overdue(c: Case) -> Truth:
    """The decision is the id's newest record, and older than transaction.max.timeout.ms + 300000."""
    return both(c.lists(*PREPARED), more(minus(c.state_end_ms, c.update_ms), c.settings.late_after_ms))


def marker_pending_commit(c: Case) -> Truth:
    """PrepareCommit lists the partition."""
    return c.lists(PREPARE_COMMIT)


def marker_pending_abort(c: Case) -> Truth:
    """PrepareAbort lists the partition."""
    return c.lists(PREPARE_ABORT)


def coordinator_overdue(c: Case) -> Truth:
    """Ongoing lists the partition, and the state's end is past its start + its timeout + 300000."""
    return both(c.lists(ONGOING), more(c.state_end_ms, c.overdue_after_ms))


def in_coordinator(c: Case) -> Truth:
    """Ongoing lists the partition."""
    return c.lists(ONGOING)


def state_older_than_log(c: Case) -> Truth:
    """The state is not proven to reach up to the open data; the assurance waives all but the epoch."""
    return either(c.is_state_behind, c.is_epoch_ahead)


def log_may_end_early(c: Case) -> Truth:
    """The log is not proven to reach up to the state; nothing waives it."""
    if c.has_undecodable:  # later than any log: left to state_incomplete
        return None
    if c.id is not None:
        is_later = possible(more(c.id.recorded_ms, c.log_end_ms))
        return is_later and (bool(c.gap_ends_ms) or c.id.without_marker.is_any)
    recorded_ms = (*c.gap_ends_ms, *c.state.lone_completes_ms)
    may_be_forgotten = possible(more(c.expires_before_ms, c.last_seen_ms))
    return may_be_forgotten or any(possible(more(ms, c.log_end_ms)) for ms in recorded_ms)


def state_incomplete(c: Case) -> Truth:
    """The part of the state that could hold the answer is missing, broken, or not shown to be of this cluster."""
    return bool(c.state_lacks)


def commit_may_be_missing(c: Case) -> Truth:
    """A commit whose decision is gone may own it; `--no-records-lost` waives it."""
    is_in_doubt = bool(c.gaps_at_start) or bool(c.leader_changes_at_start) or c.may_lack_commit_before_start
    return is_in_doubt and not c.settings.no_records_lost


def unknown_producer(c: Case) -> Truth:
    """No transactional id has, or in any earlier record had, this producer id."""
    return c.id is None


def partition_not_in_transaction(c: Case) -> Truth:
    """The id's current transaction does not contain this partition, or runs under another producer id."""
    return no(c.is_listed)


def no_rule(_: Case) -> Truth:
    """Nothing above matched."""
    return True


class Rule(NamedTuple):
    """A condition of the contract, whose function has its name, and the verdict that it gives."""

    condition: Callable[[Case], Truth]
    verdict: Verdict

    @property
    def name(self) -> str:
        """The contract's."""
        return self.condition.__name__

    def holds_for(self, case: Case) -> bool:
        """The rule decides about a case, if no rule before it does."""
        return self.condition(case) is True


RULES: tuple[Rule, ...] = (
    Rule(evidence_broken, Verdict.INCONCLUSIVE),
    Rule(stale_data_in_live_transaction, Verdict.SUSPECT),
    Rule(not_late, Verdict.IN_PROGRESS),
    Rule(clock_not_credible, Verdict.INCONCLUSIVE),
    Rule(state_does_not_fit, Verdict.INCONCLUSIVE),
    Rule(commit_marker_missing, Verdict.SUSPECT),
    Rule(marker_overdue, Verdict.SUSPECT),
    Rule(marker_pending_commit, Verdict.COORDINATED),
    Rule(marker_pending_abort, Verdict.COORDINATED),
    Rule(coordinator_overdue, Verdict.SUSPECT),
    Rule(in_coordinator, Verdict.COORDINATED),
    Rule(state_older_than_log, Verdict.INCONCLUSIVE),
    Rule(log_may_end_early, Verdict.INCONCLUSIVE),
    Rule(state_incomplete, Verdict.INCONCLUSIVE),
    Rule(commit_may_be_missing, Verdict.INCONCLUSIVE),
    Rule(unknown_producer, Verdict.HANGING),
    Rule(partition_not_in_transaction, Verdict.HANGING),
    Rule(no_rule, Verdict.INCONCLUSIVE),
)


def first_rule(case: Case) -> Rule:
    """The first rule that holds; the last one always does."""
    return next(rule for rule in RULES if rule.holds_for(case))
