"""What the state says of producers that their end markers are held against: decisions, and what may be lost of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, numbers, place_in
from txn_analysis.coordinator.chain import StateChain
from txn_analysis.coordinator.coverage import StateEvidence
from txn_analysis.coordinator.marker_columns import names_of_places
from txn_analysis.coordinator.state_columns import NO_TIME, RecordSequence
from txn_analysis.logic import latest, minus
from txn_analysis.settings import Settings

EVER, NEVER = 2**62, -(2**62)
"""Later and earlier than any moment; sums with a duration stay within INT64."""
NONE_YET = -(2**63)


def are_within(key: Array, at_ms: Array, of_key: Array, start_ms: Array, stop_ms: Array) -> Array:
    """Of each moment, whether an interval of its own key holds it; both bounds belong to an interval.

    Args:
        key: of each moment, any number.
        at_ms: the moments.
        of_key: of each interval.
        start_ms: where it begins.
        stop_ms: where it ends.
    """
    are_within_one = np.zeros(len(at_ms), bool)
    if not len(of_key) or not len(at_ms):
        return are_within_one
    stops, rank = np.unique(stop_ms, return_inverse=True)
    keys, moments = np.concatenate([of_key, key]), np.concatenate([start_ms, at_ms])
    is_moment = np.arange(len(keys)) >= len(of_key)
    order = np.lexsort((is_moment, moments, keys))
    # In order of their starts the furthest end so far is the running maximum, which begins anew with each key. Keys are
    # counted, as their own numbers times those of the ends may be more than 64 bits hold.
    ordered = keys[order]
    base = np.cumsum(np.append(False, ordered[1:] != ordered[:-1])) * (len(stops) + 1)
    ends = np.concatenate([rank + 1, np.zeros(len(key), np.int64)])[order]
    furthest = np.maximum.accumulate(base + ends) - base
    is_held = (furthest > 0) & (stops[furthest - 1] >= moments[order])
    asked = order[is_moment[order]] - len(of_key)
    are_within_one[asked] = is_held[is_moment[order]]
    return are_within_one


# How long before its marker a decision is looked for: what is lost earlier cannot have held it.
DECIDED_WITHIN_MS = 60_000


def close_to(decided_ms: Array, next_ms: Array, skew_ms: int) -> tuple[Array, Array]:
    """When the marker of a decision was written, if it was between that and the next record, and close to one.

    Returns:
        Two intervals for each: where they begin, and where they end.
    """
    within_ms, start_ms, stop_ms = DECIDED_WITHIN_MS + skew_ms, decided_ms - skew_ms, next_ms + skew_ms
    after, before = np.minimum(stop_ms, decided_ms + within_ms), np.maximum(start_ms, next_ms - within_ms)
    return np.concatenate([start_ms, before]), np.concatenate([after, stop_ms])


@dataclass(frozen=True)
class GivenState:
    """What of the state can confirm or contradict a marker.

    Attributes:
        chains: by number, the partitions of the state that were given, as far as their records could be decoded.
        is_whole: all partitions were given, and no larger count of partitions fits the ids.
        exports: numbers of those for which only a console export speaks.
        is_export_complete: the operator says that the exports are complete.
        is_nothing_lost: the operator says that no record was ever lost.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
        known_since_ms: an id that was last used before this moment may have been forgotten.
        undecodable: numbers of those with a record that could not be decoded, which may be any decision.
    """

    chains: Mapping[int, StateChain]
    is_whole: bool
    exports: frozenset[int]
    is_export_complete: bool
    is_nothing_lost: bool
    max_clock_skew_ms: int
    known_since_ms: int | None
    undecodable: frozenset[int] = frozenset()

    def of_chains(self, partitions: Array, name: str, of_none: int, of_missing: int | None = None) -> Array:
        """Of partitions of the state a moment or an epoch that their chains state; other numbers where they do not.

        Args:
            partitions: their numbers.
            name: a field of `StateChain`.
            of_none: stands for what a chain does not state.
            of_missing: stands for that of a partition that was not given; as `of_none` where it is None.
        """
        numbers_of, place = np.unique(partitions, return_inverse=True)
        chains = [self.chains.get(number) for number in numbers_of.tolist()]
        missing = of_none if of_missing is None else of_missing
        stated = [missing if chain is None else getattr(chain, name) for chain in chains]
        return np.array([of_none if value is None else value for value in stated], np.int64)[place]

    @property
    def last_moment_ms(self) -> int | None:
        """The last moment of any partition."""
        return latest(*(chain.last_moment_ms for chain in self.chains.values()))

    @property
    def forgotten_before_ms(self) -> int:
        """An id that was last used before this moment may have been forgotten; NEVER where none is."""
        return NEVER if self.known_since_ms is None else self.known_since_ms

    def gap_end_ms(self, partition: int) -> int | None:
        """The moment behind the newest hole of a partition, or behind what an export can lack; None without one."""
        chain = self.chains[partition]
        return latest(chain.gap_end_ms, chain.export_gap_ms if partition in self.exports else None)


def given_state(state: StateEvidence, settings: Settings, newest_ms: int | None) -> GivenState:
    """What of the state was given, as far as it can confirm or contradict a marker."""
    given = {p.state_partition: p for p in state.expected if p.is_seen}
    return GivenState(
        chains={number: partition.decoded for number, partition in given.items()},
        is_whole=len(given) == state.expected_count and state.count.larger is None,
        exports=frozenset(number for number, partition in given.items() if partition.is_console),
        is_export_complete=settings.transaction_state_complete,
        is_nothing_lost=settings.no_records_lost,
        max_clock_skew_ms=settings.max_clock_skew_ms,
        known_since_ms=minus(newest_ms, settings.transactional_id_expiration_ms),
        undecodable=frozenset(number for number, partition in given.items() if partition.undecodable_count),
    )


class IdsOfProducers(NamedTuple):
    """The histories of the ids that have, or had, some producers, as columns: a value for each id, or each record.

    Attributes:
        producer: of each id, its producer's place among those that are asked about; in order.
        home: of each id the partition of the state that holds its last record; -1 where it is not known.
        is_gone: of each id, its last record removes it.
        is_whole: of each id, nothing can have come before its first record.
        records: of all ids.
        id_of: of each record the number of its id.
        is_own: of each record, it has, or had, the producer id as its own.
        is_commit: of each record, it is one of a commit.
        state_partition: of each record; -1 where it is not known.
        producer_epoch: of each record; -1 where it has none.
        leader_epoch: of the batch of each record; -1 where it is not known.
        topic_partitions: of each record, the lists of partitions.
    """

    producer: Array
    home: Array
    is_gone: Array
    is_whole: Array
    records: RecordSequence
    id_of: Array
    is_own: Array
    is_commit: Array
    state_partition: Array
    producer_epoch: Array
    leader_epoch: Array
    topic_partitions: pa.ListArray

    @classmethod
    def of(cls, histories: pa.Table, producer_ids: Array) -> IdsOfProducers:
        """From rows of `OF_PRODUCER`, of some producers, whose ids are in order."""
        place = place_in(producer_ids, numbers(histories["producer_id"], ABSENT))
        is_asked = place != ABSENT
        rows = np.flatnonzero(is_asked)[np.argsort(place[is_asked], kind="stable")]
        lists = pa.chunked_array(histories["history"]).take(pa.array(rows))
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], lists.type)
        lengths, records_of = pc.list_value_length(lists).to_numpy(zero_copy_only=False), lists.flatten()
        first, id_of = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(lengths)), lengths)
        records = RecordSequence.of(
            records_of.field("state"), records_of.field("recorded_ms"), records_of.field("last_update_ms"), first
        )
        current, previous = (
            numbers(records_of.field(name), ABSENT) for name in ("producer_id", "previous_producer_id")
        )
        partition = numbers(records_of.field("state_partition"), ABSENT)
        last = first + lengths - 1
        epoch, leader_epoch = (numbers(records_of.field(name), ABSENT) for name in ("producer_epoch", "leader_epoch"))
        begins = records.begins_an_id(current, previous, epoch)
        asked = producer_ids[place[rows]][id_of]
        return cls(
            producer=place[rows],
            home=partition[last],
            is_gone=records_of.field("is_tombstone").to_numpy(zero_copy_only=False).astype(bool)[last],
            is_whole=begins[first],
            records=records,
            id_of=id_of,
            is_own=(current == asked) | (previous == asked),
            is_commit=records.is_of_commit,
            state_partition=partition,
            producer_epoch=epoch,
            leader_epoch=leader_epoch,
            topic_partitions=records_of.field("topic_partitions"),
        )


class Decisions(NamedTuple):
    """Decisions about partitions: a Prepare record of a producer is one for each partition that it lists.

    Attributes:
        producer: its producer's place among those that are asked about.
        place: the partition's place among those that are asked about.
        is_commit: its kind.
        prepared_ms: the moment of the decision.
        completed_ms: when its Complete record was written at the latest; EVER where that is not there.
        next_ms: when the id's next record was written at the latest, whichever it is; NEVER where there is none.
        until_ms: as `next_ms`; where there is none, when its partition of the state ends.
    """

    producer: Array
    place: Array
    is_commit: Array
    prepared_ms: Array
    completed_ms: Array
    next_ms: Array
    until_ms: Array

    @classmethod
    def of(cls, ids: IdsOfProducers, places: pa.Array, state: GivenState) -> Decisions:
        """The decisions under the producer ids about some partitions, see `names_of_places`."""
        records = ids.records
        written_ms, moment_ms = np.minimum(records.written_by_ms, EVER), records.moment_ms
        has_next = np.arange(len(moment_ms)) + 1 < records.stop
        next_ms = np.where(has_next, np.append(written_ms[1:], NEVER)[: len(written_ms)], NEVER)
        is_done = has_next & np.append(records.completes[1:], False)[: len(written_ms)]
        until_ms = np.where(has_next, next_ms, state.of_chains(ids.state_partition, "last_until_as_of_ms", NEVER))
        rows = np.flatnonzero(ids.is_own & records.is_prepared)
        lists = ids.topic_partitions.take(pa.array(rows))
        listed = lists.flatten()
        place = numbers(pc.index_in(names_of_places(listed.field("topic"), listed.field("partition")), places), ABSENT)
        rows = rows[pc.list_parent_indices(lists).to_numpy()][place != ABSENT]
        return cls(
            producer=ids.producer[ids.id_of[rows]],
            place=place[place != ABSENT],
            is_commit=ids.is_commit[rows],
            prepared_ms=np.where(moment_ms == NO_TIME, 0, moment_ms)[rows],
            completed_ms=np.where(is_done, next_ms, EVER)[rows],
            next_ms=next_ms[rows],
            until_ms=until_ms[rows],
        )


class LoneCompletions(NamedTuple):
    """Complete records whose Prepare compaction took; they list no partition, and their value has the decision's time.

    Attributes:
        producer: its producer's place among those that are asked about.
        producer_epoch: that of its value.
        is_commit: its kind.
        decided_ms: the moment of the decision.
        written_ms: when it was written at the latest.
        leader_epoch: of its batch. Those without one, as in exports, are left out.
    """

    producer: Array
    producer_epoch: Array
    is_commit: Array
    decided_ms: Array
    written_ms: Array
    leader_epoch: Array

    @classmethod
    def of(cls, ids: IdsOfProducers) -> LoneCompletions:
        """Those under the producer ids."""
        records = ids.records
        is_alone = ids.is_own & records.is_completed & ~records.completes & (records.last_update_ms != NO_TIME)
        rows = np.flatnonzero(is_alone & (ids.leader_epoch != ABSENT) & (ids.producer_epoch != ABSENT))
        return cls(
            producer=ids.producer[ids.id_of[rows]],
            producer_epoch=ids.producer_epoch[rows],
            is_commit=ids.is_commit[rows],
            decided_ms=records.last_update_ms[rows],
            written_ms=np.minimum(records.written_by_ms, EVER)[rows],
            leader_epoch=ids.leader_epoch[rows],
        )

    def only(self, are_these: Array) -> LoneCompletions:
        """Some of them."""
        return LoneCompletions(*(column[are_these] for column in self))


class Bounds(NamedTuple):
    """What the state can have lost of the decisions of producers, as bounds of their markers; a value for each.

    Attributes:
        is_known: the state has, or had, its producer id.
        has_home: and in a partition that is known.
        reached_ms: all partitions that can hold its id speak of a time after markers up to here.
        end_ms: markers after this moment are later than all that these hold; EVER where none of them was given.
        highest_leader_epoch: of all of them.
        ahead_since_ms: from here on an epoch above it contradicts, as an id that is gone may have expired before.
        complete_since_ms: what led to markers after this moment is all there, if no leader's end was lost.
        may_be_undecoded: a record that could not be decoded may be a decision of its own.
    """

    is_known: Array
    has_home: Array
    reached_ms: Array
    end_ms: Array
    highest_leader_epoch: Array
    ahead_since_ms: Array
    complete_since_ms: Array
    may_be_undecoded: Array


_ANY_EPOCH = 2**31


def bounds_of(ids: IdsOfProducers, count: int, state: GivenState) -> Bounds:
    """The bounds of so many producers, by the histories of the ids that have, or had, them.

    Of an unknown producer, and of one whose ids have no home, every partition that was given may hold its id.
    """
    skew_ms, is_placed, given = state.max_clock_skew_ms, ids.home != ABSENT, np.array([*state.chains], np.int64)
    home, of = ids.home[is_placed], ids.producer[is_placed]
    is_known, has_home, is_gone = (np.zeros(count, bool) for _ in range(3))
    is_known[ids.producer], has_home[of], is_gone[ids.producer[ids.is_gone]] = True, True, True

    def largest(name: str, of_none: int, of_missing: int, default: int) -> Array:
        """Of each producer the largest value of its partitions of the state."""
        bound = np.where(has_home, NONE_YET, state.of_chains(given, name, of_none).max(initial=NONE_YET))
        np.maximum.at(bound, of, state.of_chains(home, name, of_none, of_missing))
        return np.where(bound == NONE_YET, default, bound)

    reached_ms = np.where(has_home, EVER, state.of_chains(given, "last_moment_ms", NEVER).min(initial=EVER))
    np.minimum.at(reached_ms, of, state.of_chains(home, "last_moment_ms", NEVER))
    may_be_undecoded = ~has_home & bool(state.undecodable)
    may_be_undecoded[of[np.isin(home, [*state.undecodable])]] = True
    complete_since_ms = np.where(is_known, NONE_YET, EVER)
    np.maximum.at(complete_since_ms, ids.producer, _complete_since_ms(ids, state))
    return Bounds(
        is_known=is_known,
        has_home=has_home,
        reached_ms=reached_ms - skew_ms,
        end_ms=largest("last_until_as_of_ms", NEVER, NONE_YET, EVER) + skew_ms,
        highest_leader_epoch=largest("leader_epoch", _ANY_EPOCH, _ANY_EPOCH, -1),
        ahead_since_ms=np.where(is_gone, state.forgotten_before_ms, NEVER),
        complete_since_ms=complete_since_ms,
        may_be_undecoded=may_be_undecoded,
    )


def _complete_since_ms(ids: IdsOfProducers, state: GivenState) -> Array:
    """Of each id the moment since which its partition of the state has no gap, and what leads to a marker."""
    numbers_of, place = np.unique(ids.home, return_inverse=True)
    gap_ends = [state.gap_end_ms(n) if n in state.chains else EVER for n in numbers_of.tolist()]
    gap_end_ms = np.array([NEVER if ms is None else min(ms, EVER) for ms in gap_ends], np.int64)[place]
    of_dump = np.minimum(gap_end_ms + DECIDED_WITHIN_MS, EVER)
    first_ms = np.minimum(ids.records.written_by_ms[ids.records.first], EVER) + DECIDED_WITHIN_MS
    of_export = np.where(ids.is_whole, NEVER, np.minimum(first_ms, EVER))
    is_silent = (gap_end_ms != NEVER) | (not state.is_export_complete)
    return np.where(np.isin(ids.home, [*state.exports]), np.where(is_silent, EVER, of_export), of_dump)
