"""`marker_pending_commit`: a commit was decided and lists the partition. It is never aborted: it was acknowledged.

`TransactionCoordinator.endTransaction` answers the client as soon as the decision is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.kafka.transactions import PREPARE_COMMIT
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """A commit is decided, and lists the partition."""
    return facts.is_listed_in(PREPARE_COMMIT)


def evidence(facts: Facts) -> list[str | None]:
    """The decision."""
    return [facts.coordinator_says, facts.listed_here]


def why_not(facts: Facts) -> str:
    """The partition is not listed, or no commit is decided."""
    return facts.not_decided_here


MARKER_PENDING_COMMIT = Rule(
    name="marker_pending_commit",
    verdict=Verdict.COORDINATED,
    meaning="a commit was decided and lists the partition; its marker is on the way",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="the marker in a later copy of the log",
    reason="The commit was acknowledged to the client. An abort marker here would destroy acknowledged data.",
    remedy="Nothing. Never abort it. Look again if it is still there in the next audit.",
)
