"""The causes: why an open transaction is open. The first reading that explains it counts.

A cause never decides a verdict. Sources: KIP-890 for writes that come late or unannounced, KIP-664 for what makes a
transaction hang, KAFKA-9144 for coordinator epochs, KIP-360 for epoch exhaustion. The causes that lie in what the
client wrote are here: too late, or to a partition that it had not added (KIP-890). A new cause is an object here or in
`cause`, and a line in DIAGNOSES for each way that leads to it.
"""

from __future__ import annotations

from txn_analysis.judge.case import Case
from txn_analysis.judge.causes import cause as coordinator
from txn_analysis.judge.causes.cause import Cause, Diagnosis, as_far_as_recorded, never_listed, origins_in
from txn_analysis.judge.rules import Rule, partition_not_in_transaction, state_older_than_log
from txn_analysis.judge.sentences import being_written, last_marker, written
from txn_analysis.judge.words import WORDS
from txn_analysis.kafka.transactions import ONGOING
from txn_analysis.logic import is_before
from txn_analysis.tables import FoundCause
from txn_analysis.tables.findings import Confidence
from txn_analysis.text import if_known, utc
from txn_analysis.verdict import Verdict

# An EndTxn that a client repeats comes within its delivery time-out (KafkaProducer, delivery.timeout.ms).
_LONGEST_RETRY_MS = 120_000


def is_proven_to_join(c: Case) -> Confidence | None:
    """The transaction that lists the partition is proven to be younger."""
    return Confidence.CERTAIN if c.is_listed and c.is_older else None


def joins_by_clients_clock(c: Case) -> Confidence | None:
    """By the client's own clock it was made no later than a transaction that had ended before."""
    made_ms, before_ms = c.txn.last_timestamp_ms, c.txn.previous_last_timestamp_ms
    was_made_before = made_ms is not None and before_ms is not None and made_ms <= before_ms
    is_of_this_one = is_before(c.start_ms, c.txn.appended_after_ms)
    holds = c.is_late and c.lists(ONGOING) and was_made_before and not is_of_this_one
    return Confidence.POSSIBLE if holds else None


def _age(c: Case) -> list[str | None]:
    """What shows its age: the brokers' clocks, the epochs, or the client's clock."""
    known, age = c.id, None
    if known is not None and c.is_older_by_clock:
        first, began = utc(c.txn.first_appended_before_ms), utc(known.start_ms)
        age = if_known("its first batch was appended by {}; the transaction that lists it began at {}", first, began)
    elif known is not None and c.is_older_by_epoch:
        ours, theirs = c.txn.max_producer_epoch, known.txn_epoch
        age = if_known("its batches have at most epoch {}; the transaction that lists it runs at {}", ours, theirs)
    else:
        made, before = utc(c.txn.last_timestamp_ms), utc(c.txn.previous_last_timestamp_ms)
        age = if_known("by its client's clock ({}) it is not newer than the transaction before it ({})", made, before)
    return [last_marker(c), age]


LATE_WRITE_JOINED_NEXT_TRANSACTION = Cause(
    name="late_write_joined_next_transaction",
    meaning="records of an ended transaction came late and joined the next one",
    story="records of an ended transaction came late, and the next one lists their partition: its commit would "
    "publish them. `possible` where only the client's clock says so",
    prevention="brokers of 3.6 and newer with `transaction.partition.verification.enable`; transaction version 2",
    evidence=_age,
    doubt="the brokers' clocks do not prove it: a client whose timestamps stand still, or come from its input, looks "
    "the same",
)


def is_in_progress(c: Case) -> Confidence | None:
    """A transaction in progress lists the partition."""
    return Confidence.CERTAIN if c.lists(ONGOING) else None


def _in_progress(c: Case) -> list[str | None]:
    since = if_known(" since {}", utc(c.start_ms)) or ""
    runs = f"the coordinator's transaction{since} lists {c.where}"
    return [being_written(c) if c.is_recent and not c.is_listed else None, runs if c.lists(ONGOING) else None]


TRANSACTION_IN_PROGRESS = Cause(
    name="transaction_in_progress",
    meaning="its client has not ended it yet",
    story="nothing is wrong: its client has not ended it yet",
    prevention="-",
    evidence=_in_progress,
)


