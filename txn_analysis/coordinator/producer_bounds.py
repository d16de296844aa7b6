"""What the state says of one producer that its end markers are held against: its decisions, and what may be lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from txn_analysis.coordinator.history import written_by_ms
from txn_analysis.kafka.transactions import COMPLETE_COMMIT, PREPARE_COMMIT, PREPARED
from txn_analysis.logic import latest, minus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from txn_analysis.columns.arrays import Array
    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.coordinator.history import History
    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.settings import Settings


EVER, NEVER = 2**62, -(2**62)
"""Later and earlier than any moment; sums with a duration stay within INT64."""


def are_within(key: Array, at_ms: Array, of_key: Array, start_ms: Array, stop_ms: Array) -> Array:
    """Of each moment, whether an interval of its own key holds it; both bounds belong to an interval.

    Args:
        key: of each moment, a number from 0 up.
        at_ms: the moments.
        of_key: of each interval.
        start_ms: where it begins.
        stop_ms: where it ends.
    """
    found = np.zeros(len(at_ms), bool)
    if not len(of_key) or not len(at_ms):
        return found
    stops, rank = np.unique(stop_ms, return_inverse=True)
    keys, moments = np.concatenate([of_key, key]), np.concatenate([start_ms, at_ms])
    is_moment = np.arange(len(keys)) >= len(of_key)
    order = np.lexsort((is_moment, moments, keys))
    # In order of their starts the furthest end so far is the running maximum, which begins anew with each key.
    base = keys[order] * (len(stops) + 1)
    ends = np.concatenate([rank + 1, np.zeros(len(key), np.int64)])[order]
    furthest = np.maximum.accumulate(base + ends) - base
    is_held = (furthest > 0) & (stops[furthest - 1] >= moments[order])
    asked = order[is_moment[order]] - len(of_key)
    found[asked] = is_held[is_moment[order]]
    return found


# How long before its marker a decision is looked for: what is lost earlier cannot have held it.
DECIDED_WITHIN_MS = 60_000


@dataclass(frozen=True)
class StateAtHand:
    """What of the state can confirm or contradict a marker.

    Attributes:
        chains: by number, the partitions of the state that were given.
        is_whole: all partitions were given, and no larger count of partitions fits the ids.
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

    def gap_end_ms(self, partition: int) -> int | None:
        """The moment behind the newest hole of a partition, or behind what an export can lack; None without one."""
        chain = self.chains[partition]
        return latest(chain.gap_end_ms, chain.export_gap_ms if partition in self.exports else None)


def state_at_hand(state: StateEvidence, settings: Settings, newest_ms: int | None) -> StateAtHand:
    """What of the state was given, as far as it can confirm or contradict a marker."""
    given = {p.state_partition: p for p in state.expected if p.is_seen}
    return StateAtHand(
        chains={number: partition.chain for number, partition in given.items()},
        is_whole=len(given) == state.expected_count and state.count.larger is None,
        exports=frozenset(number for number, partition in given.items() if partition.is_console),
        is_export_complete=settings.transaction_state_complete,
        is_nothing_lost=settings.no_records_lost,
        max_clock_skew_ms=settings.max_clock_skew_ms,
        known_since_ms=minus(newest_ms, settings.transactional_id_expiration_ms),
    )


_ANY_EPOCH = 2**31


class Decided(NamedTuple):
    """One decision: a Prepare record, or a Complete record whose Prepare is gone, whose value has the decision's time.

    Attributes:
        places: the partitions that it lists; None where they are gone with the Prepare record.
        is_commit: its kind.
        prepared_ms: the moment of the decision.
        completed_ms: when its Complete record was written at the latest; EVER where that is not there.
        next_ms: when the id's next record was written at the latest, whichever it is; NEVER where there is none. Of a
            Complete record it is its own.
        until_ms: as `next_ms`; where there is none, when its partition of the state ends.
    """

    places: tuple[tuple[str, int], ...] | None
    is_commit: bool
    prepared_ms: int
    completed_ms: int
    next_ms: int
    until_ms: int


