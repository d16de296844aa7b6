"""`state_does_not_fit`: the state does not belong to these logs, or not all of it was given.

The logs' COMMIT markers are the coordinator's own: a state that would know of their decisions, and does not, is another
cluster's, or has more partitions than is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.kafka.tools import STATE_TOPIC_DESCRIPTION
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """Something says that the state is not that of these logs."""
    return len(facts.state.misfits) > 0


def evidence(facts: Facts) -> list[str | None]:
    """How much of the state was seen."""
    return [facts.coordinator_says, facts.state_seen]


def missing(facts: Facts) -> list[str]:
    """The state that belongs to the logs."""
    return [*facts.state.misfits, "all of __transaction_state of the cluster that these logs are from"]


def why_not(_: Facts) -> str:
    """Nothing contradicts it."""
    return "no end marker of the logs contradicts __transaction_state"


STATE_DOES_NOT_FIT = Rule(
    name="state_does_not_fit",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the state does not belong to these logs, or is not all of it",
    when=when,
    evidence=evidence,
    missing=missing,
    why_not=why_not,
    reason="Producer ids are small numbers, and those of two clusters overlap. With another cluster's state, or with a "
    "part of it that passes for the whole, live transactions look as if nobody knew of them.",
    remedy="Copy `__transaction_state` of the cluster that the logs are from, all its partitions, and state their "
    f"count with `--transaction-state-partitions`. `{STATE_TOPIC_DESCRIPTION}` prints it.",
)
