"""The log of one partition as a finished run put it together: its batches, and the offsets that no file holds.

A run names the ranges of batches that its log was linked from (`partition_health.linked_pieces`). Other copies, tails
that a new leader truncated, and text that a client may have written are not among them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import records_of
from txn_analysis.tables import LOG_BATCHES, LOG_PIECES, PARTITION_HEALTH, UsedBatchRange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from txn_analysis.runs.past_run import PastRun

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

    @property
    def key(self) -> UsedBatchRange:
        """As a run names it."""
        return UsedBatchRange(self.ingest_id, self.input_id, self.section_index, self.first_position)

    @property
    def section(self) -> tuple[str, int]:
        """The input and the section that it is of."""
        return self.input_id, self.section_index

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
    """One partition's log of one run; `pieces` in offset order."""

    run: PastRun
    topic: str
    partition: int
    pieces: tuple[LinkedPiece, ...]

    @classmethod
    def of(cls, run: PastRun, topic: str, partition: int) -> Self:
        """The log of a partition that the run saw."""
        place: dict[str, Any] = {"topic": [topic], "partition": [partition]}
        rows = run.held(PARTITION_HEALTH, "linked_pieces", **place)["linked_pieces"].combine_chunks().flatten()
        linked = {*records_of(UsedBatchRange, rows)}
        found = (
            piece
            for batch in run.evidence.batches(LOG_PIECES, *LinkedPiece._fields, **place)
            for piece in records_of(LinkedPiece, batch)
        )
        own = (piece for piece in found if piece.key in linked)
        return cls(run, topic, partition, tuple(sorted(own, key=attrgetter("first_offset"))))

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
        pairs = pairwise(self.pieces)
        return tuple(
            Gap(before.last_offset + 1, after.first_offset - 1)
            for before, after in pairs
            if after.first_offset > before.last_offset + 1 and not before.goes_on_in(after)
        )

    def gap_at(self, offset: int) -> Gap | None:
        """The gap that an offset lies in."""
        return next((gap for gap in self.gaps if gap.has(offset)), None)

    def batches(self, from_offset: int, *names: str) -> Iterator[pa.RecordBatch]:
        """Some columns of the log's batches that reach `from_offset` or lie above it; in no order."""
        wanted = [piece for piece in self.pieces if piece.last_offset >= from_offset]
        ranges: defaultdict[tuple[str, int], list[LinkedPiece]] = defaultdict(list)
        for piece in wanted:
            ranges[piece.section].append(piece)
        columns = tuple(dict.fromkeys((*names, "last_offset", *_PLACE)))
        asked: dict[str, Any] = {
            "topic": [self.topic],
            "partition": [self.partition],
            "input_id": sorted({p.input_id for p in wanted}),
        }
        for batch in self.run.evidence.batches(LOG_BATCHES, *columns, **asked) if wanted else ():
            is_own = pa.array(_are_in(batch, ranges))
            rows = batch.filter(pc.and_(is_own, pc.greater_equal(batch["last_offset"], from_offset)))
            if len(rows):
                yield rows.select([*names])


def _are_in(batch: pa.RecordBatch, ranges: dict[tuple[str, int], list[LinkedPiece]]) -> np.ndarray[Any, Any]:
    """Which rows lie in one of some ranges of their section."""
    inputs, sections = batch["input_id"], batch["section_index"].to_numpy()
    positions, found = batch["position"].to_numpy(), np.zeros(len(batch), bool)
    held = {*inputs.unique().to_pylist()}
    for (input_id, section_index), pieces in ranges.items():
        if input_id not in held:
            continue
        is_there = pc.equal(inputs, input_id).to_numpy(zero_copy_only=False) & (sections == section_index)
        starts, ends = (np.array(sorted(getattr(p, name) for p in pieces)) for name in LinkedPiece._fields[3:5])
        place = np.searchsorted(starts, positions, "right") - 1
        found |= is_there & (place >= 0) & (positions < ends[place])
    return found
