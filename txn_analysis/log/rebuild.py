"""Rebuild the producer state of partitions: their open transactions and their health.

Pure functions of what is known of a partition; `steps` brings the rows together. Batch ranges and files, of which
there are few, are records; producers and transactions are rows of arrays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, Columns, numbers_of
from txn_analysis.kafka.names import SNAPSHOT, STATE_TOPIC
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.log.copy_selection import Comparisons, Folder, high_watermarks
from txn_analysis.log.partition_health import CheckpointFiles, health_of, producers_at_end
from txn_analysis.log.partition_log import PartitionLog, gap, partition_log
from txn_analysis.log.producer_state import ProducerStateManager
from txn_analysis.log.segments import NO_RANK, first_other_rank, is_empty_dump, proves_nothing, segments_of
from txn_analysis.log.snapshots import (
    Snapshot,
    Stated,
    base_snapshot,
    by_offset,
    described_of,
    reconcile_snapshot,
    snapshots_of,
)
from txn_analysis.log.transactions import ended_in, open_in
from txn_analysis.log.two_logs import of_another_topic
from txn_analysis.tables import BatchRangeSummary, PartitionHealth, Problem, UsedBatchRange
from txn_analysis.tables.inputs import InputSection


class PartitionEvidence(NamedTuple):
    """All that is known of one partition.

    Attributes:
        sections: those of the partition, at least one; snapshots and what checkpoint files state included.
        summaries: of the batch ranges of those sections.
        stated: by those sections, of producers.
        comparisons: of all pairs that `copies.pairs_to_compare` names.
        as_of_ms: moment of the capture; timestamps after it are not credible. None if the capture has no moment.
    """

    sections: list[InputSection]
    summaries: list[BatchRangeSummary]
    stated: Stated
    comparisons: Comparisons
    as_of_ms: int | None

    def producer_ids(self) -> Array:
        """Of all producers that can come, in order."""
        named = [s.producers.producer_id for s in self.summaries] + [s["producer_id"] for s in self.stated.values()]
        return np.unique(np.concatenate([_NOBODY, *named]))


@dataclass(frozen=True)
class RebuiltPartition:
    """What is known of one partition.

    Attributes:
        health: at the end of its log, without its producers.
        producers: what a broker keeps of them, as of `producers_at_end`.
        opened: the transactions that are open, as columns, by column of `transactions`; a basis is its place in
            COORDINATOR_EPOCH_BASES. No columns where nothing is open.
        evidence_gaps: of each of them why the log is not proven whole from its start on.
        ended: the transactions that ended with the lead of a batch range, by column of `ended_transactions`. No columns
            where none did.
        used: the batch ranges that its log was put together from.
    """

    health: PartitionHealth
    producers: Columns
    opened: Columns
    evidence_gaps: list[tuple[str, ...]]
    ended: Columns
    used: list[UsedBatchRange]


def rebuild_producer_state(given: PartitionEvidence) -> RebuiltPartition:
    """Replay the log of one partition, from its first known state to its end."""
    sections, summaries, stated = given.sections, given.summaries, given.stated
    partition = TopicPartition(sections[0].topic, sections[0].partition)
    other = first_other_rank(sections, summaries)
    of_topic = [s for s in sections if s.capture_rank < other]
    checkpoints, marks = CheckpointFiles.of(of_topic), high_watermarks(of_topic)
    log = partition_log(segments_of(sections, summaries), given.comparisons)
    if other != NO_RANK:
        log.remarks.append("earlier captures hold another topic of this name, which was deleted: they do not count")
        log.two_logs += of_another_topic(sections, other)
    dumped_empty = sorted({s.file_base_offset for s in of_topic if is_empty_dump(s) and not s.capture_rank})
    snapshots = snapshots_of([s for s in of_topic if s.kind == SNAPSHOT and not is_empty_dump(s)], stated)
    described = described_of(of_topic, stated)
    base = base_snapshot(log, sorted([*snapshots, *(each.as_snapshot() for each in described)], key=by_offset))
    state = ProducerStateManager(given.producer_ids(), _append_count(log), checkpoints.log_start_offset or 0)
    if base is not None:
        state.entries["open_below_offset"] = _open_below(state.producer_ids, log, base)
    if base is not None and log.first_offset is not None and base.offset > log.first_offset:
        log = log.above(base.offset)
    log.remarks += [_EMPTY_DUMP.format(offset) for offset in dumped_empty]
    _load(state, log, base)
    witnesses = [s for s in snapshots if s is not base and (base is None or s.offset >= base.offset)]
    problems = [*log.problems, *_replay(log, state, witnesses, dumped_empty), *checkpoints.problems()]
    problems += [p for each in described if not each.capture_rank for p in each.problems(state, log.end_offset)]
    if base is not None and log.first_offset is not None and base.offset < log.first_offset:
        problems.append(gap(base.offset, log.first_offset - 1))
    problems += _unread(base, snapshots)
    if _may_hide_what_is_open(partition, log, state, [*witnesses, *([base] if base is not None else [])]):
        log.remarks.append(_NOT_SEEN)
    is_in_capture = any(s.capture_rank == 0 and not proves_nothing(s) for s in of_topic)
    if not is_in_capture:
        problems.append(Problem(None, ProblemKind.NOT_IN_CAPTURE, "the partition is not in this capture"))
    health = health_of(partition, log, state, problems, base, checkpoints, given.as_of_ms, is_in_capture=is_in_capture)
    gaps = _evidence_gaps(state, problems, base)
    opened = _opened(log, state, marks) if gaps else {}
    used = [UsedBatchRange(s.ingest_id, *s.section, s.first_position) for s in log.summaries if s.is_used]
    return RebuiltPartition(health, producers_at_end(state), opened, gaps, ended_in(state), used)


def _open_below(producer_ids: Array, log: PartitionLog, base: Snapshot) -> Array | int:
    """Of each producer the last offset of data below the base snapshot that no end marker follows there."""
    summaries = [summary for summary in log.summaries if summary.last_offset < base.offset]
    if not summaries:
        return NONE
    below = ProducerStateManager(producer_ids, _append_count(log))
    for summary in summaries:
        below.append(summary)
    return np.where(below.opened["txn_start_offset"] == NONE, NONE, below.opened["last_offset"])


def _append_count(log: PartitionLog) -> int:
    return sum(len(summary.producers) for summary in log.summaries)


def _load(state: ProducerStateManager, log: PartitionLog, base: Snapshot | None) -> None:
    """Begin the state where the log begins, with what the base snapshot states of its producers.

    Nothing is missing below if a file named 0, or the snapshot's offset, begins there.
    """
    first, covered_from = log.first_offset, log.covered_from
    begins = 0 if base is None else base.offset
    if covered_from is None:
        state.is_start_known = base is not None
    else:
        state.is_start_known = covered_from <= begins and log.is_whole_from_its_name_on
    if state.is_start_known and first is not None and first > begins:
        state.last_hole_offset = first - 1
    if base is not None:
        state.load_from_snapshot(base.stated, is_adjacent=state.is_start_known)
        if not state.is_start_known and first is not None:
            state.last_gap_offset = first - 1


_NOBODY = np.zeros(0, np.int64)
_EMPTY_DUMP = (
    "the dump of the snapshot at offset {} lists no producer: it proves nothing, as that of one that the tool could "
    "not read looks alike"
)


def _unread(base: Snapshot | None, snapshots: Sequence[Snapshot]) -> Iterable[Problem]:
    """What was open below the first batch may be in a line of the base snapshot's dump that was not understood."""
    unread = [] if base is None else [each.unread_bytes for each in snapshots if each.offset == base.offset]
    if base is not None and unread and all(unread):
        reason = (
            f"snapshot {base.offset}: {min(unread)} bytes of its dump were not understood; dump it again, without 2>&1"
        )
        yield Problem(base.offset - 1, ProblemKind.LINES_OF_OTHERS, reason)


