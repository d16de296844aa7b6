"""`stale_data_in_live_transaction`: the id's transaction lists the partition, but is younger than the open data.

The next commit would publish it. It is not so where the coordinator ended the data's own transaction after the log was
copied. KIP-664 names the epoch mismatch, KIP-890 the way there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule
from txn_analysis.logic import both
from txn_analysis.text.words import utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts
    from txn_analysis.logic import Truth


def when(facts: Facts) -> Truth:
    """The data is older than the transaction in progress that lists it, and no earlier commit can own it."""
    return both(facts.is_ongoing, facts.live.is_older, not facts.state.misfits, facts.loss.hides_no_commit)


def evidence(facts: Facts) -> list[str | None]:
    """What proves that it is older, and what follows."""
    known, clock, epoch = facts.coordinator, None, None
    if known is not None and facts.live.is_older_by_clock:
        first, began = utc(facts.open.first_appended_before_ms), utc(known.start_ms)
        clock = f"its first batch was appended by {first}, before that transaction began at {began}"
    if known is not None and facts.live.is_older_by_epoch:
        ours, theirs = facts.open.max_producer_epoch, known.txn_epoch
        epoch = f"its batches have at most epoch {ours}, that transaction runs at {theirs}"
    return [facts.coordinator_says, facts.listed_here, clock, epoch, "the next commit would publish it"]


def why_not(facts: Facts) -> str:
    """The partition is not listed, or nothing proves the age of the data."""
    if facts.not_listed_here or not facts.live.is_older:
        unproven = f"neither clocks nor epochs prove that it is older than the transaction of {facts.began_at}"
        return facts.not_listed_here or unproven
    return "an earlier transaction may own it, whose marker is lost or lies behind the log's end"


STALE_DATA_IN_LIVE_TRANSACTION = Rule(
    name="stale_data_in_live_transaction",
    verdict=Verdict.SUSPECT,
    meaning="the coordinator's transaction lists this partition, but is younger than the open data",
    when=when,
    evidence=evidence,
    why_not=why_not,
    would_change="an end marker after the data in this partition: its abort discards the stale records, its commit "
    "publishes them",
    reason="The same producer id registered the partition again in a newer transaction while older data was still "
    "open. The next commit marker ends both, so a commit would publish the stale records. `kafka-transactions.sh` "
    "does not see this: it compares neither epochs nor times (KIP-664, KIP-890).",
    remedy="Stop that application before it commits, so that the coordinator aborts the transaction after its "
    "timeout. Then look for records that were published already, from the start offset on.",
)