def decided_of(producer_id: int, histories: Sequence[History], state: StateAtHand) -> Iterator[Decided]:
    """The decisions under a producer id in the histories of the ids that have, or had, it."""
    for history in histories:
        written_ms = written_by_ms(history)
        for n, record in enumerate(history):
            if producer_id not in (record.producer_id, record.previous_producer_id):
                continue
            if record.state in PREPARED:
                next_ms = min(written_ms[n + 1], EVER) if n + 1 < len(history) else None
                is_done = next_ms is not None and history[n + 1].completes(record)
                yield Decided(
                    record.topic_partitions,
                    record.state == PREPARE_COMMIT,
                    record.moment_ms or 0,
                    next_ms if is_done and next_ms is not None else EVER,
                    _or(next_ms, NEVER),
                    _end_ms(record, state) if next_ms is None else next_ms,
                )
            elif _is_alone(history, n) and record.last_update_ms is not None:
                own_ms = min(written_ms[n], EVER)
                yield Decided(None, record.state == COMPLETE_COMMIT, record.last_update_ms, own_ms, own_ms, own_ms)


def _is_alone(history: History, number: int) -> bool:
    """A Complete record whose Prepare is gone."""
    record = history[number]
    return record.is_completed and not (number and record.completes(history[number - 1]))


def _end_ms(record: StateRecord, state: StateAtHand) -> int:
    """When the partition of the state ends that holds a record."""
    chain = None if record.state_partition is None else state.chains.get(record.state_partition)
    return NEVER if chain is None else _or(chain.last_until_as_of_ms, NEVER)


class Bounds(NamedTuple):
    """What the state can have lost of one producer's decisions, as bounds of its markers.

    Attributes:
        is_known: the state has, or had, its producer id.
        has_home: and in a partition that is known.
        reached_ms: all partitions that can hold its id speak of a time after markers up to here.
        end_ms: markers after this moment are later than all that these hold; EVER where none of them was given.
        ahead_of: coordinator epochs above this are above the leader epochs of all of them.
        ahead_since_ms: from here on such a marker says so, as an id that is gone may have expired before.
        kept_ms: what led to markers after this moment is all there, if no leader's end was lost.
    """

    is_known: bool
    has_home: bool
    reached_ms: int
    end_ms: int
    ahead_of: int
    ahead_since_ms: int
    kept_ms: int


def bounds_of(histories: Sequence[History], state: StateAtHand) -> Bounds:
    """The bounds of a producer, by the histories of the ids that have, or had, it; of an unknown one there are none."""
    own = [history for history in histories if history]
    homes = homes_of(own)
    chains = [state.chains.get(n) for n in homes or state.chains]
    given = [chain for chain in chains if chain is not None]
    skew_ms, is_gone = state.max_clock_skew_ms, any(history[-1].is_tombstone for history in own)
    return Bounds(
        is_known=bool(own),
        has_home=bool(homes),
        reached_ms=min([NEVER if c is None else _or(c.last_moment_ms, NEVER) for c in chains], default=NEVER) - skew_ms,
        end_ms=max([_or(c.last_until_as_of_ms, NEVER) for c in given], default=EVER) + skew_ms,
        ahead_of=max([_ANY_EPOCH if c is None else _or(c.leader_epoch, _ANY_EPOCH) for c in chains], default=-1),
        ahead_since_ms=_or(state.known_since_ms, NEVER) if is_gone else NEVER,
        kept_ms=max([_kept_ms(history, state) for history in own], default=EVER),
    )


def homes_of(histories: Sequence[History]) -> list[int]:
    """The partitions of the state that hold some ids."""
    return [h[-1].state_partition for h in histories if h[-1].state_partition is not None]


def _kept_ms(history: History, state: StateAtHand) -> int:
    """After which moment all is there that led to a marker of an id, if no leader's end was lost."""
    home = history[-1].state_partition
    if home is None or home not in state.chains:
        return EVER
    gap_end_ms = state.chains[home].gap_end_ms
    if home not in state.exports:
        return min(_or(gap_end_ms, NEVER) + DECIDED_WITHIN_MS, EVER)
    if gap_end_ms is not None or not state.is_export_complete:
        return EVER
    return NEVER if history[0].is_of_a_new_id else min(written_by_ms(history)[0] + DECIDED_WITHIN_MS, EVER)


def _or(value: int | None, of_none: int) -> int:
    return of_none if value is None else value
