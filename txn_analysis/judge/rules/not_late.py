"""`not_late`: idle for no longer than transaction.max.timeout.ms + 300000 ms, the brokers' own bound (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.logic import no
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """Some clock shows that it is within the bound."""
    return no(facts.lateness.is_late)


def evidence(facts: Facts) -> list[str | None]:
    """How far within the bound it is."""
    return [facts.idle_for]


def why_not(facts: Facts) -> str:
    """The transaction is late, or no clock tells."""
    if facts.lateness.is_late is None:
        return "no clock says how long it has been idle"
    return f"it is {facts.lateness.late_by_ms} ms beyond transaction.max.timeout.ms + 300000"


NOT_LATE = Rule(
    name="not_late",
    verdict=Verdict.IN_PROGRESS,
    meaning="written to within transaction.max.timeout.ms + 300000 ms",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="time: it is judged again when it has been idle for longer than transaction.max.timeout.ms + 300000",
    reason="Its client may still be writing, and the coordinator will abort it when its timeout has passed. The bound "
    "is that of the brokers' own metric for late transactions (KIP-664).",
    remedy="Nothing. It is in the list so that the last stable offset can be explained.",
)
