"""`state_incomplete`: what could hold the answer of __transaction_state is missing, broken, or of another cluster.

Absence is only proven by a state that was seen as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """Something is missing of the state that could hold the answer."""
    return len(facts.state.gaps) > 0


def evidence(facts: Facts) -> list[str | None]:
    """How much of the state was seen."""
    return [facts.coordinator_says, facts.state_seen]


def missing(facts: Facts) -> tuple[str, ...]:
    """What is missing of the state."""
    return facts.state.gaps


def why_not(_: Facts) -> str:
    """Nothing is missing."""
    return "the part of __transaction_state that could hold the answer is complete"


STATE_INCOMPLETE = Rule(
    name="state_incomplete",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the part of __transaction_state that could hold the answer is missing, broken, or of another cluster",
    when=when,
    evidence=evidence,
    missing=missing,
    why_not=why_not,
    reason="That no transactional id has a producer id can only be said of a state that was seen as a whole: all its "
    "partitions, from their first file, without decoder errors.",
    remedy="Copy what is named as missing. For console exports, which do not say what they cover, give your word with "
    "`--transaction-state-complete`.",
)
