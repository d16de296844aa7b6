"""`late_write_after_marker`: records came after the end marker of their transaction (KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import (
    Cause,
    Confidence,
    Reading,
    as_far_as_recorded,
    if_holds,
    last_marker,
    never_listed,
    written,
)
from txn_analysis.logic import is_before
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def follows_marker(facts: Facts) -> bool:
    """The data came after an end marker of its producer, and before any other transaction of it began."""
    known = facts.coordinator
    if known is None or known.is_listed or facts.open.last_marker_ms is None:
        return False
    began = (known.origins.began_since_ms, known.origins.new_epoch_ms)
    return all(ms is None or is_before(facts.open.first_appended_before_ms, ms) for ms in began)


def reading(facts: Facts) -> Confidence | None:
    """The data follows a marker, and belongs to nothing that came later."""
    return if_holds(follows_marker(facts), as_far_as_recorded(facts))


def evidence(facts: Facts) -> list[str | None]:
    """The marker, what it carried out, and what came since."""
    origins = None if facts.coordinator is None else facts.coordinator.origins
    ended = fenced = None
    if origins is not None and origins.ended_ms is not None:
        ended = f"it carried out {origins.ended_state} of {utc(origins.ended_ms)}"
    if origins is not None and origins.new_epoch_ms is not None:
        fenced = f"epoch {origins.new_epoch} began at {utc(origins.new_epoch_ms)}"
    return [last_marker(facts), ended, written(facts), never_listed(facts), fenced]


LATE_WRITE_AFTER_MARKER = Cause(
    name="late_write_after_marker",
    meaning="records came after the end marker of their transaction (KIP-890)",
    story="records came after the end marker of their transaction (KIP-890)",
    prevention="as above",
    evidence=evidence,
    doubt="what a client did after the marker without telling the coordinator is in no record",
)
READING = Reading(LATE_WRITE_AFTER_MARKER, reading)
