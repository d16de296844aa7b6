"""How an ended transaction came to its end: KAFKA-9803's question, asked of the coordinator's records.

Committed or aborted by its client, timed out by the coordinator, fenced by a new instance, or ended by an
administrator's marker. With transaction versions 0 and 1 only the coordinator raises the epoch of a decision; with
version 2 (KIP-890) every decision raises it, so that a client's own abort can look like the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.coordinator.history import decisions, marker_record, ongoing_before, raises_commits
from txn_analysis.coordinator.view import VERSION_2
from txn_analysis.kafka.transactions import COMPLETED, ONGOING, PREPARE_COMMIT, PREPARED, StateRecord, TopicPartition
from txn_analysis.logic import plus
from txn_analysis.tables import FoundCause
from txn_analysis.tables.findings import Confidence
from txn_analysis.text import utc

_DECISIONS = {"COMMIT": "Commit", "ABORT": "Abort"}
_OF_A_DECISION = (*PREPARED, *COMPLETED, "PrepareEpochFence")
TAKEN_OVER_WITHIN_MS = 10_000
"""The successor of a fenced instance asks again every `retry.backoff.ms` until the abort is done."""

CLIENT_COMMIT = "client_commit"
CLIENT_ABORT = "client_abort"
TIMEOUT = "coordinator_timeout"
FENCING = "fenced_by_new_instance"
ADMINISTRATOR = "administrator_marker"
UNEXPLAINED = "unexplained"
ENDINGS = (CLIENT_COMMIT, CLIENT_ABORT, TIMEOUT, FENCING, ADMINISTRATOR, UNEXPLAINED)


class EndedTransaction(NamedTuple):
    """One ended row of the table `transactions`, with the broker's time of its producer's end marker before its own."""

    topic: str
    partition: int
    producer_id: int
    txn_start_offset: int
    end_offset: int
    outcome: str
    end_timestamp_ms: int | None
    previous_end_ms: int | None
    end_producer_epoch: int | None
    first_producer_epoch: int | None
    max_producer_epoch: int | None
    first_appended_before_ms: int | None
    record_count: int | None

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it was open."""
        return TopicPartition(self.topic, self.partition)


class Ending(NamedTuple):
    """Why it ended, and why it held records that are older than the transaction that ended them; None without proof.

    `decided_ms` is when its coordinator decided (its Prepare record), `took_ms` how long after it had begun it; both by
    the coordinator's clock, None where that record is gone.
    """

    cause: FoundCause
    stale_because: str | None
    decided_ms: int | None = None
    took_ms: int | None = None


@dataclass(frozen=True)
class IdHistory:
    """All records of one transactional id, in order; empty where no id has the producer.

    Asked about many transactions, so what it answers more than once is kept.
    """

    records: Sequence[StateRecord]
    _decided: dict[tuple[TopicPartition, int], list[tuple[int, int]]] = field(default_factory=dict)

    def decided(self, where: TopicPartition, producer_id: int) -> list[tuple[int, int]]:
        """See `coordinator.history.decisions`."""
        key = where, producer_id
        if key not in self._decided:
            self._decided[key] = decisions(self.records, where, producer_id)
        return self._decided[key]

    @cached_property
    def first_ms(self) -> int | None:
        """The earliest moment of any record."""
        return min((ms for r in self.records if (ms := r.moment_ms) is not None), default=None)

    @cached_property
    def raises_commits(self) -> bool | None:
        """Whether a commit raised the epoch, as only transaction version 2 does; None where no commit is left."""
        return raises_commits(self.records)

    @cached_property
    def completed(self) -> dict[tuple[str | None, int | None, int | None], StateRecord]:
        """The last Complete record of each state, producer id and epoch."""
        return {(r.state, r.producer_id, r.producer_epoch): r for r in self.records if r.is_completed}

    def follower(self, index: int) -> StateRecord | None:
        """The first record after a decision that is neither a decision nor its completion."""
        return next((r for r in islice(self.records, index + 1, None) if r.state not in _OF_A_DECISION), None)


def ending_of(ended: EndedTransaction, history: IdHistory, max_clock_skew_ms: int) -> Ending:
    """Why one transaction ended on one partition.

    Args:
        ended: the transaction.
        history: the records of the transactional id that has, or had, its producer id.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
    """
    index = _decision(ended, history, max_clock_skew_ms)
    if index is None:
        return Ending(_without_decision(ended, history, max_clock_skew_ms), None)
    ongoing = ongoing_before(history.records, index)
    stale = _stale_because(ended, history.records[index], ongoing, max_clock_skew_ms)
    decided_ms, start_ms = history.records[index].last_update_ms, history.records[index].start_ms
    took_ms = None
    if stale is None and decided_ms is not None and start_ms is not None and decided_ms >= start_ms:
        took_ms = decided_ms - start_ms
    return Ending(_of_decision(ended, history, index, ongoing), stale, decided_ms, took_ms)


def explains_before_ms(max_clock_skew_ms: int) -> int:
    """The longest time by which an end may precede its id's first record and still get a cause.

    An end that lies further before it is `unexplained`.
    """
    return max(max_clock_skew_ms, TAKEN_OVER_WITHIN_MS)


