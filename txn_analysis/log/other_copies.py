"""What the other copies of a log say beside the one that was chosen.

A copy that lost may hold what the log lacks: the COMMIT marker of an acknowledged transaction that an unclean election
truncated (KAFKA-7408). And data that one copy alone holds, above a high watermark of its own folder, may be the tail
of a dead leader that nobody replicated.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.kafka.sections import HIGH_WATERMARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txn_analysis.log.copies import Part
    from txn_analysis.log.pieces import ProducerEdges
    from txn_analysis.log.sections import LogSection

Folder = tuple[int, str | None]  # the rank of a capture, and a log directory in it


class Span(NamedTuple):
    """Offsets [start, stop) of the log, the copy that it is taken from, and all copies that hold the same there."""

    start: int
    stop: int
    chosen: Part
    holders: list[Part]


@dataclass
class OtherCopies:
    """What was found in the copies of one log while it was put together.

    Attributes:
        spans: of the log, in offset order.
        commit_offsets: by producer, of the last COMMIT marker, or one of unprinted kind, that is in a copy where that
            was not chosen.
        truncated_marker_offset: of the last end marker that a copy held where it was truncated.
    """

    spans: list[Span] = field(default_factory=list)
    commit_offsets: dict[int, int] = field(default_factory=dict)
    truncated_marker_offset: int | None = None

    def pass_over(self, parts: Iterable[Part]) -> None:
        """Take in copies that are not the log where they lie."""
        for producer in _producers(parts):
            offset = producer.last_commit_offset
            if offset is not None:
                known = self.commit_offsets.get(producer.producer_id, -1)
                self.commit_offsets[producer.producer_id] = max(offset, known)

    def truncated(self, parts: Iterable[Part], offset: int) -> None:
        """Take in copies that were truncated from an offset on."""
        markers = [p.marker_offset for p in _producers(parts) if p.marker_offset is not None]
        lost = max((marker for marker in markers if marker >= offset), default=-1)
        if lost > (self.truncated_marker_offset or -1):
            self.truncated_marker_offset = lost

    def commit_from(self, producer_id: int, start_offset: int) -> int | None:
        """The last such marker of a producer whose transaction is open in the log from an offset on."""
        offset = self.commit_offsets.get(producer_id)
        return offset if offset is not None and offset >= start_offset else None

    def is_above(self, marks: Mapping[Folder, int], producer_id: int, start_offset: int, last_offset: int) -> bool:
        """All data of a transaction lies above the high watermark of its own folder, and no other copy holds it.

        A copy of an earlier capture is none: it may be of the same broker.
        """
        found = [s for s in self.spans if s.start <= last_offset and s.stop > start_offset]
        found = [s for s in found if s.chosen.holds(producer_id)]
        own = {_folder(s.chosen) for s in found}
        holders = {_folder(p) for s in found for p in s.holders if p is not s.chosen and p.holds(producer_id)}
        is_alone = not any(rank == own_rank for rank, _ in holders - own for own_rank, _ in own)
        is_marked = all(folder in marks and start_offset >= marks[folder] for folder in own)
        return bool(own) and is_marked and is_alone


def high_watermarks(sections: Iterable[LogSection]) -> dict[Folder, int]:
    """What `replication-offset-checkpoint` of each folder says; the largest, as it only grows."""
    marks: defaultdict[Folder, int] = defaultdict(int)
    for section in sections:
        if section.kind == HIGH_WATERMARK and section.log_dir is not None:
            folder = section.capture_rank, section.log_dir
            marks[folder] = max(marks[folder], section.file_base_offset)
    return dict(marks)


def _folder(part: Part) -> Folder:
    return part.segment.capture_rank, part.segment.log_dir


def _producers(parts: Iterable[Part]) -> Iterable[ProducerEdges]:
    pieces = (piece for part in parts for piece in part.pieces if not piece.is_doubted)
    return (producer for piece in pieces for producer in piece.producers)
