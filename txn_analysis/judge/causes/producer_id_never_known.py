"""`producer_id_never_known`: the coordinator never gave out this producer id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds, written
from txn_analysis.logic import is_before

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def reading(facts: Facts) -> Confidence | None:
    """The producer wrote so lately that its id would still be there, or be a tombstone."""
    if facts.coordinator is not None:
        return None
    is_recent = is_before(facts.expired_before_ms, facts.open.appended_after_ms, facts.max_clock_skew_ms)
    return if_holds(is_recent, Confidence.POSSIBLE if facts.state.gaps else Confidence.LIKELY)


def evidence(facts: Facts) -> list[str | None]:
    """That nobody has it, and when it wrote."""
    return [
        f"no transactional id has, or had, producer id {facts.open.producer_id}",
        written(facts),
        "an id that wrote so lately could not have expired yet",
    ]


PRODUCER_ID_NEVER_KNOWN = Cause(
    name="producer_id_never_known",
    meaning="the coordinator never gave out this producer id",
    story="no record of the coordinator ever had the producer id, and it wrote too lately to have expired",
    prevention="find out who writes with an invented producer id",
    evidence=evidence,
    doubt="an id that had expired before, and was compacted away, leaves no record",
)
READING = Reading(PRODUCER_ID_NEVER_KNOWN, reading)
