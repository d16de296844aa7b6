"""`unexplained`: no known cause fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def reading(_: Facts) -> Confidence:
    """Always, and never sure."""
    return Confidence.UNKNOWN


def evidence(_: Facts) -> list[str | None]:
    """Nothing speaks for it."""
    return []


UNEXPLAINED = Cause(
    name="unexplained",
    meaning="no known cause fits",
    story="the facts fit none of the causes above",
    prevention="please report it with the JSON of the finding",
    evidence=evidence,
    doubt="the facts fit none of the known causes",
)
READING = Reading(UNEXPLAINED, reading)
