"""What each verdict and rule means to the person who reads it, and what to do then.

Reports print the short forms; the pages under docs/verdicts and docs/rules are made of all of it (`make docs`). The
conditions themselves are in `judge.rules`.
"""

from __future__ import annotations

from dataclasses import dataclass

from txn_analysis.judge.verdicts import Verdict


@dataclass(frozen=True)
class VerdictNote:
    """One verdict: what it means in a sentence, and what to do about it."""

    meaning: str
    remedy: str


@dataclass(frozen=True)
class RuleNote:
    """One rule: what it says in half a sentence, why that gives its verdict, and what to do about it."""

    meaning: str
    reason: str
    remedy: str


VERDICT_NOTES = {
    Verdict.HANGING: VerdictNote(
        "nobody will ever write the end marker",
        "Print the plan with `txn-analysis abort-plan --format commands`, check what stands above each command, send "
        "it, then copy the logs again and audit once more.",
    ),
    Verdict.SUSPECT: VerdictNote(
        "something is wrong and a person must look, but an abort marker is not the remedy",
        "Look at the coordinator or at the application, as the rule says. Do not abort: the data may be acknowledged, "
        "or belong to a transaction that is still running.",
    ),
    Verdict.INCONCLUSIVE: VerdictNote(
        "the evidence does not allow an answer; what is missing is named",
        "Get what is missing and audit again. Until then treat it as alive.",
    ),
    Verdict.COORDINATED: VerdictNote(
        "late here, but the coordinator lists the partition and will write the marker",
        "Nothing. If it is still here in the next audit, look at the coordinator's broker.",
    ),
    Verdict.IN_PROGRESS: VerdictNote(
        "written to within transaction.max.timeout.ms + 5 minutes",
        "Nothing.",
    ),
}

RULE_NOTES = {
    "evidence_broken": RuleNote(
        "the log is not proven whole from the transaction's start to its end",
        "A missing or damaged part of the log could hold the end marker. A file that is not there, an invalid batch, "
        "a torn end, copies that contradict each other, or a forged line all count; so does a partition that an "
        "earlier capture has and this one does not.",
        "Copy all files of the partition again from its leader, with the newest producer snapshot, and audit again. "
        "The line of missing evidence names the offset.",
    ),
    "stale_data_in_live_transaction": RuleNote(
        "the coordinator's transaction lists this partition, but is younger than the open data",
        "The same producer id registered the partition again in a newer transaction while older data was still open. "
        "The next commit marker ends both, so a commit would publish the stale records. `kafka-transactions.sh` does "
        "not see this: it compares neither epochs nor times (KIP-664, KIP-890).",
        "Stop that application before it commits, so that the coordinator aborts the transaction after its timeout. "
        "Then look for records that were published already, from the start offset on.",
    ),
    "not_late": RuleNote(
        "written to within transaction.max.timeout.ms + 300000 ms",
        "Its client may still be writing, and the coordinator will abort it when its timeout has passed. The bound is "
        "that of the brokers' own metric for late transactions (KIP-664).",
        "Nothing. It is in the list so that the last stable offset can be explained.",
    ),
    "clock_not_credible": RuleNote(
        "neither its timestamp nor a broker's clock says how old it is",
        "The client's timestamp is not positive or lies after the moment of the copy, and no end marker stands around "
        "the data whose broker's clock could take its place.",
        "Copy the partition again when other transactions have ended in it, or give the moment of the copy with "
        "`--as-of`.",
    ),
    "marker_overdue": RuleNote(
        "a commit or abort was decided, lists the partition, and has not moved for longer than the bound",
        "The coordinator decided, and should have written the marker within moments. It has stopped trying, or cannot "
        "reach the partition's leader (KAFKA-19999 is one way to get there).",
        "Never write a marker yourself: after PrepareCommit an abort destroys acknowledged data. Look at the broker "
        "that leads the partition of __transaction_state; restarting it lets another one take over and send the "
        "markers again.",
    ),
    "marker_pending_commit": RuleNote(
        "a commit was decided and lists the partition; its marker is on the way",
        "The commit was acknowledged to the client. An abort marker here would destroy acknowledged data.",
        "Nothing. Never abort it. Look again if it is still there in the next audit.",
    ),
    "marker_pending_abort": RuleNote(
        "an abort was decided and lists the partition; its marker is on the way",
        "The coordinator will write the abort marker itself.",
        "Nothing. Look again if it is still there in the next audit.",
    ),
    "coordinator_overdue": RuleNote(
        "the coordinator's transaction lists the partition and is past its own timeout + 5 minutes",
        "The coordinator should have aborted it when its timeout had passed. It still counts as the transaction's "
        "owner, so it may yet end it. (A timeout of 2147483647 ms is a two-phase commit, and never overdue.)",
        "Look at the broker that leads the partition of __transaction_state: does it run, is it in charge, what does "
        "its log say of this id? Do not write markers while the coordinator has the transaction.",
    ),
    "in_coordinator": RuleNote(
        "the coordinator's transaction lists the partition and is within its own timeout",
        "The coordinator knows of the data here and will end it by the client's word or by the timeout.",
        "Nothing. If the application is gone for good, wait for the timeout.",
    ),
    "state_older_than_log": RuleNote(
        "the coordinator's state is not proven to reach up to the open data",
        "The state was copied before the data, or nothing shows that it was not. What the coordinator recorded "
        "afterwards may explain the data.",
        "Copy the logs first and `__transaction_state` last, from the leaders, and say so with `--state-copied-last`.",
    ),
    "log_may_end_early": RuleNote(
        "the log is not proven to reach up to the coordinator's state: the marker may have come later",
        "The coordinator recorded something for this producer after the last moment that this partition's log shows. "
        "The end marker may lie in the part of the log that was not copied.",
        "Copy this partition's log again, and audit it with the state that you have. Nothing waives this rule.",
    ),
    "state_incomplete": RuleNote(
        "the part of __transaction_state that could hold the answer is missing, broken, or of another cluster",
        "That no transactional id has a producer id can only be said of a state that was seen as a whole: all its "
        "partitions, from their first file, without decoder errors.",
        "Copy what is named as missing. For console exports, which do not say what they cover, give your word with "
        "`--transaction-state-complete`.",
    ),
    "unknown_producer": RuleNote(
        "no transactional id has, or ever had, this producer id",
        "The coordinator has forgotten the id (transactional.id.expiration.ms), or never heard of it. Nobody is left "
        "who would write the marker.",
        "Abort it: `txn-analysis abort-plan --format commands` prints the command and what to check before.",
    ),
    "partition_not_in_transaction": RuleNote(
        "the coordinator knows the id, but its transaction is without this partition",
        "The marker goes to the partitions that the coordinator's transaction lists, and this one is not among them: "
        "a write came before the partition was added, or after the transaction had ended (KIP-890).",
        "Abort it: `txn-analysis abort-plan --format commands` prints the command and what to check before. If the "
        "producer has a transaction in progress, end that producer first.",
    ),
    "no_rule": RuleNote(
        "nothing above matched",
        "The coordinator is in a state that no rule knows.",
        "Please report it with the JSON of the finding.",
    ),
}