def was_ended_again(c: Case) -> Confidence | None:
    """The client went on writing after the marker, and an equal decision had been made just before (a repeat).

    Under transaction version 2 a repeated EndTxn has an old epoch, and ends nothing (KIP-890).
    """
    opened, origins = c.txn, origins_in(c)
    if origins.is_version_2:
        return None
    is_brokers_time = opened.appended_after_ms == opened.appended_before_ms == opened.last_timestamp_ms
    wrote_on = is_before(opened.last_marker_ms, opened.last_timestamp_ms, c.settings.max_clock_skew_ms)
    is_repeat = origins.ended_again_after_ms is not None and origins.ended_again_after_ms <= _LONGEST_RETRY_MS
    is_credible = c.lateness_basis == "last_timestamp"
    holds = _follows_marker(c) and wrote_on and not is_brokers_time and is_repeat and is_credible
    return Confidence.POSSIBLE if holds else None


def follows_marker(c: Case) -> Confidence | None:
    """The data follows a marker, and belongs to nothing that came later."""
    return as_far_as_recorded(c) if _follows_marker(c) else None


def _follows_marker(c: Case) -> bool:
    """The data came after an end marker of its producer, and before any other transaction of it began."""
    known = c.id
    if known is None or known.is_listed or c.txn.last_marker_ms is None:
        return False
    began = (known.origins.began_since_ms, known.origins.new_epoch_ms)
    return all(ms is None or is_before(c.txn.first_appended_before_ms, ms) for ms in began)


def _repeated_decision(c: Case) -> list[str | None]:
    """The repeated decision, and how long the client wrote on."""
    origins = origins_in(c)
    again = "{} came {} ms after an equal decision, as a repeated EndTxn does"
    return [
        last_marker(c),
        if_known(again, origins.ended_state, origins.ended_again_after_ms),
        if_known("by its client's clock the producer went on writing until {}", utc(c.txn.last_timestamp_ms)),
        never_listed(c),
    ]


def _what_the_marker_ended(c: Case) -> list[str | None]:
    """The marker, what it carried out, and what came since."""
    origins = origins_in(c)
    ended = None if origins.ended_ms is None else f"it carried out {origins.ended_state} of {utc(origins.ended_ms)}"
    fenced = if_known("epoch {} began at {}", origins.new_epoch, utc(origins.new_epoch_ms))
    return [last_marker(c), ended, written(c), never_listed(c), fenced]


LATE_END_TXN = Cause(
    name="late_end_txn",
    meaning="a repeated EndTxn ended it early, and its client wrote on (KAFKA-17754)",
    story="a repeated EndTxn seems to have ended it early, and its client wrote on (KAFKA-17754)",
    prevention="transaction version 2",
    evidence=_repeated_decision,
    doubt="a client that writes without a transaction looks the same",
)
LATE_WRITE_AFTER_MARKER = Cause(
    name="late_write_after_marker",
    meaning="records came after the end marker of their transaction (KIP-890)",
    story="records came after the end marker of their transaction (KIP-890)",
    prevention="transaction version 2",
    evidence=_what_the_marker_ended,
    doubt="what a client did after the marker without telling the coordinator is in no record",
)


def was_never_added(c: Case) -> Confidence | None:
    """The id is known and never listed the partition; surer where its markers or its next transaction show that."""
    known = c.id
    if known is None or known.is_listed:
        return None
    is_free_of_markers = c.txn.last_marker_ms is None and c.txn.coordinator_epoch_basis == "none_seen"
    is_in_later = is_before(known.origins.began_since_ms, c.txn.appended_after_ms, c.settings.max_clock_skew_ms)
    return as_far_as_recorded(c) if is_free_of_markers or is_in_later else Confidence.LIKELY


def _what_is_listed_instead(c: Case) -> list[str | None]:
    """Since when the id has the producer id, and what its transactions list."""
    since, began = utc(origins_in(c).first_own_ms), utc(origins_in(c).began_since_ms)
    return [
        # Compaction may have taken the records before the first one that is left.
        if_known("the transactional id has producer id {} since {} at the latest", c.txn.producer_id, since),
        if_known("its transaction of {} does not list {}", began, str(c.where)),
        last_marker(c),
        never_listed(c),
        written(c),
    ]


WRITE_BEFORE_PARTITION_ADDED = Cause(
    name="write_before_partition_added",
    meaning="its client wrote without adding the partition to the transaction (KIP-890)",
    story="the client wrote without adding the partition to its transaction, or the group's offsets without adding "
    "the group",
    prevention="a client that follows the protocol; transaction version 2",
    evidence=_what_is_listed_instead,
)


UNEXPLAINED = Cause(
    name="unexplained",
    meaning="no known cause fits",
    story="the facts fit none of the causes above",
    prevention="please report it with the JSON of the finding",
    evidence=lambda _: [],
    doubt="the facts fit none of the known causes",
)

OF_THE_LOG: tuple[Diagnosis, ...] = (
    Diagnosis(coordinator.COORDINATOR_EPOCH_WENT_BACK, coordinator.has_a_markers_epoch_fallen),
)
"""Those that ask nothing of the coordinator."""

