"""`coordinator_overdue`: the coordinator did not abort it when its time was over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def reading(facts: Facts) -> Confidence | None:
    """The transaction that lists the partition is past its timeout."""
    return if_holds(facts.is_ongoing and facts.live.is_transaction_overdue, Confidence.CERTAIN)


def evidence(facts: Facts) -> list[str | None]:
    """When it began, and for how long it was to last; and whether there is an epoch left for its abort."""
    known = facts.coordinator
    began, timeout_ms = (None, None) if known is None else (utc(known.start_ms), known.timeout_ms)
    overdue = f"its transaction began at {began} with a timeout of {timeout_ms} ms, and nothing ended it"
    epoch = None if known is None else known.state_epoch
    if epoch is None or epoch < EXHAUSTED_EPOCH:
        return [overdue]
    can_fail = (
        "under transaction version 2 its abort can fail for want of another (KAFKA-19367, KAFKA-20090), and a new "
        "coordinator can have lost its next producer id (KAFKA-20310)"
    )
    return [overdue, f"its producer epoch {epoch} is one of the last: {can_fail}"]


COORDINATOR_OVERDUE = Cause(
    name="coordinator_overdue",
    meaning="the coordinator did not abort it when its time was over",
    story="the transaction is past its timeout, and the coordinator did not abort it",
    prevention="look at the coordinator: it may be overloaded or not have loaded its partition",
    evidence=evidence,
)
READING = Reading(COORDINATOR_OVERDUE, reading)
