"""The log of one partition, put together from copies of its segments: of several brokers and of several captures.

Of the copies that cover some offsets, the newest capture's counts, and within it the one from which compaction removed
least. Where copies contradict each other, the higher partition leader epoch is the log (KIP-101).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from txn_analysis.reconstruct.copies import Comparison, Pair, Part, Stretch, stretches
from txn_analysis.reconstruct.segments import TO_THE_END, Problem, ProblemKind, SectionKey, Segment

Row = dict[str, Any]
Comparisons = Mapping[Pair, Comparison]


@dataclass
class PartitionLog:
    """One log: its files, its pieces in offset order, why it is not whole, and what else its copies say.

    `after_gap`: by first offset of the piece behind it, the last offset of a stretch that no file holds.
    `compacted_away`: by the offset up to which it speaks, what another copy held before compaction.
    """

    segments: list[Segment] = field(default_factory=list)
    pieces: list[Row] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    witnesses: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    after_gap: dict[int, int] = field(default_factory=dict)
    compacted_away: list[tuple[int, list[Row]]] = field(default_factory=list)

    @property
    def first_offset(self) -> int | None:
        """First offset of any file; None without files."""
        return min((s.first_offset for s in self.segments), default=None)

    @property
    def end_offset(self) -> int | None:
        """The offset after the last one of any file."""
        ends = [s.end_offset for s in self.segments if not s.pieces] + [p["last_offset"] + 1 for p in self.pieces[-1:]]
        return max(ends, default=None)


def partition_log(segments: list[Segment], comparisons: Comparisons) -> PartitionLog:
    """The log that all copies of one partition make up; `comparisons` has all of `copies.pairs_to_compare`."""
    found = list(stretches(segments))
    choice = _Choice(segments, {pair: comparisons[pair] for stretch in found for pair in stretch.pairs})
    for stretch in found:
        choice.take(stretch)
    return choice.log()


@dataclass
class _Truncation:
    """From an offset on, batches of a lower leader epoch are not in the log any more."""

    offset: int
    leader_epoch: int

    def removes(self, part: Part, start: int) -> bool:
        epoch = part.leader_epoch
        return start >= self.offset and epoch is not None and epoch < self.leader_epoch


class _Choice:
    """Takes one stretch after the other, in offset order."""

    def __init__(self, segments: list[Segment], comparisons: Comparisons) -> None:
        self._segments = segments
        self._comparisons = comparisons
        self._ranks = sorted({s.capture_rank for s in segments})
        self._bounds = {rank: _bounds([s for s in segments if s.capture_rank < rank]) for rank in self._ranks}
        rank = {s.key: s.capture_rank for s in segments}
        self._is_rewritten = any(
            c.a_lost_offset is not None and rank[pair.a] < rank[pair.b] for pair, c in comparisons.items()
        )
        self._truncations: list[_Truncation] = []
        self._chosen: list[Part] = []
        self._problems: list[Problem] = []
        self._remarks: list[str] = []
        self._compacted_away: list[tuple[int, list[Row]]] = []
        self._agreed_until: int | None = None
        self._compacted_until: int | None = None
        self._cut_before: int | None = None

    def take(self, stretch: Stretch) -> None:
        """Choose the part that is the log in this stretch, if any is."""
        if self._is_beyond(stretch) or self._is_compacted_gap(stretch):
            return
        losers: set[int] = set()
        for pair in stretch.pairs:
            comparison = self._comparisons[pair]
            if comparison.conflict_offset is not None:
                losers |= self._resolve(pair, comparison, stretch)
        groups = [g for g in stretch.contents if not self._is_truncated(g[0], stretch.start) and id(g[0]) not in losers]
        if not groups:
            return
        rank = groups[0][0].segment.capture_rank
        lost = self._lost_offsets(stretch)
        best = min(
            (g for g in groups if g[0].segment.capture_rank == rank), key=lambda g: lost.get(g[0].segment.key, -1)
        )
        self._chosen.append(_confirmed(best))
        self._remember(stretch.stop, best, groups, lost)

    def log(self) -> PartitionLog:
        """The log of everything that was taken."""
        pieces = [piece for part in self._chosen for piece in part.pieces]
        used: dict[int, list[Row]] = {}
        for part in self._chosen:
            used.setdefault(id(part.segment), []).extend(part.pieces)
        kept = [s for s in self._segments if id(s) in used or (not s.pieces and s.capture_rank == self._ranks[0])]
        log = PartitionLog(
            kept, pieces, self._problems, self._witnesses(), self._remarks, compacted_away=self._compacted_away
        )
        for segment in kept:
            log.problems += self._problems_of(segment, used.get(id(segment), []))
        if self._compacted_until is not None:
            removed = f"compaction removed records up to offset {self._compacted_until} that another copy still holds"
            log.remarks.append(removed)
        if self._cut_before is not None:
            reason = f"an earlier capture reaches up to offset {self._cut_before}, this one ends before"
            log.problems.append(Problem(TO_THE_END, ProblemKind.ENDS_BEFORE_EARLIER_CAPTURE, reason))
        log.problems += self._doubtful_tails()
        _find_gaps(log)
        _find_torn_tails(log)
        _find_doubtful_end(log)
        _find_missing_lines(log)
        return log

    def _is_beyond(self, stretch: Stretch) -> bool:
        """Only earlier captures reach so far: what was judged is cut short, unless its leaders truncated the log."""
        newer = self._bounds[stretch.parts[0].segment.capture_rank]
        if newer is None or stretch.start < newer[1]:
            return False
        epochs = [e for part in self._chosen if (e := part.leader_epoch) is not None]
        epoch = stretch.parts[0].leader_epoch
        if epoch is None or epoch >= max(epochs, default=epoch):
            self._cut_before = stretch.stop - 1
        else:
            self._remarks.append(f"an earlier capture's tail from offset {stretch.start} on was truncated since")
        return True

    def _doubtful_tails(self) -> Iterable[Problem]:
        """Where an earlier capture ends and a newer one goes on under a new leader, who may have truncated that end."""
        for before, after in pairwise(self._chosen):
            rank, epoch = before.segment.capture_rank, before.leader_epoch
            end = before.pieces[-1]["last_offset"] + 1 if before.pieces else None
            is_its_end = end == max(s.end_offset for s in self._segments if s.capture_rank == rank)
            next_epoch = after.pieces[0]["first_leader_epoch"] if after.pieces else None
            if after.segment.capture_rank >= rank or not is_its_end or epoch is None or next_epoch is None:
                continue
            if next_epoch > epoch:
                doubt = f"may have been truncated by leader epoch {next_epoch}"
                last_offset, tail = (
                    int(before.pieces[-1]["last_offset"]),
                    f"an earlier capture's tail before offset {end}",
                )
                yield Problem(last_offset, ProblemKind.TAIL_IN_DOUBT, f"{tail} {doubt}")

    def _witnesses(self) -> list[str]:
        return [] if self._agreed_until is None else [f"copies agree up to offset {self._agreed_until - 1}"]

    def _is_compacted_gap(self, stretch: Stretch) -> bool:
        """Between the files of a newer capture: where compaction has been at work, it emptied these offsets as well."""
        newer = self._bounds[stretch.parts[0].segment.capture_rank]
        return newer is not None and self._is_rewritten and stretch.start >= newer[0]

    def _is_truncated(self, part: Part, start: int) -> bool:
        return any(truncation.removes(part, start) for truncation in self._truncations)

    def _resolve(self, pair: Pair, comparison: Comparison, stretch: Stretch) -> set[int]:
        """Which of two contradicting copies is not the log; none where nothing can tell."""
        a, b = (next(p for p in stretch.parts if p.segment.key == key) for key in (pair.a, pair.b))
        if self._is_truncated(a, stretch.start) or self._is_truncated(b, stretch.start):
            return set()
        offset, of_a, of_b = comparison.conflict_offset, comparison.a_leader_epoch, comparison.b_leader_epoch
        assert offset is not None
        if of_a is None or of_b is None or of_a == of_b:
            differ = f"copies differ from offset {offset} on: inputs {pair.a[0]} and {pair.b[0]}"
            self._problems.append(Problem(TO_THE_END, ProblemKind.COPIES_DIFFER, differ))
            return set()
        winner, loser = (a, b) if of_a > of_b else (b, a)
        self._truncations.append(_Truncation(offset, max(of_a, of_b)))
        self._remarks.append(
            f"from offset {offset} on, input {loser.segment.key[0]} was truncated: leader epoch {min(of_a, of_b)} "
            f"there, {max(of_a, of_b)} in input {winner.segment.key[0]}"
        )
        if loser.segment.capture_rank < winner.segment.capture_rank:
            not_the_log = f"this capture's copy is not the log from offset {offset} on"
            self._problems.append(Problem(TO_THE_END, ProblemKind.COPY_NOT_THE_LOG, not_the_log))
        return {id(part) for group in stretch.contents if loser in group for part in group}

    def _lost_offsets(self, stretch: Stretch) -> dict[SectionKey, int]:
        """By copy, the last offset that compaction took from it and left in another one."""
        lost: dict[SectionKey, int] = {}
        for pair in stretch.pairs:
            comparison = self._comparisons[pair]
            for key, offset in ((pair.a, comparison.a_lost_offset), (pair.b, comparison.b_lost_offset)):
                if offset is not None:
                    lost[key] = max(offset, lost.get(key, -1))
        return lost

    def _remember(self, stop: int, best: list[Part], groups: list[list[Part]], lost: Mapping[SectionKey, int]) -> None:
        if len(best) > 1:
            self._agreed_until = max(stop, self._agreed_until or 0)
        if best[0].segment.key in lost:
            fullest = min(groups, key=lambda g: lost.get(g[0].segment.key, -1))
            self._compacted_away.append((stop, fullest[0].pieces))
            self._compacted_until = max(lost[best[0].segment.key], self._compacted_until or 0)

    def _problems_of(self, segment: Segment, used: list[Row]) -> Iterable[Problem]:
        """Of a file that lies behind the judged capture, nothing spoils what begins above its part of the log."""
        found = segment.problems(used)
        if segment.capture_rank == self._ranks[0] or not used:
            return found
        last_offset = int(used[-1]["last_offset"])
        return [p._replace(offset=min(p.offset, last_offset)) for p in found]


def _bounds(segments: list[Segment]) -> tuple[int, int] | None:
    """First and end offset of some files; None without any."""
    if not segments:
        return None
    return min(s.covered_from for s in segments), max(s.end_offset for s in segments)


def _find_gaps(log: PartitionLog) -> None:
    """Offsets between two files that neither holds; inside one file such a hole is compaction."""
    base_of = {s.key: s.section["file_base_offset"] for s in log.segments}
    for before, piece in pairwise(log.pieces):
        key = (piece["input_id"], piece["section_index"])
        if key == (before["input_id"], before["section_index"]) or piece["first_offset"] == before["last_offset"] + 1:
            continue
        if base_of[key] > before["last_offset"] + 1:
            log.after_gap[piece["first_offset"]] = base_of[key] - 1
        log.problems.append(gap(before["last_offset"] + 1, piece["first_offset"] - 1))
    end = log.pieces[-1]["last_offset"] + 1 if log.pieces else None
    empty = max((s.first_offset for s in log.segments if not s.pieces), default=None)
    if end is not None and empty is not None and empty > end:
        log.problems.append(gap(end, empty - 1))


def gap(first: int, last: int) -> Problem:
    """No file holds these offsets; what began before or among them is not whole."""
    return Problem(last, ProblemKind.OFFSETS_IN_NO_FILE, f"offsets {first} to {last} are in no file")


def _find_torn_tails(log: PartitionLog) -> None:
    """A file may end in half a batch where it is the last one, and was being written; nowhere else."""
    for segment in log.segments:
        if not segment.section["torn_bytes"]:
            continue
        name, torn_bytes = segment.section["file_base_offset"], segment.section["torn_bytes"]
        torn = f"file {name} ends in {torn_bytes} bytes that are no whole batch"
        if segment.end_offset < (log.end_offset or 0):
            log.problems.append(Problem(segment.end_offset - 1, ProblemKind.TORN_TAIL, torn))
        else:
            log.remarks.append(torn)


def _confirmed(parts: list[Part]) -> Part:
    """The first of copies that agree; what may be a record's text in it is not if another copy shows it as well."""
    chosen = parts[0]
    if any(all(piece["doubtful_offset"] is None for piece in part.pieces) for part in parts[1:]):
        return Part(chosen.segment, [piece | {"doubtful_offset": None} for piece in chosen.pieces])
    return chosen


def _find_doubtful_end(log: PartitionLog) -> None:
    """Text of a client can only imitate the end of a log: in a file that another one follows, offsets would overlap."""
    doubtful = [piece for piece in log.pieces if piece["doubtful_offset"] is not None]
    begins = {segment.covered_from for segment in log.segments}
    ends = {segment.key: segment.end_offset for segment in log.segments}
    for piece in doubtful:
        if ends[piece["input_id"], piece["section_index"]] not in begins:
            may_be = f"batches from offset {piece['doubtful_offset']} on may be text of a record's header keys"
            reason = f"{may_be}; give a dump without --deep-iteration as well"
            log.problems.append(Problem(TO_THE_END, ProblemKind.MAY_BE_HEADER_KEYS, reason))
            return


def _find_missing_lines(log: PartitionLog) -> None:
    """Batches are proven by their positions; what their record lines do not prove is only said."""
    lacking = [piece for piece in log.pieces if piece["lacking_batch_count"]]
    if lacking:
        batch_count = sum(piece["lacking_batch_count"] for piece in lacking)
        first = lacking[0]["lacking_offset"]
        log.remarks.append(
            f"record lines are missing or not proven: {batch_count} of its batches, from offset {first} on"
        )
