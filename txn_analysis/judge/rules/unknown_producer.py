"""`unknown_producer`: no transactional id has, or in any earlier record had, this producer id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """No id ever had the producer id."""
    return facts.coordinator is None


def evidence(facts: Facts) -> list[str | None]:
    """That none has it, how much was seen, and that no marker came."""
    none_has_it = f"no transactional id has, or had, producer id {facts.open.producer_id}"
    return [none_has_it, facts.state_seen, facts.log_followed, facts.idle_for, facts.topic_unnamed]


def why_not(facts: Facts) -> str:
    """Which id has it."""
    name = None if facts.coordinator is None else facts.coordinator.transactional_id
    return f"transactional id {name} has, or had, producer id {facts.open.producer_id}"


UNKNOWN_PRODUCER = Rule(
    name="unknown_producer",
    verdict=Verdict.HANGING,
    meaning="no transactional id has, or ever had, this producer id",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="a record of __transaction_state with this producer id, or an end marker of it in a later copy",
    reason="The coordinator has forgotten the id (transactional.id.expiration.ms), or never heard of it. Nobody is "
    "left who would write the marker.",
    remedy="Abort it: the verb `abort-plan` prints the command and what to check before (`--format commands`).",
)
