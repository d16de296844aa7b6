"""One log of a partition, put together from the copies of its segments, and where it is not whole.

The copies are those of several brokers and of several captures. One is selected for each range of offsets
(`copy_selection`), in offset order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from txn_analysis.columns.arrays import NONE
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.log.copies import CopyRange, offset_ranges
from txn_analysis.log.copy_selection import Comparisons, Copies, OtherCopies, Selection, Truncation
from txn_analysis.log.segments import Segment
from txn_analysis.tables import BatchRangeSummary, Problem, TwoLogs
from txn_analysis.tables.appends import NO_APPENDS


@dataclass
class PartitionLog:
    """One log, and what is known of it from its files alone.

    Attributes:
        segments: its files.
        summaries: of its batch ranges, in offset order.
        problems: why it is not whole.
        witnesses: copies that agree with it.
        remarks: what explains it without making it less whole.
        after_gap: by first offset of the batch range, or empty last file, behind it, the last offset of a range that no
            file holds.
        after_break: first offsets of batch ranges before which their own file lacks batches.
        compacted: by the offset up to which they reach, batch ranges of another copy from before compaction.
        others: what other copies hold.
        two_logs: files that cannot be copies of one log.
    """

    segments: list[Segment] = field(default_factory=list)
    summaries: list[BatchRangeSummary] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    witnesses: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    after_gap: dict[int, int] = field(default_factory=dict)
    after_break: set[int] = field(default_factory=set)
    compacted: list[tuple[int, list[BatchRangeSummary]]] = field(default_factory=list)
    others: OtherCopies = field(default_factory=OtherCopies)
    two_logs: tuple[TwoLogs, ...] = ()

    @property
    def first_offset(self) -> int | None:
        """First offset of any file; None without files."""
        return min([s.first_offset for s in self.segments], default=None)

    @property
    def is_whole_from_its_name_on(self) -> bool:
        """The first file that has batches begins at position 0."""
        return not self.summaries or self.summaries[0].first_position == 0

    @property
    def covered_from(self) -> int | None:
        """The offset in the name of the file that its first batch is in; of the first file where none has any."""
        names = {s.key: s.covered_from for s in self.segments}
        if self.summaries:
            return names[self.summaries[0].section]
        return min(names.values(), default=None)

    @property
    def end_offset(self) -> int | None:
        """The offset after the last one of any file."""
        ends = [s.end_offset for s in self.segments if not s.summaries] + [
            s.last_offset + 1 for s in self.summaries[-1:]
        ]
        return max(ends, default=None)

    def above(self, offset: int) -> PartitionLog:
        """The log from a snapshot at `offset` on, which replaces what is below; without witnesses and remarks."""
        return PartitionLog(
            [s for s in self.segments if s.end_offset > offset or s.first_offset >= offset],
            [s for s in self.summaries if s.first_offset >= offset],
            [p for p in self.problems if p.spoils(offset)],
            after_gap={first: last for first, last in self.after_gap.items() if last >= offset},
            after_break=self.after_break,
            others=self.others,
            two_logs=self.two_logs,
        )


def partition_log(segments: list[Segment], comparisons: Comparisons) -> PartitionLog:
    """The log that all copies of one partition make up; `comparisons` has all of `copies.pairs_to_compare`."""
    ranges = list(offset_ranges(segments))
    copies = Copies.of(segments, {pair: comparisons[pair] for offsets in ranges for pair in offsets.pairs})
    selections: list[Selection] = []
    truncations: list[Truncation] = []
    selected: list[CopyRange] = []
    for offsets in ranges:
        selection = copies.select(offsets, truncations, selected)
        selections.append(selection)
        truncations += selection.truncations
        if selection.copy is not None:
            selected.append(selection.copy)
    return _joined(segments, selections, selected)


def _joined(segments: list[Segment], selections: list[Selection], selected: list[CopyRange]) -> PartitionLog:
    """The log of everything that was selected."""
    newest = min((s.capture_rank for s in segments), default=0)
    used: dict[int, list[BatchRangeSummary]] = {}
    for copy in selected:
        used.setdefault(id(copy.segment), []).extend(copy.summaries)
    compacted = [
        (selection, selection.compacted_until) for selection in selections if selection.compacted_until is not None
    ]
    log = PartitionLog(
        [s for s in segments if id(s) in used or (not s.summaries and s.capture_rank == newest)],
        [summary for copy in selected for summary in copy.summaries],
        [problem for selection in selections for problem in selection.problems],
        remarks=[remark for selection in selections for remark in selection.remarks],
        compacted=[(selection.offsets.stop, selection.fullest.summaries) for selection, _ in compacted],
        others=OtherCopies.of(selections),
        two_logs=tuple(dict.fromkeys(each for selection in selections for each in selection.two_logs)),
    )
    agreed = max((selection.offsets.stop for selection in selections if len(selection.agreeing) > 1), default=None)
    if agreed is not None:
        log.witnesses.append(f"copies agree up to offset {agreed - 1}")
    for segment in log.segments:
        log.problems += _problems_of(segment, used.get(id(segment), []), newest)
    if compacted:
        until = max(offset for _, offset in compacted)
        log.remarks.append(f"compaction removed records up to offset {until} that another copy still holds")
    cut_before = next((c.cut_before for c in reversed(selections) if c.cut_before is not None), None)
    if cut_before is not None:
        reason = f"an earlier capture reaches up to offset {cut_before}, this one ends before"
        log.problems.append(Problem(None, ProblemKind.ENDS_BEFORE_EARLIER_CAPTURE, reason))
    log.problems += _doubtful_tails(segments, selected)
    _find_gaps(log)
    _find_torn_tails(log)
    _leave_out_client_text(log)
    _find_epoch_fall(log)
    _find_missing_lines(log)
    return log


def _problems_of(segment: Segment, used: list[BatchRangeSummary], newest: int) -> Iterable[Problem]:
    """What is wrong in one file; of an earlier capture's file nothing spoils what begins above its part of the log."""
    problems = segment.problems(used)
    if segment.capture_rank == newest or not used:
        return problems
    last_offset = used[-1].last_offset
    return [p._replace(offset=last_offset if p.offset is None else min(p.offset, last_offset)) for p in problems]


