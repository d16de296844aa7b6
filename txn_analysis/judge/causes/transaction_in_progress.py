"""`transaction_in_progress`: its client has not ended it yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def reading(facts: Facts) -> Confidence | None:
    """A transaction in progress lists the partition."""
    return if_holds(facts.is_ongoing, Confidence.CERTAIN)


def evidence(facts: Facts) -> list[str | None]:
    """Since when it runs."""
    began = None if facts.coordinator is None else utc(facts.coordinator.start_ms)
    return [f"the coordinator's transaction since {began} lists {facts.where}"]


TRANSACTION_IN_PROGRESS = Cause(
    name="transaction_in_progress",
    meaning="its client has not ended it yet",
    story="nothing is wrong: its client has not ended it yet",
    prevention="-",
    evidence=evidence,
)
READING = Reading(TRANSACTION_IN_PROGRESS, reading)
