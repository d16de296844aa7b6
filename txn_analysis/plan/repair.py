"""What became of a recommended abort, by a later capture. Plain Python over the few rows of one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from txn_analysis.coordinator.history import decides
from txn_analysis.kafka.transactions import StateRecord, TopicPartition
from txn_analysis.tables import Finding
from txn_analysis.text import iso_utc

ProducerPlace = tuple[str, int, int]
"""Topic, partition and producer id."""

_BROKEN = "evidence_broken"


class Repair(StrEnum):
    """What a later capture says of a recommended abort, from done to unknown."""

    REPAIRED = "repaired"  # an abort marker ended it, and it is not one of the coordinator's
    ENDED_BY_COORDINATOR = "ended_by_coordinator"  # a marker ended it that the coordinator wrote
    STILL_HANGING = "still_hanging"  # its log goes on without a marker
    NOT_COVERED = "not_covered"  # the capture does not hold what would show it

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self in {Repair.REPAIRED, Repair.ENDED_BY_COORDINATOR}


class Recommended(NamedTuple):
    """A recommended abort, as far as later captures are compared with it."""

    run_id: str
    finding_id: str
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    txn_start_offset: int
    rule: str
    transactional_id: str | None

    @property
    def topic_partition(self) -> str:
        """Kafka's own spelling, such as `orders-3`."""
        return f"{self.topic}-{self.partition}"

    @property
    def place(self) -> ProducerPlace:
        """The producer whose data is to be aborted, and its partition."""
        return self.topic, self.partition, self.producer_id


class SeenPartition(NamedTuple):
    """One row of `partition_health`, as far as it tells what became of an abort."""

    run_id: str
    topic: str
    partition: int
    is_in_capture: bool
    first_offset: int | None
    end_offset: int | None
    log_start_offset: int | None
    last_stable_offset: int | None


class SeenEnded(NamedTuple):
    """One ended row of `transactions`, as far as it tells what became of an abort."""

    topic: str
    partition: int
    producer_id: int
    txn_start_offset: int
    last_offset: int | None
    outcome: str
    end_offset: int
    end_timestamp_ms: int | None
    producer_epoch: int | None
    end_producer_epoch: int | None
    coordinator_epoch: int | None

    @property
    def place(self) -> ProducerPlace:
        """The producer whose data was open, and its partition."""
        return self.topic, self.partition, self.producer_id

    @property
    def span(self) -> tuple[int, int | None]:
        """The first offset of its data, and that of its end marker."""
        return self.txn_start_offset, self.end_offset


@dataclass(frozen=True)
class Before:
    """A recommended abort, and what its run saw: the end of the open data, the last stable offset, the moment."""

    record: Recommended
    last_offset: int | None
    last_stable_offset: int | None
    as_of_ms: int | None


@dataclass(frozen=True)
class After:
    """What a later run saw of the same partition and producer id.

    `health` is what it knew of the partition, `findings` its open transactions of the producer there, `ended` its ended
    ones, and `history` the coordinator's records that name the producer id.
    """

    health: SeenPartition | None
    findings: tuple[Finding, ...]
    ended: tuple[SeenEnded, ...]
    history: tuple[StateRecord, ...]
    max_clock_skew_ms: int


@dataclass(frozen=True)
class Outcome:
    """One recommended abort and what became of it; `marker_ms` is the broker's time, epoch milliseconds."""

    record: Recommended
    repair: Repair
    marker_offset: int | None
    marker_ms: int | None
    last_stable_offset_before: int | None
    last_stable_offset_after: int | None
    why: str


def outcome_of(before: Before, after: After) -> Outcome:
    """What became of one recommended abort.

    An end marker is the coordinator's if it commits, if its epochs are neither those of the plan nor those of the data
    (a timeout, a fencing and transaction version 2 raise the producer epoch by one), or if the coordinator recorded
    between the first capture and the marker that it would end a transaction with this partition, and no earlier marker
    is the one that it then wrote.
    """
    if after.health is None or not after.health.is_in_capture:
        return _outcome(before, after, Repair.NOT_COVERED, f"no file of {before.record.topic_partition} in the capture")
    same_open = [finding for finding in after.findings if _is_same(finding.span, before)]
    if same_open:
        return _open_outcome(before, after, same_open[0])
    same_ended = sorted((e for e in after.ended if _is_same(e.span, before)), key=attrgetter("end_offset"))
    if same_ended:
        return _ended_outcome(before, after, same_ended[0])
    start = after.health.log_start_offset or after.health.first_offset
    why = f"neither its data nor an end marker is in the log any more, which begins at offset {start}"
    return _outcome(before, after, Repair.NOT_COVERED, why)


