"""Sentences about one case: what a rule rests on, why it does not hold, and what would be needed.

`tests/unit/judge/test_no_none.py` says each of every story, with every value taken away that may be unknown.
"""

from __future__ import annotations

from txn_analysis.coordinator.history import COMMIT
from txn_analysis.judge.case import Case
from txn_analysis.judge.lacks import TRUE_IF
from txn_analysis.kafka.transactions import TOMBSTONE
from txn_analysis.logic import UNBOUNDED_MS, is_before, plus
from txn_analysis.settings import flag_name
from txn_analysis.text import if_known, utc

_CLOCKS = {"last_timestamp": "its last timestamp", "broker_clock": "the brokers' clocks"}

RENAMED = "was its folder renamed?"
"""How the sentence ends that no record of the state names a topic."""
MOMENT_OF_THE_COPY = "or the moment of the copy (--as-of)"


# Sentences of several rules.


def being_written(c: Case) -> str:
    """That it is too young to hang, of what is recent."""
    began = utc(c.txn.first_appended_after_ms)
    return f"it is young, whatever its client's clock says: by the brokers' clocks it began after {began}"


def clocks_remark(c: Case) -> str | None:
    """What the brokers' clocks say of its age, where its client's clock says something else; None where not."""
    if c.is_recent and c.is_late:
        return being_written(c)
    if c.is_long_open and c.is_late is False and c.blocks_partition:
        since = utc(c.txn.first_appended_before_ms)
        return f"it is not late by its last timestamp, and holds the last stable offset since {since} or before"
    return None


def moment_of_the_copy(c: Case) -> str | None:
    """That it would settle what may have been too young then, and when; None where it is known, or would not."""
    young_before_ms = plus(c.exact_after_ms, c.settings.late_after_ms - c.settings.max_clock_skew_ms)
    may_be_young = c.copied_ms is None and is_before(c.moments.newest_ms, young_before_ms)
    if not may_be_young or c.is_late is False or not c.state.seen_count:
        return None
    return f"{MOMENT_OF_THE_COPY}, if that was before {utc(young_before_ms)}: it is too young to be judged then"


def coordinator_says(c: Case) -> str | None:
    """The current state of its id."""
    if c.id is None or c.id.state is None:
        return None
    who = "coordinator, before a record that could not be decoded" if c.id.is_newest_hidden else "coordinator"
    if c.id.state == TOMBSTONE:
        return f"{who}: the transactional id was removed (tombstone)"
    under = if_known(" under producer id {}", c.id.producer_id) or ""
    return f"{who}: {c.id.state}{under}{if_known(', epoch {}', c.id.producer_epoch) or ''}"


def listed_here(c: Case) -> str:
    """That its partition is in the id's transaction."""
    return f"the coordinator's transaction lists {c.where}"


def not_listed_here(c: Case) -> str | None:
    """That nothing in progress lists its partition, or that it cannot be told; None where something does."""
    if c.id is not None and c.is_listed is None:
        return f"the records that could be read do not tell whether a transaction in progress lists {c.where}"
    return None if c.is_listed else f"no transaction in progress at the coordinator lists {c.where}"


def last_marker(c: Case) -> str | None:
    """When the producer's last end marker in the partition was written."""
    return if_known("the producer's last end marker here is of {}", utc(c.txn.last_marker_ms))


def written(c: Case) -> str | None:
    """When the data was appended, by the brokers' clocks."""
    after, before = utc(c.txn.appended_after_ms), utc(c.txn.appended_before_ms)
    if before is None:
        return None if after is None else f"by the brokers' clocks the last write came after {after}"
    return f"by the brokers' clocks the last write came by {before}" + ("" if after is None else f", after {after}")


def not_decided_here(c: Case) -> str:
    """That its partition is not listed, or that its id has no such decision."""
    has = if_known("the coordinator has {}, not a decision", None if c.id is None else c.id.state)
    return not_listed_here(c) or has or "no state of its transactional id is known"


def idle_for(c: Case) -> str | None:
    """How late it is, and by which clock."""
    basis, late_by_ms = c.lateness_basis, c.late_by_ms
    if basis is None or late_by_ms is None:
        return None
    side = f"{late_by_ms} ms beyond" if late_by_ms > 0 else f"{-late_by_ms} ms within"
    return f"by {_CLOCKS[basis]} it is {side} transaction.max.timeout.ms + 300000"


