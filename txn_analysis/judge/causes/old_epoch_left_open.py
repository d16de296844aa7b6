"""`old_epoch_left_open`: a new instance took its id over, and nothing ended what the old one had open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, as_far_as_recorded, if_holds, never_listed
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def reading(facts: Facts) -> Confidence | None:
    """An instance took the id over after the data's first epoch."""
    known = facts.coordinator
    is_taken = known is not None and known.origins.new_epoch_ms is not None
    return if_holds(facts.is_unlisted and is_taken, as_far_as_recorded(facts))


def evidence(facts: Facts) -> list[str | None]:
    """Both epochs, and that the old one's transaction was never listed."""
    opened = facts.open
    origins = None if facts.coordinator is None else facts.coordinator.origins
    new, at = (None, None) if origins is None else (origins.new_epoch, utc(origins.new_epoch_ms))
    more = f"batches up to epoch {opened.max_producer_epoch} joined it: an epoch change ends nothing in a partition"
    is_mixed = opened.max_producer_epoch is not None and opened.max_producer_epoch != opened.first_producer_epoch
    return [
        f"its first batch has epoch {opened.first_producer_epoch}",
        f"an instance took the transactional id over with epoch {new} at {at}",
        more if is_mixed else None,
        never_listed(facts),
    ]


OLD_EPOCH_LEFT_OPEN = Cause(
    name="old_epoch_left_open",
    meaning="a new instance took its transactional id over, and nothing ended what the old one had open",
    story="a new instance took the id over, and nothing ended what the old one had open, because no transaction "
    "listed it",
    prevention="as above",
    evidence=evidence,
)
READING = Reading(OLD_EPOCH_LEFT_OPEN, reading)
