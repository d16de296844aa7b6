"""One look along all end markers, where the state is held in memory: which of them may speak against it.

As exact as `coordinator.marker_checks`, but for repetitions, which only the markers of one producer in order show: what
is suspected here is asked again there. One job of Spark, in which nothing is shuffled.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from txn_analysis.coordinator.end_markers import ABORT, COMMIT, EndMarker
from txn_analysis.coordinator.marker_checks import Producer, Said
from txn_analysis.coordinator.state_at_hand import DECIDED_WITHIN_MS
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.logic import UNBOUNDED_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from txn_analysis.coordinator.fit import MarkerSums, Witness
    from txn_analysis.coordinator.state_at_hand import StateAtHand
    from txn_analysis.kafka.transactions import StateRecord

Key = tuple[TopicPartition, int]


@dataclass
class Look:
    """What some markers say of the state.

    Attributes:
        certain: groups by partition and producer that may speak against it, whatever their transaction version.
        unrotated: those that may unless their producer uses version 2, with their first such marker.
        version_2: producers that the state does not know, and that show version 2.
        confirmed_count: commits that are confirmed; `excused`, `is_tested`, `is_sure` are as in `MarkerSums`.
        knows_one: any that is young is of a producer that the state knows.
        has_young: any is young.
    """

    certain: set[Key] = field(default_factory=set)
    unrotated: dict[Key, Witness] = field(default_factory=dict)
    version_2: set[int] = field(default_factory=set)
    confirmed_count: int = 0
    excused: Witness | None = None
    is_tested: bool = False
    is_sure: bool = False
    knows_one: bool = False
    has_young: bool = False

    @property
    def suspects(self) -> set[Key]:
        """The groups whose markers are asked again."""
        return self.certain | {key for key in self.unrotated if key[1] not in self.version_2}

    def completing(self, sums: MarkerSums) -> MarkerSums:
        """The sums of the suspects, with what all other markers say."""
        excused = [witness for key, witness in self.unrotated.items() if key[1] in self.version_2]
        first = min([w for w in (sums.excused, self.excused, *excused) if w is not None], default=None)
        flags = replace(sums, is_tested=self.is_tested, is_sure=self.is_sure)
        return replace(flags, excused=first, confirmed_count=self.confirmed_count)

    def plus(self, other: Look) -> Look:
        """Both."""
        return Look(
            self.certain | other.certain,
            self.unrotated | {k: min(w, self.unrotated.get(k, w)) for k, w in other.unrotated.items()},
            self.version_2 | other.version_2,
            self.confirmed_count + other.confirmed_count,
            min([w for w in (self.excused, other.excused) if w is not None], default=None),
            self.is_tested or other.is_tested,
            self.is_sure or other.is_sure,
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
    producer = producers[producer_id]
    found.is_sure |= producer.is_sure(marker, where)
    if producer.is_later(marker, where):
        found.certain.add((where, producer_id))
    if marker.kind is None and producer.said(marker, where) is not Said.NOTHING:
        found.certain.add((where, producer_id))
    if marker.kind == COMMIT:
        _take_commit(found, producer, marker, where, quiet.get(producer_id))


def _take_commit(
    found: Look, producer: Producer, marker: EndMarker, where: TopicPartition, silence: _Quiet | None
) -> None:
    at_ms = marker.at_ms or 0
    found.is_tested |= producer.state.is_tested_by(at_ms)
    if producer.confirms(marker, where):
        found.confirmed_count += 1
        return
    if silence and at_ms <= silence.until_ms and (marker.coordinator_epoch or 0) <= silence.leader_epoch:
        return
    key, witness = (where, producer.producer_id), producer.witness(marker, where)
    said = producer._replace(is_version_2=True).said(marker, where)
    if said is not Said.EXCUSED:
        found.certain |= {key} if said is not Said.NOTHING else set()
    elif producer.said(marker, where) is Said.EXCUSED:
        found.excused = witness if found.excused is None else min(found.excused, witness)
    else:
        found.unrotated[key] = min(witness, found.unrotated.get(key, witness))


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
