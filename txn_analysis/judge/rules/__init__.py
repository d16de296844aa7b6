"""The rules, in the contract's order: the first one that holds gives the verdict.

The first six are here: what is asked before the coordinator is believed. Is the log whole, is the transaction late, is
the state that of these logs, and was its commit lost.

A new rule is an object here or in `by_the_coordinator`, and a line in RULES: pages, reports, `explain` and the plan
read the rest from the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.by_the_coordinator import (
    COMMIT_MAY_BE_MISSING,
    COORDINATOR_OVERDUE,
    IN_COORDINATOR,
    LOG_MAY_END_EARLY,
    MARKER_OVERDUE,
    MARKER_PENDING_ABORT,
    MARKER_PENDING_COMMIT,
    NO_RULE,
    PARTITION_NOT_IN_TRANSACTION,
    STATE_INCOMPLETE,
    STATE_OLDER_THAN_LOG,
    UNKNOWN_PRODUCER,
)
from txn_analysis.judge.rules.rule import Rule, broken_log, foreign_state, unknown_time
from txn_analysis.kafka.names import STATE_TOPIC_DESCRIPTION
from txn_analysis.logic import UNBOUNDED_MS, both, no
from txn_analysis.text import if_known, utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def _missing_of_the_log(facts: Facts) -> list[str]:
    unreplicated = ["a replica that has its data too: it lies above the high watermark that its own folder records"]
    return [*(facts.open.evidence_gaps or ()), *(unreplicated if facts.may_be_a_dead_leaders else ())]


EVIDENCE_BROKEN = Rule(
    name="evidence_broken",
    verdict=Verdict.INCONCLUSIVE,
    meaning="some of the log after the transaction's start is missing, damaged or in doubt",
    background="A log is whole if every file begins at position 0, positions and offsets follow each other, no batch "
    "is invalid or contested, no copy contradicts another, and no producer snapshot disagrees. Compaction stops at "
    "an open transaction, so a hole after its start is never normal.",
    when=lambda facts: bool(facts.open.evidence_gaps) or facts.may_be_a_dead_leaders,
    evidence=lambda facts: [f"open from offset {facts.open.txn_start_offset} by the files that were read"],
    missing=_missing_of_the_log,
    why_not=lambda _: "the log is proven whole from the start of the transaction to its end",
    reason="The end marker may be in the part that is missing or damaged. A missing file, an invalid batch, a torn "
    "end, copies that contradict each other, and a forged line all count. So does a partition that an earlier "
    "capture has and this one does not. If the only damage is a hole of compaction behind the start, an old "
    "broker's cleaner may have removed the end marker before its data (KAFKA-8351, KAFKA-13727, KAFKA-14055).",
    remedy="Copy all files of the partition again from its leader, with the newest producer snapshot, and audit "
    "again. The missing evidence names the offset.",
    settled_by=broken_log,
    is_of_the_log=True,
)


def _proof_of_age(facts: Facts) -> list[str | None]:
    known, clock, epoch = facts.coordinator, None, None
    if known is not None and facts.live.is_older_by_clock:
        first, began = utc(facts.open.first_appended_before_ms), utc(known.start_ms)
        clock = if_known("its first batch was appended by {}, before that transaction began at {}", first, began)
    if known is not None and facts.live.is_older_by_epoch:
        ours, theirs = facts.open.max_producer_epoch, known.txn_epoch
        epoch = if_known("its batches have at most epoch {}, that transaction runs at {}", ours, theirs)
    return [facts.coordinator_says, facts.listed_here, clock, epoch, "the next commit would publish it"]


def _why_not_stale(facts: Facts) -> str:
    if facts.not_listed_here or not facts.live.is_older:
        current = if_known("the transaction of {}", facts.began_at) or "its id's transaction"
        return facts.not_listed_here or f"neither clocks nor epochs prove that it is older than {current}"
    return "an earlier transaction may own it, whose marker is lost or lies behind the log's end"


STALE_DATA_IN_LIVE_TRANSACTION = Rule(
    name="stale_data_in_live_transaction",
    verdict=Verdict.SUSPECT,
    meaning="the producer's current transaction lists this partition, but the open data is older than it",
    background="The rule does not hold if the coordinator ended the data's own transaction after the log was copied. "
    "KIP-664 describes the epoch mismatch, KIP-890 how it comes about.",
    when=lambda facts: both(facts.is_ongoing, facts.live.is_older, not facts.state.misfits, facts.loss.hides_no_commit),
    evidence=_proof_of_age,
    why_not=_why_not_stale,
    would_change="an end marker after the data in this partition: its abort discards the stale records, its commit "
    "publishes them",
    reason="Records of an earlier transaction were still open when the same producer id added the partition to a new "
    "one. The next end marker ends both, so a commit publishes the old records too. `kafka-transactions.sh` does "
    "not see this: it compares neither epochs nor times (KIP-664, KIP-890).",
    remedy="Stop that application before it commits. Its coordinator then aborts the transaction after the timeout. "
    "Then look for records that were published already, from the start offset on.",
)


def _why_late(facts: Facts) -> str:
    late = if_known("it is {} ms beyond transaction.max.timeout.ms + 300000", facts.lateness.late_by_ms)
    return late or "no clock says how long it has been idle"


NOT_LATE = Rule(
    name="not_late",
    verdict=Verdict.IN_PROGRESS,
    meaning="last written at most transaction.max.timeout.ms + 300000 ms ago",
    condition="last written at most transaction.max.timeout.ms + 300000 ms ago, the brokers' own bound (KIP-664)",
    when=lambda facts: no(facts.lateness.is_late),
    evidence=lambda facts: [facts.idle_for],
    why_not=_why_late,
    would_change="time: it is judged again when it has been idle for longer than transaction.max.timeout.ms + 300000",
    reason="Its client may still be writing. If it is not, the coordinator aborts the transaction after its timeout. "
    "The bound is that of the brokers' own metric for late transactions (KIP-664).",
    remedy="Nothing. It is in the list because it can hold the last stable offset.",
)


CLOCK_NOT_CREDIBLE = Rule(
    name="clock_not_credible",
    verdict=Verdict.INCONCLUSIVE,
    meaning="neither its timestamp nor a broker's clock says how old it is",
    when=lambda facts: facts.lateness.is_late is None,
    evidence=lambda facts: [
        if_known("last timestamp {}", facts.open.last_timestamp_ms) or "the files have no timestamp of it"
    ],
    missing=lambda _: ["a credible timestamp, or an end marker after the data in this partition"],
    why_not=lambda facts: f"there is a credible clock{if_known(': {}', facts.lateness.basis) or ''}",
    reason="The client's timestamp is not positive, or is later than the moment of the copy. No end marker around "
    "the data gives a broker's time in its place.",
    remedy="Copy the partition again after other transactions have ended in it, or pass the moment of the copy with "
    "`--as-of`.",
    settled_by=unknown_time,
)


STATE_DOES_NOT_FIT = Rule(
    name="state_does_not_fit",
    verdict=Verdict.INCONCLUSIVE,
    meaning="this __transaction_state belongs to another cluster than the logs, or is only a part of it",
    background="The coordinator of these logs decided each COMMIT marker in them, so their state knows of it. A "
    "state that should know of it and does not is another cluster's, or has more partitions than you said.",
    when=lambda facts: len(facts.state.misfits) > 0,
    evidence=lambda facts: [facts.coordinator_says, facts.state_seen],
    missing=lambda facts: [
        *facts.state.misfits,
        "all of __transaction_state of the cluster that these logs are from",
    ],
    why_not=lambda _: "no end marker of the logs contradicts __transaction_state",
    reason="Producer ids are small numbers, so those of two clusters overlap. With another cluster's state, or with "
    "a part that passes for the whole, live transactions look as if no coordinator knew them.",
    remedy="Copy all partitions of `__transaction_state` of the cluster that the logs are from, and pass their "
    f"number with `--transaction-state-partitions`. `{STATE_TOPIC_DESCRIPTION}` prints it.",
    settled_by=foreign_state,
)


def _lost_commit(facts: Facts) -> list[str | None]:
    """The decision, and how far the log goes on without its marker."""
    commit, elsewhere = facts.loss.commit, facts.loss.other_copy_offset
    decided = done = goes_on = held = None
    if commit is not None:
        how = "completed" if commit.completed_ms != UNBOUNDED_MS else "followed by its id's next record"
        decided = f"PrepareCommit of {utc(commit.prepared_ms)} lists {facts.where}"
        done = f"it was {how} by {utc(commit.settled_ms)}"
        goes_on = if_known("the log goes on to {} without its marker", utc(facts.log.last_moment_ms))
    if elsewhere is not None:
        held = f"another copy of this log, or an earlier capture, has a COMMIT marker of the producer at {elsewhere}"
    return [facts.coordinator_says, decided, done, goes_on, held]


COMMIT_MARKER_MISSING = Rule(
    name="commit_marker_missing",
    verdict=Verdict.SUSPECT,
    meaning="the commit was acknowledged, but its end marker is missing from the log",
    condition="the commit was acknowledged, but its end marker is missing from the log (KAFKA-7408)",
    background="The coordinator completed a commit that lists the partition, and the log goes on without its marker. "
    "Or another copy of the log, or an earlier capture, still has the marker.",
    when=lambda facts: facts.loss.is_proven,
    evidence=_lost_commit,
    why_not=lambda _: "no completed commit is known that lists the partition and whose marker is not in the log",
    would_change="a copy of the log that has the marker",
    reason="The application was told that its transaction is committed. Then an unclean leader election or a lost "
    "disk took the marker from this log (KAFKA-7408). An abort would destroy acknowledged data, and no tool of "
    "Kafka's can commit it.",
    remedy="Never abort it. Read the records from the start offset on with `read_uncommitted`, and write them again "
    "together with the application's owner. Only then may the partition be freed. Find out what else was lost: look "
    "at `UncleanLeaderElectionsPerSec`, at the disks, and at other partitions of the same broker.",
)


RULES: tuple[Rule, ...] = (
    EVIDENCE_BROKEN,
    STALE_DATA_IN_LIVE_TRANSACTION,
    NOT_LATE,
    CLOCK_NOT_CREDIBLE,
    STATE_DOES_NOT_FIT,
    COMMIT_MARKER_MISSING,
    MARKER_OVERDUE,
    MARKER_PENDING_COMMIT,
    MARKER_PENDING_ABORT,
    COORDINATOR_OVERDUE,
    IN_COORDINATOR,
    STATE_OLDER_THAN_LOG,
    LOG_MAY_END_EARLY,
    STATE_INCOMPLETE,
    COMMIT_MAY_BE_MISSING,
    UNKNOWN_PRODUCER,
    PARTITION_NOT_IN_TRANSACTION,
    NO_RULE,
)
"""The last one always holds."""

_BY_NAME = {rule.name: rule for rule in RULES}
_PLACES = {rule.name: place for place, rule in enumerate(RULES)}


def first_rule(facts: Facts) -> Rule:
    """The first rule that holds for the facts of one open transaction."""
    return next(rule for rule in RULES if rule.holds_for(facts))


def before(rule: Rule) -> tuple[Rule, ...]:
    """The rules that were asked before this one held."""
    return RULES[: _PLACES[rule.name]]


def rule_named(name: str) -> Rule | None:
    """The rule with this name; None for one of a later version, whose findings a warehouse can hold."""
    return _BY_NAME.get(name)
