"""`clock_not_credible`: neither the client's timestamp nor a broker's clock says how old it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """No clock tells whether it is late."""
    return facts.lateness.is_late is None


def evidence(facts: Facts) -> list[str | None]:
    """The timestamp that is not credible."""
    return [f"last timestamp {facts.open.last_timestamp_ms}"]


def missing(_: Facts) -> list[str]:
    """A clock."""
    return ["a credible timestamp, or an end marker after the data in this partition"]


def why_not(facts: Facts) -> str:
    """Which clock there is."""
    return f"there is a credible clock: {facts.lateness.basis}"


CLOCK_NOT_CREDIBLE = Rule(
    name="clock_not_credible",
    verdict=Verdict.INCONCLUSIVE,
    meaning="neither its timestamp nor a broker's clock says how old it is",
    when=when,
    evidence=evidence,
    missing=missing,
    why_not=why_not,
    reason="The client's timestamp is not positive or lies after the moment of the copy, and no end marker stands "
    "around the data whose broker's clock could take its place.",
    remedy="Copy the partition again when other transactions have ended in it, or give the moment of the copy with "
    "`--as-of`.",
)
