"""`late_write_joined_next_transaction`: records of an ended transaction came late and joined the next one (KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds, last_marker
from txn_analysis.logic import is_before
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def by_proof(facts: Facts) -> Confidence | None:
    """The transaction that lists the partition is proven to be younger."""
    return if_holds(facts.is_listed and facts.live.is_older, Confidence.CERTAIN)


def by_clients_clock(facts: Facts) -> Confidence | None:
    """By the client's own clock it was made no later than a transaction that had ended before."""
    made_ms, before_ms = facts.open.last_timestamp_ms, facts.open.previous_last_timestamp_ms
    was_made_before = made_ms is not None and before_ms is not None and made_ms <= before_ms
    start_ms = None if facts.coordinator is None else facts.coordinator.start_ms
    is_of_this_one = is_before(start_ms, facts.open.appended_after_ms)
    holds = facts.lateness.is_late and facts.is_ongoing and was_made_before and not is_of_this_one
    return if_holds(holds, Confidence.POSSIBLE)


def evidence(facts: Facts) -> list[str | None]:
    """What shows its age: the brokers' clocks, the epochs, or the client's clock."""
    known = facts.coordinator
    if known is not None and facts.live.is_older_by_clock:
        first, began = utc(facts.open.first_appended_before_ms), utc(known.start_ms)
        age = f"its first batch was appended by {first}; the transaction that lists it began at {began}"
    elif known is not None and facts.live.is_older_by_epoch:
        ours, theirs = facts.open.max_producer_epoch, known.txn_epoch
        age = f"its batches have at most epoch {ours}; the transaction that lists it runs at {theirs}"
    else:
        made, before = utc(facts.open.last_timestamp_ms), utc(facts.open.previous_last_timestamp_ms)
        age = f"by its client's clock ({made}) it is not newer than the transaction before it ({before})"
    return [last_marker(facts), age]


LATE_WRITE_JOINED_NEXT_TRANSACTION = Cause(
    name="late_write_joined_next_transaction",
    meaning="records of an ended transaction came late and joined the next one",
    story="records of an ended transaction came late, and the next one lists their partition: its commit would "
    "publish them. `possible` where only the client's clock says so",
    prevention="brokers of 3.6 and newer with `transaction.partition.verification.enable`; transaction version 2",
    evidence=evidence,
    doubt="the brokers' clocks do not prove it: a client whose timestamps stand still, or come from its input, looks "
    "the same",
)
BY_PROOF = Reading(LATE_WRITE_JOINED_NEXT_TRANSACTION, by_proof)
BY_CLIENTS_CLOCK = Reading(LATE_WRITE_JOINED_NEXT_TRANSACTION, by_clients_clock)
