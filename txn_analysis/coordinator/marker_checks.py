"""What the end markers of one producer say of the state: that it has their decisions, or should have, or is older.

Pure Python over one producer at a time; `coordinator.fit` adds them up.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.coordinator.end_markers import ABORT, COMMIT, runs_of
from txn_analysis.coordinator.fit import Contradictions, MarkerSums, Witness
from txn_analysis.coordinator.history import written_by_ms
from txn_analysis.coordinator.state_at_hand import DECIDED_WITHIN_MS
from txn_analysis.kafka.transactions import COMPLETE_COMMIT, EXHAUSTED_EPOCH, PREPARE_COMMIT, PREPARED
from txn_analysis.logic import UNBOUNDED_MS, more, proven

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from txn_analysis.coordinator.end_markers import EndMarker, MarkerRun
    from txn_analysis.coordinator.state_at_hand import StateAtHand
    from txn_analysis.kafka.transactions import StateRecord, TopicPartition

# Under transaction versions 0 and 1 a new instance of a producer, a timeout or a fencing raises the epoch: so far from
# the last one, no producer id rotates away within the days for which its transactional id is known. Version 2 raises it
# with every transaction, and uses an id up within minutes.
FAR_FROM_ROTATION = 2**14


class Said(Enum):
    """What a marker says that nothing in the state confirms."""

    NOTHING = auto()
    AGAINST = auto()
    AGAINST_IF_NOTHING_WAS_LOST = auto()


class Decided(NamedTuple):
    """One decision: a Prepare record, or a Complete record whose Prepare is gone, whose value has the decision's time.

    Attributes:
        is_commit: its kind.
        prepared_ms: the moment of the decision.
        completed_ms: when its Complete record was written at the latest; UNBOUNDED_MS where that is not there.
        next_ms: when the id's next record was written at the latest, whichever it is; None where there is none. Of a
            Complete record it is its own.
        state_partition: which partition of the state holds it.
    """

    is_commit: bool
    prepared_ms: int
    completed_ms: int
    next_ms: int | None
    state_partition: int | None

    def serves(self, marker: EndMarker, until_ms: int | None, skew_ms: int) -> bool:
        """A marker can be its own, if written up to a moment; of either kind where none is printed."""
        is_kind = marker.kind is None or (marker.kind == COMMIT) == self.is_commit
        if not is_kind or marker.at_ms is None or until_ms is None:
            return False
        return self.prepared_ms - skew_ms <= marker.at_ms <= until_ms + skew_ms

    def is_close_to(self, marker: EndMarker, skew_ms: int) -> bool:
        """A marker was written about when this was decided, or when the id's next record was written."""
        moments = self.prepared_ms, self.next_ms
        return any(
            ms is not None and marker.at_ms is not None and abs(marker.at_ms - ms) <= DECIDED_WITHIN_MS + skew_ms
            for ms in moments
        )


def sums_of_producer(
    producer_id: int,
    markers: Mapping[TopicPartition, Sequence[EndMarker]],
    histories: Iterable[Sequence[StateRecord]],
    state: StateAtHand,
    asked: Collection[int],
    *,
    is_version_2: bool | None = None,
) -> MarkerSums:
    """What the end markers of one producer say of the state.

    Args:
        producer_id: the producer.
        markers: its end markers by partition.
        histories: of the ids that have, or had, the producer id, the records in order.
        state: what was given of the state.
        asked: the producer ids of open transactions.
        is_version_2: some marker of it shows transaction version 2; None where all of them are among `markers`.
    """
    if is_version_2 is None:
        is_version_2 = any(marker.is_of_version_2 for own in markers.values() for marker in own)
    producer = Producer.of(producer_id, histories, state, is_version_2=is_version_2, is_asked=producer_id in asked)
    sums = MarkerSums()
    for where, own in markers.items():
        for run in runs_of(own):
            if run.kind != ABORT:
                sums = sums.plus(producer.sums_of_run(run, where))
    return sums


def _completed(histories: Iterable[Sequence[StateRecord]], producer_id: int) -> list[Decided]:
    """The Complete records under a producer id whose Prepare is gone; of what partitions they were is gone with it."""
    found = []
    for history in histories:
        written_ms = written_by_ms(history)
        for n, record in enumerate(history):
            is_its_own = producer_id in (record.producer_id, record.previous_producer_id)
            is_alone = record.is_completed and not (n and record.completes(history[n - 1]))
            if is_its_own and is_alone and record.last_update_ms is not None:
                is_commit, at_ms = record.state == COMPLETE_COMMIT, written_ms[n]
                found.append(Decided(is_commit, record.last_update_ms, at_ms, at_ms, record.state_partition))
    return found


