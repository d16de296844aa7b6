"""The rules, in the contract's order: the first one that holds gives the verdict. One file is one rule.

A new rule is a file, and a line in RULES: pages, reports, `explain` and the plan read the rest from the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.clock_not_credible import CLOCK_NOT_CREDIBLE
from txn_analysis.judge.rules.commit_marker_missing import COMMIT_MARKER_MISSING
from txn_analysis.judge.rules.commit_may_be_missing import COMMIT_MAY_BE_MISSING
from txn_analysis.judge.rules.coordinator_overdue import COORDINATOR_OVERDUE
from txn_analysis.judge.rules.evidence_broken import EVIDENCE_BROKEN
from txn_analysis.judge.rules.in_coordinator import IN_COORDINATOR
from txn_analysis.judge.rules.log_may_end_early import LOG_MAY_END_EARLY
from txn_analysis.judge.rules.marker_overdue import MARKER_OVERDUE
from txn_analysis.judge.rules.marker_pending_abort import MARKER_PENDING_ABORT
from txn_analysis.judge.rules.marker_pending_commit import MARKER_PENDING_COMMIT
from txn_analysis.judge.rules.no_rule import NO_RULE
from txn_analysis.judge.rules.not_late import NOT_LATE
from txn_analysis.judge.rules.partition_not_in_transaction import PARTITION_NOT_IN_TRANSACTION
from txn_analysis.judge.rules.stale_data_in_live_transaction import STALE_DATA_IN_LIVE_TRANSACTION
from txn_analysis.judge.rules.state_does_not_fit import STATE_DOES_NOT_FIT
from txn_analysis.judge.rules.state_incomplete import STATE_INCOMPLETE
from txn_analysis.judge.rules.state_older_than_log import STATE_OLDER_THAN_LOG
from txn_analysis.judge.rules.unknown_producer import UNKNOWN_PRODUCER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.judge.facts import Facts
    from txn_analysis.judge.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    EVIDENCE_BROKEN,
    STALE_DATA_IN_LIVE_TRANSACTION,
    NOT_LATE,
    CLOCK_NOT_CREDIBLE,
    STATE_DOES_NOT_FIT,
    COMMIT_MARKER_MISSING,
    MARKER_OVERDUE,
    MARKER_PENDING_COMMIT,
    MARKER_PENDING_ABORT,
    COORDINATOR_OVERDUE,
    IN_COORDINATOR,
    STATE_OLDER_THAN_LOG,
    LOG_MAY_END_EARLY,
    STATE_INCOMPLETE,
    COMMIT_MAY_BE_MISSING,
    UNKNOWN_PRODUCER,
    PARTITION_NOT_IN_TRANSACTION,
    NO_RULE,
)
"""The last one always holds."""

_BY_NAME = {rule.name: rule for rule in RULES}


def first_rule(facts: Facts) -> Rule:
    """The first rule that holds for the facts of one open transaction."""
    return next(rule for rule in RULES if rule.holds_for(facts))


def asked(facts: Facts) -> Iterator[tuple[Rule, bool, str]]:
    """Every rule up to the one that decides, whether it holds, and in words why or why not."""
    for rule in RULES:
        holds = rule.holds_for(facts)
        because = "; ".join(rule.evidence_in(facts) or rule.missing_in(facts)) if holds else rule.why_not(facts)
        yield rule, holds, because
        if holds:
            return


def rule_named(name: str) -> Rule | None:
    """The rule with this name; None for one of a later version, whose findings a warehouse can hold."""
    return _BY_NAME.get(name)
