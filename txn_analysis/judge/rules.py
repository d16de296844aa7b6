"""The rules, in order: the first one whose condition holds gives the verdict. A NULL condition holds for nothing.

Order, names and conditions are those of the contract (docs/rules.md); the columns come from `judge.facts`. What a
rule rests on and what it misses is said in words by `judge.words`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column


@dataclass(frozen=True)
class Rule:
    """A named condition over the facts of one open transaction, and the verdict that it gives."""

    name: str
    verdict: Verdict
    when: Callable[[], Column]


def _is(name: str) -> Callable[[], Column]:
    return lambda: F.col(name)


def _listed_in(*states: str) -> Column:
    return F.col("is_listed") & F.col("coordinator_state").isin(*states)


RULES = (
    Rule("evidence_broken", Verdict.INCONCLUSIVE, lambda: F.size("evidence_gaps") > 0),
    Rule(
        "stale_data_in_live_transaction",
        Verdict.SUSPECT,
        lambda: F.col("is_listed") & (F.col("is_older_by_clock") | F.col("is_older_by_epoch")),
    ),
    Rule("not_late", Verdict.IN_PROGRESS, lambda: ~F.col("is_late")),
    Rule("clock_not_credible", Verdict.INCONCLUSIVE, lambda: F.col("is_late").isNull()),
    Rule(
        "marker_overdue",
        Verdict.SUSPECT,
        lambda: _listed_in("PrepareCommit", "PrepareAbort") & F.col("is_update_overdue"),
    ),
    Rule("marker_pending_commit", Verdict.COORDINATED, lambda: _listed_in("PrepareCommit")),
    Rule("marker_pending_abort", Verdict.COORDINATED, lambda: _listed_in("PrepareAbort")),
    Rule("coordinator_overdue", Verdict.SUSPECT, lambda: _listed_in("Ongoing") & F.col("is_transaction_overdue")),
    Rule("in_coordinator", Verdict.COORDINATED, lambda: _listed_in("Ongoing")),
    Rule(
        "state_older_than_log",
        Verdict.INCONCLUSIVE,
        lambda: F.col("is_unbounded") | F.col("is_state_behind") | F.col("is_epoch_ahead"),
    ),
    Rule("log_may_end_early", Verdict.INCONCLUSIVE, _is("may_log_end_early")),
    Rule("state_incomplete", Verdict.INCONCLUSIVE, lambda: F.size("state_gaps") > 0),
    Rule("unknown_producer", Verdict.HANGING, lambda: F.col("transactional_id").isNull()),
    Rule("partition_not_in_transaction", Verdict.HANGING, lambda: ~F.col("is_listed")),
)
OTHERWISE = Rule("no_rule", Verdict.INCONCLUSIVE, lambda: F.lit(True))
VERDICTS = {rule.name: rule.verdict for rule in (*RULES, OTHERWISE)}


def first_rule() -> Column:
    """The name of the first rule that holds."""
    unmatched = F.lit(OTHERWISE.name)
    return reduce(lambda later, rule: F.when(rule.when(), rule.name).otherwise(later), reversed(RULES), unmatched)
