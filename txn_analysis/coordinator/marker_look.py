"""One look along all end markers, where the state is held in memory: which of them may speak against it.

As exact as `coordinator.fit`, but for repetitions, which only the markers of one producer in order show: what is
suspected here is asked again there. One job of Spark, in which nothing is shuffled.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from txn_analysis.coordinator.end_markers import COMMIT, EndMarker
from txn_analysis.coordinator.fit import DECIDED_WITHIN_MS, commits_of, is_confirmed, may_speak
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.logic import UNBOUNDED_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from txn_analysis.coordinator.fit import Commits, StateAtHand
    from txn_analysis.kafka.transactions import StateRecord

Key = tuple[TopicPartition, int]


@dataclass
class Look:
    """What some markers say: groups by partition and producer that may speak, commits that are confirmed, and whether
    any that is young is of a producer that the state knows, or of one that it does not know.
    """

    suspects: set[Key] = field(default_factory=set)
    confirmed_count: int = 0
    knows_one: bool = False
    has_young: bool = False

    def plus(self, other: Look) -> Look:
        """Both."""
        return Look(
            self.suspects | other.suspects,
            self.confirmed_count + other.confirmed_count,
            self.knows_one or other.knows_one,
            self.has_young or other.has_young,
        )


class _Quiet(NamedTuple):
    """A commit before `until_ms`, by a coordinator of no later epoch, says nothing: what led to it may be gone."""

    until_ms: int
    leader_epoch: int


def looker(
    known: Mapping[int, Sequence[Sequence[StateRecord]]], state: StateAtHand
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Looks along rows of `marker_frames.end_markers`; `known` are the histories of every producer of the state."""

    def look(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found, quiet = Look(), {i: _quiet(histories, state) for i, histories in known.items()}
        commits: dict[int, Commits] = {}
        for part in parts:
            columns = [part.column(name).to_pylist() for name in ("topic", "partition", "producer_id")]
            fields = [part.column(name).to_pylist() for name in EndMarker._fields]
            for topic, partition, producer_id, *values in zip(*columns, *fields, strict=True):
                _take(found, (topic, partition, producer_id), values, known, commits, quiet, state)
        yield pa.record_batch({"pickled": pa.array([pickle.dumps(found)], pa.binary())})

    return look


def _take(
    found: Look,
    place: tuple[str, int, int],
    values: Sequence[object],
    known: Mapping[int, Sequence[Sequence[StateRecord]]],
    commits: dict[int, Commits],
    quiet: Mapping[int, _Quiet],
    state: StateAtHand,
) -> None:
    marker = EndMarker._make(values)
    topic, partition, producer_id = place
    if marker.at_ms is None or not state.may_have_expired(marker.at_ms):
        found.has_young = True
        found.knows_one |= producer_id in known
    if marker.kind != COMMIT or marker.at_ms is None:
        return
    if producer_id not in commits:
        commits[producer_id] = commits_of(known.get(producer_id, ()), producer_id)
    if is_confirmed(marker.at_ms, commits[producer_id].get((topic, partition), ()), state.max_clock_skew_ms):
        found.confirmed_count += 1
        return
    silence = quiet.get(producer_id)
    if silence and marker.at_ms <= silence.until_ms and (marker.coordinator_epoch or 0) <= silence.leader_epoch:
        return
    if may_speak(marker, marker.at_ms, known.get(producer_id, ()), state):
        found.suspects.add((TopicPartition(topic, partition), producer_id))


def _quiet(histories: Sequence[Sequence[StateRecord]], state: StateAtHand) -> _Quiet:
    """Before the gaps of all partitions that hold its ids, and before their ends; else before nothing."""
    until_ms, leader_epoch = UNBOUNDED_MS, -1
    for history in histories:
        number = history[-1].state_partition
        chain = None if number is None else state.chains.get(number)
        if chain is None or chain.gap_end_ms is None or chain.last_moment_ms is None or chain.leader_epoch is None:
            return _Quiet(-1, -1)
        until_ms = min(until_ms, chain.gap_end_ms + DECIDED_WITHIN_MS, chain.last_moment_ms)
        leader_epoch = max(leader_epoch, chain.leader_epoch)
    return _Quiet(until_ms, leader_epoch)
