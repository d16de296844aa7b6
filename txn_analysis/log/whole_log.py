"""One log, put together from copies of its segments, and where it is not whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from txn_analysis.kafka.sections import ProblemKind
from txn_analysis.log.other_copies import OtherCopies
from txn_analysis.log.segments import TO_THE_END, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.log.pieces import LogPiece
    from txn_analysis.log.segments import Segment
    from txn_analysis.log.two_logs import TwoLogs


@dataclass
class PartitionLog:
    """One log: its files, its pieces in offset order, why it is not whole, and what else its copies say.

    `after_gap`: by first offset of the piece behind it, the last offset of a stretch that no file holds.
    `after_break`: first offsets of pieces before which their own file lacks batches.
    `two_logs`: files that cannot be copies of one log.
    `compacted_away`: by the offset up to which it speaks, what another copy held before compaction.
    """

    segments: list[Segment] = field(default_factory=list)
    pieces: list[LogPiece] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    witnesses: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    after_gap: dict[int, int] = field(default_factory=dict)
    after_break: set[int] = field(default_factory=set)
    compacted_away: list[tuple[int, list[LogPiece]]] = field(default_factory=list)
    others: OtherCopies = field(default_factory=OtherCopies)
    two_logs: tuple[TwoLogs, ...] = ()

    @property
    def first_offset(self) -> int | None:
        """First offset of any file; None without files."""
        return min([s.first_offset for s in self.segments], default=None)

    @property
    def is_whole_from_its_name_on(self) -> bool:
        """The first file that has batches begins at position 0."""
        return not self.pieces or self.pieces[0].first_position == 0

    @property
    def covered_from(self) -> int | None:
        """The offset in the name of the file that its first batch is in; of the first file where none has any."""
        names = {s.key: s.covered_from for s in self.segments}
        if self.pieces:
            return names[self.pieces[0].section]
        return min(names.values(), default=None)

    @property
    def end_offset(self) -> int | None:
        """The offset after the last one of any file."""
        ends = [s.end_offset for s in self.segments if not s.pieces] + [p.last_offset + 1 for p in self.pieces[-1:]]
        return max(ends, default=None)


def look_whether_whole(log: PartitionLog) -> None:
    """Write down what its files lack, and what of their text is not proven."""
    _find_gaps(log)
    _find_torn_tails(log)
    _leave_out_client_text(log)
    _find_epoch_fall(log)
    _find_missing_lines(log)


def _find_gaps(log: PartitionLog) -> None:
    """Offsets between two files that neither holds; inside one file, whose positions chain, a hole is compaction."""
    of_key = {s.key: s for s in log.segments}
    for before, piece in pairwise(log.pieces):
        if piece.first_offset == before.last_offset + 1:
            continue
        segment = of_key[piece.section]
        base_offset = segment.section.file_base_offset
        if base_offset > before.last_offset + 1:
            log.after_gap[piece.first_offset] = base_offset - 1
        if segment.lacks_batches_before(piece):
            log.after_break.add(piece.first_offset)
        if segment.key != before.section:
            log.problems.append(gap(before.last_offset + 1, piece.first_offset - 1))
    end = log.pieces[-1].last_offset + 1 if log.pieces else None
    empty = max([s.first_offset for s in log.segments if not s.pieces], default=None)
    if end is not None and empty is not None and empty > end:
        log.problems.append(gap(end, empty - 1))


def gap(first: int, last: int) -> Problem:
    """No file holds these offsets; what began before or among them is not whole."""
    return Problem(last, ProblemKind.OFFSETS_IN_NO_FILE, f"offsets {first} to {last} are in no file")


def _find_torn_tails(log: PartitionLog) -> None:
    """A file may end in half a batch where it is the last one, and was being written; nowhere else."""
    for segment in log.segments:
        if not segment.section.torn_bytes:
            continue
        name, torn_bytes = segment.section.file_base_offset, segment.section.torn_bytes
        torn = f"file {name} ends in {torn_bytes} bytes that are no whole batch"
        if segment.end_offset < (log.end_offset or 0):
            log.problems.append(Problem(segment.end_offset - 1, ProblemKind.TORN_TAIL, torn))
        else:
            log.remarks.append(torn)


def _leave_out_client_text(log: PartitionLog) -> None:
    """What may be text of a client neither opens nor ends anything; only its place in the file counts.

    A file that follows settles nothing: text can imitate all that compaction took from between the two.
    """
    doubtful: list[int] = []
    believed = producers_with_open_data(log.pieces)
    for number, piece in enumerate(log.pieces):
        if piece.is_doubted:
            log.pieces[number] = piece.as_client_text()
        if piece.doubtful_offset is not None:
            doubtful.append(piece.doubtful_offset)
    if doubtful:
        may_be = f"batches from offset {min(doubtful)} on may be text of a record's header keys"
        is_opening = not believed <= producers_with_open_data(log.pieces)
        would = ", and would open a transaction" if is_opening else ""
        kind = ProblemKind.HEADER_KEYS_MAY_OPEN if is_opening else ProblemKind.MAY_BE_HEADER_KEYS
        reason = f"{may_be}{would}; give a dump without --deep-iteration as well"
        log.problems.append(Problem(TO_THE_END, kind, reason))


def producers_with_open_data(pieces: Iterable[LogPiece]) -> set[int]:
    """The producers that wrote transactional data in some pieces of one log, in order, and no end marker behind it."""
    found: set[int] = set()
    for producer in (producer for piece in pieces for producer in piece.producers):
        for fragment in filter(None, (producer.lead, producer.tail)):
            if fragment.start_offset is not None:
                found.add(producer.producer_id)
            if fragment.end_offset is not None:
                found.discard(producer.producer_id)
    return found


def _find_epoch_fall(log: PartitionLog) -> None:
    """Leader epochs never fall along a log, since every new leader takes a larger one (KIP-101)."""
    highest = -1
    for piece in log.pieces:
        first = piece.first_leader_epoch
        offset = piece.first_offset if first is not None and first < highest else piece.first_epoch_fall_offset
        if offset is not None:
            reason = f"the leader epoch falls at offset {offset}: a topic that was made again is glued to its past"
            log.problems.append(Problem(TO_THE_END, ProblemKind.LEADER_EPOCHS_FALL, reason))
            return
        highest = max(highest, -1 if piece.leader_epoch is None else piece.leader_epoch)


def _find_missing_lines(log: PartitionLog) -> None:
    """Batches are proven by their positions; what their record lines do not prove is only said."""
    lacking = [piece for piece in log.pieces if piece.lacking_batch_count]
    if lacking:
        batch_count = sum(piece.lacking_batch_count for piece in lacking)
        first = lacking[0].lacking_offset
        log.remarks.append(
            f"record lines are missing or not proven: {batch_count} of its batches, from offset {first} on"
        )
