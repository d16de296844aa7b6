"""`log_may_end_early`: the log is not proven to reach up to the coordinator's state; the marker may have come later.

A text dump that was cut does not say so, and files are copied one after another. Nothing waives this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.logic import UNBOUNDED_MS
from txn_analysis.judge.rules.rule import Rule
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.judge.words import utc

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.judge.logic import Truth


def when(facts: Facts) -> Truth:
    """The transaction may have been ended after its log was copied."""
    return facts.log.may_end_early


def evidence(facts: Facts) -> list[str | None]:
    """What was recorded last, and how far the log speaks."""
    recorded_ms = None if facts.coordinator is None else facts.coordinator.recorded_ms
    last_ms = facts.partition.last_moment_ms
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


def missing(_: Facts) -> list[str]:
    """More of the log."""
    return ["this partition's log up to a later moment"]


def why_not(facts: Facts) -> str:
    """The log reaches far enough."""
    return f"the log reaches up to {utc(facts.partition.last_moment_ms)}, and no decision since then can have ended it"


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
    remedy="Copy this partition's log again, and audit it with the state that you have. Nothing waives this rule.",
)
