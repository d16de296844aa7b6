"""`producer_id_never_known`: the coordinator never gave out this producer id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds, written
from txn_analysis.kafka.transactions import PRODUCER_ID_BLOCK
from txn_analysis.logic import is_before

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts

# Brokers that start and producers without transactions use up ids as well, and the state names none of those.
_FAR_ABOVE = 1000 * PRODUCER_ID_BLOCK


def too_recent(facts: Facts) -> Confidence | None:
    """The producer wrote so lately that its id would still be there, or be a tombstone."""
    sure = Confidence.POSSIBLE if facts.state.gaps else Confidence.LIKELY
    return if_holds(facts.coordinator is None and is_recent(facts), sure)


def too_large(facts: Facts) -> Confidence | None:
    """Its id is far above all that were given out."""
    return if_holds(facts.coordinator is None and is_far_above(facts), Confidence.POSSIBLE)


def is_recent(facts: Facts) -> bool:
    """No id that wrote then can have expired."""
    return is_before(facts.expired_before_ms, facts.open.appended_after_ms, facts.max_clock_skew_ms)


def is_far_above(facts: Facts) -> bool:
    """A thousand blocks of ids lie between the largest one of the state and this one."""
    largest = facts.state.largest_producer_id
    return largest is not None and facts.open.producer_id > largest + _FAR_ABOVE


def evidence(facts: Facts) -> list[str | None]:
    """That nobody has it, how large it is, and when it wrote."""
    largest = f"ids are given out upward, in blocks of {PRODUCER_ID_BLOCK}, and the largest in __transaction_state is"
    return [
        f"no transactional id has, or had, producer id {facts.open.producer_id}",
        f"{largest} {facts.state.largest_producer_id}" if is_far_above(facts) else None,
        written(facts),
        "an id that wrote so lately could not have expired yet" if is_recent(facts) else None,
    ]


PRODUCER_ID_NEVER_KNOWN = Cause(
    name="producer_id_never_known",
    meaning="the coordinator never gave out this producer id",
    story="no record of the coordinator ever had the producer id, and it wrote too lately to have expired, or is far "
    "above every id that was given out",
    prevention="find out who writes with an invented producer id",
    evidence=evidence,
    doubt="an id that had expired before, and was compacted away, leaves no record",
)
TOO_RECENT = Reading(PRODUCER_ID_NEVER_KNOWN, too_recent)
TOO_LARGE = Reading(PRODUCER_ID_NEVER_KNOWN, too_large)
