"""`marker_pending_abort`: an abort was decided and lists the partition; its marker is on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.kafka.transactions import PREPARE_ABORT
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """An abort is decided, and lists the partition."""
    return facts.is_listed_in(PREPARE_ABORT)


def evidence(facts: Facts) -> list[str | None]:
    """The decision."""
    return [facts.coordinator_says, facts.listed_here]


def why_not(facts: Facts) -> str:
    """The partition is not listed, or no abort is decided."""
    return facts.not_decided_here


MARKER_PENDING_ABORT = Rule(
    name="marker_pending_abort",
    verdict=Verdict.COORDINATED,
    meaning="an abort was decided and lists the partition; its marker is on the way",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="the marker in a later copy of the log",
    reason="The coordinator will write the abort marker itself.",
    remedy="Nothing. Look again if it is still there in the next audit.",
)
