"""`write_before_partition_added`: its client wrote without adding the partition to the transaction (KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import (
    Cause,
    Confidence,
    Reading,
    as_far_as_recorded,
    last_marker,
    never_listed,
    written,
)
from txn_analysis.logic import is_before
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def reading(facts: Facts) -> Confidence | None:
    """The id is known and never listed the partition; surer where its markers or its next transaction show that."""
    known = facts.coordinator
    if known is None or known.is_listed:
        return None
    is_free_of_markers = facts.open.last_marker_ms is None and facts.open.coordinator_epoch_basis == "none_seen"
    is_in_later = is_before(known.origins.began_since_ms, facts.open.appended_after_ms, facts.max_clock_skew_ms)
    return as_far_as_recorded(facts) if is_free_of_markers or is_in_later else Confidence.LIKELY


def evidence(facts: Facts) -> list[str | None]:
    """Since when the id has the producer id, and what its transactions list."""
    origins = None if facts.coordinator is None else facts.coordinator.origins
    since, began = (None, None) if origins is None else (utc(origins.first_own_ms), utc(origins.began_since_ms))
    return [
        None if since is None else f"the transactional id has producer id {facts.open.producer_id} since {since}",
        None if began is None else f"its transaction of {began} does not list {facts.where}",
        last_marker(facts),
        never_listed(facts),
        written(facts),
    ]


WRITE_BEFORE_PARTITION_ADDED = Cause(
    name="write_before_partition_added",
    meaning="its client wrote without adding the partition to the transaction (KIP-890)",
    story="the client wrote without adding the partition to its transaction, or the group's offsets without adding "
    "the group",
    prevention="a client that follows the protocol; as above",
    evidence=evidence,
)
READING = Reading(WRITE_BEFORE_PARTITION_ADDED, reading)
