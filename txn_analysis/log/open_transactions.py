"""Link: the pieces, sections and snapshots of one partition become its open transactions and its health.

Pure Python over a handful of rows per partition; Spark only brings the rows together (`pipeline.on_spark.logs`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.kafka.sections import LOG_KINDS, SNAPSHOT, ProblemKind
from txn_analysis.log.checkpoints import Stated
from txn_analysis.log.other_copies import high_watermarks
from txn_analysis.log.partition_health import PartitionHealth, health_of
from txn_analysis.log.partition_log import partition_log
from txn_analysis.log.producer_state import ProducerState
from txn_analysis.log.segments import NO_RANK, TO_THE_END, Problem, first_other_rank, segments_of
from txn_analysis.log.snapshot_check import meet
from txn_analysis.log.snapshots import base_snapshot, snapshots_of
from txn_analysis.log.transactions import LinkedTransaction, PieceKey
from txn_analysis.log.two_logs import of_another_topic
from txn_analysis.log.whole_log import PartitionLog, gap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.log.choice import Comparisons
    from txn_analysis.log.other_copies import Folder
    from txn_analysis.log.pieces import LogPiece
    from txn_analysis.log.producer_entry import OpenTransaction, ProducerEntry
    from txn_analysis.log.sections import LogSection
    from txn_analysis.log.snapshot_check import Difference
    from txn_analysis.log.snapshots import Snapshot, SnapshotEntry


@dataclass(frozen=True)
class LinkedPartition:
    """What is known of one partition: its health, its transactions that are open or span pieces, the pieces used."""

    health: PartitionHealth
    transactions: list[LinkedTransaction]
    used_pieces: list[PieceKey]


def link_partition(
    sections: list[LogSection],
    pieces: list[LogPiece],
    snapshot_entries: list[SnapshotEntry],
    comparisons: Comparisons,
    as_of_ms: int | None,
) -> LinkedPartition:
    """Follow the log of one partition from its first known state to its end.

    Args:
        sections: those of the partition; snapshots and what checkpoint files state included.
        pieces: of those sections.
        snapshot_entries: of those sections.
        comparisons: of all pairs that `copies.pairs_to_compare` names.
        as_of_ms: moment of the capture; timestamps after it are not credible. None if no broker's clock speaks.
    """
    other, all_sections = first_other_rank(sections, pieces), sections
    segments, sections = segments_of(sections, pieces), [s for s in sections if s.capture_rank < other]
    stated, marks = Stated.of(sections), high_watermarks(sections)
    sections = [s for s in sections if s.kind in LOG_KINDS or s.kind == SNAPSHOT]
    log = partition_log(segments, comparisons)
    if other != NO_RANK:
        log.remarks.append("earlier captures hold another topic of this name, which was deleted: they do not count")
        log.two_logs += of_another_topic(all_sections, other)
    snapshots = snapshots_of([s for s in sections if s.kind == SNAPSHOT], snapshot_entries)
    base = base_snapshot(log, snapshots)
    left = _left_below(log, base)
    log = _above(log, base)
    state = _start(log, base, left)
    state.log_start_offset = stated.log_start_offset or 0
    witnesses = [s for s in snapshots if s is not base and (base is None or s.offset >= base.offset)]
    problems = [*log.problems, *_follow(log, state, witnesses), *stated.problems()]
    if base is not None and log.first_offset is not None and base.offset < log.first_offset:
        problems.append(gap(base.offset, log.first_offset - 1))
    is_in_capture = any(s.capture_rank == 0 for s in sections)
    if not is_in_capture:
        problems.append(Problem(TO_THE_END, ProblemKind.NOT_IN_CAPTURE, "the partition is not in this capture"))
    health = health_of(log, state, problems, base, stated, as_of_ms, is_in_capture=is_in_capture)
    opened = [
        _open_transaction(entry, txn, _gaps(txn, problems, base), log, marks)
        for entry in state.entries.values()
        if (txn := entry.open)
    ]
    used = [PieceKey(*p.section, p.first_position) for p in log.pieces if p.is_used]
    return LinkedPartition(health, [*opened, *map(LinkedTransaction.ended, state.ended)], used)


def _above(log: PartitionLog, base: Snapshot | None) -> PartitionLog:
    """Leave out what a snapshot in the middle makes unnecessary: older files that do not reach up to it."""
    if base is None or log.first_offset is None or base.offset <= log.first_offset:
        return log
    kept = PartitionLog(
        [s for s in log.segments if s.end_offset > base.offset or s.first_offset >= base.offset],
        [p for p in log.pieces if p.first_offset >= base.offset],
    )
    kept.others, kept.after_break, kept.two_logs = log.others, log.after_break, log.two_logs
    kept.problems = [p for p in log.problems if p.offset >= base.offset]
    kept.after_gap = {first: last for first, last in log.after_gap.items() if last >= base.offset}
    return kept


def _left_below(log: PartitionLog, base: Snapshot | None) -> dict[int, int]:
    """By producer, the last offset of data without an end marker in what a snapshot in the middle makes unnecessary."""
    below = ProducerState(is_start_known=False)
    for piece in log.pieces if base is not None else ():
        if base is not None and piece.last_offset < base.offset:
            below.apply(piece)
    opened = [entry.open for entry in below.entries.values() if entry.open]
    return {txn.producer_id: txn.last_offset for txn in opened if txn.last_offset is not None}


def _start(log: PartitionLog, base: Snapshot | None, left: dict[int, int]) -> ProducerState:
    """What is known where the log begins: nothing is missing below if a file named 0, or a snapshot, begins there."""
    first, covered_from = log.first_offset, log.covered_from
    begins = 0 if base is None else base.offset
    is_known = covered_from is None if base is not None else False
    if covered_from is not None:
        is_known = covered_from <= begins and log.is_whole_from_its_name_on
    state = ProducerState(is_start_known=is_known, left_below=left)
    if is_known and first is not None and first > begins:
        state.last_hole_offset = first - 1
    if base is not None:
        state.load_snapshot(base.rows, is_adjacent=is_known)
        if not is_known and first is not None:
            state.last_gap_offset = first - 1
    return state


def _follow(log: PartitionLog, state: ProducerState, snapshots: list[Snapshot]) -> list[Problem]:
    """Apply every piece; at each snapshot's offset the two witnesses are compared."""
    problems: list[Problem] = []
    begins = {segment.covered_from for segment in log.segments}
    recalled, passed = deque(log.compacted_away), -1
    for before, piece in zip([None, *log.pieces], log.pieces, strict=False):
        _recall(state, recalled, piece.first_offset)
        _note_what_is_missing(log, state, before, piece)
        if piece.first_offset > passed:
            problems += _compare(state, snapshots, piece.first_offset, begins)
        state.apply(piece)
        passed = max(passed, piece.last_offset)
    end = log.end_offset
    if end is None:
        return problems
    _recall(state, recalled, end)
    if end > passed:
        problems += _compare(state, snapshots, end, begins)
    beyond = [s.offset for s in snapshots if s.offset > max(end, passed) and s.capture_rank == 0]
    if beyond:
        reason = f"a snapshot stands for offsets up to {max(beyond) - 1}, the log ends at {end - 1}"
        problems.append(Problem(TO_THE_END, ProblemKind.ENDS_BEFORE_SNAPSHOT, reason))
    return problems