_NOT_SEEN = (
    "what was open before its first file begins is not seen, as no producer snapshot stands for it: give its .snapshot "
    "files"
)


def _may_hide_what_is_open(
    partition: TopicPartition, log: PartitionLog, state: ProducerStateManager, snapshots: list[Snapshot]
) -> bool:
    """Whether a transaction below the first file may still be open, and neither a batch nor a snapshot tell of it."""
    end = log.end_offset
    if partition.topic == STATE_TOPIC or not log.summaries or state.is_start_known or end is None:
        return False
    return not any(snapshot.offset <= end for snapshot in snapshots)


def _replay(
    log: PartitionLog, state: ProducerStateManager, snapshots: list[Snapshot], dumped_empty: list[int]
) -> list[Problem]:
    """Replay every batch range; where a snapshot was written, it is compared with the state there.

    Of one whose dump is empty nothing but the offset is known, which the log had reached.
    """
    problems: list[Problem] = []
    begins = {segment.covered_from for segment in log.segments}
    compacted, passed = deque(log.compacted), -1
    for before, summary in zip([None, *log.summaries], log.summaries, strict=False):
        _add_compacted(state, compacted, summary.first_offset)
        _note_missing(log, state, before, summary)
        if summary.first_offset > passed:
            problems += _compare(state, snapshots, summary.first_offset, begins)
        state.append(summary)
        passed = max(passed, summary.last_offset)
    end = log.end_offset
    if end is None:
        return problems
    _add_compacted(state, compacted, end)
    if end > passed:
        problems += _compare(state, snapshots, end, begins)
    reached = [*(s.offset for s in snapshots if s.capture_rank == 0), *dumped_empty]
    beyond = [offset for offset in reached if offset > max(end, passed)]
    if beyond:
        reason = f"a snapshot stands for offsets up to {max(beyond) - 1}, the log ends at {end - 1}"
        problems.append(Problem(None, ProblemKind.ENDS_BEFORE_SNAPSHOT, reason))
    return problems