def or_word(c: Case, what: str, assurance: str) -> str:
    """What would settle it, or the operator's word, and when that is true; a disproved one is never asked for.

    Args:
        c: the case.
        what: evidence that would do.
        assurance: the setting's name.
    """
    is_void = assurance in c.untrue or not c.state.seen_count
    return what if is_void else f"{what}, or {flag_name(assurance)}, {TRUE_IF[assurance]}"


def copying(c: Case) -> tuple[str, ...]:
    """What manifests prove of the copying."""
    return c.copied.evidence(c.where)


def state_seen(c: Case) -> str:
    """How many partitions of the state were read."""
    return f"__transaction_state: {c.state.seen_count} of {c.state.expected_count} partitions seen"


def state_end(c: Case) -> str | None:
    """Up to when the state speaks (the *state's end*)."""
    return if_known("__transaction_state goes on to {}", utc(c.state_end_ms))


def topic_unnamed(c: Case) -> str | None:
    """That no record of the state lists the topic: a folder that somebody renamed looks so, and a new topic."""
    if c.txn.topic in c.state.topics:
        return None
    return f"no record of __transaction_state names topic {c.txn.topic}: {RENAMED}"


def log_followed(c: Case) -> str:
    """That no marker came, and how far the log was followed."""
    last = "" if c.txn.last_offset is None else f" after offset {c.txn.last_offset}"
    end = c.log.end_offset
    followed = "" if end is None else f"; the log was followed to offset {end - 1}"
    return f"no end marker of the producer{last}{followed}"


def what_absence_rests_on(c: Case) -> list[str | None]:
    """How far state and log were read, and for how long nothing came: nobody is left who would end it."""
    return [state_seen(c), log_followed(c), *copying(c), idle_for(c), topic_unnamed(c)]


def doubts_of_loss(c: Case) -> list[str]:
    """Why a commit may have been lost of which no record is left; `--no-records-lost` is not asked."""
    doubts = []
    if gaps := c.gaps_at_start:
        until = "" if max(gaps) == UNBOUNDED_MS else f" up to {utc(max(gaps))}"
        doubts.append(f"compaction or retention took records of __transaction_state{until} that may have decided it")
    if changes := c.leader_changes_at_start:
        at = utc(changes[-1].by_ms) or "an unknown moment"
        doubts.append(f"the leader of __transaction_state changed by {at}: records of its end may have been cut off")
    if c.may_lack_commit_before_start:
        doubts.append(f"a {COMMIT} of its producer has no marker here, and its start may lie before the first file")
    return doubts


# Sentences of one rule each, in the order of the rules.


def missing_of_the_log(c: Case) -> list[str]:
    """What of its log is missing, damaged or in doubt."""
    unreplicated = ["a replica that has its data too: it lies above the high watermark that its own folder records"]
    return [*(c.txn.evidence_gaps or ()), *(unreplicated if c.is_dead_leaders_tail else ())]


def proof_of_age(c: Case) -> list[str | None]:
    """Why the data is older than the transaction that lists the partition."""
    known, clock, epoch = c.id, None, None
    if known is not None and c.is_older_by_clock:
        first, began = utc(c.txn.first_appended_before_ms), utc(known.start_ms)
        clock = if_known("its first batch was appended by {}, before that transaction began at {}", first, began)
    if known is not None and c.is_older_by_epoch:
        ours, theirs = c.txn.max_producer_epoch, known.txn_epoch
        epoch = if_known("its batches have at most epoch {}, that transaction runs at {}", ours, theirs)
    return [coordinator_says(c), listed_here(c), clock, epoch, "the next commit would publish it"]


def why_not_stale(c: Case) -> str:
    """Why it is not proven to be stale."""
    if not_listed_here(c) or not c.is_older:
        current = if_known("the transaction of {}", utc(c.start_ms)) or "its id's transaction"
        return not_listed_here(c) or f"neither clocks nor epochs prove that it is older than {current}"
    return "an earlier transaction may own it, whose marker is lost or lies behind the log's end"


def why_late(c: Case) -> str:
    """By how much it is late."""
    late = if_known("it is {} ms beyond transaction.max.timeout.ms + 300000", c.late_by_ms)
    return late or "no clock says how long it has been idle"


