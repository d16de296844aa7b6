"""Which of several copies is the log between two offsets, why, and what the other copies hold.

The newest capture's copy counts, and within that capture the copy from which compaction removed least. Where copies
contradict each other, the one with the higher partition leader epoch is the log (KIP-101). A copy that was not selected
may hold what the log lacks: the COMMIT marker of an acknowledged transaction that an unclean election truncated
(KAFKA-7408). Data that one copy alone holds, above a high watermark of its own folder, may be the tail of a dead leader
that was never replicated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from txn_analysis.columns.arrays import NONE, Array
from txn_analysis.kafka.names import HIGH_WATERMARK
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.log.copies import Comparison, CopyRange, OffsetRange, Pair
from txn_analysis.log.segments import SectionKey, Segment
from txn_analysis.log.two_logs import two_logs_of
from txn_analysis.tables import Problem, TwoLogs
from txn_analysis.tables.inputs import InputSection

Comparisons = Mapping[Pair, Comparison]
Folder = tuple[int, str | None]  # the rank of a capture, and a log directory in it


class Truncation(NamedTuple):
    """From an offset on, batches of a lower leader epoch are no longer in the log."""

    offset: int
    leader_epoch: int

    def removes(self, copy: CopyRange, start: int) -> bool:
        """What a copy holds from `start` on is not in the log."""
        epoch = copy.leader_epoch
        return start >= self.offset and epoch is not None and epoch < self.leader_epoch


@dataclass(slots=True)
class Selection:
    """What was decided of one range of offsets.

    Attributes:
        offsets: the range, and the copies that cover it.
        copy: the copy that is the log there; None where none is.
        candidates: the contents that can be the log, each as the copies that agree on it.
        agreeing: the candidate that was selected.
        lost: by copy, the last offset that compaction removed from it and left in another one.
        truncations: those that copies show there.
        truncated: copies that were truncated, and from which offset on.
        cut_before: the last offset of a range that only earlier captures reach, and no truncation explains; else None.
        problems: what copies that contradict each other do to the evidence.
        remarks: what explains it.
        two_logs: copies that are of two logs.
    """

    offsets: OffsetRange
    copy: CopyRange | None = None
    candidates: Sequence[list[CopyRange]] = ()
    agreeing: Sequence[CopyRange] = ()
    lost: dict[SectionKey, int] = field(default_factory=dict)
    truncations: tuple[Truncation, ...] = ()
    truncated: tuple[tuple[list[CopyRange], int], ...] = ()
    cut_before: int | None = None
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()
    two_logs: tuple[TwoLogs, ...] = ()

    @property
    def differing(self) -> list[CopyRange]:
        """The copies that are not the log, and hold something else."""
        return [copy for content in self.offsets.contents if content is not self.agreeing for copy in content]

    @property
    def compacted_until(self) -> int | None:
        """The last offset that compaction removed from the selected copy and left in another one; None without."""
        return self.lost.get(self.agreeing[0].segment.key) if self.agreeing else None

    @property
    def fullest(self) -> CopyRange:
        """Of the copies that can be the log, the one from which compaction removed least."""
        return self._least_compacted(self.candidates)[0]

    def select(self, lost: dict[SectionKey, int]) -> None:
        """Of the candidates of the newest capture, select the one from which compaction removed least."""
        self.lost = lost
        newest = self.candidates[0][0].segment.capture_rank
        self.agreeing = self._least_compacted([c for c in self.candidates if c[0].segment.capture_rank == newest])
        self.copy = self.agreeing[0]
        if any(copy.doubted_offset is None for copy in self.agreeing[1:]):
            # What may be a client's text is none if another copy with the same batches is certain of them.
            certain = [s._replace(doubtful_offset=None, contested_offset=None) for s in self.copy.summaries]
            self.copy = CopyRange(self.copy.segment, certain)

    def _least_compacted(self, contents: Sequence[list[CopyRange]]) -> list[CopyRange]:
        return min(contents, key=lambda content: self.lost.get(content[0].segment.key, -1))

    def resolve(self, comparison: Comparison, offset: int, a: CopyRange, b: CopyRange) -> set[int]:
        """Decide which of two copies that contradict each other from `offset` on is not the log.

        Returns:
            The identities of the first copies of the contents that are not the log; empty where nothing can tell.
        """
        of_a, of_b = comparison.a_leader_epoch, comparison.b_leader_epoch
        if of_a is None or of_b is None or of_a == of_b:
            paths = " and ".join(copy.segment.section.shown_path for copy in (a, b))
            reason = f"copies differ from offset {offset} on: {paths}"
            self.problems += (Problem(None, ProblemKind.COPIES_DIFFER, reason),)
            return set()
        winner, loser = (a, b) if of_a > of_b else (b, a)
        self.truncations += (Truncation(offset, max(of_a, of_b)),)
        lost, kept = loser.segment.section.shown_path, winner.segment.section.shown_path
        truncated_since = f"from offset {offset} on, {lost} was truncated: leader epoch {min(of_a, of_b)} there"
        self.remarks += (f"{truncated_since}, {max(of_a, of_b)} in {kept}",)
        if loser.segment.capture_rank < winner.segment.capture_rank:
            reason = f"this capture's copy is not the log from offset {offset} on"
            self.problems += (Problem(None, ProblemKind.COPY_NOT_THE_LOG, reason),)
        truncated = [copy for content in self.offsets.contents if loser in content for copy in content]
        self.truncated += ((truncated, offset),)
        return {id(copy) for copy in truncated}


@dataclass(frozen=True)
class Copies:
    """All copies of the segments of one partition, and how those differ that do.

    Attributes:
        segments: the files.
        comparisons: of all pairs of copies that differ somewhere.
        bounds: by rank of a capture, the first and the end offset of the files of newer captures; None without any.
        is_rewritten: compaction has removed batches from a newer capture.
        shared_from: the first offset that any two files cover; 0 where none is.
    """

    segments: Sequence[Segment]
    comparisons: Comparisons
    bounds: Mapping[int, tuple[int, int] | None]
    is_rewritten: bool
    shared_from: int = 0

    @classmethod
    def of(cls, segments: Sequence[Segment], comparisons: Comparisons) -> Copies:
        """The copies; `comparisons` are of all pairs of them that differ somewhere."""
        rank = {s.key: s.capture_rank for s in segments} if comparisons else {}
        is_rewritten = any(
            c.a_lost_offset is not None and rank[pair.a] < rank[pair.b] for pair, c in comparisons.items()
        )
        ranks = {s.capture_rank for s in segments}
        bounds = {rank: _bounds([s for s in segments if s.capture_rank < rank]) for rank in ranks}
        return cls(segments, comparisons, bounds, is_rewritten, _shared_from(segments))

    def select(
        self, offsets: OffsetRange, truncations: Sequence[Truncation], selected: Sequence[CopyRange]
    ) -> Selection:
        """The copy that is the log in a range of offsets, if any is.

        Args:
            offsets: the range, with its copies.
            truncations: those that earlier ranges showed.
            selected: what is the log in earlier ranges.
        """
        newer = self.bounds[offsets.copies[0].segment.capture_rank]
        if newer is not None and offsets.start >= newer[1]:
            return _above_newer(offsets, selected)
        if newer is not None and self.is_rewritten and offsets.start >= newer[0]:
            # Between newer files nothing is left here either: compaction emptied these offsets.
            return Selection(offsets)
        if self._is_client_text(offsets):
            remark = f"offset {offsets.start} on is text of a record's header keys: no other dump shows it"
            return Selection(offsets, remarks=(remark,))
        selection = Selection(offsets)
        rejected = self._rejected(selection, truncations) if offsets.pairs or truncations else ()
        selection.candidates = [content for content in offsets.contents if id(content[0]) not in rejected]
        if selection.candidates:
            selection.select(self._lost_offsets(offsets))
        return selection

    def _is_client_text(self, offsets: OffsetRange) -> bool:
        """All that copies hold there may be text of a client, and another dump of the segment does not show it."""
        with_batches = [copy for copy in offsets.copies if copy.summaries]
        return bool(with_batches) and all(self._is_not_in_other_dump(copy, offsets.start) for copy in with_batches)

    def _is_not_in_other_dump(self, copy: CopyRange, start: int) -> bool:
        if not all(summary.is_doubted for summary in copy.summaries):
            return False
        segment = copy.segment
        certain_end = next(s.first_offset for s in segment.summaries if s.is_doubted)
        return any(
            other.capture_rank == segment.capture_rank
            and other.covered_from == segment.covered_from
            and certain_end <= other.end_offset <= start
            and not any(summary.is_doubted for summary in other.summaries)
            for other in self.segments
            if other.summaries
        )

    def _rejected(self, selection: Selection, before: Sequence[Truncation]) -> set[int]:
        """The contents that are not the log, by the identity of their first copies."""
        offsets = selection.offsets
        disproven = _disproven(offsets)
        rejected = set(disproven)
        for pair in offsets.pairs:
            comparison = self.comparisons[pair]
            conflict = comparison.conflict_offset
            if conflict is None:
                continue
            a, b = (next(c for c in offsets.copies if c.segment.key == key) for key in (pair.a, pair.b))
            if _are_truncated((a, b), offsets.start, [*before, *selection.truncations]):
                continue
            if any(id(copy) in disproven and disproven[id(copy)] <= conflict for copy in (a, b)):
                continue
            # Copies of one log agree at first; two logs contradict each other at once where both begin.
            if conflict <= max(a.segment.first_offset, b.segment.first_offset, self.shared_from):
                selection.two_logs += (two_logs_of(a.segment.section, b.segment.section),)
            rejected |= selection.resolve(comparison, conflict, a, b)
        known = [*before, *selection.truncations]
        truncated = [content for content in offsets.contents if _are_truncated(content[:1], offsets.start, known)]
        if truncated:
            selection.truncated += (([copy for content in truncated for copy in content], offsets.start),)
        return rejected | {id(content[0]) for content in truncated}

    def _lost_offsets(self, offsets: OffsetRange) -> dict[SectionKey, int]:
        lost: dict[SectionKey, int] = {}
        for pair in offsets.pairs:
            comparison = self.comparisons[pair]
            for key, offset in ((pair.a, comparison.a_lost_offset), (pair.b, comparison.b_lost_offset)):
                if offset is not None:
                    lost[key] = max(offset, lost.get(key, -1))
        return lost


def _shared_from(segments: Sequence[Segment]) -> int:
    reached = -1
    for segment in sorted((s for s in segments if s.summaries), key=lambda s: (s.covered_from, s.end_offset)):
        if segment.covered_from < reached:
            return segment.covered_from
        reached = max(reached, segment.end_offset)
    return 0


def _bounds(segments: list[Segment]) -> tuple[int, int] | None:
    if not segments:
        return None
    return min(s.covered_from for s in segments), max(s.end_offset for s in segments)


def _above_newer(offsets: OffsetRange, selected: Sequence[CopyRange]) -> Selection:
    """Only earlier captures reach so far: the judged files are cut short, unless their leaders truncated the log."""
    epoch = offsets.copies[0].leader_epoch
    epochs = [e for copy in selected if (e := copy.leader_epoch) is not None]
    if epoch is None or epoch >= max(epochs, default=epoch):
        return Selection(offsets, cut_before=offsets.stop - 1)
    since = f"an earlier capture's tail from offset {offsets.start} on was truncated since"
    return Selection(offsets, truncated=((offsets.copies, offsets.start),), remarks=(since,))


def _are_truncated(copies: Sequence[CopyRange], start: int, truncations: Sequence[Truncation]) -> bool:
    """Some of these copies were truncated from `start` on."""
    return any(truncation.removes(copy, start) for copy in copies for truncation in truncations)


def _disproven(offsets: OffsetRange) -> dict[int, int]:
    """The contents of which a certain copy disproves what may be text of a client.

    Returns:
        By identity of the first copy with such a content, the offset from which on its batches are text.
    """
    if len(offsets.contents) == 1:
        return {}
    return {
        id(content[0]): offset
        for content in offsets.contents
        if (offset := content[0].doubted_offset) is not None
        and all(copy.doubted_offset is not None for copy in content)
        and any(content[0].is_disproven_by(other) for other in offsets.copies)
    }


@dataclass
class OtherCopies:
    """What the copies of one log hold beside the log.

    Attributes:
        selections: of the ranges of offsets that are in the log, in offset order.
        commit_offsets: by producer id, the last COMMIT marker, or one of unprinted kind, in a copy that was not
            selected where the marker lies.
        truncated_marker_offset: the last end marker that a copy held where it was truncated; None without one.
    """

    selections: list[Selection] = field(default_factory=list)
    commit_offsets: dict[int, int] = field(default_factory=dict)
    truncated_marker_offset: int | None = None

    @classmethod
    def of(cls, selections: Iterable[Selection]) -> OtherCopies:
        """What the copies hold that were not selected."""
        others = cls()
        for selection in selections:
            for copies, offset in selection.truncated:
                others._add_truncated(copies, offset)
            for appends in _appends_of(selection.differing):
                has_commit = appends["last_commit_offset"] != NONE
                commits = (appends[name][has_commit].tolist() for name in ("producer_id", "last_commit_offset"))
                for producer_id, commit in zip(*commits, strict=True):
                    others.commit_offsets[producer_id] = max(commit, others.commit_offsets.get(producer_id, -1))
            if selection.agreeing:
                others.selections.append(selection)
        return others

    def _add_truncated(self, copies: Iterable[CopyRange], offset: int) -> None:
        markers = (int(appends["marker_offset"].max()) for appends in _appends_of(copies))
        lost = max((marker for marker in markers if marker >= offset), default=-1)
        if lost > (self.truncated_marker_offset or -1):
            self.truncated_marker_offset = lost

    def commit_from(self, producer_id: int, start_offset: int) -> int | None:
        """The last COMMIT marker of a producer in other copies, from an offset on; None without one."""
        offset = self.commit_offsets.get(producer_id)
        return offset if offset is not None and offset >= start_offset else None

    def is_above(self, marks: Mapping[Folder, int], producer_id: int, start_offset: int, last_offset: int) -> bool:
        """All data of a transaction lies above the high watermark of its own folder, and no other copy holds it.

        A copy of an earlier capture does not count as another one: it may be of the same broker.
        """
        if all(start_offset < mark for mark in marks.values()):
            return False
        selections = [c for c in self.selections if c.offsets.start <= last_offset and c.offsets.stop > start_offset]
        selections = [selection for selection in selections if selection.agreeing[0].has_producer(producer_id)]
        folders = {_folder(selection.agreeing[0]) for selection in selections}
        candidates = (copy for selection in selections for content in selection.candidates for copy in content)
        holders = {_folder(copy) for copy in candidates if copy.has_producer(producer_id)}
        is_alone = not any(rank == own_rank for rank, _ in holders - folders for own_rank, _ in folders)
        is_marked = all(folder in marks and start_offset >= marks[folder] for folder in folders)
        return bool(folders) and is_marked and is_alone


def high_watermarks(sections: Iterable[InputSection]) -> dict[Folder, int]:
    """The `replication-offset-checkpoint` of each folder; the largest value, as a high watermark only grows."""
    marks: defaultdict[Folder, int] = defaultdict(int)
    for section in sections:
        if section.kind == HIGH_WATERMARK and section.log_dir is not None:
            folder = section.capture_rank, section.log_dir
            marks[folder] = max(marks[folder], section.file_base_offset)
    return dict(marks)


def _folder(copy: CopyRange) -> Folder:
    return copy.segment.capture_rank, copy.segment.section.log_dir


def _appends_of(copies: Iterable[CopyRange]) -> Iterable[Array]:
    summaries = (summary for copy in copies for summary in copy.summaries if not summary.is_doubted)
    return (summary.producers.rows for summary in summaries if len(summary.producers))
