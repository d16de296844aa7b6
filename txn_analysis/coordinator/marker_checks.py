"""What end markers say of the state: that it has their decisions, or should have, or is older.

Of all markers at once, column by column: a marker is held against the decisions of its own producer and partition, and
against the bounds of what the state can have lost of that producer. `coordinator.fit` says what the sums mean.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array
from txn_analysis.coordinator.fit import Contradictions, MarkerSums, UnexplainedMarker
from txn_analysis.coordinator.history import COMMIT
from txn_analysis.coordinator.marker_columns import IS_ABORT, IS_COMMIT, IS_UNPRINTED, MarkerColumns, columns_of
from txn_analysis.coordinator.producer_bounds import (
    DECIDED_WITHIN_MS,
    EVER,
    NEVER,
    Bounds,
    Decisions,
    GivenState,
    IdsOfProducers,
    LoneCompletions,
    are_within,
    bounds_of,
    close_to,
)
from txn_analysis.coordinator.state_columns import NO_TIME
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH

EPOCHS = 2**15
"""More than any producer epoch."""
# Under transaction versions 0 and 1 a new instance of a producer, a timeout or a fencing raises the epoch: so far from
# the last one, no producer id rotates away within the days for which its transactional id is known. Version 2 raises it
# with every transaction, and uses an id up within minutes.
FAR_FROM_ROTATION = 2**14

# What a marker says that nothing in the state confirms.
_SILENT, _CONTRADICTS, _CONTRADICTS_IF_NOTHING_WAS_LOST = 0, 1, 2


def sums_of_markers(markers: pa.Table, histories: pa.Table, state: GivenState, asked: Collection[int]) -> MarkerSums:
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
    is_recent = (columns.at_ms == NO_TIME) | (columns.at_ms >= state.forgotten_before_ms)
    recent = pa.array(columns.producers[np.unique(columns.producer[is_recent])])
    knows_recent = pc.any(pc.is_in(recent, histories["producer_id"])).as_py()
    of_recent = MarkerSums(has_recent=len(recent) > 0, knows_recent=bool(knows_recent))
    return of_recent.plus(_Check(columns, histories, state, asked).sums()) if asked else of_recent


@dataclass(frozen=True)
class _Check:
    """Markers, and what they are held against; arrays have a value for each marker."""

    markers: MarkerColumns
    histories: pa.Table
    state: GivenState
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
        is_later = counts & (markers.at_ms > self._bounds.end_ms) & ~self._is_served
        is_undecoded = self._bounds.may_be_undecoded
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
        kind, bounds = self.markers.kind, self._bounds
        if_reached = np.where(is_left, np.where(bounds.has_home, self._of_known, self._of_unknown), _SILENT)
        of_any = np.where(self.markers.at_ms <= bounds.reached_ms, if_reached, _SILENT)
        answers = np.where(bounds.may_be_undecoded, _SILENT, of_any)
        is_doubt = (kind == IS_UNPRINTED) & self._is_doubt(answers)
        return MarkerSums(
            against=self._contradictions((kind == IS_COMMIT) & (answers == _CONTRADICTS)),
            more_if_nothing_was_lost=self._contradictions(
                (kind == IS_COMMIT) & (answers == _CONTRADICTS_IF_NOTHING_WAS_LOST)
            ),
            unexplained=self._first(bounds.may_be_undecoded & self._is_doubt(of_any)),
            unprinted=self._first(is_doubt & bounds.is_known),
            unprinted_of_unknown=self._first(is_doubt & ~bounds.is_known),
            unreached=self._first(~bounds.is_known & self._is_doubt(if_reached)),
        )

    def _is_doubt(self, answers: Array) -> Array:
        of_lost = (answers == _CONTRADICTS_IF_NOTHING_WAS_LOST) & self.state.is_nothing_lost
        is_doubt: Array = (answers == _CONTRADICTS) | of_lost
        return is_doubt

    # What markers say that nothing confirms, if the state reaches past them: the first case that holds.

    @property
    def _is_ahead(self) -> Array:
        """Its coordinator wrote nothing of what the state holds."""
        markers, bounds = self.markers, self._bounds
        is_above: Array = markers.coordinator_epoch > bounds.highest_leader_epoch
        return is_above & (markers.at_ms >= bounds.ahead_since_ms)

    @property
    def _of_known(self) -> Array:
        """The state would have their decisions: it cannot have lost what led to them."""
        is_kept = self.markers.at_ms > self._bounds.complete_since_ms
        cases = [
            (self._is_ahead, _CONTRADICTS),
            (~is_kept, _SILENT),
            (self._may_be_cut, _CONTRADICTS_IF_NOTHING_WAS_LOST),
        ]
        return _first_of(cases, _CONTRADICTS)

    @property
    def _of_unknown(self) -> Array:
        """The whole state was given, and their producer cannot be gone from it.

        Compaction leaves the last record of each id, which names its producer id until the id rotates or expires.
        """
        markers, state = self.markers, self.state
        epoch, has_expired = markers.producer_epoch, markers.at_ms < state.forgotten_before_ms
        is_exhausted = has_expired | (epoch >= EXHAUSTED_EPOCH) | (not state.is_export_complete)
        gaps = [gap_ms for n in state.chains if (gap_ms := state.gap_end_ms(n)) is not None]
        is_compacted = markers.at_ms <= min(max(gaps, default=NEVER) + DECIDED_WITHIN_MS, EVER)
        may_rotate = markers.is_of_version_2[markers.producer] | (epoch < 0) | (epoch >= FAR_FROM_ROTATION)
        is_any = np.ones(len(epoch), bool)
        cases = [
            (is_any & (not state.is_whole), _SILENT),
            (is_exhausted & bool(state.exports), _SILENT),
            (is_compacted & has_expired, _SILENT),
            (is_compacted & self._is_ahead, _CONTRADICTS),
            (is_compacted & may_rotate, _SILENT),
            (self._may_be_cut, _CONTRADICTS_IF_NOTHING_WAS_LOST),
        ]
        return _first_of(cases, _CONTRADICTS)

    @cached_property
    def _may_be_cut(self) -> Array:
        """What led to a marker may have been the tail of an old leader, in a partition that can hold its id."""
        ids, at_ms, tails = self._ids, self.markers.at_ms, self._lost_tails
        may_be_cut = np.zeros(len(at_ms), bool)

        def ask(asked: Array, of: Array) -> None:
            rows = np.flatnonzero(asked)
            may_be_cut[rows] |= are_within(np.zeros_like(rows), at_ms[rows], np.zeros_like(of), *tails[of, 1:].T)

        ask(~self._bounds.has_home, np.arange(len(tails)))
        for number in {*tails[:, 0].tolist()} - self.state.exports:
            is_at_home = np.zeros(len(self.markers.producers), bool)
            is_at_home[ids.producer[ids.home == number]] = True
            ask(is_at_home[self.markers.producer], np.flatnonzero(tails[:, 0] == number))
        return may_be_cut

    @property
    def _lost_tails(self) -> Array:
        """Rows of a partition of the state, and since and until when what led to a marker was lost with its leader."""
        skew_ms = self.state.max_clock_skew_ms
        tails = [
            (
                number,
                NEVER if tail.after_ms is None else tail.after_ms - skew_ms,
                EVER if tail.by_ms is None else tail.by_ms + skew_ms + DECIDED_WITHIN_MS,
            )
            for number, chain in self.state.chains.items()
            for tail in chain.lost_tails
        ]
        return np.array(tails, np.int64).reshape(-1, 3)

    # Decisions.

    @cached_property
    def _decisions(self) -> Decisions:
        return Decisions.of(self._ids, self.markers.places, self.state)

    def _are_served(self, start_ms: Array, stop_ms: Array, of: Array | None = None) -> Array:
        """Whether a decision serves a marker: of its producer and partition, and in its time.

        Args:
            start_ms: of decisions.
            stop_ms: of decisions.
            of: which decisions these are; None where they are all.
        """
        decisions, markers, count = self._decisions, self.markers, len(self.markers.places)
        of = np.arange(len(decisions.place)) if of is None else of
        key = markers.producer * count + markers.place
        of_key = decisions.producer[of] * count + decisions.place[of]
        return _are_of_kind(key, markers.at_ms, markers.kind, of_key, start_ms, stop_ms, decisions.is_commit[of])

    @cached_property
    def _confirms(self) -> Array:
        """A COMMIT marker can be that of a commit."""
        skew_ms, decisions = self.state.max_clock_skew_ms, self._decisions
        is_served = self._are_served(decisions.prepared_ms - skew_ms, decisions.completed_ms + skew_ms)
        confirms: Array = is_served & (self.markers.kind == IS_COMMIT)
        return confirms

    @cached_property
    def _is_served(self) -> Array:
        """A marker can be that of a decision; of one that is its id's last, up to the end of the state."""
        skew_ms, decisions = self.state.max_clock_skew_ms, self._decisions
        return self._are_served(decisions.prepared_ms - skew_ms, decisions.until_ms + skew_ms)

    @cached_property
    def _is_sure(self) -> Array:
        """A marker can be that of a decision behind which its id has a record: between the two, and close to one.

        A decision that is the newest record of another cluster's id, or hangs there for hours, serves any marker.
        """
        decisions = self._decisions
        of = np.flatnonzero(decisions.next_ms != NEVER)
        starts, stops = close_to(decisions.prepared_ms[of], decisions.next_ms[of], self.state.max_clock_skew_ms)
        is_sure: Array = self._are_served(starts, stops, np.tile(of, 2)) | self._is_sure_of_lone
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
        asked = asked[self._are_served_by_lone(lone, asked)]
        for epoch in np.unique(lone.leader_epoch)[::-1].tolist():  # the newest one serves most
            left = asked[~is_sure[asked] & (markers.coordinator_epoch[asked] <= epoch)]
            is_sure[left] = self._are_served_by_lone(lone.only(lone.leader_epoch == epoch), left)
        return is_sure

    def _are_served_by_lone(self, lone: LoneCompletions, asked: Array) -> Array:
        """Whether one of these serves a marker, whoever led."""
        key, markers = self.markers.producer * EPOCHS + self.markers.producer_epoch, self.markers
        of_key = np.tile(lone.producer * EPOCHS + lone.producer_epoch, 2)
        starts, stops = close_to(lone.decided_ms, lone.written_ms, self.state.max_clock_skew_ms)
        asked_ones = key[asked], markers.at_ms[asked], markers.kind[asked]
        return _are_of_kind(*asked_ones, of_key, starts, stops, np.tile(lone.is_commit, 2))

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
        """Those of the producer of each marker."""
        of_producers = bounds_of(self._ids, len(self.markers.producers), self.state)
        return Bounds(*(bound[self.markers.producer] for bound in of_producers))

    def _in_run(self, holds: Array) -> Array:
        """Of each marker, whether something holds of it or of one of its repetitions."""
        run = self.markers.run
        return np.bincount(run, holds, run[-1] + 1 if len(run) else 0).astype(bool)[run]

    def _contradictions(self, are_these: Array) -> Contradictions:
        markers = self.markers
        rows = np.flatnonzero(are_these)
        asked = markers.producers[np.unique(markers.producer[rows])].tolist()
        of_asked = {i: self._of_producer(rows, i) for i in asked if i in self.asked}
        is_of_known = bool(self._bounds.is_known[rows].any())
        return Contradictions(len(rows), of_asked, self._first(are_these), is_of_known)

    def _of_producer(self, rows: Array, producer_id: int) -> UnexplainedMarker:
        """The earliest of some markers that is a producer's, of which there is one."""
        number = np.searchsorted(self.markers.producers, producer_id)
        start, stop = np.searchsorted(self.markers.producer[rows], [number, number + 1])
        return self._earliest(rows[start:stop])

    def _first(self, are_these: Array) -> UnexplainedMarker | None:
        """The earliest of some markers, as it is named where it speaks against something."""
        rows = np.flatnonzero(are_these)
        return self._earliest(rows) if len(rows) else None

    def _earliest(self, rows: Array) -> UnexplainedMarker:
        at_ms = self.markers.at_ms[rows]
        return min(map(self._named, rows[at_ms == at_ms.min()].tolist()))

    def _named(self, number: int) -> UnexplainedMarker:
        markers = self.markers
        kind = COMMIT if markers.kind[number] == IS_COMMIT else ""
        producer_id = int(markers.producers[markers.producer[number]])
        topic, _, partition = markers.places[markers.place[number]].as_py().rpartition("-")
        return UnexplainedMarker(
            int(markers.at_ms[number]), topic, int(partition), int(markers.offset[number]), producer_id, kind
        )


def _are_of_kind(
    key: Array, at_ms: Array, kind: Array, of_key: Array, start_ms: Array, stop_ms: Array, is_commit: Array
) -> Array:
    """As `are_within`, of markers of a kind and intervals of it; an unprinted marker may be of either kind."""
    are_within_one = np.zeros(len(at_ms), bool)
    for of_kind, of in ((IS_COMMIT, is_commit), (IS_ABORT, ~is_commit)):
        asked = np.flatnonzero((kind == of_kind) | (kind == IS_UNPRINTED))
        are_within_one[asked] |= are_within(key[asked], at_ms[asked], of_key[of], start_ms[of], stop_ms[of])
    return are_within_one


def _first_of(cases: Sequence[tuple[Array, int]], otherwise: int) -> Array:
    """Of each marker the answer of the first case that holds."""
    return np.select([holds for holds, _ in cases], [answer for _, answer in cases], otherwise)
