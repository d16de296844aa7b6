"""The log of one partition as a finished run put it together: its batches, and the offsets that no file holds.

A run names the ranges of batches that its log was linked from (`partition_health.linked_pieces`). Other copies, tails
that a new leader truncated, and text that a client may have written are not among them. Where it compared copies whose
ranges lie otherwise, it names none of these: the log is then put together again of the judged capture's copies. Of two
batches at one offset the one with the higher leader epoch is the log, and from there on no older one is (KIP-101).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, numbers
from txn_analysis.columns.records import records_of
from txn_analysis.runs.past_run import PastRun
from txn_analysis.tables import LOG_BATCHES, LOG_PIECES, PARTITION_HEALTH, UsedBatchRange

_PLACE = ("input_id", "section_index", "position")


class LinkedPiece(NamedTuple):
    """One range of batches of the log: where it lies in its file, and its first and last offset."""

    ingest_id: str
    input_id: str
    section_index: int
    first_position: int
    end_position: int
    first_offset: int
    last_offset: int
    contested_offset: int | None
    doubtful_offset: int | None
    capture_rank: int

    @property
    def key(self) -> UsedBatchRange:
        """As a run names it."""
        return UsedBatchRange(self.ingest_id, self.input_id, self.section_index, self.first_position)

    @property
    def section(self) -> tuple[str, int]:
        """The input and the section that it is of."""
        return self.input_id, self.section_index

    @property
    def is_doubted(self) -> bool:
        """All of it may be text of a client."""
        return self.contested_offset is not None or self.doubtful_offset is not None

    def goes_on_in(self, following: LinkedPiece) -> bool:
        """The other one begins in the same file where this one ends: what lies between, compaction removed."""
        return self.section == following.section and self.end_position == following.first_position


class Gap(NamedTuple):
    """Offsets inside the log that no file is known to hold, the first and the last; compaction may have left them."""

    first_offset: int
    last_offset: int

    def has(self, offset: int) -> bool:
        """The offset is one of them."""
        return self.first_offset <= offset <= self.last_offset


@dataclass(frozen=True)
class LinkedLog:
    """One partition's log of one run; `pieces` in offset order.

    Where they are those of all copies, which overlap, `copied_to` is the offset at which the run's log ends.
    """

    run: PastRun
    topic: str
    partition: int
    pieces: tuple[LinkedPiece, ...]
    copied_to: int | None = None

    @classmethod
    def of(cls, run: PastRun, topic: str, partition: int) -> Self:
        """The log of a partition that the run saw."""
        place: dict[str, Any] = {"topic": [topic], "partition": [partition]}
        health = run.result_rows(PARTITION_HEALTH, "linked_pieces", "first_offset", "end_offset", **place)
        linked = {*records_of(UsedBatchRange, health["linked_pieces"].combine_chunks().flatten())}
        wanted = [name for name in LinkedPiece._fields if name != "capture_rank"]
        every = sorted(
            (
                piece
                for batch in run.evidence.batches(LOG_PIECES, *wanted, **place)
                for piece in records_of(LinkedPiece, batch)
            ),
            key=attrgetter("first_offset"),
        )
        log = cls(run, topic, partition, tuple(piece for piece in every if piece.key in linked))
        first_offset, end_offset = health["first_offset"][0].as_py(), health["end_offset"][0].as_py()
        if end_offset is None or log._is_from_to(first_offset, end_offset):
            return log
        copies = (piece for piece in every if piece.capture_rank == 0 and not piece.is_doubted)
        return cls(run, topic, partition, tuple(p for p in copies if p.first_offset < end_offset), end_offset)

    def _is_from_to(self, first_offset: int | None, end_offset: int) -> bool:
        """Its pieces leave nothing out between two offsets."""
        is_begun = bool(self.pieces) and self.pieces[0].first_offset == first_offset
        return is_begun and self.pieces[-1].last_offset + 1 == end_offset and not self.gaps

    @property
    def names_first_file(self) -> int | None:
        """The offset in the name of the file that the log begins in, if its first batch is the first in it."""
        first = self.pieces[0] if self.pieces else None
        if first is None or first.first_position:
            return None
        names = {section.key: section.file_base_offset for section in self.run.evidence.sections}
        return names.get(first.section)

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """Where one file ends and the next one begins later; inside a file a hole is compaction, and no gap."""
        gaps, reached = [], self.pieces[:1]
        for piece in self.pieces[1:]:
            end = max(before.last_offset for before in reached)
            if piece.first_offset > end + 1 and not any(before.goes_on_in(piece) for before in reached):
                gaps.append(Gap(end + 1, piece.first_offset - 1))
            reached = (*(before for before in reached if before.last_offset >= end), piece)
        return tuple(gaps)

    @property
    def end_offset(self) -> int | None:
        """The offset after its last batch."""
        end = max((piece.last_offset + 1 for piece in self.pieces), default=None)
        return end if end is None or self.copied_to is None else min(end, self.copied_to)

    def gap_at(self, offset: int) -> Gap | None:
        """The gap that an offset lies in."""
        return next((gap for gap in self.gaps if gap.has(offset)), None)

    def batches(self, from_offset: int, *names: str) -> Iterator[pa.RecordBatch]:
        """Some columns of the log's batches that reach `from_offset` or lie above it, each once; in no order."""
        wanted = [piece for piece in self.pieces if piece.last_offset >= from_offset]
        if self.copied_to is None:
            yield from self._of(wanted, from_offset, *names)
            return
        log = _Selected(self._epoch_starts, self.copied_to)
        columns = tuple(dict.fromkeys((*names, "base_offset", "last_offset", "leader_epoch")))
        copies = _by_section(wanted).values()
        # The copy that reaches farthest first: of the others is taken what it lacks.
        for pieces in sorted(copies, key=lambda copy: (-copy[-1].last_offset, copy[0].first_offset)):
            for batch in self._of(pieces, from_offset, *columns):
                rows = log.of(batch)
                if len(rows):
                    yield rows.select([*names])

    @cached_property
    def _epoch_starts(self) -> dict[int, int]:
        """By leader epoch, the first offset at which any copy holds a batch of it."""
        starts: dict[int, int] = {}
        for batch in self._of(self.pieces, 0, "leader_epoch", "base_offset"):
            first = pa.Table.from_batches([batch]).group_by("leader_epoch").aggregate([("base_offset", "min")])
            for epoch, offset in zip(*first.drop_null().to_pydict().values(), strict=True):
                starts[epoch] = min(offset, starts.get(epoch, offset))
        return starts

    def _of(self, pieces: Sequence[LinkedPiece], from_offset: int, *names: str) -> Iterator[pa.RecordBatch]:
        """The batches of some pieces."""
        ranges = _by_section(pieces)
        columns = tuple(dict.fromkeys((*names, "last_offset", *_PLACE)))
        asked: dict[str, Any] = {"topic": [self.topic], "partition": [self.partition]}
        asked["input_id"] = sorted({piece.input_id for piece in pieces})
        for batch in self.run.evidence.batches(LOG_BATCHES, *columns, **asked) if pieces else ():
            is_own = pa.array(_are_in(batch, ranges))
            rows = batch.filter(pc.and_(is_own, pc.greater_equal(batch["last_offset"], from_offset)))
            if len(rows):
                yield rows.select([*names])


