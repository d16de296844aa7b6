"""Whether the state fits the logs: their COMMIT markers are the coordinator's own, and test it.

Another cluster's state, a wrong count of partitions, or a state that was copied too early look like a coordinator that
knows of nothing; a commit that it should know of gives them away. Pure Python over one producer at a time; the sums of
all producers decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.coordinator.end_markers import COMMIT, runs_of
from txn_analysis.coordinator.history import written_by_ms
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH, PREPARE_COMMIT
from txn_analysis.logic import UNBOUNDED_MS, is_before, minus, plus
from txn_analysis.text.words import utc

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.end_markers import EndMarker
    from txn_analysis.kafka.transactions import StateRecord, TopicPartition
    from txn_analysis.settings import Settings

FOREIGN = "not one producer of the logs' ended transactions occurs in __transaction_state"
_OF_ALL = "more COMMIT markers in the logs contradict __transaction_state than it confirms: it is another cluster's"

# How long before its marker a decision is looked for: what is lost earlier cannot have held it.
DECIDED_WITHIN_MS = 60_000

# So far from the last epoch, no producer id rotates away within the days for which its transactional id is known.
FAR_FROM_ROTATION = 2**14


Commits = Mapping[tuple[str, int], Sequence[tuple[int, int]]]
"""By topic and partition, of each commit from when to when its marker can have been written, at the latest."""


class Witness(NamedTuple):
    """A COMMIT marker that speaks against the state, or against an assurance; the earliest one stands for all."""

    at_ms: int
    topic: str
    partition: int
    offset: int
    producer_id: int

    def __str__(self) -> str:
        """Where it is, and of when."""
        where = f"{self.topic}-{self.partition}, offset {self.offset}"
        return f"the COMMIT marker of producer {self.producer_id} at {where}, of {utc(self.at_ms)}"


@dataclass(frozen=True)
class MarkerSums:
    """What the COMMIT markers of some producers say of the state, in sum.

    Attributes:
        confirmed_count: markers whose decision the state has.
        contradicted_count: markers whose decision it would have.
        contradicting: of each producer that is asked about, the first contradicting marker.
        first: the first contradicting marker of all producers.
        later: a marker that is later than the state, and whose decision is not there.
    """

    confirmed_count: int = 0
    contradicted_count: int = 0
    contradicting: Mapping[int, Witness] = field(default_factory=dict)
    first: Witness | None = None
    later: Witness | None = None

    def plus(self, other: MarkerSums) -> MarkerSums:
        """The sum of both."""
        return MarkerSums(
            self.confirmed_count + other.confirmed_count,
            self.contradicted_count + other.contradicted_count,
            {**self.contradicting, **other.contradicting},
            _earlier(self.first, other.first),
            _earlier(self.later, other.later),
        )


def _earlier(one: Witness | None, other: Witness | None) -> Witness | None:
    return min((w for w in (one, other) if w is not None), default=None)


@dataclass(frozen=True)
class Fit:
    """Whether the state fits the logs: `misfits` say in words why it does not for anything, `sums` for whom else.

    `in_any_case` are those misfits that nothing which could not be decoded would explain.
    """

    misfits: tuple[str, ...] = ()
    sums: MarkerSums = MarkerSums()
    in_any_case: tuple[str, ...] = ()

    def against(self, producer_id: int, *, is_known: bool) -> tuple[str, ...]:
        """Why the state does not fit as far as one producer goes, in words.

        A contradiction counts for its producer and for every unknown one: a missing partition or a wrong count of
        partitions looks like that.
        """
        own = self.sums.contradicting.get(producer_id)
        witness = own if is_known else own or self.sums.first
        told = () if witness is None else (f"{witness}, has no decision in __transaction_state, which reaches past it",)
        return (*self.misfits, *told)


def fit_of(sums: MarkerSums, *, misplaced: str | None, is_foreign: bool, cluster_ids: Collection[str]) -> Fit:
    """Whether the state fits the logs.

    Args:
        sums: what the COMMIT markers of all logs say.
        misplaced: that ids lie in partitions that their hash does not give, in words; None where all lie well.
        is_foreign: transactions ended in the logs, and the state knows none of their producers.
        cluster_ids: every `cluster.id` that a log directory states in its `meta.properties`.
    """
    is_contradicted = sums.contradicted_count > sums.confirmed_count
    told = ((is_foreign, FOREIGN), (is_contradicted, f"{_OF_ALL} ({sums.first})"))
    placed = [] if misplaced is None else [misplaced]
    several = f"the files are of several clusters: cluster.id {' and '.join(sorted(cluster_ids))}"
    clusters = [several] if len(cluster_ids) > 1 else []
    misfits = (*placed, *(words for holds, words in told if holds), *clusters)
    return Fit(misfits, sums, (*placed, *clusters))


@dataclass(frozen=True)
class StateAtHand:
    """What of the state can confirm or contradict a marker.

    Attributes:
        chains: by number, the partitions of the state that were given.
        is_whole: all partitions were given.
        exports: numbers of those for which only a console export speaks.
        is_export_complete: the operator says that the exports are complete.
        is_nothing_lost: the operator says that no record was ever lost.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
        known_since_ms: an id that was last used before this moment may have been forgotten.
    """

    chains: Mapping[int, StateChain]
    is_whole: bool
    exports: frozenset[int]
    is_export_complete: bool
    is_nothing_lost: bool
    max_clock_skew_ms: int
    known_since_ms: int | None

    def reaches(self, partition: int | None, at_ms: int) -> bool:
        """A partition of the state speaks of a time after a moment."""
        chain = self.chains.get(-1 if partition is None else partition)
        last_ms = None if chain is None else chain.last_moment_ms
        return last_ms is not None and last_ms >= at_ms + self.max_clock_skew_ms

    def is_whole_around(self, partition: int, marker_ms: int) -> bool:
        """Nothing that led to a marker can be gone from a partition, by compaction or with the tail of an old leader.

        A new leader takes only what was recorded after the last record that is left of the one before.
        """
        gap_end_ms = self.chains[partition].gap_end_ms
        has_gap = gap_end_ms is not None and gap_end_ms >= marker_ms - DECIDED_WITHIN_MS
        return not has_gap and not self.may_be_cut(partition, marker_ms)

    def may_have_expired(self, at_ms: int) -> bool:
        """The transactional id of a commit may have been forgotten since, and compacted away."""
        return is_before(at_ms, self.known_since_ms)

    def may_be_cut(self, partition: int, marker_ms: int) -> bool:
        """What led to a marker may have been the tail of an old leader.

        Not where the operator says that nothing was lost: either the state does not fit then, or that word is not true.
        """
        since_ms, rises = marker_ms - DECIDED_WITHIN_MS, self.chains[partition].rises
        touching = (rise.may_touch(since_ms, marker_ms, self.max_clock_skew_ms) for rise in rises)
        return not self.is_nothing_lost and any(touching)


def sums_of_producer(
    producer_id: int,
    markers: Mapping[TopicPartition, Iterable[EndMarker]],
    histories: Iterable[Sequence[StateRecord]],
    state: StateAtHand,
    asked: Collection[int],
) -> MarkerSums:
    """What the COMMIT markers of one producer say of the state.

    Args:
        producer_id: the producer.
        markers: its end markers by partition.
        histories: of the ids that have, or had, the producer id, the records in order.
        state: what was given of the state.
        asked: the producer ids of open transactions.
    """
    known = [history for history in histories if history]
    commits = commits_of(known, producer_id)
    sums = MarkerSums()
    for where, own in markers.items():
        for run in runs_of(own):
            if run.kind == COMMIT:
                decided = commits.get(where, ())
                sums = sums.plus(_sums_of_run(run.markers, decided, where, producer_id, known, state))
    told = sums.contradicting if producer_id in asked else {}
    return MarkerSums(sums.confirmed_count, sums.contradicted_count, told, sums.first, sums.later)


def commits_of(histories: Iterable[Sequence[StateRecord]], producer_id: int) -> Commits:
    """The commits of a producer id in the histories of some ids that have, or had, it."""
    found: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for history in histories:
        written_ms = written_by_ms(history)
        for n, record in enumerate(history):
            if record.state != PREPARE_COMMIT or producer_id not in (record.producer_id, record.previous_producer_id):
                continue
            is_done = n + 1 < len(history) and history[n + 1].completes(record)
            span = record.moment_ms or 0, written_ms[n + 1] if is_done else UNBOUNDED_MS
            for where in record.topic_partitions:
                found[where].append(span)
    return found


def _sums_of_run(
    run: Sequence[EndMarker],
    commits: Sequence[tuple[int, int]],
    where: TopicPartition,
    producer_id: int,
    histories: Sequence[Sequence[StateRecord]],
    state: StateAtHand,
) -> MarkerSums:
    """Of a marker and its repetitions: those of a confirmed one contradict nothing.

    One that is later than the state may still be another transaction's, which wrote no data here.
    """
    written = [(marker, marker.at_ms) for marker in run if marker.at_ms is not None]
    confirmed_count = sum(is_confirmed(at_ms, commits, state.max_clock_skew_ms) for _, at_ms in written)
    sums = MarkerSums(confirmed_count)
    for marker, at_ms in written:
        if is_confirmed(at_ms, commits, state.max_clock_skew_ms):
            continue
        witness = Witness(at_ms, *where, marker.offset, producer_id)
        if not confirmed_count and _is_contradicted(marker, at_ms, histories, state):
            sums = sums.plus(MarkerSums(0, 1, {producer_id: witness}, witness))
        if not state.may_have_expired(at_ms) and _is_later(at_ms, histories, state):
            sums = sums.plus(MarkerSums(later=witness))
    return sums


def is_confirmed(at_ms: int, commits: Iterable[tuple[int, int]], skew_ms: int) -> bool:
    """A marker of this moment can be that of one of some commits, see `commits_of`."""
    return any(since_ms - skew_ms <= at_ms and at_ms - skew_ms <= by_ms for since_ms, by_ms in commits)


def may_speak(marker: EndMarker, at_ms: int, histories: Sequence[Sequence[StateRecord]], state: StateAtHand) -> bool:
    """A COMMIT marker that nothing confirms contradicts the state, or is later than it, if it repeats no other one."""
    is_late = not state.may_have_expired(at_ms) and _is_later(at_ms, histories, state)
    return is_late or _is_contradicted(marker, at_ms, histories, state)


def _partitions(histories: Iterable[Sequence[StateRecord]]) -> list[int]:
    return [h[-1].state_partition for h in histories if h[-1].state_partition is not None]


def _is_contradicted(
    marker: EndMarker, at_ms: int, histories: Sequence[Sequence[StateRecord]], state: StateAtHand
) -> bool:
    """The state would have its decision: it reaches past the marker, and cannot have lost what led to it.

    Where nothing since was compacted, an id that has expired is there with its tombstone.
    """
    homes = _partitions(histories)
    if not homes:
        return _would_be_known(marker, at_ms, state)
    if not all(state.reaches(n, at_ms) for n in homes):
        return False
    is_ahead = all(_is_above(marker.coordinator_epoch, state.chains[n].leader_epoch) for n in homes)
    is_foreign = is_ahead and not state.may_have_expired(at_ms)
    return is_foreign or all(_is_kept(h, at_ms, state) for h in histories)


def _would_be_known(marker: EndMarker, at_ms: int, state: StateAtHand) -> bool:
    """The whole state was given, and its producer cannot be gone from it.

    Compaction leaves the last record of each id, which names its producer id until the id rotates or expires.
    """
    is_rotating = (marker.producer_epoch or 0) >= EXHAUSTED_EPOCH
    may_have_expired = state.may_have_expired(at_ms)
    if not state.is_whole or not all(state.reaches(n, at_ms) for n in state.chains):
        return False
    if state.exports and (is_rotating or may_have_expired or not state.is_export_complete):
        return False
    if all(state.is_whole_around(n, at_ms) for n in state.chains):
        return True
    is_far = marker.producer_epoch is not None and marker.producer_epoch < FAR_FROM_ROTATION
    outlasts_compaction = is_far and not may_have_expired and not state.exports
    return outlasts_compaction and not any(state.may_be_cut(n, at_ms) for n in state.chains)


def _is_above(coordinator_epoch: int | None, leader_epoch: int | None) -> bool:
    return coordinator_epoch is not None and leader_epoch is not None and coordinator_epoch > leader_epoch


def _is_kept(history: Sequence[StateRecord], marker_ms: int, state: StateAtHand) -> bool:
    """What led to a marker of an id is all there."""
    home = history[-1].state_partition
    if home in state.exports:
        began_ms = None if history[0].is_of_a_new_id else written_by_ms(history)[0]
        is_since = began_ms is None or began_ms < marker_ms - DECIDED_WITHIN_MS
        return state.is_export_complete and is_since and state.is_whole_around(home, marker_ms)
    return home is not None and state.is_whole_around(home, marker_ms)


def _is_later(at_ms: int, histories: Sequence[Sequence[StateRecord]], state: StateAtHand) -> bool:
    """The marker was written after everything that the state holds of it: the state was not copied last."""
    homes = _partitions(histories) or [*state.chains]
    last = [chain.last_moment_ms for n in homes if (chain := state.chains.get(n)) is not None]
    skewed = [plus(ms, state.max_clock_skew_ms) for ms in last]
    return bool(skewed) and all(ms is None or ms < at_ms for ms in skewed)


def state_at_hand(state: StateEvidence, settings: Settings, newest_ms: int | None) -> StateAtHand:
    """What of the state was given, as far as it can confirm or contradict a marker."""
    given = {p.state_partition: p for p in state.expected if p.is_seen}
    return StateAtHand(
        chains={number: partition.chain for number, partition in given.items()},
        is_whole=len(given) == state.expected_count,
        exports=frozenset(number for number, partition in given.items() if partition.is_console),
        is_export_complete=settings.transaction_state_complete,
        is_nothing_lost=settings.no_records_lost,
        max_clock_skew_ms=settings.max_clock_skew_ms,
        known_since_ms=minus(newest_ms, settings.transactional_id_expiration_ms),
    )
