"""Copies: where the files of one partition overlap, and whether their batches can come from one log.

Copies from several brokers, and from several captures, overlap. Batch ranges that end at the same offsets are compared
by their digests. Batches are compared only where digests differ, and only for whether one copy is what compaction left
of the other (`LogCleaner` changes neither offsets nor producer of a batch that it keeps) or contradicts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import NONE, Array, by_key, numbers, rows_at
from txn_analysis.kafka.names import LOG_KINDS, SNAPSHOT
from txn_analysis.log.segments import UNCUT, Cuts, SectionKey, Segment
from txn_analysis.tables import BatchRangeSummary
from txn_analysis.tables.inputs import InputSection

Place = tuple[str, int]
_Span = tuple[int, int, "SectionKey"]

# What compaction keeps of a batch; the checksum does not cover the leader epoch.
_KEPT = (
    "last_offset",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_transactional",
    "is_control",
    "leader_epoch",
)
_DOUBTS = ("is_contested", "may_be_header_keys")
COMPARED_COLUMNS = ("base_offset", *_KEPT, "record_count", "crc", "delete_horizon_ms", *_DOUBTS)


class Pair(NamedTuple):
    """Two copies whose content differs between two offsets; `a` is of the newer capture, or comes first."""

    start: int
    stop: int
    a: SectionKey
    b: SectionKey


@dataclass(frozen=True)
class Comparison:
    """How two copies differ.

    `conflict_offset` is the first offset at which they cannot come from one log, with both leader epochs there; None
    where compaction explains everything. `a_lost_offset` and `b_lost_offset` are the last offsets that the other copy
    has, and compaction removed from this one.
    """

    conflict_offset: int | None = None
    a_leader_epoch: int | None = None
    b_leader_epoch: int | None = None
    a_lost_offset: int | None = None
    b_lost_offset: int | None = None


def cuts_of(sections: Sequence[InputSection]) -> dict[SectionKey, Cuts]:
    """Where batch ranges of a section must end, beside where they end anyway.

    At each snapshot; in files that overlap another one of their partition, where any file of it begins or ends; and in
    a file of whose text two parts claim the same positions, where the second part begins.
    """
    spans = _spans(sections)
    snapshots: dict[Place, set[int]] = defaultdict(set)
    for section in sections:
        if section.kind == SNAPSHOT:
            snapshots[section.topic, section.partition].add(section.file_base_offset)
    cuts: dict[SectionKey, Cuts] = {
        section.key: Cuts(positions=section.rival_positions) for section in sections if section.rival_positions
    }
    for place, ranges in spans.items():
        wanted = snapshots[place] | ({bound for span in ranges for bound in span[:2]} if _do_overlap(ranges) else set())
        for first, end, key in ranges:
            if inside := sorted(offset for offset in wanted if first < offset < end):
                cuts[key] = cuts.get(key, UNCUT)._replace(offsets=inside)
    return cuts


def overlapping(sections: Sequence[InputSection]) -> set[Place]:
    """The partitions of which some offset is in two files."""
    return {place for place, spans in _spans(sections).items() if _do_overlap(spans)}


def _spans(sections: Sequence[InputSection]) -> dict[Place, set[_Span]]:
    spans: dict[Place, set[_Span]] = defaultdict(set)
    for s in sections:
        if s.kind in LOG_KINDS and s.first_offset is not None and s.end_offset is not None:
            first = min(s.file_base_offset, s.first_offset)
            spans[s.topic, s.partition].add((first, s.end_offset, s.key))
    return spans


def _do_overlap(spans: Iterable[_Span]) -> bool:
    return any(after[0] < before[1] for before, after in pairwise(sorted(spans)))


class CopyRange(NamedTuple):
    """What one copy holds between two offsets at which all copies of the partition are cut."""

    segment: Segment
    summaries: list[BatchRangeSummary]

    @property
    def digest(self) -> int:
        """A digest of its content: the same in every copy with the same batches."""
        return sum(s.content_digest for s in self.summaries) % 2**64

    @property
    def leader_epoch(self) -> int | None:
        """Largest partition leader epoch."""
        return max((s.leader_epoch for s in self.summaries if s.leader_epoch is not None), default=None)

    @property
    def doubted_offset(self) -> int | None:
        """Where the first batch begins that may be text of a client; None where all are certain."""
        doubted = next((s for s in self.summaries if s.is_doubted), None)
        if doubted is None:
            return None
        return doubted.first_offset if doubted.contested_offset is None else doubted.contested_offset

    def is_disproven_by(self, certain: CopyRange) -> bool:
        """Its batches that may be text of a client are text: a certain copy has other batches at these offsets.

        Not where they claim a newer leader: the other copy might be one that was truncated.
        """
        epochs = [-1 if s.leader_epoch is None else s.leader_epoch for s in self.summaries if s.is_doubted]
        known = certain.leader_epoch
        return bool(epochs) and certain.doubted_offset is None and max(epochs) <= (-1 if known is None else known)

    def has_producer(self, producer_id: int) -> bool:
        """Some batch of the producer is in it."""
        return any((s.producers.producer_id == producer_id).any() for s in self.summaries)

    @property
    def order(self) -> tuple[int, int, SectionKey]:
        """The judged capture first; in it, the copy that prints its end markers."""
        printed = sum(s.is_marker_printed is True for s in self.summaries)
        return (self.segment.capture_rank, -printed, self.segment.key)


class OffsetRange(NamedTuple):
    """Offsets [start, stop), and all copies that cover them.

    Attributes:
        start: the first offset.
        stop: the offset after the last one.
        copies: of each file one, in their order.
        contents: the same copies, those with equal batches together.
        pairs: neighbours among the different contents. What compaction left of one copy is compared with the next:
            compaction is transitive, so that a chain of pairs is enough.
    """

    start: int
    stop: int
    copies: list[CopyRange]
    contents: list[list[CopyRange]]
    pairs: list[Pair]

    @classmethod
    def of(cls, start: int, stop: int, copies: list[CopyRange]) -> OffsetRange:
        """The copies sorted, and by content."""
        if len(copies) == 1:
            return cls(start, stop, copies, [copies], [])
        copies = sorted(copies, key=attrgetter("order"))
        contents = [*by_key(copies, attrgetter("digest")).values()]
        keys = [content[0].segment.key for content in contents]
        return cls(start, stop, copies, contents, [Pair(start, stop, a, b) for a, b in pairwise(keys)])


def offset_ranges(segments: Iterable[Segment]) -> Iterator[OffsetRange]:
    """The offsets of one partition between neighbouring bounds of its files, where any file has batches."""
    waiting = sorted((s for s in segments if s.summaries), key=lambda s: s.covered_from, reverse=True)
    covering: list[Segment] = []
    for start, stop in pairwise(sorted({bound for s in waiting for bound in (s.covered_from, s.end_offset)})):
        covering = [s for s in covering if s.end_offset >= stop]
        while waiting and waiting[-1].covered_from <= start:
            covering.append(waiting.pop())
        copies = [CopyRange(c, [s for s in c.summaries if start <= s.first_offset < stop]) for c in covering]
        if copies:
            yield OffsetRange.of(start, stop, copies)


def pairs_to_compare(segments: Iterable[Segment]) -> list[Pair]:
    """The pairs of copies of one partition whose batches must be compared."""
    return [pair for offsets in offset_ranges(segments) for pair in offsets.pairs]


def compare(a: pa.Table, b: pa.Table) -> Comparison:
    """Two copies of the same offsets, batch by batch.

    In: COMPARED_COLUMNS of `log_batches`, those batches of each copy whose base offset is in the range of offsets.
    """
    both = _columns(a), _columns(b)
    left, right = _proven_beside(*both), _proven_beside(*both[::-1])
    shared, at_left, at_right = np.intersect1d(left["base_offset"], right["base_offset"], return_indices=True)
    both_left, both_right = (rows_at(side, at) for side, at in ((left, at_left), (right, at_right)))
    conflicts = shared[_contradicts(both_left, both_right)]
    only_left, only_right = _others(left, at_left), _others(right, at_right)
    overlaps = [_within(only_left, right), _within(only_right, left)]
    conflict = min((int(lost.min()) for lost in (conflicts, *overlaps) if len(lost)), default=None)
    fewer_left = both_left["record_count"] < both_right["record_count"]
    fewer_right = both_right["record_count"] < both_left["record_count"]
    return Comparison(
        conflict_offset=conflict,
        a_leader_epoch=_epoch_at(left, conflict),
        b_leader_epoch=_epoch_at(right, conflict),
        a_lost_offset=_last(only_right["last_offset"], both_right["last_offset"][fewer_left]),
        b_lost_offset=_last(only_left["last_offset"], both_left["last_offset"][fewer_right]),
    )


def _columns(batches: pa.Table) -> dict[str, Array]:
    columns = {n: numbers(batches[n], NONE) for n in COMPARED_COLUMNS}
    order = np.argsort(columns["base_offset"], kind="stable")
    return rows_at(columns, order)


def _proven_beside(beside: dict[str, Array], other: dict[str, Array]) -> dict[str, Array]:
    """A copy without the batches that may be text of a client, where another one without any such says what is there.

    Not where they claim a newer leader: the other copy might be one that was truncated.
    """
    is_doubted, is_settled = _is_doubted(beside), not _is_doubted(other).any()
    if not is_settled or not is_doubted.any() or not len(other["leader_epoch"]):
        return beside
    if beside["leader_epoch"][is_doubted].max() > other["leader_epoch"].max():
        return beside
    return rows_at(beside, ~is_doubted)


def _is_doubted(columns: Mapping[str, Array]) -> Array:
    """Contested batches, and all from the first one on that may stand in the header keys of a record."""
    contested, may_be_text = (columns[name] > 0 for name in _DOUBTS)
    doubted: Array = contested | np.logical_or.accumulate(may_be_text)
    return doubted


def _contradicts(a: Mapping[str, Array], b: Mapping[str, Array]) -> Array:
    """Batches at one offset that are neither equal nor what compaction makes of each other.

    Compaction rewrites a batch where it drops records or sets its delete horizon; else it copies it as it is.
    """
    differs = np.zeros(len(a["base_offset"]), bool)
    for name in _KEPT:
        is_known = (a[name] != NONE) & (b[name] != NONE) if name == "leader_epoch" else True
        differs |= (a[name] != b[name]) & is_known
    is_rewritten = (a["record_count"] != b["record_count"]) | (a["delete_horizon_ms"] != b["delete_horizon_ms"])
    contradicting: Array = differs | ((a["crc"] != b["crc"]) & ~is_rewritten)
    return contradicting


def _others(columns: Mapping[str, Array], shared: Array) -> dict[str, Array]:
    is_other = np.ones(len(columns["base_offset"]), bool)
    is_other[shared] = False
    return rows_at(columns, is_other)


def _within(others: Mapping[str, Array], copy: Mapping[str, Array]) -> Array:
    """Base offsets of batches that share an offset with a batch of the copy that begins elsewhere."""
    before = np.searchsorted(copy["base_offset"], others["last_offset"], "right") - 1
    last = copy["last_offset"][np.maximum(before, 0)] if len(copy["last_offset"]) else others["base_offset"] - 1
    ends: Array = others["base_offset"][(before >= 0) & (last >= others["base_offset"])]
    return ends


def _epoch_at(columns: Mapping[str, Array], offset: int | None) -> int | None:
    """Leader epoch of the batch that holds the offset, or of the next one."""
    if offset is None or not len(columns["last_offset"]):
        return None
    row = min(int(np.searchsorted(columns["last_offset"], offset)), len(columns["last_offset"]) - 1)
    epoch = int(columns["leader_epoch"][row])
    return None if epoch == NONE else epoch


def _last(*offsets: Array) -> int | None:
    return max((int(some.max()) for some in offsets if len(some)), default=None)