def _doubtful_tails(segments: list[Segment], selected: list[CopyRange]) -> Iterable[Problem]:
    """Where an earlier capture ends and a newer one goes on under a new leader, who may have truncated that end."""
    for before, after in pairwise(selected):
        rank = before.segment.capture_rank
        if after.segment.capture_rank >= rank or not before.summaries or not after.summaries:
            continue
        epoch = before.leader_epoch
        last_offset, next_epoch = before.summaries[-1].last_offset, after.summaries[0].first_leader_epoch
        is_its_end = last_offset + 1 == max(s.end_offset for s in segments if s.capture_rank == rank)
        if is_its_end and epoch is not None and next_epoch is not None and next_epoch > epoch:
            tail = f"an earlier capture's tail before offset {last_offset + 1}"
            doubt = f"{tail} may have been truncated by leader epoch {next_epoch}"
            yield Problem(last_offset, ProblemKind.TAIL_IN_DOUBT, doubt)


def _find_gaps(log: PartitionLog) -> None:
    """Offsets between two files that neither holds; inside one file, whose positions chain, a hole is compaction."""
    of_key = {s.key: s for s in log.segments}
    for before, after in pairwise(log.summaries):
        if after.first_offset == before.last_offset + 1:
            continue
        segment = of_key[after.section]
        base_offset = segment.section.file_base_offset
        if base_offset > before.last_offset + 1:
            log.after_gap[after.first_offset] = base_offset - 1
        if segment.lacks_batches_before(after):
            log.after_break.add(after.first_offset)
        if segment.key != before.section:
            log.problems.append(gap(before.last_offset + 1, after.first_offset - 1))
    end = log.summaries[-1].last_offset + 1 if log.summaries else None
    empty = max([s.first_offset for s in log.segments if not s.summaries], default=None)
    if end is not None and empty is not None and empty > end:
        log.after_gap[empty] = empty - 1
        log.problems.append(gap(end, empty - 1))


