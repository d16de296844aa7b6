"""The rules, in order: the first one whose condition holds gives the verdict. A condition of None holds for nothing.

Order, names and conditions are those of the contract (docs/rules.md); the facts come from `judge.facts`. What a
rule rests on and what it misses is said in words by `judge.words`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txn_analysis.judge.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """A named condition over the facts of one open transaction, and the verdict that it gives."""

    name: str
    verdict: Verdict
    when: Callable[[Row], bool | None]


def _some(reasons: Sequence[str] | None) -> bool | None:
    return None if reasons is None else len(reasons) > 0


def _not(condition: bool | None) -> bool | None:
    # Python's `not None` is True: what is unknown would accuse.
    return None if condition is None else not condition


def _listed_in(facts: Row, *states: str) -> bool | None:
    """The coordinator's transaction lists the partition, and is in one of the states."""
    return facts["is_listed"] and facts["coordinator_state"] in states


RULES = (
    Rule("evidence_broken", Verdict.INCONCLUSIVE, lambda f: _some(f["evidence_gaps"])),
    Rule(
        "stale_data_in_live_transaction",
        Verdict.SUSPECT,
        lambda f: f["is_listed"] and (f["is_older_by_clock"] or f["is_older_by_epoch"]),
    ),
    Rule("not_late", Verdict.IN_PROGRESS, lambda f: _not(f["is_late"])),
    Rule("clock_not_credible", Verdict.INCONCLUSIVE, lambda f: f["is_late"] is None),
    Rule(
        "marker_overdue",
        Verdict.SUSPECT,
        lambda f: _listed_in(f, "PrepareCommit", "PrepareAbort") and f["is_update_overdue"],
    ),
    Rule("marker_pending_commit", Verdict.COORDINATED, lambda f: _listed_in(f, "PrepareCommit")),
    Rule("marker_pending_abort", Verdict.COORDINATED, lambda f: _listed_in(f, "PrepareAbort")),
    Rule(
        "coordinator_overdue",
        Verdict.SUSPECT,
        lambda f: _listed_in(f, "Ongoing") and f["is_transaction_overdue"],
    ),
    Rule("in_coordinator", Verdict.COORDINATED, lambda f: _listed_in(f, "Ongoing")),
    Rule(
        "state_older_than_log",
        Verdict.INCONCLUSIVE,
        lambda f: f["is_unbounded"] or f["is_state_behind"] or f["is_epoch_ahead"],
    ),
    Rule("log_may_end_early", Verdict.INCONCLUSIVE, lambda f: f["may_log_end_early"]),
    Rule("state_incomplete", Verdict.INCONCLUSIVE, lambda f: _some(f["state_gaps"])),
    Rule("unknown_producer", Verdict.HANGING, lambda f: f["transactional_id"] is None),
    Rule("partition_not_in_transaction", Verdict.HANGING, lambda f: _not(f["is_listed"])),
)
OTHERWISE = Rule("no_rule", Verdict.INCONCLUSIVE, lambda _: True)
VERDICTS = {rule.name: rule.verdict for rule in (*RULES, OTHERWISE)}


def first_rule(facts: Row) -> Rule:
    """The first rule that holds for a row of facts."""
    return next((rule for rule in RULES if rule.when(facts) is True), OTHERWISE)
