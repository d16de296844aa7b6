"""The rules, in the contract's order: the first one that holds gives the verdict.

A new rule is an object in the module that it belongs to, and a line in RULES: pages, reports, `explain` and the plan
read the rest from the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.asked_first import (
    CLOCK_NOT_CREDIBLE,
    COMMIT_MARKER_MISSING,
    EVIDENCE_BROKEN,
    NOT_LATE,
    STALE_DATA_IN_LIVE_TRANSACTION,
    STATE_DOES_NOT_FIT,
)
from txn_analysis.judge.rules.by_the_coordinator import (
    COMMIT_MAY_BE_MISSING,
    COORDINATOR_OVERDUE,
    IN_COORDINATOR,
    LOG_MAY_END_EARLY,
    MARKER_OVERDUE,
    MARKER_PENDING_ABORT,
    MARKER_PENDING_COMMIT,
    NO_RULE,
    PARTITION_NOT_IN_TRANSACTION,
    STATE_INCOMPLETE,
    STATE_OLDER_THAN_LOG,
    UNKNOWN_PRODUCER,
)

if TYPE_CHECKING:
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


def before(rule: Rule) -> tuple[Rule, ...]:
    """The rules that were asked before this one held."""
    return RULES[: RULES.index(rule)]


def rule_named(name: str) -> Rule | None:
    """The rule with this name; None for one of a later version, whose findings a warehouse can hold."""
    return _BY_NAME.get(name)