def gap(first: int, last: int) -> Problem:
    """No file holds these offsets; what began before or among them is not whole."""
    return Problem(last, ProblemKind.OFFSETS_IN_NO_FILE, f"offsets {first} to {last} are in no file")


def _find_torn_tails(log: PartitionLog) -> None:
    """A file may end in half a batch where it is the last one, and was being written; nowhere else."""
    for segment in log.segments:
        section = segment.section
        if not section.torn_bytes:
            continue
        torn = f"file {section.file_base_offset:020d}.log ends in {section.torn_bytes} bytes that are no whole batch"
        if segment.end_offset < (log.end_offset or 0):
            log.problems.append(Problem(segment.end_offset - 1, ProblemKind.TORN_TAIL, torn))
        else:
            log.remarks.append(torn)


def _leave_out_client_text(log: PartitionLog) -> None:
    """What may be text of a client neither opens nor ends a transaction; only its place in the file counts.

    A file that follows decides nothing: text can imitate all that compaction removed between the two.
    """
    all_summaries = log.summaries
    doubtful = [s.doubtful_offset for s in log.summaries if s.doubtful_offset is not None]
    log.summaries = [_place_only(summary) if summary.is_doubted else summary for summary in log.summaries]
    if doubtful:
        may_be = (
            f"batches from offset {min(doubtful)} on may be text of a record's header keys, or stand behind a line "
            "that says that the tool stopped"
        )
        is_opening = not producers_with_open_data(all_summaries) <= producers_with_open_data(log.summaries)
        would = ", and would open a transaction" if is_opening else ""
        kind = ProblemKind.HEADER_KEYS_MAY_OPEN if is_opening else ProblemKind.MAY_BE_HEADER_KEYS
        reason = f"{may_be}{would}; give a dump without --deep-iteration and without 2>&1 as well"
        log.problems.append(Problem(None, kind, reason))


def _place_only(summary: BatchRangeSummary) -> BatchRangeSummary:
    """What counts of a batch range that may be text of a client: its place, and nothing that its batches say."""
    return summary._replace(
        is_used=False,
        producers=NO_APPENDS,
        first_moment_ms=None,
        last_moment_ms=None,
        last_timestamp_ms=None,
        max_timestamp_ms=None,
        first_leader_epoch=None,
        leader_epoch=None,
        first_epoch_fall_offset=None,
    )


def producers_with_open_data(summaries: Iterable[BatchRangeSummary]) -> set[int]:
    """The producers with transactional data in some batch ranges of one log, in order, and no end marker after it."""
    producer_ids: set[int] = set()
    for appends in (summary.producers.rows for summary in summaries):
        for part in (appends["lead"], appends["tail"]):
            for name, change in (("start_offset", producer_ids.update), ("end_offset", producer_ids.difference_update)):
                change(appends["producer_id"][part[name] != NONE].tolist())
    return producer_ids


def _find_epoch_fall(log: PartitionLog) -> None:
    """Leader epochs never fall along a log, since every new leader takes a larger one (KIP-101)."""
    highest = -1
    for summary in log.summaries:
        first = summary.first_leader_epoch
        is_lower = first is not None and first < highest
        offset = summary.first_offset if is_lower else summary.first_epoch_fall_offset
        if offset is not None:
            reason = f"the leader epoch falls at offset {offset}: a topic that was made again is glued to its past"
            log.problems.append(Problem(None, ProblemKind.LEADER_EPOCHS_FALL, reason))
            return
        highest = max(highest, -1 if summary.leader_epoch is None else summary.leader_epoch)


def _find_missing_lines(log: PartitionLog) -> None:
    """Batches are proven by their positions; record lines that are not proven are a remark, and no problem."""
    lacking = [summary for summary in log.summaries if summary.lacking_batch_count]
    if lacking:
        batch_count = sum(summary.lacking_batch_count for summary in lacking)
        first = lacking[0].lacking_offset
        log.remarks.append(
            f"record lines are missing or not proven: {batch_count} of its batches, from offset {first} on"
        )
