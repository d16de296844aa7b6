"""The causes: why an open transaction is open. The first reading that explains the facts counts.

A cause never decides a verdict. Sources: KIP-890 for writes that come late or unannounced, KIP-664 for what makes a
transaction hang, KAFKA-9144 for coordinator epochs, KIP-360 for epoch exhaustion. A new cause is an object in the
module that it belongs to, and a line in READINGS for each way that leads to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes import of_the_client as client
from txn_analysis.judge.causes import of_the_coordinator as coordinator
from txn_analysis.judge.causes import of_the_coordinator as of_the_id
from txn_analysis.judge.causes.cause import Cause, Reading
from txn_analysis.tables import FoundCause
from txn_analysis.tables.findings import Confidence
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.judge.rules.rule import Rule

UNEXPLAINED = Cause(
    name="unexplained",
    meaning="no known cause fits",
    story="the facts fit none of the causes above",
    prevention="please report it with the JSON of the finding",
    evidence=lambda _: [],
    doubt="the facts fit none of the known causes",
)

OF_THE_LOG: tuple[Reading, ...] = (
    Reading(coordinator.COORDINATOR_EPOCH_WENT_BACK, coordinator.has_a_markers_epoch_fallen),
)
"""Those that ask nothing of the coordinator."""

READINGS: tuple[Reading, ...] = (
    Reading(client.LATE_WRITE_JOINED_NEXT_TRANSACTION, client.is_proven_to_join),
    *OF_THE_LOG,
    Reading(coordinator.COORDINATOR_EPOCH_WENT_BACK, coordinator.is_coordinator_fenced),
    Reading(coordinator.MARKER_NOT_SENT_IN_UPGRADE, coordinator.were_markers_not_sent),
    Reading(coordinator.MARKER_MISSING, coordinator.is_marker_missing),
    Reading(coordinator.COORDINATOR_OVERDUE, coordinator.is_transaction_overdue),
    Reading(client.LATE_WRITE_JOINED_NEXT_TRANSACTION, client.joins_by_clients_clock),
    Reading(client.TRANSACTION_IN_PROGRESS, client.is_in_progress),
    Reading(of_the_id.TRANSACTIONAL_ID_EXPIRED, of_the_id.is_written_after_expiry),
    Reading(client.LATE_END_TXN, client.was_ended_again),
    Reading(client.LATE_WRITE_AFTER_MARKER, client.follows_marker),
    Reading(of_the_id.OLD_EPOCH_LEFT_OPEN, of_the_id.was_taken_over),
    Reading(of_the_id.PRODUCER_ID_ROTATED, of_the_id.was_rotated),
    Reading(of_the_id.TRANSACTIONAL_ID_EXPIRED, of_the_id.is_gone),
    Reading(client.WRITE_BEFORE_PARTITION_ADDED, client.was_never_added),
    Reading(of_the_id.PRODUCER_ID_NEVER_KNOWN, of_the_id.is_too_recent),
    Reading(of_the_id.PRODUCER_ID_NEVER_KNOWN, of_the_id.is_too_large),
    Reading(of_the_id.TRANSACTIONAL_ID_EXPIRED, of_the_id.is_forgotten),
    Reading(UNEXPLAINED, lambda _: Confidence.UNKNOWN),
)
"""The last one always explains, and is never sure."""

CAUSES: tuple[Cause, ...] = tuple({reading.cause.name: reading.cause for reading in READINGS}.values())
_BY_NAME = {cause.name: cause for cause in CAUSES}


def cause_named(name: str) -> Cause | None:
    """The cause with this name; None for one of a later version, whose findings a warehouse can hold."""
    return _BY_NAME.get(name)


def cause_of(facts: Facts, rule: Rule) -> FoundCause | None:
    """The cause of one open transaction about which `rule` decided.

    None where the log alone tells none, and no state of its cluster was given: then nothing is known of its id.
    """
    asked = READINGS if facts.state.is_of_these_logs else OF_THE_LOG
    found = next(((r.cause, sure) for r in asked if (sure := r.confidence(facts)) is not None), None)
    if found is None:
        return None
    cause, sure = found
    confidence = min(sure, _most(facts, rule), key=lambda c: c.rank)
    is_certain = confidence is Confidence.CERTAIN
    return FoundCause(
        cause.name, confidence, cause.evidence_in(facts), () if is_certain else _evidence_against(cause, facts, rule)
    )


def _most(facts: Facts, rule: Rule) -> Confidence:
    """No cause is surer than the evidence that it is read from."""
    if rule.verdict is Verdict.INCONCLUSIVE:
        return Confidence.POSSIBLE
    if facts.state.is_behind or facts.state.is_unbounded or facts.state.is_epoch_ahead:
        return Confidence.CERTAIN if facts.is_listed else Confidence.POSSIBLE
    return Confidence.CERTAIN


def _evidence_against(cause: Cause, facts: Facts, rule: Rule) -> tuple[str, ...]:
    """What keeps the cause from being certain, and what is missing."""
    known = facts.coordinator
    doubts = (
        cause.doubt,
        "records of the transactional id may be gone" if facts.is_unlisted and facts.log.has_history_gap else None,
        "two decisions lie so close that clocks cannot tell which marker is whose"
        if known is not None and known.origins.is_order_doubtful
        else None,
        "the state is not proven to reach up to the data"
        if facts.state.is_behind or facts.state.is_unbounded
        else None,
        *(f"missing: {gap}" for gap in rule.missing_in(facts)),
    )
    return tuple(doubt for doubt in doubts if doubt is not None)