def _cause(
    name: str, confidence: Confidence, evidence: Sequence[str | None], against: Sequence[str | None]
) -> FoundCause:
    known, doubts = (tuple(fact for fact in facts if fact is not None) for facts in (evidence, against))
    return FoundCause(name, confidence, known, doubts)


def _decision(ended: EndedTransaction, history: IdHistory, max_clock_skew_ms: int) -> int | None:
    """The place of the decision that the end marker carried out; it comes after that of the marker before it."""
    decided = history.decided(ended.topic_partition, ended.producer_id)
    before, _ = marker_record(decided, ended.previous_end_ms, max_clock_skew_ms)
    place, _ = marker_record(decided, ended.end_timestamp_ms, max_clock_skew_ms)
    if place == ABSENT or place <= before:
        return None
    record = history.records[place]
    fits_epoch = ended.end_producer_epoch is None or record.producer_epoch == ended.end_producer_epoch
    wanted = _DECISIONS.get(ended.outcome)
    fits_outcome = wanted is None or record.state == f"Prepare{wanted}"
    return place if fits_epoch and fits_outcome else None


def _is_version_2(history: IdHistory, ongoing: Sequence[StateRecord]) -> bool | None:
    """Whether the client ended transactions by version 2; None where no record tells."""
    if ongoing and (ongoing[-1].client_transaction_version or 0) >= VERSION_2:
        return True
    if history.raises_commits is not None:
        return history.raises_commits
    # Forms that print the start of a transaction print its version as well, unless it is 0 or 1.
    return False if ongoing and ongoing[-1].start_ms is not None else None


def _of_decision(ended: EndedTransaction, history: IdHistory, index: int, ongoing: Sequence[StateRecord]) -> FoundCause:
    decision = history.records[index]
    decided = f"{decision.state} at {utc(decision.last_update_ms)} with epoch {decision.producer_epoch}"
    if decision.state == PREPARE_COMMIT:
        return _cause(CLIENT_COMMIT, Confidence.CERTAIN, [decided, "only a client commits"], [])
    data_epoch = ongoing[-1].producer_epoch if ongoing else ended.max_producer_epoch
    version_2 = _is_version_2(history, ongoing)
    if data_epoch is not None and decision.producer_epoch == data_epoch:
        return _cause(CLIENT_ABORT, Confidence.CERTAIN, [decided, f"the epoch was not raised: {data_epoch}"], [])
    raised = None if data_epoch is None else f"the epoch was raised from {data_epoch}"
    return _raised(history, index, ongoing, [decided, raised], version_2)


def _raised(
    history: IdHistory,
    index: int,
    ongoing: Sequence[StateRecord],
    facts: list[str | None],
    version_2: bool | None,
) -> FoundCause:
    """An abort with a raised epoch: a timeout, a fencing, or (version 2) a client's own."""
    decision, follower = history.records[index], history.follower(index)
    due_ms = plus(_start_ms(decision, ongoing), decision.timeout_ms)
    was_due = due_ms is not None and decision.last_update_ms is not None and decision.last_update_ms >= due_ms
    taken_ms = _taken_over_ms(decision, follower)
    since = f"its time was over at {utc(due_ms)}" if was_due else f"its time was not over before {utc(due_ms)}"
    facts = [*facts, None if due_ms is None else since]
    own_abort = None if version_2 is False else "with transaction version 2 a client's own abort looks the same"
    if _went_on(decision, follower) and version_2 is not False:
        return _cause(CLIENT_ABORT, Confidence.CERTAIN, [*facts, "the same instance began its next transaction"], [])
    if taken_ms is not None and not was_due:
        return _fenced(taken_ms, facts, own_abort)
    if was_due:
        fact = "no instance took the transactional id over by then"
        other_cause = "a new instance, which came in the seconds before the coordinator looked, leaves the same records"
        sure = Confidence.LIKELY if own_abort or taken_ms is not None else Confidence.CERTAIN
        return _cause(TIMEOUT, sure, [*facts, fact], [own_abort, other_cause if taken_ms is not None else None])
    if version_2:
        return _cause(
            CLIENT_ABORT,
            Confidence.LIKELY,
            [*facts, "no instance took the transactional id over within seconds"],
            ["a new instance that gave up before it had the transactional id leaves the same records"],
        )
    sure = Confidence.POSSIBLE if version_2 is None else Confidence.LIKELY
    return _cause(FENCING, sure, facts, [own_abort, "no record shows the instance that took the transactional id over"])


def _fenced(taken_ms: int, facts: list[str | None], own_abort: str | None) -> FoundCause:
    fact = f"an instance took the transactional id over {taken_ms} ms after the decision"
    against = None if own_abort is None else f"{own_abort}, where its instance is restarted right after it"
    sure = Confidence.CERTAIN if own_abort is None else Confidence.LIKELY
    return _cause(FENCING, sure, [*facts, fact], [against])


