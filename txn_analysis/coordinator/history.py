"""The history of one transactional id: its records in order, its current transaction, and its decisions.

A decision whose end marker is not in a partition's log is found in three steps (KAFKA-7408): what decisions there are,
which marker serves which of them, and which of those left over can have been made about one open transaction. Pure
Python over the records of one id, in the order of its partition of `__transaction_state`, and the markers of one
producer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.kafka.transactions import LIVE, ONGOING, PREPARE_COMMIT, PREPARED, StateRecord, TopicPartition
from txn_analysis.logic import UNBOUNDED_MS, more

COMMIT, ABORT = "COMMIT", "ABORT"


class EndMarker(NamedTuple):
    """One COMMIT or ABORT marker in a log; `kind` is None where a shallow dump does not print it.

    `at_ms` is the broker's time of its append; `has_data` says that the producer wrote transactional data between it
    and the marker before, `data_epoch` with which producer epoch at most, as far as that data was seen.
    """

    offset: int
    kind: str | None
    at_ms: int | None
    producer_epoch: int | None
    coordinator_epoch: int | None
    has_data: bool = True
    data_epoch: int | None = None


class MarkerRun(NamedTuple):
    """Markers of one kind and epoch with no data of the producer between them: a marker, and its repetitions."""

    markers: tuple[EndMarker, ...]

    @property
    def kind(self) -> str | None:
        """COMMIT or ABORT, the same for all of them; None where the dump does not print it."""
        return self.markers[0].kind

    def is_continued_by(self, marker: EndMarker) -> bool:
        """The next marker repeats them."""
        last = self.markers[-1]
        is_alike = (marker.kind, marker.producer_epoch) == (last.kind, last.producer_epoch)
        return is_alike and not marker.has_data


def runs_of(markers: Iterable[EndMarker]) -> list[MarkerRun]:
    """The markers of one producer in one partition by offset, repetitions together; each offset counts once."""
    runs: list[MarkerRun] = []
    for marker in sorted({m.offset: m for m in sorted(markers, key=attrgetter("has_data"))}.values()):
        if runs and runs[-1].is_continued_by(marker):
            runs[-1] = MarkerRun((*runs[-1].markers, marker))
        else:
            runs.append(MarkerRun((marker,)))
    return runs


class Decision(NamedTuple):
    """One decision of the coordinator about a partition; moments in epoch milliseconds.

    `prepared_ms` is that of its Prepare record. `completed_ms` is the latest moment at which its Complete record can
    have been written, UNBOUNDED_MS where that is gone or nothing tells; `settled_ms` is the same, but where the
    Complete record is gone, of the id's next record: by then every marker had been written or given up.
    """

    prepared_ms: int
    kind: str
    completed_ms: int
    settled_ms: int

    def is_served_by(self, run: MarkerRun, max_clock_skew_ms: int) -> bool:
        """A marker of a run can be its own: of its kind, or of a kind that is not printed, and in its time."""
        first_ms, last_ms = self.prepared_ms - max_clock_skew_ms, self.completed_ms + max_clock_skew_ms
        is_kind = run.kind in {None, self.kind}
        return is_kind and any(m.at_ms is None or first_ms <= m.at_ms <= last_ms for m in run.markers)


class WithoutMarker(NamedTuple):
    """The decisions without their marker that can have been made about one open transaction.

    Attributes:
        commit: the commit among them that was settled first.
        abort: the abort among them that was settled last.
        has_commit_of_any_age: there is a commit without its marker, whenever it was made.
    """

    commit: Decision | None = None
    abort: Decision | None = None
    has_commit_of_any_age: bool = False

    @property
    def is_any(self) -> bool:
        """There is one."""
        return self.commit is not None or self.abort is not None


def decisions_of(
    history: Sequence[StateRecord], written_ms: Sequence[int], where: TopicPartition, producer_id: int
) -> list[Decision]:
    """What the coordinator decided about a partition under a producer id, oldest first.

    The id's newest record is none: its marker is still to come. Prepare records of one kind and list without a Complete
    record between them are one decision, which was written again: the later one's time holds.

    Args:
        history: the records of one id.
        written_ms: `written_by_ms` of it.
        where: the partition.
        producer_id: that the id has, or had.
    """
    waiting: dict[tuple[str | None, frozenset[tuple[str, int]]], int] = {}
    places: list[int] = []
    for place, record in enumerate(history):
        if record.is_completed:
            places += waiting.values()
            waiting = {}
        elif decides(record, where, producer_id):
            waiting[record.state, frozenset(record.topic_partitions)] = place
    return sorted(_decision(history, n, written_ms) for n in (*places, *waiting.values()) if n + 1 < len(history))


def _decision(history: Sequence[StateRecord], place: int, written_ms: Sequence[int]) -> Decision:
    record, settled_ms = history[place], written_ms[place + 1]
    is_its_own = history[place + 1].completes(record)
    kind = COMMIT if record.state == PREPARE_COMMIT else ABORT
    return Decision(record.moment_ms or 0, kind, settled_ms if is_its_own else UNBOUNDED_MS, settled_ms)


def decides(record: StateRecord, where: TopicPartition, producer_id: int) -> bool:
    """Whether a record is a *decision* about a place, see `is_decision`."""
    return is_decision(record, producer_id) and where in record.topic_partitions


def is_decision(record: StateRecord, producer_id: int) -> bool:
    """Whether a record is a *decision*: a Prepare under this producer id, current or previous."""
    return record.state in PREPARED and producer_id in (record.producer_id, record.previous_producer_id)


def raises_commits(history: Sequence[StateRecord]) -> bool | None:
    """Whether a commit raised the epoch, as only transaction version 2 does; None where no commit is left."""
    are_raised = [
        more(decision.producer_epoch, ongoing.producer_epoch) is True
        for ongoing, decision in pairwise(history)
        if ongoing.state == ONGOING and decision.state == PREPARE_COMMIT and ongoing.producer_id == decision.producer_id
    ]
    return any(are_raised) if are_raised else None


def decisions(history: Sequence[StateRecord], where: TopicPartition, producer_id: int) -> list[tuple[int, int]]:
    """The decisions under a producer id that list a partition, by time: their moment and place in the history."""
    return sorted(
        (at_ms, i)
        for i, r in enumerate(history)
        if decides(r, where, producer_id) and (at_ms := r.moment_ms) is not None
    )


def marker_record(decided: list[tuple[int, int]], marker_ms: int | None, max_clock_skew_ms: int) -> tuple[int, bool]:
    """The place of the decision behind an end marker, and whether it could be another one; see `decisions`.

    By time it is the nearest one, as far as clocks may differ, or else the last one before the marker; `ABSENT`
    where there is none, as after compaction.
    """
    if marker_ms is None:
        return ABSENT, False
    first = bisect_left(decided, marker_ms - max_clock_skew_ms, key=itemgetter(0))
    after = bisect_right(decided, marker_ms + max_clock_skew_ms, key=itemgetter(0))
    if first < after:
        nearest = min(decided[first:after], key=lambda d: (abs(d[0] - marker_ms), -d[1]))
        return nearest[1], after - first > 1
    return (decided[first - 1][1] if first else ABSENT), False


def left_over(decisions: Sequence[Decision], markers: Iterable[EndMarker], max_clock_skew_ms: int) -> list[Decision]:
    """The decisions for which no marker is left, oldest first.

    Each marker serves one decision. By offset, each takes the oldest one that it fits, so that the newest goes without.
    """
    waiting = sorted(decisions)
    for run in runs_of(markers):
        # Those decided later than all of its markers cannot be its own.
        latest_ms = max(UNBOUNDED_MS if m.at_ms is None else m.at_ms for m in run.markers) + max_clock_skew_ms
        prepared_by_then = bisect_right(waiting, latest_ms, key=attrgetter("prepared_ms"))
        fitting = (i for i in range(prepared_by_then) if waiting[i].is_served_by(run, max_clock_skew_ms))
        served = next(fitting, None)
        if served is not None:
            del waiting[served]
    return waiting


def that_matter(unserved: Sequence[Decision], first_appended_after_ms: int | None, skew_ms: int) -> WithoutMarker:
    """Of those, what can have been decided about a transaction whose first batch was appended after a moment.

    Without such a bound every one can. No client's clock takes part.
    """
    since_ms = None if first_appended_after_ms is None else first_appended_after_ms - skew_ms
    matter = [d for d in unserved if since_ms is None or d.prepared_ms >= since_ms]
    commits, aborts = ([d for d in matter if d.kind == kind] for kind in (COMMIT, ABORT))
    return WithoutMarker(
        min(commits, key=attrgetter("settled_ms"), default=None),
        max(aborts, key=attrgetter("settled_ms"), default=None),
        any(d.kind == COMMIT for d in unserved),
    )


History = list["StateRecord"]
"""The records of one transactional id, oldest first, each once; never empty where it is asked about."""


def ongoing_before(history: Sequence[StateRecord], index: int) -> Sequence[StateRecord]:
    """The Ongoing records right before a place of the history, oldest first: one transaction that grew."""
    first = index
    while first > 0 and history[first - 1].state == ONGOING:
        first -= 1
    return history[first:index]


def current_transaction(history: Sequence[StateRecord]) -> tuple[int | None, int | None]:
    """Start time and producer epoch of the transaction that the last record belongs to.

    Text dumps print no start time: the first Ongoing batch since the last other state stands for it. A Prepare record
    may carry a raised epoch (timeout and fencing aborts, transaction version 2), so the epoch is that of the Ongoing
    records; None where compaction has removed them.
    """
    last = history[-1]
    if last.state not in LIVE:
        return None, None
    ongoing = ongoing_before(history, len(history) - (1 if last.state in PREPARED else 0))
    start_ms = last.start_ms if last.start_ms is not None else (ongoing[0].moment_ms if ongoing else None)
    return start_ms, (ongoing[-1].producer_epoch if ongoing else None)


def written_by_ms(history: Sequence[StateRecord]) -> list[int]:
    """Of each record of an id the latest moment at which it can have been written; UNBOUNDED_MS where nothing tells.

    As `RecordSequence.written_by_ms`, of one id.
    """
    latest_ms, written_ms = UNBOUNDED_MS, []
    for record in reversed(history):
        if record.recorded_ms is not None or not record.is_completed:
            moment_ms = record.moment_ms
            latest_ms = latest_ms if moment_ms is None else moment_ms
        written_ms.append(latest_ms)
    return written_ms[::-1]
