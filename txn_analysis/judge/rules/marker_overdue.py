"""`marker_overdue`: a commit or abort was decided, lists the partition, and has not moved for longer than the bound.

KAFKA-16352, KAFKA-19999 and KAFKA-20322 are ways to get there. It is never aborted: the commit was acknowledged.
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
    """A decision lists the partition, and the state goes on without a change for longer than the bound."""
    return both(facts.is_prepared, facts.live.is_update_overdue)


def evidence(facts: Facts) -> list[str | None]:
    """The decision, and since when it stands."""
    return [facts.coordinator_says, facts.listed_here, f"unchanged since {facts.unchanged_since}", facts.state_end]


def why_not(facts: Facts) -> str:
    """The partition is not listed, nothing is decided, or the decision is young."""
    return facts.not_listed_here or (
        f"the decision of {facts.unchanged_since} is not older than transaction.max.timeout.ms + 300000, or none is"
    )


MARKER_OVERDUE = Rule(
    name="marker_overdue",
    verdict=Verdict.SUSPECT,
    meaning="a commit or abort was decided, lists the partition, and has not moved for longer than the bound",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="the marker in a later copy of the log, or a coordinator that moved on",
    reason="The coordinator decided, and should have written the marker within moments. It has stopped trying, or "
    "cannot reach the partition's leader (KAFKA-16352, KAFKA-19999 and KAFKA-20322 are ways to get there).",
    remedy="Never write a marker yourself: after PrepareCommit an abort destroys acknowledged data. Look at the "
    "broker that leads the partition of __transaction_state; restarting it lets another one take over and send the "
    "markers again. In an upgrade from 4.1 or older through 4.2.0, finish it, or use 4.2.1: a coordinator of 4.2.0 "
    "cannot send markers to older brokers.",
)