def _is_same(span: tuple[int, int | None], before: Before) -> bool:
    """The span shares offsets with what was recommended to be aborted; a start that was not exact may have moved."""
    first, last = span
    starts_before_end = before.last_offset is None or first <= before.last_offset
    return starts_before_end and (last is None or last >= before.record.txn_start_offset)


def _open_outcome(before: Before, after: After, finding: Finding) -> Outcome:
    assert after.health is not None
    if finding.rule == _BROKEN:
        missing = "; ".join(finding.missing_evidence) or "its log is not proven whole"
        return _outcome(before, after, Repair.NOT_COVERED, missing)
    why = f"no end marker up to offset {after.health.end_offset}; now {finding.verdict.value} ({finding.rule})"
    return _outcome(before, after, Repair.STILL_HANGING, why)


def _ended_outcome(before: Before, after: After, ended: SeenEnded) -> Outcome:
    coordinators = _sign_of_coordinator(before, after, ended)
    repair = Repair.ENDED_BY_COORDINATOR if coordinators else Repair.REPAIRED
    marker = "an abort marker" if ended.outcome == "ABORT" else "an end marker (the dump does not say which)"
    why = coordinators or f"{marker} with the epochs of the plan, of which the coordinator recorded nothing"
    return _outcome(before, after, repair, why, ended)


def _sign_of_coordinator(before: Before, after: After, ended: SeenEnded) -> str | None:
    record = before.record
    if ended.outcome == "COMMIT":
        return "the marker commits, which no plan does: its records are visible now"
    epoch = ended.end_producer_epoch
    if epoch is not None and epoch not in {record.producer_epoch, ended.producer_epoch}:
        return f"the marker has producer epoch {epoch}, and the data {ended.producer_epoch}"
    coordinator_epoch = ended.coordinator_epoch
    if None not in {coordinator_epoch, record.coordinator_epoch} and coordinator_epoch != record.coordinator_epoch:
        return f"the marker has coordinator epoch {coordinator_epoch}, and the plan {record.coordinator_epoch}"
    decided = _decision(before, after, ended)
    if decided is None:
        return None
    return f"the coordinator recorded {decided.state} with this partition at {iso_utc(decided.moment_ms)}"


def _decision(before: Before, after: After, ended: SeenEnded) -> StateRecord | None:
    """The coordinator's record that it would end a transaction with this partition, since the first capture.

    Within the skew of two clocks, a decision from just before the data looks like one after the capture; the marker
    that it led to lies before the data.
    """
    earlier = (e.end_timestamp_ms for e in after.ended if e.end_offset < before.record.txn_start_offset)
    earlier_ms = sorted(end_ms for end_ms in earlier if end_ms is not None)
    for state, at_ms in _decisions_between(before, after, ended):
        own_ms = next((end_ms for end_ms in earlier_ms if at_ms <= end_ms + after.max_clock_skew_ms), None)
        if own_ms is None:
            return state
        earlier_ms.remove(own_ms)
    return None


def _decisions_between(before: Before, after: After, ended: SeenEnded) -> Iterator[tuple[StateRecord, int]]:
    """The coordinator's decisions about this partition from the first capture to a marker, and when they were made."""
    record = before.record
    where = TopicPartition(record.topic, record.partition)
    skew_ms = after.max_clock_skew_ms
    # Each capture has the records that it was made with: one decision may be there as often.
    for state in dict.fromkeys(after.history):
        at_ms = state.moment_ms
        if not decides(state, where, record.producer_id) or at_ms is None:
            continue
        is_since = before.as_of_ms is None or at_ms > before.as_of_ms - skew_ms
        is_until = ended.end_timestamp_ms is None or at_ms <= ended.end_timestamp_ms + skew_ms
        if is_since and is_until:
            yield state, at_ms


def _outcome(before: Before, after: After, repair: Repair, why: str, ended: SeenEnded | None = None) -> Outcome:
    return Outcome(
        before.record,
        repair,
        ended.end_offset if ended else None,
        ended.end_timestamp_ms if ended else None,
        before.last_stable_offset,
        after.health.last_stable_offset if after.health else None,
        why,
    )