def lost_commit(c: Case) -> list[str | None]:
    """The commit, and how far the log goes on without its marker."""
    commit, elsewhere = c.lost_commit, c.txn.other_copy_commit_offset
    decided = done = goes_on = marked = None
    if commit is not None:
        how = "completed" if commit.completed_ms != UNBOUNDED_MS else "followed by its id's next record"
        decided = f"PrepareCommit of {utc(commit.prepared_ms)} lists {c.where}"
        done = f"it was {how} by {utc(commit.settled_ms)}"
        goes_on = if_known("the log goes on to {} without its marker", utc(c.last_moment_ms))
    if elsewhere is not None:
        marked = f"another copy of this log, or an earlier capture, has a COMMIT marker of the producer at {elsewhere}"
    return [coordinator_says(c), decided, done, goes_on, marked]


def why_not_stuck(c: Case) -> str:
    """That no decision has been waiting for too long."""
    of = if_known(" of {}", utc(c.update_ms)) or ""
    return f"the decision{of} is not older than transaction.max.timeout.ms + 300000, or none is"


def why_not_overdue(c: Case) -> str:
    """That the transaction is within its timeout, or decided."""
    within = "the transaction of {} is within its timeout of {} ms + 300000, or is decided"
    untold = "the coordinator's record does not tell its start and its timeout, or it is decided"
    return if_known(within, utc(c.start_ms), c.timeout_ms) or untold


def missing_reach_of_the_state(c: Case) -> list[str | None]:
    """What would prove that the state reaches up to the data."""
    lacking = "__transaction_state up to a later moment"
    if c.txn.appended_before_ms is None:
        lacking = "an end marker after the data in this partition"
    return [
        None if c.state.seen_count else "__transaction_state, copied after the logs: no partition of it was read",
        or_word(c, lacking, "state_copied_last") if c.is_state_behind else None,
        c.copied.missing_order() if c.is_state_behind else None,
        if_known("state records of epoch {}", c.txn.max_producer_epoch) if c.is_epoch_ahead else None,
    ]


def why_state_reaches(c: Case) -> str:
    """By a broker's clock; or by the order of the copying, which somebody vouches for or a manifest proves."""
    by_clock = if_known(
        "__transaction_state reaches up to the data, which was appended by {}", utc(c.txn.appended_before_ms)
    )
    if by_clock is None or c.is_state_behind_by_clocks:
        word = flag_name("state_copied_last")
        basis = "a manifest proves" if c.copied.is_state_last else f"{word} says"
        return f"{basis} that __transaction_state was copied after the logs; by the brokers' clocks nothing shows it"
    return by_clock


def recorded(c: Case) -> str | None:
    """When the coordinator recorded something for the id last."""
    by_ms = None if c.id is None else c.id.recorded_ms
    if by_ms is None:
        return None
    if by_ms == UNBOUNDED_MS:
        return "the export does not say when the coordinator completed its last decision"
    return f"the coordinator recorded something at {utc(by_ms)}"


def last_moment(c: Case) -> str | None:
    """The partition's last moment."""
    last_ms = c.last_moment_ms
    return None if last_ms is None else f"the partition's last broker-clock moment is {utc(last_ms)}"


def missing_reach_of_the_log(c: Case) -> list[str | None]:
    """What would prove that nothing followed: a copy that says so itself, or one whose order is proven.

    An idle partition, or one whose records are all deleted, has no later moment of its own to be copied up to.
    """
    last_ms = c.last_moment_ms
    silent = "when they were copied" if last_ms is None else f"whether anything followed {utc(last_ms)}"
    again = f"a copy of {c.where} from after the next end marker in it: the files that are here do not say {silent}"
    unproven = c.copied.missing_reach(c.txn.topic_partition)
    return [again, unproven or "or a copy from its leader with a manifest (`txn-analysis copy-kit`)"]


def why_log_reaches(c: Case) -> str:
    """The log reaches far enough, or no copy of it can."""
    if c.has_undecodable:
        return "records of __transaction_state could not be decoded, and no copy of the log is known to reach past them"
    reaches = "the log reaches up to {}, and no decision since then can have ended it"
    # A manifest, or a history without anything that could have ended it: no clock of a broker took part.
    unclocked = "no broker's clock speaks in the log, and no decision that is recorded can have ended it"
    return if_known(reaches, utc(c.last_moment_ms)) or unclocked


def why_nothing_is_lost(c: Case) -> str:
    """Why no commit can be gone."""
    if doubts_of_loss(c):
        return "the operator says that no acknowledged record was ever lost (--no-records-lost)"
    return "no record that could have decided it is gone"


def instead(c: Case) -> str:
    """What the id has instead of a transaction that lists the partition."""
    if c.id is not None and c.id.runs_under_producer_id:
        return f"its current transaction does not contain {c.where}"
    return f"nothing runs under producer id {c.txn.producer_id} any more"
