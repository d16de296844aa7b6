"""The rules of data whose log is whole: what does the coordinator say of its producer, and is that proven?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule, early_log, incomplete_state, lost_records, older_state
from txn_analysis.kafka.names import TRANSACTIONS
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS, PREPARE_ABORT, PREPARE_COMMIT, TWO_PHASE_COMMIT
from txn_analysis.logic import UNBOUNDED_MS, both, either, no
from txn_analysis.text.words import utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


MARKER_OVERDUE = Rule(
    name="marker_overdue",
    verdict=Verdict.SUSPECT,
    meaning="a commit or abort was decided, lists the partition, and has not moved for longer than the bound",
    background="KAFKA-16352, KAFKA-19999 and KAFKA-20322 are ways to get there. It is never aborted: the commit was "
    "acknowledged.",
    when=lambda facts: both(facts.is_prepared, facts.live.is_update_overdue),
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        f"unchanged since {facts.unchanged_since}",
        facts.state_end,
    ],
    why_not=lambda facts: (
        facts.not_listed_here
        or f"the decision of {facts.unchanged_since} is not older than transaction.max.timeout.ms + 300000, or none is"
    ),
    would_change="the marker in a later copy of the log, or a coordinator that moved on",
    reason="The coordinator decided, and should have written the marker within moments. It has stopped trying, or "
    "cannot reach the partition's leader (KAFKA-16352, KAFKA-19999 and KAFKA-20322 are ways to get there).",
    remedy="Never write a marker yourself: after PrepareCommit an abort destroys acknowledged data. Look at the "
    "broker that leads the partition of __transaction_state; restarting it lets another one take over and send the "
    "markers again. In an upgrade from 4.1 or older through 4.2.0, finish it, or use 4.2.1: a coordinator of 4.2.0 "
    "cannot send markers to older brokers.",
)


MARKER_PENDING_COMMIT = Rule(
    name="marker_pending_commit",
    verdict=Verdict.COORDINATED,
    meaning="a commit was decided and lists the partition; its marker is on the way",
    condition="a commit was decided and lists the partition. It is never aborted: it was acknowledged",
    background="`TransactionCoordinator.endTransaction` answers the client as soon as the decision is written.",
    when=lambda facts: facts.is_listed_in(PREPARE_COMMIT),
    evidence=lambda facts: [facts.coordinator_says, facts.listed_here],
    why_not=lambda facts: facts.not_decided_here,
    would_change="the marker in a later copy of the log",
    reason="The commit was acknowledged to the client. An abort marker here would destroy acknowledged data.",
    remedy="Nothing. Never abort it. Look again if it is still there in the next audit.",
)


MARKER_PENDING_ABORT = Rule(
    name="marker_pending_abort",
    verdict=Verdict.COORDINATED,
    meaning="an abort was decided and lists the partition; its marker is on the way",
    when=lambda facts: facts.is_listed_in(PREPARE_ABORT),
    evidence=lambda facts: [facts.coordinator_says, facts.listed_here],
    why_not=lambda facts: facts.not_decided_here,
    would_change="the marker in a later copy of the log",
    reason="The coordinator will write the abort marker itself.",
    remedy="Nothing. Look again if it is still there in the next audit.",
)


COORDINATOR_OVERDUE = Rule(
    name="coordinator_overdue",
    verdict=Verdict.SUSPECT,
    meaning="the coordinator's transaction lists the partition and is past its own timeout + 5 minutes",
    background="A timeout of 2147483647 ms is a two-phase commit (KIP-939), and never overdue.",
    when=lambda facts: both(facts.is_ongoing, facts.live.is_transaction_overdue),
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        f"that transaction began at {facts.began_at} with a timeout of {facts.timeout_ms} ms",
        facts.state_end,
    ],
    why_not=lambda facts: (
        facts.not_listed_here
        or f"the transaction of {facts.began_at} is within its timeout of {facts.timeout_ms} ms + 300000, or is decided"
    ),
    would_change="a later record of the coordinator that ends the transaction",
    reason="The coordinator should have aborted it when its timeout had passed. It still counts as the transaction's "
    "owner, so it may yet end it. (A timeout of 2147483647 ms is a two-phase commit, and never overdue.)",
    remedy="Look at the broker that leads the partition of __transaction_state: does it run, is it in charge, what "
    "does its log say of this id? Do not write markers while the coordinator has the transaction.",
)


IN_COORDINATOR = Rule(
    name="in_coordinator",
    verdict=Verdict.COORDINATED,
    meaning="the coordinator's transaction lists the partition and is within its own timeout",
    when=lambda facts: facts.is_ongoing,
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        TWO_PHASE_COMMIT if facts.timeout_ms == NEVER_TIMES_OUT_MS else None,
    ],
    why_not=lambda facts: facts.not_decided_here,
    would_change="a later record of the coordinator, once the transaction ends or is past its timeout",
    reason="The coordinator knows of the data here and will end it by the client's word or by the timeout.",
    remedy="Nothing. If the application is gone for good, wait for the timeout. A two-phase commit has none: its owner "
    "must end it.",
)


def _appended_by(facts: Facts) -> str | None:
    before = utc(facts.open.appended_before_ms)
    return None if before is None else f"the data was appended by {before}"


def _missing_reach_of_the_state(facts: Facts) -> list[str | None]:
    reach, word = facts.state, "state_copied_last"
    after, later = "an end marker after the data in this partition", "__transaction_state up to a later moment"
    return [
        None if reach.partitions_seen else "__transaction_state, copied after the logs: no partition of it was given",
        facts.or_word(after, word) if reach.is_unbounded else None,
        facts.or_word(later, word) if reach.is_behind else None,
        facts.copied.missing_order() if reach.is_unbounded or reach.is_behind else None,
        f"state records of epoch {facts.open.max_producer_epoch}" if reach.is_epoch_ahead else None,
    ]


STATE_OLDER_THAN_LOG = Rule(
    name="state_older_than_log",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the coordinator's state is not proven to reach up to the open data",
    background="Files are copied one after another: what the coordinator recorded after the copy of its state may "
    "explain the data.",
    when=lambda facts: either(facts.state.is_unbounded, facts.state.is_behind, facts.state.is_epoch_ahead),
    evidence=lambda facts: [facts.coordinator_says, _appended_by(facts)],
    missing=_missing_reach_of_the_state,
    why_not=lambda facts: (
        f"__transaction_state reaches up to the data, which was appended by {utc(facts.open.appended_before_ms)}"
    ),
    reason="The state was copied before the data, or nothing shows that it was not. What the coordinator recorded "
    "afterwards may explain the data.",
    remedy="Copy the logs first and `__transaction_state` last, from the leaders, and say so with "
    "`--state-copied-last`.",
    settled_by=older_state,
)


def _recorded(facts: Facts) -> str | None:
    by_ms = None if facts.coordinator is None else facts.coordinator.recorded_ms
    if by_ms is None:
        return None
    if by_ms == UNBOUNDED_MS:
        return "the export does not say when the coordinator completed its last decision"
    return f"the coordinator recorded something at {utc(by_ms)}"


def _last_moment(facts: Facts) -> str | None:
    last_ms = facts.log.last_moment_ms
    return None if last_ms is None else f"the partition's last broker-clock moment is {utc(last_ms)}"


def _missing_reach_of_the_log(facts: Facts) -> list[str | None]:
    """What would prove that nothing followed: a copy that says so itself, or one whose order is proven.

    An idle partition, or one whose records are all deleted, has no later moment of its own to be copied up to.
    """
    last_ms = facts.log.last_moment_ms
    silent = "when they were copied" if last_ms is None else f"whether anything followed {utc(last_ms)}"
    again = f"a copy of {facts.where} from after the next end marker in it: the files that are here do not say {silent}"
    unproven = facts.copied.missing_reach(facts.open.topic_partition)
    return [again, unproven or "or a copy from its leader with a manifest (`txn-analysis copy-kit`)"]


def _why_log_reaches(facts: Facts) -> str:
    """The log reaches far enough, or no copy of it can."""
    if facts.log.may_end_early is None:
        return "records of __transaction_state could not be decoded, and no copy of the log is known to reach past them"
    return f"the log reaches up to {utc(facts.log.last_moment_ms)}, and no decision since then can have ended it"


LOG_MAY_END_EARLY = Rule(
    name="log_may_end_early",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the log is not proven to reach up to the coordinator's state: the marker may have come later",
    condition="the log is not proven to reach up to the coordinator's state; the marker may have come later",
    background="A text dump that was cut does not say so, and files are copied one after another. Nothing waives this "
    "rule.",
    when=lambda facts: facts.log.may_end_early,
    evidence=lambda facts: [facts.coordinator_says, _recorded(facts), _last_moment(facts), *facts.copying],
    missing=_missing_reach_of_the_log,
    why_not=_why_log_reaches,
    reason="The coordinator recorded something for this producer after the last moment that this partition's log "
    "shows. The end marker may lie in the part of the log that was not copied.",
    remedy="Copy this partition's log again once another end marker, of whichever producer, is in it, and audit it "
    "with the state that you have. Where nothing is written there any more, or all records were deleted, a further "
    "copy is the same: only the broker can tell: "
    f"`{TRANSACTIONS} describe-producers --topic TOPIC --partition N`. Nothing waives this rule.",
    settled_by=early_log,
)


STATE_INCOMPLETE = Rule(
    name="state_incomplete",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the part of __transaction_state that could hold the answer is missing, broken, or of another cluster",
    condition="what could hold the answer of __transaction_state is missing, broken, or of another cluster",
    background="Absence is only proven by a state that was seen as a whole.",
    when=lambda facts: len(facts.state.gaps) > 0,
    evidence=lambda facts: [facts.coordinator_says, facts.state_seen],
    missing=lambda facts: facts.state.gaps,
    why_not=lambda _: "the part of __transaction_state that could hold the answer is complete",
    reason="That no transactional id has a producer id can only be said of a state that was seen as a whole: all its "
    "partitions, from their first file, without decoder errors.",
    remedy="Copy what is named as missing. For console exports, which do not say what they cover, give your word with "
    "`--transaction-state-complete`.",
    settled_by=incomplete_state,
)


def _missing_history(facts: Facts) -> list[str]:
    gone = "the records of __transaction_state that are gone, from an earlier copy"
    return [facts.or_word(gone, "no_records_lost")]


def _why_nothing_is_lost(facts: Facts) -> str:
    if facts.loss.doubts:
        return "the operator says that no acknowledged record was ever lost (--no-records-lost)"
    return "no record that could have decided it is gone"


COMMIT_MAY_BE_MISSING = Rule(
    name="commit_may_be_missing",
    verdict=Verdict.INCONCLUSIVE,
    meaning="a commit's marker may be lost, and its decision compacted away",
    condition="a commit's marker may be lost or was never sent, and its decision compacted away",
    background="Compaction of `__transaction_state` is normal, so this is common where old transactions are looked at "
    "once, and rare in nightly audits, whose earlier captures keep what compaction takes.",
    when=lambda facts: facts.loss.is_possible,
    evidence=lambda facts: [facts.coordinator_says, *facts.loss.doubts, facts.log_followed],
    missing=_missing_history,
    why_not=_why_nothing_is_lost,
    reason="The coordinator has nothing for this partition, but its older records are gone: one of them may have been "
    "a commit whose marker was lost (an unclean election, a lost disk) or never sent. An abort would then destroy "
    "acknowledged data.",
    remedy="If no acknowledged record of these topics or of `__transaction_state` was ever lost (the runbook says how "
    "to know), say so with `--no-records-lost`. Nightly audits into one warehouse keep what compaction takes, and need "
    "no such word.",
    settled_by=lost_records,
)


def _who_has_it(facts: Facts) -> str:
    name = None if facts.coordinator is None else facts.coordinator.transactional_id
    return f"transactional id {name} has, or had, producer id {facts.open.producer_id}"


UNKNOWN_PRODUCER = Rule(
    name="unknown_producer",
    verdict=Verdict.HANGING,
    meaning="no transactional id has, or ever had, this producer id",
    condition="no transactional id has, or in any earlier record had, this producer id",
    when=lambda facts: facts.coordinator is None,
    evidence=lambda facts: [
        f"no transactional id has, or had, producer id {facts.open.producer_id}",
        facts.state_seen,
        facts.log_followed,
        *facts.copying,
        facts.idle_for,
        facts.topic_unnamed,
    ],
    why_not=_who_has_it,
    would_change="a record of __transaction_state with this producer id, or an end marker of it in a later copy",
    reason="The coordinator has forgotten the id (transactional.id.expiration.ms), or never heard of it. Nobody is "
    "left who would write the marker.",
    remedy="Abort it: the verb `abort-plan` prints the command and what to check before (`--format commands`).",
)


def _instead(facts: Facts) -> str:
    """What the id has instead of a transaction that lists the partition."""
    if facts.coordinator is not None and facts.coordinator.runs_under_producer_id:
        return f"its current transaction does not contain {facts.where}"
    return f"nothing runs under producer id {facts.open.producer_id} any more"


PARTITION_NOT_IN_TRANSACTION = Rule(
    name="partition_not_in_transaction",
    verdict=Verdict.HANGING,
    meaning="the id is known, but its transaction does not list this partition",
    background="The marker goes to the partitions that the coordinator's transaction lists (KIP-890). A tombstoned id "
    "counts as known, without a transaction; so does one that runs under another producer id.",
    when=lambda facts: no(facts.is_listed),
    evidence=lambda facts: [
        facts.coordinator_says,
        _instead(facts),
        facts.state_seen,
        facts.log_followed,
        *facts.copying,
        facts.idle_for,
        facts.topic_unnamed,
    ],
    why_not=lambda facts: facts.listed_here,
    would_change="a record of the coordinator that lists the partition in a transaction in progress, or an end marker "
    "of the producer in a later copy of the log",
    reason="The marker goes to the partitions that the coordinator's transaction lists, and this one is not among "
    "them: a write came before the partition was added, or after the transaction had ended (KIP-890).",
    remedy="Abort it: the verb `abort-plan` prints the command and what to check before (`--format commands`). If the "
    "producer has a transaction in progress, end that producer first.",
)


NO_RULE = Rule(
    name="no_rule",
    verdict=Verdict.INCONCLUSIVE,
    meaning="nothing above matched",
    condition="nothing else matched; the coordinator is in a state that no rule knows",
    when=lambda _: True,
    evidence=lambda facts: [facts.coordinator_says],
    missing=lambda _: ["a rule for this state of the coordinator"],
    why_not=lambda _: "it holds for everything",
    reason="The coordinator is in a state that no rule knows.",
    remedy="Please report it with the JSON of the finding.",
)
