"""What end markers say of the state: that it has their decisions, or should have, or is older.

Of all markers at once, column by column: a marker is held against the decisions of its own producer and partition, and
against the bounds of what the state can have lost of that producer. `coordinator.fit` says what the sums mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, numbers, place_in
from txn_analysis.coordinator.fit import Contradictions, MarkerSums, Witness
from txn_analysis.coordinator.history import COMMIT
from txn_analysis.coordinator.marker_columns import (
    EPOCHS,
    IS_ABORT,
    IS_COMMIT,
    IS_UNPRINTED,
    KINDS,
    columns_of,
    of_kinds,
)
from txn_analysis.coordinator.producer_bounds import (
    DECIDED_WITHIN_MS,
    EVER,
    NEVER,
    Bounds,
    Decisions,
    IdsOfProducers,
    LoneCompletions,
    are_within,
    bounds_of,
    close_to,
)
from txn_analysis.coordinator.state_columns import NO_TIME
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH

if TYPE_CHECKING:
    from collections.abc import Collection

    from txn_analysis.columns.arrays import Array
    from txn_analysis.coordinator.marker_columns import MarkerColumns
    from txn_analysis.coordinator.producer_bounds import StateAtHand

# Under transaction versions 0 and 1 a new instance of a producer, a timeout or a fencing raises the epoch: so far from
# the last one, no producer id rotates away within the days for which its transactional id is known. Version 2 raises it
# with every transaction, and uses an id up within minutes.
FAR_FROM_ROTATION = 2**14

# What a marker says that nothing in the state confirms.
_NOTHING, _AGAINST, _AGAINST_IF_NOTHING_WAS_LOST = 0, 1, 2


def sums_of_markers(markers: pa.Table, histories: pa.Table, state: StateAtHand, asked: Collection[int]) -> MarkerSums:
    """What the end markers of some producers say of the state.

    Args:
        markers: rows of `MARKERS`: all that these producers have, in all partitions.
        histories: rows of `OF_PRODUCER`: all that these producers have.
        state: what was given of the state; nothing is said where that is nothing.
        asked: the producer ids of open transactions; where there are none, only `has_recent` and `knows_recent` are
            said.
    """
    if not (markers.num_rows and state.chains):
        return MarkerSums()
    columns = columns_of(markers)
    known_since_ms = NEVER if state.known_since_ms is None else state.known_since_ms
    is_recent = (columns.at_ms == NO_TIME) | (columns.at_ms >= known_since_ms)
    recent = pa.array(columns.producers[np.unique(columns.producer[is_recent])])
    knows_recent = pc.any(pc.is_in(recent, histories["producer_id"])).as_py()
    of_recent = MarkerSums(has_recent=len(recent) > 0, knows_recent=bool(knows_recent))
    return of_recent.plus(_Check(columns, histories, state, asked).sums()) if asked else of_recent


@dataclass(frozen=True)
class _Check:
    """Markers, and what they are held against; arrays have a value for each marker."""

    markers: MarkerColumns
    histories: pa.Table
    state: StateAtHand
    asked: Collection[int]

    def sums(self) -> MarkerSums:
        """Of COMMIT and unprinted markers; repetitions say nothing where one of them is confirmed.

        Those of aborts confirm alone.
        """
        markers = self.markers
        has_time = markers.at_ms != NO_TIME
        counts, is_sure = (markers.kind != IS_ABORT) & has_time, self._is_sure & has_time
        of_any = MarkerSums(
            sure_of_any_ms=self._newest_ms(is_sure),
            coordinator_epochs=self._coordinator_epochs,
            unknown_coordinator_epoch=self._unknown_coordinator_epoch,
        )
        if not counts.any():
            return of_any
        is_sure, confirms = is_sure & counts, self._confirms & counts
        end_ms = self.state.last_moment_ms
        is_later = counts & (markers.at_ms > self._bound("end_ms")) & ~self._is_served
        is_undecoded = self._bound("may_be_undecoded")
        is_settled = self._in_run(confirms | ((markers.kind == IS_UNPRINTED) & self._is_served))
        of_all = MarkerSums(
            confirmed_count=int(confirms.sum()),
            later=self._first(is_later & ~is_undecoded),
            unexplained=self._first(is_later & is_undecoded),
            has_later_unexplained=bool((is_later & is_undecoded).any()),
            is_unsure=bool((counts & ~self._in_run(is_sure)).any()),
            sure_ms=self._newest_ms(is_sure),
            newest_ms=None if end_ms is None else self._newest_ms(counts & (markers.at_ms <= end_ms)),
        )
        return of_any.plus(of_all).plus(self._of_unconfirmed(counts & ~is_settled))

    def _newest_ms(self, are_these: Array) -> int | None:
        return int(self.markers.at_ms[are_these].max()) if are_these.any() else None

    def _of_unconfirmed(self, is_left: Array) -> MarkerSums:
        """What unconfirmed markers say; of unprinted kind, or beside undecoded records, one contradicts nothing."""
        if not is_left.any():
            return MarkerSums()
        markers, is_known = self.markers, self._bound("is_known")
        answers, if_reached = self._answers(is_left)
        is_commit, is_unprinted = markers.kind == IS_COMMIT, markers.kind == IS_UNPRINTED
        is_undecoded = self._bound("may_be_undecoded")
        unexplained = self._first(is_undecoded & self._is_doubt(answers))
        answers = np.where(is_undecoded, _NOTHING, answers)
        is_doubt = is_unprinted & self._is_doubt(answers)
        return MarkerSums(
            against=self._contradictions(is_commit & (answers == _AGAINST)),
            more_if_nothing_was_lost=self._contradictions(is_commit & (answers == _AGAINST_IF_NOTHING_WAS_LOST)),
            unexplained=unexplained,
            unprinted=self._first(is_doubt & is_known),
            unprinted_of_unknown=self._first(is_doubt & ~is_known),
            unreached=self._first(~is_known & self._is_doubt(if_reached)),
        )

    def _is_doubt(self, answers: Array) -> Array:
        of_lost = (answers == _AGAINST_IF_NOTHING_WAS_LOST) & self.state.is_nothing_lost
        is_doubt: Array = (answers == _AGAINST) | of_lost
        return is_doubt

    def _answers(self, is_left: Array) -> tuple[Array, Array]:
        """What markers say, and what those of unknown producers would say if every partition reached past them."""
        answers, if_reached = (np.zeros(len(is_left), np.int8) for _ in range(2))
        of_known = np.flatnonzero(is_left & self._bound("has_home"))
        of_unknown = np.flatnonzero(is_left & ~self._bound("has_home"))
        is_reached = self.markers.at_ms <= self._bound("reached_ms")
        answers[of_known] = self._answers_of_known(of_known)
        if_reached[of_unknown] = self._answers_of_unknown(of_unknown)
        answers[of_unknown] = if_reached[of_unknown]
        return np.where(is_reached, answers, _NOTHING), if_reached

    def _answers_of_known(self, rows: Array) -> Array:
        """The state would have their decisions: it cannot have lost what led to them."""
        at_ms = self.markers.at_ms[rows]
        is_ahead = self.markers.coordinator_epoch[rows] > self._bound("ahead_of")[rows]
        is_ahead &= at_ms >= self._bound("ahead_since_ms")[rows]
        is_kept = at_ms > self._bound("kept_ms")[rows]
        return _against_if(is_ahead | (is_kept & ~self._may_be_cut(rows, at_ms)), is_kept)

    def _answers_of_unknown(self, rows: Array) -> Array:
        """The whole state was given, and their producer cannot be gone from it.

        Compaction leaves the last record of each id, which names its producer id until the id rotates or expires.
        """
        state, at_ms, epoch = self.state, self.markers.at_ms[rows], self.markers.producer_epoch[rows]
        if not state.is_whole:
            return np.zeros(len(rows), np.int8)
        has_expired = at_ms < (NEVER if state.known_since_ms is None else state.known_since_ms)
        is_compacted, may_be_cut = at_ms <= self._any_gap_ms, self._may_be_cut_anywhere(at_ms)
        is_surely = _against_if(~is_compacted & ~may_be_cut, ~is_compacted)
        is_ahead = self.markers.coordinator_epoch[rows] > self._bounds.ahead_of[-1]
        is_rotating = self.markers.is_of_version_2[self.markers.producer[rows]] | (epoch < 0)
        is_rotating |= epoch >= FAR_FROM_ROTATION
        if_compacted = np.where(is_rotating, _NOTHING, _against_if(~may_be_cut, np.ones(len(rows), bool)))
        if_compacted = np.where(is_ahead, _AGAINST, if_compacted)
        answers = np.where(~is_compacted | has_expired, is_surely, if_compacted)
        if not state.exports:
            return answers
        is_silent = has_expired | (epoch >= EXHAUSTED_EPOCH) | (not state.is_export_complete)
        return np.where(is_silent, _NOTHING, answers)

    @cached_property
    def _any_gap_ms(self) -> int:
        """Up to when what led to a marker may be gone from some partition."""
        gaps = [state_gap for n in self.state.chains if (state_gap := self.state.gap_end_ms(n)) is not None]
        return min(max(gaps, default=NEVER) + DECIDED_WITHIN_MS, EVER)

    def _may_be_cut(self, rows: Array, at_ms: Array) -> Array:
        """What led to them may have been the tail of an old leader, in a partition that holds an id of theirs."""
        may_be_cut = np.zeros(len(rows), bool)
        for homes in self._homes.T:
            may_be_cut |= self._within_tails(homes[self.markers.producer[rows]], at_ms)
        return may_be_cut

    def _may_be_cut_anywhere(self, at_ms: Array) -> Array:
        anywhere = np.zeros(len(at_ms), np.int64)
        _, starts, stops = self._tails
        return are_within(anywhere, at_ms, np.zeros(len(starts), np.int64), starts, stops)

    def _within_tails(self, home: Array, at_ms: Array) -> Array:
        return are_within(home + 1, at_ms, self._tails[0] + 1, *self._tails[1:])

    @cached_property
    def _tails(self) -> tuple[Array, Array, Array]:
        """By partition of the state, when what leads to a marker was lost with a leader's end, if it was then."""
        skew_ms, tails = self.state.max_clock_skew_ms, []
        for number, chain in self.state.chains.items():
            for tail in chain.lost_tails:
                start_ms = NEVER if tail.after_ms is None else tail.after_ms - skew_ms
                tails.append(
                    (number, start_ms, EVER if tail.by_ms is None else tail.by_ms + skew_ms + DECIDED_WITHIN_MS)
                )
        numbers, starts, stops = np.array(tails, np.int64).reshape(-1, 3).T
        return numbers, starts, stops

    @cached_property
    def _homes(self) -> Array:
        """Of each producer the partitions in which a leader's end can have been lost; -1 stands for none."""
        placed = np.column_stack([self._ids.producer, self._ids.home])
        is_export = np.isin(self._ids.home, [*self.state.exports]) if self.state.exports else False
        placed = placed[(self._ids.home != ABSENT) & ~np.asarray(is_export)]
        producer, home = np.unique(placed, axis=0).T
        nth = np.arange(len(producer)) - np.searchsorted(producer, producer)
        homes = np.full((len(self.markers.producers), nth.max(initial=-1) + 1), ABSENT)
        homes[producer, nth] = home
        return homes

    # Decisions.

    @cached_property
    def _decided(self) -> tuple[Array, ...]:
        """Of each decision and partition: key of producer and place, kind, and moments as in `Decisions`."""
        decisions, place_count = Decisions.of(self._ids, self.state), len(self.markers.places)
        producer = self._ids.producer[self._ids.id_of[decisions.record]]
        lists = self._ids.topic_partitions.take(pa.array(decisions.record))
        decision, listed = pc.list_parent_indices(lists).to_numpy(), lists.flatten()
        place = self._places_of(listed)
        decision, place = decision[place != ABSENT], place[place != ABSENT]
        key = producer[decision] * place_count + place
        return key, *(column[decision].astype(np.int64) for column in decisions[1:])

    def _places_of(self, listed: pa.StructArray) -> Array:
        """Of partitions of topics their numbers among those of the markers; -1 where none has one."""
        topics = {topic: n for n, topic in enumerate(dict.fromkeys(place.topic for place in self.markers.places))}
        width = 1 + max((place.partition for place in self.markers.places), default=0)
        keys = np.array([topics[p.topic] * width + p.partition for p in self.markers.places], np.int64)
        topic = numbers(pc.index_in(listed.field("topic"), pa.array([*topics], pa.string())), ABSENT)
        partition = numbers(listed.field("partition"), ABSENT)
        asked = np.where((topic == ABSENT) | (partition >= width), ABSENT, topic * width + partition)
        order = np.argsort(keys)
        place = place_in(keys[order], asked)
        return np.where(place == ABSENT, ABSENT, order[place])

    def _are_served(self, start_ms: Array, stop_ms: Array, of: Array) -> Array:
        """Whether a decision of its kind serves a marker; an unprinted marker may be of either kind."""
        markers = self.markers
        key, is_commit = self._decided[0][of], self._decided[1][of].astype(bool)
        keys, starts, stops = of_kinds(key, is_commit, start_ms, stop_ms)
        asked = KINDS * (markers.producer * len(markers.places) + markers.place) + markers.kind
        return are_within(asked, markers.at_ms, keys, starts, stops)

    @cached_property
    def _confirms(self) -> Array:
        """A COMMIT marker can be that of a commit."""
        key, _, prepared_ms, completed_ms, *_ = self._decided
        skew_ms = self.state.max_clock_skew_ms
        is_served = self._are_served(prepared_ms - skew_ms, completed_ms + skew_ms, np.arange(len(key)))
        confirms: Array = is_served & (self.markers.kind == IS_COMMIT)
        return confirms

    @cached_property
    def _is_served(self) -> Array:
        """A marker can be that of a decision; of one that is its id's last, up to the end of the state."""
        key, _, prepared_ms, _, _, until_ms = self._decided
        skew_ms = self.state.max_clock_skew_ms
        return self._are_served(prepared_ms - skew_ms, until_ms + skew_ms, np.arange(len(key)))

    @cached_property
    def _is_sure(self) -> Array:
        """A marker can be that of a decision behind which its id has a record: between the two, and close to one.

        A decision that is the newest record of another cluster's id, or hangs there for hours, serves any marker.
        """
        _, _, prepared_ms, _, next_ms, _ = self._decided
        of = np.flatnonzero(next_ms != NEVER)
        starts, stops = close_to(prepared_ms[of], next_ms[of], self.state.max_clock_skew_ms)
        is_sure: Array = self._are_served(starts, stops, np.concatenate([of, of])) | self._is_sure_of_lone
        return is_sure

    @cached_property
    def _is_sure_of_lone(self) -> Array:
        """The same by a Complete record whose Prepare is gone, of the marker's epoch.

        It lists no partition, so that of a producer that commits all the time one stands near any marker of another
        cluster. It was written by the coordinator that wrote the marker, or by a later one.
        """
        lone, markers = LoneCompletions.of(self._ids), self.markers
        is_sure = np.zeros(len(markers.at_ms), bool)
        asked = np.flatnonzero((markers.producer_epoch >= 0) & (markers.coordinator_epoch >= 0))
        asked = asked[self._serve(lone, asked)]
        for epoch in np.unique(lone.leader_epoch)[::-1].tolist():  # the newest one serves most
            left = asked[~is_sure[asked] & (markers.coordinator_epoch[asked] <= epoch)]
            is_sure[left] = self._serve(lone.only(lone.leader_epoch == epoch), left)
        return is_sure

    def _serve(self, lone: LoneCompletions, asked: Array) -> Array:
        """Whether one of these serves a marker, whoever led."""
        markers = self.markers
        starts, stops = close_to(lone.decided_ms, lone.written_ms, self.state.max_clock_skew_ms)
        key = np.tile(lone.producer * EPOCHS + lone.producer_epoch, 2)
        keys, starts, stops = of_kinds(key, np.tile(lone.is_commit, 2), starts, stops)
        asked_key = KINDS * (markers.producer[asked] * EPOCHS + markers.producer_epoch[asked]) + markers.kind[asked]
        return are_within(asked_key, markers.at_ms[asked], keys, starts, stops)

    # Coordinator epochs.

    @cached_property
    def _epochs(self) -> Array:
        """Of each producer the highest coordinator epoch of its markers; below zero where none is printed."""
        highest = np.full(len(self.markers.producers), ABSENT, np.int64)
        np.maximum.at(highest, self.markers.producer, self.markers.coordinator_epoch)
        return highest

    @property
    def _coordinator_epochs(self) -> dict[int, int]:
        """By partition of the state, of all whose ids it may hold."""
        is_placed = self._ids.home != ABSENT
        home, epoch = self._ids.home[is_placed], self._epochs[self._ids.producer[is_placed]]
        epochs = {int(n): int(epoch[home == n].max()) for n in np.unique(home)}
        return {n: highest for n, highest in epochs.items() if highest > ABSENT}

    @property
    def _unknown_coordinator_epoch(self) -> int | None:
        is_known = np.isin(np.arange(len(self.markers.producers)), self._ids.producer)
        highest = int(self._epochs[~is_known].max(initial=ABSENT))
        return highest if highest > ABSENT else None

    # What was found.

    @cached_property
    def _ids(self) -> IdsOfProducers:
        return IdsOfProducers.of(self.histories, self.markers.producers)

    @cached_property
    def _bounds(self) -> Bounds:
        """Of each producer, and last of one that is unknown."""
        return bounds_of(self._ids, len(self.markers.producers) + 1, self.state)

    def _bound(self, name: str) -> Array:
        bound: Array = getattr(self._bounds, name)[self.markers.producer]
        return bound

    def _in_run(self, holds: Array) -> Array:
        """Of each marker, whether something holds of it or of one of its repetitions."""
        run = self.markers.run
        return np.bincount(run, holds, run[-1] + 1 if len(run) else 0).astype(bool)[run]

    def _contradictions(self, are_these: Array) -> Contradictions:
        markers = self.markers
        rows = np.flatnonzero(are_these)
        asked = markers.producers[np.unique(markers.producer[rows])].tolist()
        of_asked = {i: self._of_producer(rows, i) for i in asked if i in self.asked}
        is_of_known = bool(self._bound("is_known")[rows].any())
        return Contradictions(len(rows), of_asked, self._first(are_these), is_of_known)

    def _of_producer(self, rows: Array, producer_id: int) -> Witness:
        """The earliest of some markers that is a producer's, of which there is one."""
        number = np.searchsorted(self.markers.producers, producer_id)
        start, stop = np.searchsorted(self.markers.producer[rows], [number, number + 1])
        return self._earliest(rows[start:stop])

    def _first(self, are_these: Array) -> Witness | None:
        """The earliest of some markers, as it is named where it speaks against something."""
        rows = np.flatnonzero(are_these)
        return self._earliest(rows) if len(rows) else None

    def _earliest(self, rows: Array) -> Witness:
        at_ms = self.markers.at_ms[rows]
        return min(map(self._witness, rows[at_ms == at_ms.min()].tolist()))

    def _witness(self, number: int) -> Witness:
        markers = self.markers
        kind = COMMIT if markers.kind[number] == IS_COMMIT else ""
        producer_id = int(markers.producers[markers.producer[number]])
        topic, partition = markers.places[markers.place[number]]
        return Witness(int(markers.at_ms[number]), topic, partition, int(markers.offset[number]), producer_id, kind)


def _against_if(is_against: Array, is_against_if_nothing_was_lost: Array) -> Array:
    if_not = np.where(is_against_if_nothing_was_lost, _AGAINST_IF_NOTHING_WAS_LOST, _NOTHING)
    return np.where(is_against, _AGAINST, if_not).astype(np.int8)
