"""`no_rule`: nothing else matched; the coordinator is in a state that no rule knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(_: Facts) -> Truth:
    """Always."""
    return True


def evidence(facts: Facts) -> list[str | None]:
    """That state."""
    return [facts.coordinator_says]


def missing(_: Facts) -> list[str]:
    """A rule."""
    return ["a rule for this state of the coordinator"]


def why_not(_: Facts) -> str:
    """The condition always holds."""
    return "it holds for everything"


NO_RULE = Rule(
    name="no_rule",
    verdict=Verdict.INCONCLUSIVE,
    meaning="nothing above matched",
    when=when,
    evidence=evidence,
    missing=missing,
    why_not=why_not,
    reason="The coordinator is in a state that no rule knows.",
    remedy="Please report it with the JSON of the finding.",
)
