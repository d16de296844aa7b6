"""The rules of data whose log is whole: what does the coordinator say of its producer, and is that proven?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.rule import Rule, early_log, incomplete_state, lost_records, older_state
from txn_analysis.kafka.names import TRANSACTIONS
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS, PREPARE_ABORT, PREPARE_COMMIT, TWO_PHASE_COMMIT
from txn_analysis.logic import UNBOUNDED_MS, both, either, no
from txn_analysis.settings import flag_name
from txn_analysis.text import if_known, utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Facts


def _why_not_stuck(facts: Facts) -> str:
    of = if_known(" of {}", facts.unchanged_since) or ""
    return f"the decision{of} is not older than transaction.max.timeout.ms + 300000, or none is"


MARKER_OVERDUE = Rule(
    name="marker_overdue",
    verdict=Verdict.SUSPECT,
    meaning="a commit or abort was decided too long ago, and its marker has not reached this partition",
    background="It is never aborted, because the commit was acknowledged.",
    when=lambda facts: both(facts.is_prepared, facts.live.is_update_overdue),
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        if_known("unchanged since {}", facts.unchanged_since),
        facts.state_end,
    ],
    why_not=lambda facts: facts.not_listed_here or _why_not_stuck(facts),
    would_change="the marker in a later copy of the log, or a coordinator that moved on",
    reason="The coordinator decided, and should have written the marker within moments. It has stopped trying, or "
    "cannot reach the partition's leader (KAFKA-16352, KAFKA-19999 and KAFKA-20322 are ways to get there).",
    remedy="Never write a marker yourself: after PrepareCommit an abort destroys acknowledged data. Look at the "
    "broker that leads the id's partition of __transaction_state. Restart it: another broker takes over and sends "
    "the markers again. In an upgrade from 4.1 or older through 4.2.0, finish it, or use 4.2.1: a coordinator of "
    "4.2.0 cannot send markers to older brokers.",
)


MARKER_PENDING_COMMIT = Rule(
    name="marker_pending_commit",
    verdict=Verdict.COORDINATED,
    meaning="a commit is decided and lists this partition; the coordinator is writing its marker",
    condition="a commit is decided and lists this partition; the coordinator is writing its marker. Never abort it: "
    "it was acknowledged",
    background="`TransactionCoordinator.endTransaction` answers the client as soon as the decision is written.",
    when=lambda facts: facts.is_listed_in(PREPARE_COMMIT),
    evidence=lambda facts: [facts.coordinator_says, facts.listed_here],
    why_not=lambda facts: facts.not_decided_here,
    would_change="the marker in a later copy of the log",
    reason="The client was told that the commit succeeded. An abort marker here would destroy acknowledged data.",
    remedy="Nothing. Never abort it. If it is still there in the next audit, look at the coordinator's broker.",
)


MARKER_PENDING_ABORT = Rule(
    name="marker_pending_abort",
    verdict=Verdict.COORDINATED,
    meaning="an abort is decided and lists this partition; the coordinator is writing its marker",
    when=lambda facts: facts.is_listed_in(PREPARE_ABORT),
    evidence=lambda facts: [facts.coordinator_says, facts.listed_here],
    why_not=lambda facts: facts.not_decided_here,
    would_change="the marker in a later copy of the log",
    reason="The coordinator will write the abort marker itself.",
    remedy="Nothing. Look again if it is still there in the next audit.",
)


def _why_not_overdue(facts: Facts) -> str:
    within = "the transaction of {} is within its timeout of {} ms + 300000, or is decided"
    untold = "the coordinator's record does not tell its start and its timeout, or it is decided"
    return if_known(within, facts.began_at, facts.timeout_ms) or untold


COORDINATOR_OVERDUE = Rule(
    name="coordinator_overdue",
    verdict=Verdict.SUSPECT,
    meaning="the transaction lists this partition and is past its own timeout + 5 minutes; its coordinator did not "
    "abort it",
    when=lambda facts: both(facts.is_ongoing, facts.live.is_transaction_overdue),
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        if_known("that transaction began at {} with a timeout of {} ms", facts.began_at, facts.timeout_ms),
        facts.state_end,
    ],
    why_not=lambda facts: facts.not_listed_here or _why_not_overdue(facts),
    would_change="a later record of the coordinator that ends the transaction",
    reason="The coordinator should have aborted it after its timeout. It still owns the transaction, so it may end "
    "it at any moment. A timeout of 2147483647 ms is a two-phase commit (KIP-939), and never overdue.",
    remedy="Start the application again: its producer takes the id, and that ends the transaction. Restore a Flink job "
    "from its last checkpoint first, or what that holds is lost. If the application is gone for good, look at the "
    "broker that leads the id's partition of __transaction_state. Is it up? Is it the leader? What does its log say "
    "about this id? Do not write markers while the coordinator has the transaction.",
)


IN_COORDINATOR = Rule(
    name="in_coordinator",
    verdict=Verdict.COORDINATED,
    meaning="the transaction lists this partition and is within its own timeout; its coordinator will end it",
    when=lambda facts: facts.is_ongoing,
    evidence=lambda facts: [
        facts.coordinator_says,
        facts.listed_here,
        TWO_PHASE_COMMIT if facts.timeout_ms == NEVER_TIMES_OUT_MS else None,
    ],
    why_not=lambda facts: facts.not_decided_here,
    would_change="a later record of the coordinator, once the transaction ends or is past its timeout",
    reason="The coordinator knows of the data here. It ends the transaction when the client asks for it, or at the "
    "timeout.",
    remedy="Nothing. If the application is gone for good, wait for the timeout. A two-phase commit has none: its owner "
    "must end it.",
)


def _appended_by(facts: Facts) -> str | None:
    return if_known("the data was appended by {}", utc(facts.open.appended_before_ms))


def _missing_reach_of_the_state(facts: Facts) -> list[str | None]:
    reach, word = facts.state, "state_copied_last"
    after, later = "an end marker after the data in this partition", "__transaction_state up to a later moment"
    return [
        None if reach.partitions_seen else "__transaction_state, copied after the logs: no partition of it was read",
        facts.or_word(after, word) if reach.is_unbounded else None,
        facts.or_word(later, word) if reach.is_behind else None,
        facts.copied.missing_order() if reach.is_unbounded or reach.is_behind else None,
        if_known("state records of epoch {}", facts.open.max_producer_epoch) if reach.is_epoch_ahead else None,
    ]


def _why_state_reaches(facts: Facts) -> str:
    """By a broker's clock; or by the order of the copying, which somebody vouches for or a manifest proves."""
    by_clock = if_known(
        "__transaction_state reaches up to the data, which was appended by {}", utc(facts.open.appended_before_ms)
    )
    if by_clock is None or facts.state.is_order_needed:
        word = flag_name("state_copied_last")
        basis = "a manifest proves" if facts.copied.is_state_last else f"{word} says"
        return f"{basis} that __transaction_state was copied after the logs; by the brokers' clocks nothing shows it"
    return by_clock