def _start_ms(decision: StateRecord, ongoing: Sequence[StateRecord]) -> int | None:
    if decision.start_ms is not None:
        return decision.start_ms
    return ongoing[0].moment_ms if ongoing else None


def _taken_over_ms(decision: StateRecord, follower: StateRecord | None) -> int | None:
    """How long after the decision a fresh Empty record follows, where nothing but the completion lies between."""
    if follower is None or follower.state != "Empty":
        return None
    at_ms, from_ms = follower.last_update_ms, decision.last_update_ms
    passed_ms = None if at_ms is None or from_ms is None else at_ms - from_ms
    return passed_ms if passed_ms is not None and passed_ms <= TAKEN_OVER_WITHIN_MS else None


def _went_on(decision: StateRecord, follower: StateRecord | None) -> bool:
    """The next transaction runs at the decision's epoch, without an instance that took the id over."""
    if follower is None or follower.state != ONGOING:
        return False
    is_same_producer = decision.producer_id is not None and follower.names(decision.producer_id)
    return is_same_producer and follower.producer_epoch == decision.producer_epoch


def _without_decision(ended: EndedTransaction, history: IdHistory, max_clock_skew_ms: int) -> FoundCause:
    """No record leads to the marker: an administrator wrote it, or the record is gone."""
    if not history.records:
        return _cause(UNEXPLAINED, Confidence.UNKNOWN, [], ["no transactional id has its producer id in any record"])
    completed = _completion(ended, history)
    if completed is not None:
        return completed
    at_ms, first_ms = ended.end_timestamp_ms, history.first_ms
    is_covered = at_ms is not None and first_ms is not None and first_ms < at_ms - max_clock_skew_ms
    reason = "no decision of the coordinator leads to this marker"
    if ended.outcome == "ABORT" and is_covered:
        gone = "compaction may have removed the record of the decision"
        return _cause(ADMINISTRATOR, Confidence.LIKELY, [reason, "the records of its id reach further back"], [gone])
    return _cause(UNEXPLAINED, Confidence.UNKNOWN, [], [f"{reason}: compaction may have removed it"])


def _completion(ended: EndedTransaction, history: IdHistory) -> FoundCause | None:
    """What compaction left: the Complete record keeps epoch, start and timeout of what it completed."""
    wanted = _DECISIONS.get(ended.outcome)
    record = history.completed.get((f"Complete{wanted}", ended.producer_id, ended.end_producer_epoch))
    end_ms = ended.end_timestamp_ms
    if record is None or end_ms is None or record.last_update_ms is None:
        return None
    if abs(record.last_update_ms - end_ms) > TAKEN_OVER_WITHIN_MS:
        return None
    decided = f"{record.state} at {utc(record.last_update_ms)} is all that is left of it"
    if wanted == "Commit":
        return _cause(CLIENT_COMMIT, Confidence.CERTAIN, [decided, "only a client commits"], [])
    if record.producer_epoch == ended.max_producer_epoch:
        fact = f"the epoch was not raised: {ended.max_producer_epoch}"
        return _cause(CLIENT_ABORT, Confidence.CERTAIN, [decided, fact], [])
    due_ms = plus(record.start_ms, record.timeout_ms)
    if due_ms is None or record.last_update_ms < due_ms:
        return None
    fact = f"its time was over at {utc(due_ms)}"
    return _cause(TIMEOUT, Confidence.POSSIBLE, [decided, fact], ["the record of the decision itself is gone"])


def _stale_because(
    ended: EndedTransaction, decision: StateRecord, ongoing: Sequence[StateRecord], max_clock_skew_ms: int
) -> str | None:
    """Why it held records that were appended before the transaction that ended them began, or of an older epoch."""
    start_ms, first_ms = _start_ms(decision, ongoing), ended.first_appended_before_ms
    if start_ms is not None and first_ms is not None and first_ms + max_clock_skew_ms < start_ms:
        return f"its first batch was appended by {utc(first_ms)}, its transaction began at {utc(start_ms)}"
    epoch, first_epoch = ongoing[0].producer_epoch if ongoing else None, ended.first_producer_epoch
    if epoch is not None and first_epoch is not None and first_epoch < epoch:
        return f"its first batch has epoch {first_epoch}, its transaction ran at {epoch}"
    return None


class Ended(NamedTuple):
    """An ended transaction with the transactional id that explains its end, and that end."""

    transaction: EndedTransaction
    transactional_id: str | None
    ending: Ending


def ended_with(transaction: EndedTransaction, histories: Mapping[str, IdHistory], max_clock_skew_ms: int) -> Ended:
    """Of several ids that had the producer id, the one that explains the end best.

    Args:
        transaction: the ended one.
        histories: of the ids that have, or had, its producer id, by their names.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
    """
    known: list[tuple[str | None, IdHistory]] = [*sorted(histories.items())] or [(None, IdHistory([]))]
    endings = [(name, ending_of(transaction, history, max_clock_skew_ms)) for name, history in known]
    name, ending = max(endings, key=lambda each: each[1].cause.confidence.rank)
    return Ended(transaction, name, ending)
