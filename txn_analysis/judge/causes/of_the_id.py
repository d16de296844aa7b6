"""Causes that lie in the transactional id or its producer id: taken over, rotated, expired, or never given out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, as_far_as_recorded, if_holds, never_listed, written
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH, PRODUCER_ID_BLOCK, TOMBSTONE
from txn_analysis.logic import is_before
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts

# Brokers that start and producers without transactions use up ids as well, and the state names none of those.
_FAR_ABOVE = 1000 * PRODUCER_ID_BLOCK


def was_taken_over(facts: Facts) -> Confidence | None:
    """An instance took the id over after the data's first epoch."""
    known = facts.coordinator
    is_taken = known is not None and known.origins.new_epoch_ms is not None
    return if_holds(facts.is_unlisted and is_taken, as_far_as_recorded(facts))


def _both_epochs(facts: Facts) -> list[str | None]:
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
    evidence=_both_epochs,
)


def was_rotated(facts: Facts) -> Confidence | None:
    """The id left the producer id: the records link the two, or its epochs were used up."""
    known = facts.coordinator
    if known is None or known.is_listed or known.origins.rotated_to is None:
        return None
    if known.origins.is_rotation_recorded:
        return Confidence.CERTAIN
    last_epoch = known.origins.last_own_epoch
    return if_holds(last_epoch is not None and last_epoch >= EXHAUSTED_EPOCH, Confidence.LIKELY)


def _both_producer_ids(facts: Facts) -> list[str | None]:
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
    evidence=_both_producer_ids,
    doubt="the records do not link the two producer ids",
)


def is_written_after_expiry(facts: Facts) -> Confidence | None:
    """The data came after the id was removed."""
    removed_ms = None if facts.coordinator is None else facts.coordinator.origins.tombstone_ms
    is_after = is_before(removed_ms, facts.open.appended_after_ms, facts.max_clock_skew_ms)
    return if_holds(facts.is_unlisted and is_after, Confidence.CERTAIN)


def is_gone(facts: Facts) -> Confidence | None:
    """The id was removed, or came back under another producer id."""
    known = facts.coordinator
    is_away = known is not None and (known.origins.rotated_to is not None or known.state == TOMBSTONE)
    return if_holds(facts.is_unlisted and is_away, Confidence.LIKELY)


def is_forgotten(facts: Facts) -> Confidence | None:
    """Nothing is left of the id."""
    return if_holds(facts.coordinator is None, Confidence.POSSIBLE)


def _what_is_left(facts: Facts) -> list[str | None]:
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
    evidence=_what_is_left,
    doubt="it may have hung for another cause before the transactional id expired",
)


def is_too_recent(facts: Facts) -> Confidence | None:
    """The producer wrote so lately that its id would still be there, or be a tombstone."""
    sure = Confidence.POSSIBLE if facts.state.gaps else Confidence.LIKELY
    return if_holds(facts.coordinator is None and _is_recent(facts), sure)


def is_too_large(facts: Facts) -> Confidence | None:
    """Its id is far above all that were given out."""
    return if_holds(facts.coordinator is None and _is_far_above(facts), Confidence.POSSIBLE)


def _is_recent(facts: Facts) -> bool:
    """No id that wrote then can have expired."""
    return is_before(facts.expired_before_ms, facts.open.appended_after_ms, facts.max_clock_skew_ms)


def _is_far_above(facts: Facts) -> bool:
    """A thousand blocks of ids lie between the largest one of the state and this one."""
    largest = facts.state.largest_producer_id
    return largest is not None and facts.open.producer_id > largest + _FAR_ABOVE


def _size_and_time(facts: Facts) -> list[str | None]:
    """That nobody has it, how large it is, and when it wrote."""
    largest = f"ids are given out upward, in blocks of {PRODUCER_ID_BLOCK}, and the largest in __transaction_state is"
    return [
        f"no transactional id has, or had, producer id {facts.open.producer_id}",
        f"{largest} {facts.state.largest_producer_id}" if _is_far_above(facts) else None,
        written(facts),
        "an id that wrote so lately could not have expired yet" if _is_recent(facts) else None,
    ]


PRODUCER_ID_NEVER_KNOWN = Cause(
    name="producer_id_never_known",
    meaning="the coordinator never gave out this producer id",
    story="no record of the coordinator ever had the producer id, and it wrote too lately to have expired, or is far "
    "above every id that was given out",
    prevention="find out who writes with an invented producer id",
    evidence=_size_and_time,
    doubt="an id that had expired before, and was compacted away, leaves no record",
)
