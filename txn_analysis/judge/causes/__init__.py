"""The causes: why an open transaction is open. The first reading that explains the facts counts. One file is one cause.

A cause never decides a verdict. Sources: KIP-890 for writes that come late or unannounced, KIP-664 for what makes a
transaction hang, KAFKA-9144 for coordinator epochs, KIP-360 for epoch exhaustion. A new cause is a file, and a line in
READINGS for each way that leads to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes import (
    coordinator_epoch_went_back,
    coordinator_overdue,
    late_end_txn,
    late_write_after_marker,
    late_write_joined_next_transaction,
    marker_missing,
    marker_not_sent_in_upgrade,
    old_epoch_left_open,
    producer_id_never_known,
    producer_id_rotated,
    transaction_in_progress,
    transactional_id_expired,
    unexplained,
    write_before_partition_added,
)
from txn_analysis.judge.causes.cause import Confidence, FoundCause
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.causes.cause import Cause, Reading
    from txn_analysis.judge.facts import Facts
    from txn_analysis.judge.rules.rule import Rule

READINGS: tuple[Reading, ...] = (
    late_write_joined_next_transaction.BY_PROOF,
    coordinator_epoch_went_back.BY_MARKERS,
    coordinator_epoch_went_back.BY_STATE,
    marker_not_sent_in_upgrade.READING,
    marker_missing.READING,
    coordinator_overdue.READING,
    late_write_joined_next_transaction.BY_CLIENTS_CLOCK,
    transaction_in_progress.READING,
    transactional_id_expired.WRITTEN_AFTER,
    late_end_txn.READING,
    late_write_after_marker.READING,
    old_epoch_left_open.READING,
    producer_id_rotated.READING,
    transactional_id_expired.GONE,
    write_before_partition_added.READING,
    producer_id_never_known.TOO_RECENT,
    producer_id_never_known.TOO_LARGE,
    transactional_id_expired.FORGOTTEN,
    unexplained.READING,
)
"""The last one always explains, and is never sure."""

OF_THE_LOG: tuple[Reading, ...] = (coordinator_epoch_went_back.BY_MARKERS,)
"""Those that ask nothing of the coordinator."""

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
