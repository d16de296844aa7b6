"""What is said of each rule, by its name: why it holds, why not, what is missing, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from txn_analysis.judge import sentences as say
from txn_analysis.judge.case import Case
from txn_analysis.judge.lacks import Lack, Settling
from txn_analysis.judge.settling import (
    Doubtful,
    broken_log,
    early_log,
    foreign_state,
    incomplete_state,
    lost_records,
    older_state,
    unknown_time,
)
from txn_analysis.kafka.names import STATE_TOPIC_DESCRIPTION, TRANSACTIONS
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS, TWO_PHASE_COMMIT
from txn_analysis.settings import Settings
from txn_analysis.text import if_known, utc


@dataclass(frozen=True, kw_only=True)
class Words:
    """What is said of a rule.

    Attributes:
        meaning: what it says, in half a sentence.
        condition: when it holds, as docs/rules.md lists it; None where that is its meaning.
        background: what else its page says of the reason; empty for nothing.
        evidence: what it rests on, a sentence each; None for what has nothing to say.
        missing: what would be needed for an answer; nothing where there is one.
        why_not: why it does not hold.
        would_change: what would change its verdict; None where that is what is missing.
        reason: why this gives its verdict.
        remedy: what to do about it.
        settled_by: what several findings lack together, and what would settle them; None where the remedy says it.
    """

    meaning: str
    condition: str | None = None
    background: str = ""
    evidence: Callable[[Case], Sequence[str | None]]
    missing: Callable[[Case], Sequence[str | None]] = lambda _: ()
    why_not: Callable[[Case], str]
    would_change: str | None = None
    reason: str
    remedy: str
    settled_by: Callable[[Doubtful], Settling] | None = None

    def evidence_in(self, case: Case) -> tuple[str, ...]:
        """What it rests on, in words."""
        return tuple(fact for fact in self.evidence(case) if fact is not None)

    def missing_in(self, case: Case) -> tuple[str, ...]:
        """What would be needed for an answer, in words; empty where there is one."""
        return tuple(fact for fact in self.missing(case) if fact is not None)

    def would_change_in(self, case: Case) -> tuple[str, ...]:
        """What evidence would change the verdict; what is missing, where there was no answer."""
        return self.missing_in(case) or (() if self.would_change is None else (self.would_change,))

    def settling(self, doubtful: Doubtful) -> Settling:
        """What some findings of it lack together, and what would settle them, both in words."""
        if self.settled_by is None:
            remedy = f"{self.remedy[:1].lower()}{self.remedy[1:]}".rstrip(".")
            return Settling(Lack.NO_RULE, "its coordinator is in a state that no rule knows", remedy)
        return self.settled_by(doubtful)


def _or_forgotten_sooner(case: Case) -> str:
    """An id that the state lacks may have expired, where the operator did not say when ids do."""
    is_said = case.settings.transactional_id_expiration_ms != _WEEK_MS
    word = ", or --transactional-id-expiration-ms, if the brokers' is below 7 days"
    return "" if is_said or case.state.fit.in_any_case else word


_WEEK_MS = Settings.model_fields["transactional_id_expiration_ms"].default

WORDS: dict[str, Words] = {
    "evidence_broken": Words(
        meaning="some of the log after the transaction's start is missing, damaged or in doubt",
        background="A log is whole if every file begins at position 0, positions and offsets follow each other, no "
        "batch is invalid or contested, no copy contradicts another, and no producer snapshot disagrees. Compaction "
        "stops at an open transaction, so a hole after its start is never normal.",
        evidence=lambda c: [f"open from offset {c.txn.txn_start_offset} by the files that were read"],
        missing=say.missing_of_the_log,
        why_not=lambda _: "the log is proven whole from the start of the transaction to its end",
        reason="The end marker may be in the part that is missing or damaged. A missing file, an invalid batch, a "
        "torn end, copies that contradict each other, and a forged line all count. So does a partition that an "
        "earlier capture has and this one does not. If the only damage is a hole of compaction behind the start, an "
        "old broker's cleaner may have removed the end marker before its data (KAFKA-8351, KAFKA-13727, KAFKA-14055).",
        remedy="Copy all files of the partition again from its leader, with the newest producer snapshot, and audit "
        "again. The missing evidence names the offset.",
        settled_by=broken_log,
    ),
    "stale_data_in_live_transaction": Words(
        meaning="the producer's current transaction lists this partition, but the open data is older than it",
        background="The rule does not hold if the coordinator ended the data's own transaction after the log was "
        "copied. KIP-664 describes the epoch mismatch, KIP-890 how it comes about.",
        evidence=say.proof_of_age,
        why_not=say.why_not_stale,
        would_change="an end marker after the data in this partition: its abort discards the stale records, its "
        "commit publishes them",
        reason="Records of an earlier transaction were still open when the same producer id added the partition to a "
        "new one. The next end marker ends both, so a commit publishes the old records too. `kafka-transactions.sh` "
        "does not see this: it compares neither epochs nor times (KIP-664, KIP-890).",
        remedy="Stop that application before it commits. Its coordinator then aborts the transaction after the "
        "timeout. Then look for records that were published already, from the start offset on.",
    ),
    "not_late": Words(
        meaning="last written at most transaction.max.timeout.ms + 300000 ms ago",
        condition="last written at most transaction.max.timeout.ms + 300000 ms ago, the brokers' own bound (KIP-664)",
        evidence=lambda c: [say.idle_for(c)],
        why_not=say.why_late,
        would_change="time: it is judged again when it has been idle for longer than transaction.max.timeout.ms + "
        "300000",
        reason="Its client may still be writing. If it is not, the coordinator aborts the transaction after its "
        "timeout. The bound is that of the brokers' own metric for late transactions (KIP-664).",
        remedy="Nothing. It is in the list because it can hold the last stable offset.",
    ),
    "clock_not_credible": Words(
        meaning="neither its timestamp nor a broker's clock says how old it is",
        evidence=lambda c: [
            if_known("last timestamp {}", c.txn.last_timestamp_ms) or "the files have no timestamp of it"
        ],
        missing=lambda _: ["a credible timestamp, or an end marker after the data in this partition"],
        why_not=lambda c: f"there is a credible clock{if_known(': {}', c.lateness_basis) or ''}",
        reason="The client's timestamp is not positive, or is later than the moment of the copy. No end marker around "
        "the data gives a broker's time in its place.",
        remedy="Copy the partition again after other transactions have ended in it, or pass the moment of the copy "
        "with `--as-of`.",
        settled_by=unknown_time,
    ),
    "state_does_not_fit": Words(
        meaning="this __transaction_state belongs to another cluster than the logs, or is only a part of it",
        background="The coordinator of these logs decided each COMMIT marker in them, so their state knows of it. A "
        "state that should know of it and does not is another cluster's, or has more partitions than you said.",
        evidence=lambda c: [say.coordinator_says(c), say.state_seen(c)],
        missing=lambda c: [
            *c.misfits,
            "all of __transaction_state of the cluster that these logs are from" + _or_forgotten_sooner(c),
        ],
        why_not=lambda _: "no end marker of the logs contradicts __transaction_state",
        reason="Producer ids are small numbers, so those of two clusters overlap. With another cluster's state, or "
        "with a part that passes for the whole, live transactions look as if no coordinator knew them.",
        remedy="Copy all partitions of `__transaction_state` of the cluster that the logs are from, and pass their "
        f"number with `--transaction-state-partitions`. `{STATE_TOPIC_DESCRIPTION}` prints it.",
        settled_by=foreign_state,
    ),
    "commit_marker_missing": Words(
        meaning="the commit was acknowledged, but its end marker is missing from the log",
        condition="the commit was acknowledged, but its end marker is missing from the log (KAFKA-7408)",
        background="The coordinator completed a commit that lists the partition, and the log goes on without its "
        "marker. Or another copy of the log, or an earlier capture, still has the marker.",
        evidence=say.lost_commit,
        why_not=lambda _: "no completed commit is known that lists the partition and whose marker is not in the log",
        would_change="a copy of the log that has the marker",
        reason="The application was told that its transaction is committed. Then an unclean leader election or a lost "
        "disk took the marker from this log (KAFKA-7408). An abort would destroy acknowledged data, and no tool of "
        "Kafka's can commit it.",
        remedy="Never abort it. Read the records from the start offset on with `read_uncommitted`, and write them "
        "again together with the application's owner. Only then may the partition be freed. Find out what else was "
        "lost: look at `UncleanLeaderElectionsPerSec`, at the disks, and at other partitions of the same broker.",
    ),
    "marker_overdue": Words(
        meaning="a commit or abort was decided too long ago, and its marker has not reached this partition",
        background="It is never aborted, because the commit was acknowledged.",
        evidence=lambda c: [
            say.coordinator_says(c),
            say.listed_here(c),
            if_known("unchanged since {}", utc(c.update_ms)),
            say.state_end(c),
        ],
        why_not=lambda c: say.not_listed_here(c) or say.why_not_stuck(c),
        would_change="the marker in a later copy of the log, or a coordinator that moved on",
        reason="The coordinator decided, and should have written the marker within moments. It has stopped trying, or "
        "cannot reach the partition's leader (KAFKA-16352, KAFKA-19999 and KAFKA-20322 are ways to get there).",
        remedy="Never write a marker yourself: after PrepareCommit an abort destroys acknowledged data. Look at the "
        "broker that leads the id's partition of __transaction_state. Restart it: another broker takes over and sends "
        "the markers again. In an upgrade from 4.1 or older through 4.2.0, finish it, or use 4.2.1: a coordinator of "
        "4.2.0 cannot send markers to older brokers.",
    ),
    "marker_pending_commit": Words(
        meaning="a commit is decided and lists this partition; the coordinator is writing its marker",
        condition="a commit is decided and lists this partition; the coordinator is writing its marker. Never abort "
        "it: it was acknowledged",
        background="`TransactionCoordinator.endTransaction` answers the client as soon as the decision is written.",
        evidence=lambda c: [say.coordinator_says(c), say.listed_here(c)],
        why_not=say.not_decided_here,
        would_change="the marker in a later copy of the log",
        reason="The client was told that the commit succeeded. An abort marker here would destroy acknowledged data.",
        remedy="Nothing. Never abort it. If it is still there in the next audit, look at the coordinator's broker.",
    ),
    "marker_pending_abort": Words(
        meaning="an abort is decided and lists this partition; the coordinator is writing its marker",
        evidence=lambda c: [say.coordinator_says(c), say.listed_here(c)],
        why_not=say.not_decided_here,
        would_change="the marker in a later copy of the log",
        reason="The coordinator will write the abort marker itself.",
        remedy="Nothing. Look again if it is still there in the next audit.",
    ),
    "coordinator_overdue": Words(
        meaning="the transaction lists this partition and is past its own timeout + 5 minutes; its coordinator did "
        "not abort it",
        evidence=lambda c: [
            say.coordinator_says(c),
            say.listed_here(c),
            if_known("that transaction began at {} with a timeout of {} ms", utc(c.start_ms), c.timeout_ms),
            say.state_end(c),
        ],
        why_not=lambda c: say.not_listed_here(c) or say.why_not_overdue(c),
        would_change="a later record of the coordinator that ends the transaction",
        reason="The coordinator should have aborted it after its timeout. It still owns the transaction, so it may "
        "end it at any moment. A timeout of 2147483647 ms is a two-phase commit (KIP-939), and never overdue.",
        remedy="Start the application again: its producer takes the id, and that ends the transaction. Restore a "
        "Flink job from its last checkpoint first, or what that holds is lost. If the application is gone for good, "
        "look at the broker that leads the id's partition of __transaction_state. Is it up? Is it the leader? What "
        "does its log say about this id? Do not write markers while the coordinator has the transaction.",
    ),
    "in_coordinator": Words(
        meaning="the transaction lists this partition and is within its own timeout; its coordinator will end it",
        evidence=lambda c: [
            say.coordinator_says(c),
            say.listed_here(c),
            TWO_PHASE_COMMIT if c.timeout_ms == NEVER_TIMES_OUT_MS else None,
        ],
        why_not=say.not_decided_here,
        would_change="a later record of the coordinator, once the transaction ends or is past its timeout",
        reason="The coordinator knows of the data here. It ends the transaction when the client asks for it, or at "
        "the timeout.",
        remedy="Nothing. If the application is gone for good, wait for the timeout. A two-phase commit has none: its "
        "owner must end it.",
    ),
    "state_older_than_log": Words(
        meaning="__transaction_state may have been copied before this data was written",
        background="Files are copied one after another.",
        evidence=lambda c: [
            say.coordinator_says(c),
            if_known("the data was appended by {}", utc(c.txn.appended_before_ms)),
        ],
        missing=say.missing_reach_of_the_state,
        why_not=say.why_state_reaches,
        reason="The state was copied before the data was written, or nothing proves that it was not. The coordinator "
        "may have recorded the transaction after that copy.",
        remedy="Copy the logs first and `__transaction_state` last, from the leaders, and pass `--state-copied-last`.",
        settled_by=older_state,
    ),
    "log_may_end_early": Words(
        meaning="the log may have been copied before its end marker was written",
        background="A text dump does not show that it was cut short, and files are copied one after another.",
        evidence=lambda c: [say.coordinator_says(c), say.recorded(c), say.last_moment(c), *say.copying(c)],
        missing=say.missing_reach_of_the_log,
        why_not=say.why_log_reaches,
        reason="The coordinator recorded something for this producer after the last moment that this partition's log "
        "shows. The end marker may be in the part of the log that was not copied.",
        remedy="Copy this partition's log again after the next end marker in it, of any producer, and audit it with "
        "the state that you have. If nothing is written there any more, or all records were deleted, another copy "
        f"shows the same, and only the broker can tell: `{TRANSACTIONS} describe-producers --topic TOPIC --partition "
        "N`. No option overrides this rule.",
        settled_by=early_log,
    ),
    "state_incomplete": Words(
        meaning="the part of __transaction_state that could name this producer is missing, broken, or of another "
        "cluster",
        background="Only a state that was seen as a whole proves that something is not in it.",
        evidence=lambda c: [say.coordinator_says(c), say.state_seen(c)],
        missing=lambda c: c.state_lacks,
        why_not=lambda _: "the part of __transaction_state that could hold the answer is complete",
        reason="Only a whole state proves that no transactional id has this producer id: all its partitions, from "
        "their first file, without decoder errors.",
        remedy="Copy what is named as missing. Between the files of a folder compaction leaves holes: a copy by the "
        "script of `txn-analysis copy-kit` says that no file is missing, which counts with `--no-records-lost`. A "
        "console export does not say what it covers. If all was copied, and no record was deleted, pass "
        "`--transaction-state-complete`.",
        settled_by=incomplete_state,
    ),
    "commit_may_be_missing": Words(
        meaning="it may be a commit whose marker was lost, and whose record in __transaction_state was compacted away",
        background="Compaction of `__transaction_state` is normal. So this is common when you look at old "
        "transactions once, and rare in nightly audits, whose earlier captures keep what compaction removes.",
        evidence=lambda c: [say.coordinator_says(c), *say.doubts_of_loss(c), say.log_followed(c)],
        missing=lambda c: [
            say.or_word(c, "the records of __transaction_state that are gone, from an earlier copy", "no_records_lost")
        ],
        why_not=say.why_nothing_is_lost,
        reason="The coordinator has nothing for this partition, but its older records are gone. One of them may have "
        "been a commit whose marker was lost (an unclean election, a lost disk) or never sent. An abort would then "
        "destroy acknowledged data.",
        remedy="Check that no acknowledged record of these topics or of `__transaction_state` was ever lost; the "
        "runbook says how. If that is true, pass `--no-records-lost`. Nightly audits into one warehouse keep what "
        "compaction removes, and do not need the option.",
        settled_by=lost_records,
    ),
    "unknown_producer": Words(
        meaning="no transactional id has, or ever had, this producer id",
        evidence=lambda c: [
            f"no transactional id has, or had, producer id {c.txn.producer_id}",
            *say.what_absence_rests_on(c),
        ],
        why_not=lambda c: (
            f"transactional id{if_known(' {}', c.id and c.id.transactional_id) or ''} has, or had, "
            f"producer id {c.txn.producer_id}"
        ),
        would_change="a record of __transaction_state with this producer id, or an end marker of it in a later copy",
        reason="The coordinator has forgotten the id (transactional.id.expiration.ms), or never knew it. Nobody is "
        "left who would write the end marker.",
        remedy="Abort it: the verb `abort-plan` writes the command, and what to check before it (`--format commands`).",
    ),
    "partition_not_in_transaction": Words(
        meaning="the id is known, but its transaction does not list this partition",
        background="A tombstoned id counts as known, without a transaction. So does an id that now has another "
        "producer id.",
        evidence=lambda c: [
            say.coordinator_says(c),
            say.instead(c),
            *say.what_absence_rests_on(c),
        ],
        why_not=say.listed_here,
        would_change="a record of the coordinator that lists the partition in a transaction in progress, or an end "
        "marker of the producer in a later copy of the log",
        reason="The coordinator writes end markers to the partitions that its transaction lists. This one is not "
        "among them: a write came before the partition was added, or after the transaction had ended (KIP-890).",
        remedy="End its producer first if the report says so. Then abort it: the verb `abort-plan` writes the "
        "command, and what to check before it (`--format commands`).",
    ),
    "no_rule": Words(
        meaning="the coordinator is in a state that no rule knows",
        evidence=lambda c: [say.coordinator_says(c)],
        missing=lambda _: ["a rule for this state of the coordinator"],
        why_not=lambda _: "it holds for everything",
        reason="The coordinator is in a state that no rule knows.",
        remedy="Copy the files again, when its coordinator has gone on; where the state stays, please report it with "
        "the JSON of the finding.",
    ),
}


def words_named(name: str) -> Words | None:
    """What is said of the rule with this name; None for one of a later version, whose findings a warehouse can hold."""
    return WORDS.get(name)
