"""`log_may_end_early`: the log is not proven to reach up to the coordinator's state; the marker may have come later.

A text dump that was cut does not say so, and files are copied one after another. Nothing waives this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.kafka.tools import TRANSACTIONS
from txn_analysis.logic import UNBOUNDED_MS
from txn_analysis.text.words import utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """The transaction may have been ended after its log was copied."""
    return facts.log.may_end_early


def evidence(facts: Facts) -> list[str | None]:
    """What was recorded last, and how far the log speaks."""
    recorded_ms = None if facts.coordinator is None else facts.coordinator.recorded_ms
    last_ms = facts.log.last_moment_ms
    return [
        facts.coordinator_says,
        _recorded(recorded_ms),
        None if last_ms is None else f"the partition's last broker-clock moment is {utc(last_ms)}",
    ]


def _recorded(by_ms: int | None) -> str | None:
    if by_ms is None:
        return None
    if by_ms == UNBOUNDED_MS:
        return "the export does not say when the coordinator completed its last decision"
    return f"the coordinator recorded something at {utc(by_ms)}"


def missing(facts: Facts) -> list[str]:
    """What would prove that nothing followed: a copy that says so itself, or one whose order is proven.

    An idle partition, or one whose records are all deleted, has no later moment of its own to be copied up to.
    """
    last_ms = facts.log.last_moment_ms
    silent = "when they were copied" if last_ms is None else f"whether anything followed {utc(last_ms)}"
    again = f"a copy of {facts.where} from after the next end marker in it: the files that are here do not say {silent}"
    proven = "or a manifest of the copy that proves that this log was copied after the state (not read so far)"
    return [again, proven]


def why_not(facts: Facts) -> str:
    """The log reaches far enough, or no copy of it can."""
    if facts.log.may_end_early is None:
        return "records of __transaction_state could not be decoded, and no copy of the log is known to reach past them"
    return f"the log reaches up to {utc(facts.log.last_moment_ms)}, and no decision since then can have ended it"


LOG_MAY_END_EARLY = Rule(
    name="log_may_end_early",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the log is not proven to reach up to the coordinator's state: the marker may have come later",
    when=when,
    evidence=evidence,
    missing=missing,
    why_not=why_not,
    reason="The coordinator recorded something for this producer after the last moment that this partition's log "
    "shows. The end marker may lie in the part of the log that was not copied.",
    remedy="Copy this partition's log again once another end marker, of whichever producer, is in it, and audit it "
    "with the state that you have. Where nothing is written there any more, or all records were deleted, a further "
    "copy is the same: only the broker can tell: "
    f"`{TRANSACTIONS} describe-producers --topic TOPIC --partition N`. Nothing waives this rule.",
)
