"""`coordinator_overdue`: the coordinator's transaction lists the partition and is past its own timeout + 5 minutes.

A timeout of 2147483647 ms is a two-phase commit (KIP-939), and never overdue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.logic import both
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """A transaction in progress lists the partition, and should have been aborted."""
    return both(facts.is_ongoing, facts.live.is_transaction_overdue)


def evidence(facts: Facts) -> list[str | None]:
    """When that transaction began, and for how long it was to last."""
    overdue = f"that transaction began at {facts.began_at} with a timeout of {facts.timeout_ms} ms"
    return [facts.coordinator_says, facts.listed_here, overdue, facts.state_end]


def why_not(facts: Facts) -> str:
    """The partition is not listed, or its transaction is within its timeout, or decided."""
    return facts.not_listed_here or (
        f"the transaction of {facts.began_at} is within its timeout of {facts.timeout_ms} ms + 300000, or is decided"
    )


COORDINATOR_OVERDUE = Rule(
    name="coordinator_overdue",
    verdict=Verdict.SUSPECT,
    meaning="the coordinator's transaction lists the partition and is past its own timeout + 5 minutes",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="a later record of the coordinator that ends the transaction",
    reason="The coordinator should have aborted it when its timeout had passed. It still counts as the transaction's "
    "owner, so it may yet end it. (A timeout of 2147483647 ms is a two-phase commit, and never overdue.)",
    remedy="Look at the broker that leads the partition of __transaction_state: does it run, is it in charge, what "
    "does its log say of this id? Do not write markers while the coordinator has the transaction.",
)
