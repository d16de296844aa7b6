"""`partition_not_in_transaction`: the id is known, but its transaction is without this partition.

The marker goes to the partitions that the coordinator's transaction lists (KIP-890). A tombstoned id counts as known,
without a transaction; so does one that runs under another producer id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.logic import no
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """The id is known, and nothing in progress lists the partition."""
    return no(facts.is_listed)


def evidence(facts: Facts) -> list[str | None]:
    """What the id has instead, how much was seen, and that no marker came."""
    known = facts.coordinator
    if known is not None and known.runs_under_producer_id:
        instead = f"its current transaction does not contain {facts.where}"
    else:
        instead = f"nothing runs under producer id {facts.open.producer_id} any more"
    return [facts.coordinator_says, instead, facts.state_seen, facts.log_followed, facts.idle_for, facts.topic_unnamed]


def why_not(facts: Facts) -> str:
    """The partition is listed."""
    return facts.listed_here


PARTITION_NOT_IN_TRANSACTION = Rule(
    name="partition_not_in_transaction",
    verdict=Verdict.HANGING,
    meaning="the coordinator knows the id, but its transaction is without this partition",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="a record of the coordinator that lists the partition in a transaction in progress, or an end marker "
    "of the producer in a later copy of the log",
    reason="The marker goes to the partitions that the coordinator's transaction lists, and this one is not among "
    "them: a write came before the partition was added, or after the transaction had ended (KIP-890).",
    remedy="Abort it: the verb `abort-plan` prints the command and what to check before (`--format commands`). If the "
    "producer has a transaction in progress, end that producer first.",
)