def _decided(histories: Iterable[Sequence[StateRecord]], producer_id: int) -> dict[tuple[str, int], list[Decided]]:
    """By topic and partition, the decisions under a producer id in the histories of some ids that have, or had, it."""
    found: defaultdict[tuple[str, int], list[Decided]] = defaultdict(list)
    for history in histories:
        written_ms = written_by_ms(history)
        for n, record in enumerate(history):
            if record.state not in PREPARED or producer_id not in (record.producer_id, record.previous_producer_id):
                continue
            next_ms = written_ms[n + 1] if n + 1 < len(history) else None
            is_done = next_ms is not None and history[n + 1].completes(record)
            completed_ms = written_ms[n + 1] if is_done else UNBOUNDED_MS
            is_commit = record.state == PREPARE_COMMIT
            decided = Decided(is_commit, record.moment_ms or 0, completed_ms, next_ms, record.state_partition)
            for where in record.topic_partitions:
                found[where].append(decided)
    return found


class Producer(NamedTuple):
    """One producer whose markers are held against the state.

    Attributes:
        producer_id: the producer.
        histories: of the ids that have, or had, it.
        decided: what these hold, by topic and partition.
        completed: decisions that these hold of unknown partitions, since compaction left their Complete record alone.
        state: what was given of the state.
        is_version_2: one of its markers shows transaction version 2.
        is_asked: an open transaction is its own.
    """

    producer_id: int
    histories: Sequence[Sequence[StateRecord]]
    decided: Mapping[tuple[str, int], Sequence[Decided]]
    completed: Sequence[Decided]
    state: StateAtHand
    is_version_2: bool
    is_asked: bool = False

    @classmethod
    def of(
        cls,
        producer_id: int,
        histories: Iterable[Sequence[StateRecord]],
        state: StateAtHand,
        *,
        is_version_2: bool,
        is_asked: bool = False,
    ) -> Producer:
        """With the decisions that the histories hold."""
        known = [history for history in histories if history]
        decided, completed = _decided(known, producer_id), _completed(known, producer_id)
        return cls(producer_id, known, decided, completed, state, is_version_2, is_asked)

    def sums_of_run(self, run: MarkerRun, where: TopicPartition) -> MarkerSums:
        """Of a COMMIT marker, or one of unprinted kind; its repetitions say nothing where one of them is confirmed."""
        written = [(marker, marker.at_ms) for marker in run.markers if marker.at_ms is not None]
        confirmed_count = sum(self.confirms(marker, where) for marker, _ in written)
        sure_ms = max([at_ms for marker, at_ms in written if self.is_sure(marker, where)], default=None)
        later = next((self.witness(m, where) for m, _ in written if self.is_later(m, where)), None)
        is_unsure = bool(written) and sure_ms is None
        sums = MarkerSums(confirmed_count, later=later, is_unsure=is_unsure, sure_ms=sure_ms)
        is_served = run.kind is None and any(self.is_served(marker, where) for marker, _ in written)
        for marker, _ in written if not (confirmed_count or is_served) else ():
            sums = sums.plus(self.sums_of(marker, where))
        return sums

    def sums_of(self, marker: EndMarker, where: TopicPartition) -> MarkerSums:
        """What a marker says that nothing confirms; where its kind is not printed, it contradicts nothing by itself."""
        witness, said = self.witness(marker, where), self.said(marker)
        is_unreached = not self.histories and self._is_doubt(self.said(marker, if_reached=True))
        unreached = witness if is_unreached else None
        if marker.kind != COMMIT:
            doubt = witness if self._is_doubt(said) and not self.is_served(marker, where) else None
            if self.histories:
                return MarkerSums(unprinted=doubt, unreached=unreached)
            return MarkerSums(unprinted_of_unknown=doubt, unreached=unreached)
        of_asked = {self.producer_id: witness} if self.is_asked else {}
        contradiction = Contradictions(1, of_asked, witness, bool(self.histories))
        match said:
            case Said.AGAINST:
                return MarkerSums(against=contradiction, unreached=unreached)
            case Said.AGAINST_IF_NOTHING_WAS_LOST:
                return MarkerSums(more_if_nothing_was_lost=contradiction, unreached=unreached)
            case Said.NOTHING:
                return MarkerSums(unreached=unreached)

    def _is_doubt(self, said: Said) -> bool:
        return said is Said.AGAINST or (said is Said.AGAINST_IF_NOTHING_WAS_LOST and self.state.is_nothing_lost)

    def confirms(self, marker: EndMarker, where: TopicPartition) -> bool:
        """A COMMIT marker can be that of one of its commits."""
        return marker.kind == COMMIT and self._is_served(marker, where, lambda decided: decided.completed_ms)

    def is_sure(self, marker: EndMarker, where: TopicPartition) -> bool:
        """A marker can be that of a decision behind which its id has a record: between the two, and close to one.

        A decision that is the newest record of another cluster's id, or hangs there for hours, serves any marker.
        """
        skew_ms, decided = self.state.max_clock_skew_ms, (*self.decided.get(where, ()), *self.completed)
        return any(d.serves(marker, d.next_ms, skew_ms) and d.is_close_to(marker, skew_ms) for d in decided)

    def is_later(self, marker: EndMarker, where: TopicPartition) -> bool:
        """A marker was written after all that the state holds of it, which has no decision for it: so it was not last.

        A decision whose id has no record behind it serves markers up to the end of its partition of the state.
        """
        homes = self._homes()
        if marker.at_ms is None or not homes or self.state.is_before_end(homes, marker.at_ms):
            return False
        return not self.is_served(marker, where)

    def is_served(self, marker: EndMarker, where: TopicPartition) -> bool:
        """A marker can be that of a decision; of one that is its id's last, up to the end of the state."""
        return self._is_served(marker, where, self._until_ms)

    def _until_ms(self, decided: Decided) -> int | None:
        home = decided.state_partition
        if decided.next_ms is not None or home is None or home not in self.state.chains:
            return decided.next_ms
        return self.state.chains[home].last_until_as_of_ms

    def _is_served(self, marker: EndMarker, where: TopicPartition, until_ms: Callable[[Decided], int | None]) -> bool:
        skew_ms = self.state.max_clock_skew_ms
        return any(d.serves(marker, until_ms(d), skew_ms) for d in self.decided.get(where, ()))

    def _homes(self) -> list[int]:
        """The partitions that were given and can hold its id; of an unknown producer all of them."""
        return [n for n in _partitions(self.histories) or self.state.chains if n in self.state.chains]

    def said(self, marker: EndMarker, *, if_reached: bool = False) -> Said:
        """What a COMMIT marker says that nothing confirms, also if every partition of the state reached past it.

        The state would have its decision: it reaches past it, and cannot have lost what led to it. Where nothing since
        was compacted, an id that has expired is there with its tombstone.
        """
        state, homes, at_ms = self.state, _partitions(self.histories), marker.at_ms
        if at_ms is None:
            return Said.NOTHING
        if not if_reached and not all(state.reaches(n, at_ms) for n in homes or state.chains):
            return Said.NOTHING
        if not homes:
            return self._would_be_known(marker, at_ms)
        is_ahead = all(proven(more(marker.coordinator_epoch, state.chains[n].leader_epoch)) for n in homes)
        is_there = not any(history[-1].is_tombstone for history in self.histories)
        if is_ahead and (is_there or not state.may_have_expired(at_ms)):
            return Said.AGAINST
        return _said_if(
            all(_is_kept(h, at_ms, state, if_nothing_was_lost=False) for h in self.histories),
            all(_is_kept(h, at_ms, state, if_nothing_was_lost=True) for h in self.histories),
        )

    def _would_be_known(self, marker: EndMarker, at_ms: int) -> Said:
        """The whole state was given, and its producer cannot be gone from it.

        Compaction leaves the last record of each id, which names its producer id until the id rotates or expires.
        """
        state = self.state
        may_have_expired = state.may_have_expired(at_ms)
        is_rotating = (marker.producer_epoch or 0) >= EXHAUSTED_EPOCH
        if not state.is_whole:
            return Said.NOTHING
        if state.exports and (is_rotating or may_have_expired or not state.is_export_complete):
            return Said.NOTHING
        is_whole = all(state.is_whole_around(n, at_ms) for n in state.chains)
        is_compacted = not all(state.is_whole_around(n, at_ms, if_nothing_was_lost=True) for n in state.chains)
        if is_whole or not is_compacted or may_have_expired:
            return _said_if(is_whole, not is_compacted)
        if state.is_ahead_of_all(marker.coordinator_epoch):
            return Said.AGAINST
        is_far = marker.producer_epoch is not None and marker.producer_epoch < FAR_FROM_ROTATION
        if self.is_version_2 or not is_far:
            return Said.NOTHING
        return _said_if(not any(state.may_be_cut(n, at_ms) for n in state.chains), True)

    def witness(self, marker: EndMarker, where: TopicPartition) -> Witness:
        """The marker, as it is named where it speaks against something."""
        return Witness(marker.at_ms or 0, *where, marker.offset, self.producer_id, marker.kind or "")


def _said_if(is_against: bool, is_against_if_nothing_was_lost: bool) -> Said:
    if is_against:
        return Said.AGAINST
    return Said.AGAINST_IF_NOTHING_WAS_LOST if is_against_if_nothing_was_lost else Said.NOTHING


def _partitions(histories: Iterable[Sequence[StateRecord]]) -> list[int]:
    return [h[-1].state_partition for h in histories if h[-1].state_partition is not None]


def _is_kept(history: Sequence[StateRecord], marker_ms: int, state: StateAtHand, *, if_nothing_was_lost: bool) -> bool:
    """What led to a marker of an id is all there."""
    home = history[-1].state_partition
    if home is not None and home in state.exports:
        began_ms = None if history[0].is_of_a_new_id else written_by_ms(history)[0]
        is_since = began_ms is None or began_ms < marker_ms - DECIDED_WITHIN_MS
        return state.is_export_complete and is_since and state.chains[home].gap_end_ms is None
    return home is not None and state.is_whole_around(home, marker_ms, if_nothing_was_lost=if_nothing_was_lost)