class _Selected:
    """Of batches of several copies, those of the log: each offset once, and nothing that a newer leader truncated."""

    def __init__(self, epoch_starts: dict[int, int], end_offset: int) -> None:
        self._epochs = np.array(sorted(epoch_starts), np.int64)
        starts = np.array([epoch_starts[epoch] for epoch in self._epochs.tolist()], np.int64)
        # Where the first batch of any later epoch begins.
        self._ends = np.append(np.minimum.accumulate(starts[::-1])[::-1], end_offset)
        self._ranges = np.empty((2, 0), np.int64)

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are of the log, and of no batch before."""
        base, last = batch["base_offset"].to_numpy(), batch["last_offset"].to_numpy()
        later = np.searchsorted(self._epochs, numbers(batch["leader_epoch"], ABSENT), "right")
        place = np.searchsorted(self._ranges[0], base, "right") - 1
        is_copy = (place >= 0) & (base < self._ranges[1][place]) if self._ranges.shape[1] else np.zeros(len(base), bool)
        is_new = (base < self._ends[later]) & ~is_copy
        new_ranges = np.stack([base[is_new], last[is_new] + 1])
        self._ranges = joined(np.concatenate([self._ranges, new_ranges], axis=1))
        return batch.filter(pa.array(is_new))


def joined(ranges: Array) -> Array:
    """Ranges of offsets (firsts, and those after the last), in order, those that touch or overlap as one."""
    begin, end = ranges[:, np.argsort(ranges[0], kind="stable")]
    reached = np.maximum.accumulate(end) if len(end) else end
    is_new = np.append(True, begin[1:] > reached[:-1])[: len(begin)]
    is_last = np.append(is_new[1:], True)[: len(begin)]
    return np.stack([begin[is_new], reached[is_last]])


def _by_section(pieces: Iterable[LinkedPiece]) -> dict[tuple[str, int], list[LinkedPiece]]:
    sections = defaultdict[tuple[str, int], list[LinkedPiece]](list)
    for piece in pieces:
        sections[piece.section].append(piece)
    return sections


def _are_in(batch: pa.RecordBatch, ranges: dict[tuple[str, int], list[LinkedPiece]]) -> Array:
    """Which rows lie in one of some ranges of their section."""
    inputs, sections = batch["input_id"], batch["section_index"].to_numpy()
    positions, is_in_range = batch["position"].to_numpy(), np.zeros(len(batch), bool)
    input_ids = {*inputs.unique().to_pylist()}
    for (input_id, section_index), pieces in ranges.items():
        if input_id not in input_ids:
            continue
        is_there = pc.equal(inputs, input_id).to_numpy(zero_copy_only=False) & (sections == section_index)
        starts, ends = (np.array(sorted(getattr(p, name) for p in pieces)) for name in LinkedPiece._fields[3:5])
        place = np.searchsorted(starts, positions, "right") - 1
        is_in_range |= is_there & (place >= 0) & (positions < ends[place])
    return is_in_range
