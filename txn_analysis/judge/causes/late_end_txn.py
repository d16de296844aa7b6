"""`late_end_txn`: a repeated EndTxn ended it early, and its client wrote on (KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.causes.cause import Cause, Confidence, Reading, if_holds, last_marker, never_listed
from txn_analysis.judge.causes.late_write_after_marker import follows_marker
from txn_analysis.logic import is_before
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts

# An EndTxn that a client repeats comes within its delivery time-out (KafkaProducer, delivery.timeout.ms).
_LONGEST_RETRY_MS = 120_000


def reading(facts: Facts) -> Confidence | None:
    """The client went on writing after the marker, and an equal decision had been made just before (a repeat)."""
    opened, known = facts.open, facts.coordinator
    is_brokers_time = opened.appended_after_ms == opened.appended_before_ms == opened.last_timestamp_ms
    wrote_on = is_before(opened.last_marker_ms, opened.last_timestamp_ms, facts.max_clock_skew_ms)
    again_ms = None if known is None else known.origins.ended_again_after_ms
    is_repeat = again_ms is not None and again_ms <= _LONGEST_RETRY_MS
    is_credible = facts.lateness.basis == "last_timestamp"
    holds = follows_marker(facts) and wrote_on and not is_brokers_time and is_repeat and is_credible
    return if_holds(holds, Confidence.POSSIBLE)


def evidence(facts: Facts) -> list[str | None]:
    """The repeated decision, and how long the client wrote on."""
    origins = None if facts.coordinator is None else facts.coordinator.origins
    state, again_ms = (None, None) if origins is None else (origins.ended_state, origins.ended_again_after_ms)
    return [
        last_marker(facts),
        f"{state} came {again_ms} ms after an equal decision, as a repeated EndTxn does",
        f"by its client's clock the producer went on writing until {utc(facts.open.last_timestamp_ms)}",
        never_listed(facts),
    ]


LATE_END_TXN = Cause(
    name="late_end_txn",
    meaning="a repeated EndTxn ended it early, and its client wrote on (KAFKA-17754)",
    story="a repeated EndTxn seems to have ended it early, and its client wrote on (KAFKA-17754)",
    prevention="transaction version 2",
    evidence=evidence,
    doubt="a client that writes without a transaction looks the same",
)
READING = Reading(LATE_END_TXN, reading)
