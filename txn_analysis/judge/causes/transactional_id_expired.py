"""`transactional_id_expired`: its transactional id expired and was forgotten (transactional.id.expiration.ms)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds, written
from txn_analysis.kafka.transactions import TOMBSTONE
from txn_analysis.logic import is_before
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def written_after(facts: Facts) -> Confidence | None:
    """The data came after the id was removed."""
    removed_ms = None if facts.coordinator is None else facts.coordinator.origins.tombstone_ms
    is_after = is_before(removed_ms, facts.open.appended_after_ms, facts.max_clock_skew_ms)
    return if_holds(facts.is_unlisted and is_after, Confidence.CERTAIN)


def gone(facts: Facts) -> Confidence | None:
    """The id was removed, or came back under another producer id."""
    known = facts.coordinator
    is_gone = known is not None and (known.origins.rotated_to is not None or known.state == TOMBSTONE)
    return if_holds(facts.is_unlisted and is_gone, Confidence.LIKELY)


def forgotten(facts: Facts) -> Confidence | None:
    """Nothing is left of the id."""
    return if_holds(facts.coordinator is None, Confidence.POSSIBLE)


def evidence(facts: Facts) -> list[str | None]:
    """What is left of the id."""
    if facts.coordinator is None:
        return [f"no transactional id has producer id {facts.open.producer_id} in any record that is left"]
    origins = facts.coordinator.origins
    removed_ms, new = origins.tombstone_ms, origins.rotated_to
    removed = None if removed_ms is None else f"the transactional id was removed at {utc(removed_ms)}"
    return [removed, None if new is None else f"it came back under producer id {new}", written(facts)]


TRANSACTIONAL_ID_EXPIRED = Cause(
    name="transactional_id_expired",
    meaning="its transactional id expired and was forgotten",
    story="the id was removed, or came back under another producer id; or nothing is left to tell",
    prevention="`transactional.id.expiration.ms` above the longest pause of the application",
    evidence=evidence,
    doubt="it may have hung for another cause before the transactional id expired",
)
WRITTEN_AFTER = Reading(TRANSACTIONAL_ID_EXPIRED, written_after)
GONE = Reading(TRANSACTIONAL_ID_EXPIRED, gone)
FORGOTTEN = Reading(TRANSACTIONAL_ID_EXPIRED, forgotten)