DIAGNOSES: tuple[Diagnosis, ...] = (
    Diagnosis(LATE_WRITE_JOINED_NEXT_TRANSACTION, is_proven_to_join),
    *OF_THE_LOG,
    Diagnosis(coordinator.COORDINATOR_EPOCH_WENT_BACK, coordinator.is_coordinator_fenced),
    Diagnosis(coordinator.MARKER_MISSING, coordinator.is_marker_missing),
    Diagnosis(coordinator.COORDINATOR_OVERDUE, coordinator.is_transaction_overdue),
    Diagnosis(LATE_WRITE_JOINED_NEXT_TRANSACTION, joins_by_clients_clock),
    Diagnosis(TRANSACTION_IN_PROGRESS, is_in_progress),
    Diagnosis(coordinator.TRANSACTIONAL_ID_EXPIRED, coordinator.is_written_after_expiry),
    Diagnosis(LATE_END_TXN, was_ended_again),
    Diagnosis(LATE_WRITE_AFTER_MARKER, follows_marker),
    Diagnosis(coordinator.OLD_EPOCH_LEFT_OPEN, coordinator.was_taken_over),
    Diagnosis(coordinator.PRODUCER_ID_ROTATED, coordinator.was_rotated),
    Diagnosis(coordinator.TRANSACTIONAL_ID_EXPIRED, coordinator.is_gone),
    Diagnosis(WRITE_BEFORE_PARTITION_ADDED, was_never_added),
    Diagnosis(coordinator.PRODUCER_ID_NEVER_KNOWN, coordinator.is_too_recent),
    Diagnosis(coordinator.PRODUCER_ID_NEVER_KNOWN, coordinator.is_too_large),
    Diagnosis(coordinator.TRANSACTIONAL_ID_EXPIRED, coordinator.is_forgotten),
    Diagnosis(UNEXPLAINED, lambda _: Confidence.UNKNOWN),
)
"""The last one always explains, and is never sure."""

WRITTEN_WHILE_COPIED = Diagnosis(TRANSACTION_IN_PROGRESS, lambda _: Confidence.POSSIBLE)
"""Of what has no answer and began just before the copy: what the files do not show of it came milliseconds later."""

CAUSES: tuple[Cause, ...] = tuple({reading.cause.name: reading.cause for reading in DIAGNOSES}.values())
_BY_NAME = {cause.name: cause for cause in CAUSES}


def cause_named(name: str) -> Cause | None:
    """The cause with this name; None for one of a later version, whose findings a warehouse can hold."""
    return _BY_NAME.get(name)


def cause_of(c: Case, rule: Rule) -> FoundCause | None:
    """The cause of one open transaction about which `rule` decided.

    None where the log alone tells none, and no state of its cluster was given: then nothing is known of its id.
    """
    asked = DIAGNOSES if c.state.seen_count and not c.misfits else OF_THE_LOG
    if rule.verdict is Verdict.INCONCLUSIVE and c.is_recent:
        asked = (WRITTEN_WHILE_COPIED,)
    diagnosis = next(((r.cause, sure) for r in asked if (sure := r.confidence(c)) is not None), None)
    if diagnosis is None:
        return None
    cause, sure = diagnosis
    confidence = min(sure, _most(c, rule), key=lambda c: c.rank)
    is_certain = confidence is Confidence.CERTAIN
    return FoundCause(
        cause.name, confidence, cause.evidence_in(c), () if is_certain else _evidence_against(cause, c, rule)
    )


def _most(c: Case, rule: Rule) -> Confidence:
    """No cause is surer than the evidence that it is read from."""
    if rule.verdict is Verdict.INCONCLUSIVE:
        return Confidence.POSSIBLE
    if state_older_than_log(c):
        return Confidence.CERTAIN if c.is_listed else Confidence.POSSIBLE
    return Confidence.CERTAIN


def _evidence_against(cause: Cause, c: Case, rule: Rule) -> tuple[str, ...]:
    """What keeps the cause from being certain, and what is missing."""
    doubts = (
        cause.doubt,
        "records of the transactional id may be gone" if partition_not_in_transaction(c) and c.gap_ends_ms else None,
        "two decisions lie so close that clocks cannot tell which marker is whose"
        if origins_in(c).is_order_doubtful
        else None,
        "the state is not proven to reach up to the data" if c.is_state_behind else None,
        *(f"missing: {gap}" for gap in WORDS[rule.name].missing_in(c) if not c.is_recent),
    )
    return tuple(doubt for doubt in doubts if doubt is not None)