STATE_OLDER_THAN_LOG = Rule(
    name="state_older_than_log",
    verdict=Verdict.INCONCLUSIVE,
    meaning="__transaction_state may have been copied before this data was written",
    background="Files are copied one after another.",
    when=lambda facts: either(facts.state.is_unbounded, facts.state.is_behind, facts.state.is_epoch_ahead),
    evidence=lambda facts: [facts.coordinator_says, _appended_by(facts)],
    missing=_missing_reach_of_the_state,
    why_not=_why_state_reaches,
    reason="The state was copied before the data was written, or nothing proves that it was not. The coordinator may "
    "have recorded the transaction after that copy.",
    remedy="Copy the logs first and `__transaction_state` last, from the leaders, and pass `--state-copied-last`.",
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
    reaches = "the log reaches up to {}, and no decision since then can have ended it"
    # A manifest, or a history without anything that could have ended it: no clock of a broker took part.
    unclocked = "no broker's clock speaks in the log, and no decision that is recorded can have ended it"
    return if_known(reaches, utc(facts.log.last_moment_ms)) or unclocked


LOG_MAY_END_EARLY = Rule(
    name="log_may_end_early",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the log may have been copied before its end marker was written",
    background="A text dump does not show that it was cut short, and files are copied one after another.",
    when=lambda facts: facts.log.may_end_early,
    evidence=lambda facts: [facts.coordinator_says, _recorded(facts), _last_moment(facts), *facts.copying],
    missing=_missing_reach_of_the_log,
    why_not=_why_log_reaches,
    reason="The coordinator recorded something for this producer after the last moment that this partition's log "
    "shows. The end marker may be in the part of the log that was not copied.",
    remedy="Copy this partition's log again after the next end marker in it, of any producer, and audit it with the "
    "state that you have. If nothing is written there any more, or all records were deleted, another copy shows "
    f"the same, and only the broker can tell: `{TRANSACTIONS} describe-producers --topic TOPIC --partition N`. No "
    "option overrides this rule.",
    settled_by=early_log,
)


STATE_INCOMPLETE = Rule(
    name="state_incomplete",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the part of __transaction_state that could name this producer is missing, broken, or of another cluster",
    background="Only a state that was seen as a whole proves that something is not in it.",
    when=lambda facts: len(facts.state.gaps) > 0,
    evidence=lambda facts: [facts.coordinator_says, facts.state_seen],
    missing=lambda facts: facts.state.gaps,
    why_not=lambda _: "the part of __transaction_state that could hold the answer is complete",
    reason="Only a whole state proves that no transactional id has this producer id: all its partitions, from their "
    "first file, without decoder errors.",
    remedy="Copy what is named as missing. Between the files of a folder compaction leaves holes: a copy by the script "
    "of `txn-analysis copy-kit` says that no file is missing, which counts with `--no-records-lost`. A console export "
    "does not say what it covers. If all was copied, and no record was deleted, pass `--transaction-state-complete`.",
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
    meaning="it may be a commit whose marker was lost, and whose record in __transaction_state was compacted away",
    background="Compaction of `__transaction_state` is normal. So this is common when you look at old transactions "
    "once, and rare in nightly audits, whose earlier captures keep what compaction removes.",
    when=lambda facts: facts.loss.is_possible,
    evidence=lambda facts: [facts.coordinator_says, *facts.loss.doubts, facts.log_followed],
    missing=_missing_history,
    why_not=_why_nothing_is_lost,
    reason="The coordinator has nothing for this partition, but its older records are gone. One of them may have "
    "been a commit whose marker was lost (an unclean election, a lost disk) or never sent. An abort would then "
    "destroy acknowledged data.",
    remedy="Check that no acknowledged record of these topics or of `__transaction_state` was ever lost; the runbook "
    "says how. If that is true, pass `--no-records-lost`. Nightly audits into one warehouse keep what compaction "
    "removes, and do not need the option.",
    settled_by=lost_records,
)


def _who_has_it(facts: Facts) -> str:
    name = "" if facts.coordinator is None else f" {facts.coordinator.transactional_id}"
    return f"transactional id{name} has, or had, producer id {facts.open.producer_id}"


UNKNOWN_PRODUCER = Rule(
    name="unknown_producer",
    verdict=Verdict.HANGING,
    meaning="no transactional id has, or ever had, this producer id",
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
    reason="The coordinator has forgotten the id (transactional.id.expiration.ms), or never knew it. Nobody is left "
    "who would write the end marker.",
    remedy="Abort it: the verb `abort-plan` writes the command, and what to check before it (`--format commands`).",
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
    background="A tombstoned id counts as known, without a transaction. So does an id that now has another producer "
    "id.",
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
    reason="The coordinator writes end markers to the partitions that its transaction lists. This one is not among "
    "them: a write came before the partition was added, or after the transaction had ended (KIP-890).",
    remedy="End its producer first if the report says so. Then abort it: the verb `abort-plan` writes the "
    "command, and what to check before it (`--format commands`).",
)


NO_RULE = Rule(
    name="no_rule",
    verdict=Verdict.INCONCLUSIVE,
    meaning="the coordinator is in a state that no rule knows",
    when=lambda _: True,
    evidence=lambda facts: [facts.coordinator_says],
    missing=lambda _: ["a rule for this state of the coordinator"],
    why_not=lambda _: "it holds for everything",
    reason="The coordinator is in a state that no rule knows.",
    remedy="Copy the files again, when its coordinator has gone on; where the state stays, please report it with the "
    "JSON of the finding.",
)
