"""`producer_id_rotated`: its id got a new producer id, and nothing ended what was open under the old (KIP-360)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def reading(facts: Facts) -> Confidence | None:
    """The id left the producer id: the records link the two, or its epochs were used up."""
    known = facts.coordinator
    if known is None or known.is_listed or known.origins.rotated_to is None:
        return None
    if known.origins.is_rotation_recorded:
        return Confidence.CERTAIN
    last_epoch = known.origins.last_own_epoch
    return if_holds(last_epoch is not None and last_epoch >= EXHAUSTED_EPOCH, Confidence.LIKELY)


def evidence(facts: Facts) -> list[str | None]:
    """Both producer ids, and the last epoch of the old one."""
    if facts.coordinator is None:
        return []
    old, origins = facts.open.producer_id, facts.coordinator.origins
    return [
        f"the transactional id left producer id {old} for {origins.rotated_to} at {utc(origins.rotated_ms)}",
        f"its last epoch under {old} was {origins.last_own_epoch}",
    ]


PRODUCER_ID_ROTATED = Cause(
    name="producer_id_rotated",
    meaning="its transactional id got a new producer id, and nothing ended what was open under the old",
    story="epochs were used up and the id got a new producer id, with data left open under the old one",
    prevention="-",
    evidence=evidence,
    doubt="the records do not link the two producer ids",
)
READING = Reading(PRODUCER_ID_ROTATED, reading)
