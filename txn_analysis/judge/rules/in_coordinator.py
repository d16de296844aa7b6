"""`in_coordinator`: the coordinator's transaction lists the partition and is within its own timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS, TWO_PHASE_COMMIT
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """A transaction in progress lists the partition."""
    return facts.is_ongoing


def evidence(facts: Facts) -> list[str | None]:
    """That transaction, and that it has no timeout where that is so."""
    two_phase = TWO_PHASE_COMMIT if facts.timeout_ms == NEVER_TIMES_OUT_MS else None
    return [facts.coordinator_says, facts.listed_here, two_phase]


def why_not(facts: Facts) -> str:
    """The partition is not listed in a transaction in progress."""
    return facts.not_decided_here


IN_COORDINATOR = Rule(
    name="in_coordinator",
    verdict=Verdict.COORDINATED,
    meaning="the coordinator's transaction lists the partition and is within its own timeout",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="a later record of the coordinator, once the transaction ends or is past its timeout",
    reason="The coordinator knows of the data here and will end it by the client's word or by the timeout.",
    remedy="Nothing. If the application is gone for good, wait for the timeout. A two-phase commit has none: its owner "
    "must end it.",
)
