"""One look along all end markers, where the state is held in memory: which of them may speak against it.

As exact as `coordinator.marker_checks`, but for repetitions, which only the markers of one producer in order show: what
is suspected here is asked again there. One job of Spark, in which nothing is shuffled.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from txn_analysis.coordinator.end_markers import ABORT, EndMarker
from txn_analysis.coordinator.fit import MarkerSums
from txn_analysis.coordinator.marker_checks import Producer
from txn_analysis.coordinator.state_at_hand import DECIDED_WITHIN_MS
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.logic import UNBOUNDED_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from txn_analysis.coordinator.state_at_hand import StateAtHand
    from txn_analysis.kafka.transactions import StateRecord

Key = tuple[TopicPartition, int]


@dataclass
class Look:
    """What some markers say of the state.

    Attributes:
        certain: groups by partition and producer that may speak against it, whatever their transaction version.
        unrotated: those that may unless their producer uses version 2.
        version_2: producers that the state does not know, and that show version 2.
        sums: what is counted here already: all but what the suspects are asked for.
        knows_one: any that is young is of a producer that the state knows.
        has_young: any is young.
    """

    certain: set[Key] = field(default_factory=set)
    unrotated: set[Key] = field(default_factory=set)
    version_2: set[int] = field(default_factory=set)
    sums: MarkerSums = field(default_factory=MarkerSums)
    knows_one: bool = False
    has_young: bool = False

    @property
    def suspects(self) -> set[Key]:
        """The groups whose markers are asked again."""
        return self.certain | {key for key in self.unrotated if key[1] not in self.version_2}

    def plus(self, other: Look) -> Look:
        """Both."""
        return Look(
            self.certain | other.certain,
            self.unrotated | other.unrotated,
            self.version_2 | other.version_2,
            self.sums.plus(other.sums),
            self.knows_one or other.knows_one,
            self.has_young or other.has_young,
        )

    def with_suspects(self, sums: MarkerSums) -> MarkerSums:
        """The sums of all markers, by those of the suspects."""
        return self.sums.plus(replace(sums, confirmed_count=0))


class _Quiet(NamedTuple):
    """A commit before `until_ms`, by a coordinator of no later epoch, says nothing: what led to it may be gone."""

    until_ms: int
    leader_epoch: int

    def covers(self, marker: EndMarker) -> bool:
        """A commit says nothing."""
        return (marker.at_ms or 0) <= self.until_ms and (marker.coordinator_epoch or 0) <= self.leader_epoch


def looker(
    known: Mapping[int, Sequence[Sequence[StateRecord]]], state: StateAtHand
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Looks along rows of `marker_frames.end_markers`; `known` are the histories of every producer of the state."""

    def look(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found, quiet = Look(), {i: _quiet(histories, state) for i, histories in known.items()}
        producers: dict[int, Producer] = {}
        for part in parts:
            columns = [part.column(name).to_pylist() for name in ("topic", "partition", "producer_id")]
            fields = [part.column(name).to_pylist() for name in EndMarker._fields]
            for topic, partition, producer_id, *values in zip(*columns, *fields, strict=True):
                _take(found, (topic, partition, producer_id), values, known, producers, quiet, state)
        yield pa.record_batch({"pickled": pa.array([pickle.dumps(found)], pa.binary())})

    return look


def _take(
    found: Look,
    place: tuple[str, int, int],
    values: Sequence[object],
    known: Mapping[int, Sequence[Sequence[StateRecord]]],
    producers: dict[int, Producer],
    quiet: Mapping[int, _Quiet],
    state: StateAtHand,
) -> None:
    marker = EndMarker._make(values)
    topic, partition, producer_id = place
    if marker.at_ms is None or not state.may_have_expired(marker.at_ms):
        found.has_young = True
        found.knows_one |= producer_id in known
    if marker.is_of_version_2 and producer_id not in known:
        found.version_2.add(producer_id)
    if marker.kind == ABORT or marker.at_ms is None:
        return
    where = TopicPartition(topic, partition)
    if producer_id not in producers:
        producers[producer_id] = Producer.of(producer_id, known.get(producer_id, ()), state, is_version_2=False)
    _take_marker(found, producers[producer_id], marker, where, quiet.get(producer_id))


def _take_marker(
    found: Look, producer: Producer, marker: EndMarker, where: TopicPartition, silence: _Quiet | None
) -> None:
    """A COMMIT, or a marker of unprinted kind."""
    key = where, producer.producer_id
    if producer.is_later(marker, where):
        found.certain.add(key)
    if producer.is_sure(marker, where):
        found.sums = found.sums.plus(MarkerSums(sure_ms=marker.at_ms))
    elif marker.has_data:
        found.sums = found.sums.plus(MarkerSums(is_unsure=True))
    else:
        found.certain.add(key)  # it may repeat one that is sure
    if marker.kind is None and not producer.histories:
        found.sums = found.sums.plus(producer.sums_of(marker, where))
    elif producer.confirms(marker, where):
        found.sums = found.sums.plus(MarkerSums(1))
    elif silence is None or not silence.covers(marker):
        _suspect(found, producer, marker, where)


def _suspect(found: Look, producer: Producer, marker: EndMarker, where: TopicPartition) -> None:
    key = where, producer.producer_id
    if producer._replace(is_version_2=True).sums_of(marker, where) != MarkerSums():
        found.certain.add(key)
    elif producer.sums_of(marker, where) != MarkerSums():
        found.unrotated.add(key)


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
