"""What a rule is: a condition over the facts, and everything that is ever said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txn_analysis.judge.facts import Facts
    from txn_analysis.judge.rules.settling import Doubtful
    from txn_analysis.logic import Truth
    from txn_analysis.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A named condition over the facts of one open transaction, the verdict that it gives, and its words.

    Attributes:
        name: the contract's.
        verdict: what it gives.
        meaning: what it says, in half a sentence.
        condition: when it holds, as docs/rules.md lists it; None where that is its meaning.
        background: what else its page says of the reason; empty for nothing.
        when: its condition. It holds on True alone: None, for what the evidence cannot tell, holds for nothing.
        evidence: what it rests on, a sentence each; None for what has nothing to say.
        missing: what would be needed for an answer; nothing where there is one.
        why_not: why it does not hold.
        would_change: what would change its verdict; None where that is what is missing.
        reason: why this gives its verdict.
        remedy: what to do about it.
        settled_by: what several findings lack together, and what would settle them; None where the remedy says it.
        is_of_the_log: the log alone decides, whatever the state says.
    """

    name: str
    verdict: Verdict
    meaning: str
    condition: str | None = None
    background: str = ""
    when: Callable[[Facts], Truth]
    evidence: Callable[[Facts], Sequence[str | None]]
    missing: Callable[[Facts], Sequence[str | None]] = lambda _: ()
    why_not: Callable[[Facts], str]
    would_change: str | None = None
    reason: str
    remedy: str
    settled_by: Callable[[Doubtful], tuple[str, str]] | None = None
    is_of_the_log: bool = False

    def holds_for(self, facts: Facts) -> bool:
        """The rule decides about these facts, if no rule before it does."""
        return self.when(facts) is True

    def evidence_in(self, facts: Facts) -> tuple[str, ...]:
        """The facts that it used, in words."""
        return tuple(fact for fact in self.evidence(facts) if fact is not None)

    def missing_in(self, facts: Facts) -> tuple[str, ...]:
        """What would be needed for an answer, in words; empty where there is one."""
        return tuple(fact for fact in self.missing(facts) if fact is not None)

    def would_change_in(self, facts: Facts) -> tuple[str, ...]:
        """What evidence would change the verdict; what is missing, where there was no answer."""
        return self.missing_in(facts) or (() if self.would_change is None else (self.would_change,))

    def settling(self, doubtful: Doubtful) -> tuple[str, str]:
        """What some findings of it lack together, and what would settle them, both in words."""
        if self.settled_by is None:
            return "evidence is missing", self.remedy.rstrip(".")
        return self.settled_by(doubtful)