def _note_missing(
    log: PartitionLog, state: ProducerStateManager, before: BatchRangeSummary | None, summary: BatchRangeSummary
) -> None:
    """Note whether no file holds the offsets before a batch range, or compaction left none of their batches."""
    if summary.first_offset in log.after_gap:
        state.last_gap_offset = log.after_gap[summary.first_offset]
    elif summary.first_offset in log.after_break:
        state.last_gap_offset = summary.first_offset - 1
    elif before is not None and summary.first_offset > before.last_offset + 1:
        state.last_hole_offset = summary.first_offset - 1


def _add_compacted(
    state: ProducerStateManager, compacted: deque[tuple[int, list[BatchRangeSummary]]], offset: int
) -> None:
    """Add what other copies hold below `offset`, and compaction removed from this one; in the order of offsets."""
    while compacted and compacted[0][0] <= offset:
        state.add_compacted(compacted.popleft()[1])


def _compare(state: ProducerStateManager, snapshots: list[Snapshot], offset: int, begins: set[int]) -> list[Problem]:
    written_here = [s for s in snapshots if s.offset == offset]
    reasons = [f"snapshot {offset}, {differs}" for s in written_here for differs in reconcile_snapshot(state, s)]
    for snapshot in written_here if offset in begins and not reasons else ():
        state.confirm_open(snapshot.stated, offset)
    return [Problem(None, ProblemKind.SNAPSHOT_DISAGREES, reason) for reason in reasons]


def _evidence_gaps(
    state: ProducerStateManager, problems: list[Problem], base: Snapshot | None
) -> list[tuple[str, ...]]:
    """Of each transaction that is open at the end of the log why the log is not proven whole from its start on."""
    opened = state.opened[state.open_rows()]
    if not problems:
        return [()] * len(opened)
    proven_from = np.maximum(opened["txn_start_offset"], opened["listed_at_offset"])
    if base is not None:
        proven_from = np.maximum(proven_from, base.offset)
    return [tuple(sorted({p.reason for p in problems if p.spoils(offset)})) for offset in proven_from.tolist()]


def _opened(log: PartitionLog, state: ProducerStateManager, marks: Mapping[Folder, int]) -> Columns:
    """What is open at the end of the log, and what other copies of it hold of that."""
    opened = open_in(state)
    start, last = opened["txn_start_offset"], opened["last_offset"]
    columns = opened["producer_id"], start, np.where(last == NONE, start, last)
    txns = [*zip(*(column.tolist() for column in columns), strict=True)]
    return opened | {
        "other_copy_commit_offset": numbers_of(log.others.commit_from(producer, start) for producer, start, _ in txns),
        "is_above_high_watermark": np.array([log.others.is_above(marks, *txn) for txn in txns], bool),
    }