def _note_what_is_missing(log: PartitionLog, state: ProducerState, before: LogPiece | None, piece: LogPiece) -> None:
    """No file holds the offsets between two pieces, or compaction left none of their batches."""
    if piece.first_offset in log.after_gap:
        state.last_gap_offset = log.after_gap[piece.first_offset]
    elif piece.first_offset in log.after_break:
        state.last_gap_offset = piece.first_offset - 1
    elif before is not None and piece.first_offset > before.last_offset + 1:
        state.last_hole_offset = piece.first_offset - 1


def _recall(state: ProducerState, recalled: deque[tuple[int, list[LogPiece]]], offset: int) -> None:
    """Take in what other copies hold below `offset`, and this one lost to compaction; in the order of offsets."""
    while recalled and recalled[0][0] <= offset:
        state.recall(recalled.popleft()[1])


def _compare(state: ProducerState, snapshots: list[Snapshot], offset: int, begins: set[int]) -> list[Problem]:
    met = [s for s in snapshots if s.offset == offset]
    reasons = [_disagreement(offset, differs) for s in met for differs in meet(state, s)]
    for snapshot in met if offset in begins and not reasons else ():
        state.name_open(snapshot.rows, offset)
    return [Problem(TO_THE_END, ProblemKind.SNAPSHOT_DISAGREES, reason) for reason in reasons]


def _disagreement(offset: int, differs: Difference) -> str:
    producer, what, theirs, ours = differs
    return f"snapshot {offset}, producer {producer}: {what} is {theirs} there and {ours} in the log"


def _open_transaction(
    entry: ProducerEntry, txn: OpenTransaction, gaps: tuple[str, ...], log: PartitionLog, marks: Mapping[Folder, int]
) -> LinkedTransaction:
    last_offset = txn.start_offset if txn.last_offset is None else txn.last_offset
    return LinkedTransaction.open(
        entry,
        txn,
        gaps,
        log.others.commit_from(txn.producer_id, txn.start_offset),
        is_above_high_watermark=log.others.is_above(marks, txn.producer_id, txn.start_offset, last_offset),
    )


def _gaps(txn: OpenTransaction, problems: list[Problem], base: Snapshot | None) -> tuple[str, ...]:
    """Why the log is not proven whole from its start on."""
    proven_from = max(txn.start_offset, txn.named_at_offset or 0, base.offset if base is not None else 0)
    return tuple(sorted({p.reason for p in problems if p.offset >= proven_from}))
