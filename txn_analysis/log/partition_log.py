"""The log of one partition, put together from copies of its segments: of several brokers and of several captures.

Of the copies that cover some offsets, the newest capture's counts, and within it the one from which compaction removed
least. Where copies contradict each other, the higher partition leader epoch is the log (KIP-101).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from txn_analysis.kafka.log_problems import ProblemKind
from txn_analysis.log.copies import Comparison, Pair, Part, Stretch, stretches
from txn_analysis.log.other_copies import OtherCopies, Span
from txn_analysis.log.segments import TO_THE_END, Problem, Segment
from txn_analysis.log.whole_log import PartitionLog, look_whether_whole

if TYPE_CHECKING:
    from txn_analysis.log.pieces import LogPiece
    from txn_analysis.log.sections import SectionKey

Comparisons = Mapping[Pair, Comparison]


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
        self._is_rewritten = _is_rewritten(segments, comparisons)
        self._truncations: list[_Truncation] = []
        self._chosen: list[Part] = []
        self._problems: list[Problem] = []
        self._remarks: list[str] = []
        self._compacted_away: list[tuple[int, list[LogPiece]]] = []
        self._agreed_until: int | None = None
        self._compacted_until: int | None = None
        self._cut_before: int | None = None
        self._others = OtherCopies()

    def take(self, stretch: Stretch) -> None:
        """Choose the part that is the log in this stretch, if any is."""
        if self._is_beyond(stretch) or self._is_compacted_gap(stretch) or self._is_client_text(stretch):
            self._others.pass_over(stretch.parts)
            return
        disproven = _disproven(stretch)
        losers = set(disproven)
        for pair in stretch.pairs:
            comparison = self._comparisons[pair]
            if comparison.conflict_offset is not None:
                losers |= self._resolve(pair, comparison, stretch, disproven)
        if truncated := [g for g in stretch.contents if self._is_truncated(g[0], stretch.start)]:
            self._others.truncated([part for group in truncated for part in group], stretch.start)
            losers |= {id(group[0]) for group in truncated}
        groups = [g for g in stretch.contents if id(g[0]) not in losers]
        if not groups:
            self._others.pass_over(stretch.parts)
            return
        rank = groups[0][0].segment.capture_rank
        lost = self._lost_offsets(stretch)
        best = min(
            (g for g in groups if g[0].segment.capture_rank == rank), key=lambda g: lost.get(g[0].segment.key, -1)
        )
        self._chosen.append(_confirmed(best))
        self._others.pass_over([part for group in stretch.contents if group is not best for part in group])
        self._others.spans.append(Span(stretch.start, stretch.stop, best[0], [p for group in groups for p in group]))
        self._remember(stretch.stop, best, groups, lost)

    def log(self) -> PartitionLog:
        """The log of everything that was taken."""
        pieces = [piece for part in self._chosen for piece in part.pieces]
        used: dict[int, list[LogPiece]] = {}
        for part in self._chosen:
            used.setdefault(id(part.segment), []).extend(part.pieces)
        kept = [s for s in self._segments if id(s) in used or (not s.pieces and s.capture_rank == self._ranks[0])]
        log = PartitionLog(
            kept,
            pieces,
            self._problems,
            self._witnesses(),
            self._remarks,
            compacted_away=self._compacted_away,
            others=self._others,
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
        look_whether_whole(log)
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
            self._others.truncated(stretch.parts, stretch.start)
        return True

    def _doubtful_tails(self) -> Iterable[Problem]:
        """Where an earlier capture ends and a newer one goes on under a new leader, who may have truncated that end."""
        for before, after in pairwise(self._chosen):
            rank, epoch = before.segment.capture_rank, before.leader_epoch
            end = before.pieces[-1].last_offset + 1 if before.pieces else None
            is_its_end = end == max(s.end_offset for s in self._segments if s.capture_rank == rank)
            next_epoch = after.pieces[0].first_leader_epoch if after.pieces else None
            if after.segment.capture_rank >= rank or not is_its_end or epoch is None or next_epoch is None:
                continue
            if next_epoch > epoch:
                doubt = f"may have been truncated by leader epoch {next_epoch}"
                last_offset, tail = (
                    before.pieces[-1].last_offset,
                    f"an earlier capture's tail before offset {end}",
                )
                yield Problem(last_offset, ProblemKind.TAIL_IN_DOUBT, f"{tail} {doubt}")

    def _witnesses(self) -> list[str]:
        return [] if self._agreed_until is None else [f"copies agree up to offset {self._agreed_until - 1}"]

    def _is_compacted_gap(self, stretch: Stretch) -> bool:
        """Between the files of a newer capture: where compaction has been at work, it emptied these offsets as well."""
        newer = self._bounds[stretch.parts[0].segment.capture_rank]
        return newer is not None and self._is_rewritten and stretch.start >= newer[0]

    def _is_client_text(self, stretch: Stretch) -> bool:
        """What may be text of a client is, where another dump of that segment reaches up to it and does not show it."""
        found = [part for part in stretch.parts if part.pieces]
        if not found or not all(self._is_not_in_other_dump(part, stretch.start) for part in found):
            return False
        self._remarks.append(f"offset {stretch.start} on is text of a record's header keys: no other dump shows it")
        return True

    def _is_not_in_other_dump(self, part: Part, start: int) -> bool:
        if not all(piece.is_doubted for piece in part.pieces):
            return False
        own = part.segment
        true_end = next(p.first_offset for p in own.pieces if p.is_doubted)
        return any(
            other.capture_rank == own.capture_rank
            and other.covered_from == own.covered_from
            and true_end <= other.end_offset <= start
            and not any(piece.is_doubted for piece in other.pieces)
            for other in self._segments
            if other.pieces
        )

    def _is_truncated(self, part: Part, start: int) -> bool:
        return any(truncation.removes(part, start) for truncation in self._truncations)

    def _resolve(self, pair: Pair, comparison: Comparison, stretch: Stretch, disproven: Mapping[int, int]) -> set[int]:
        """Which of two contradicting copies is not the log; none where nothing can tell."""
        a, b = (next(p for p in stretch.parts if p.segment.key == key) for key in (pair.a, pair.b))
        if self._is_truncated(a, stretch.start) or self._is_truncated(b, stretch.start):
            return set()
        offset, of_a, of_b = comparison.conflict_offset, comparison.a_leader_epoch, comparison.b_leader_epoch
        assert offset is not None
        if any(id(part) in disproven and disproven[id(part)] <= offset for part in (a, b)):
            return set()
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
        truncated = [part for group in stretch.contents if loser in group for part in group]
        self._others.truncated(truncated, offset)
        return {id(part) for part in truncated}

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

    def _problems_of(self, segment: Segment, used: list[LogPiece]) -> Iterable[Problem]:
        """Of a file that lies behind the judged capture, nothing spoils what begins above its part of the log."""
        found = segment.problems(used)
        if segment.capture_rank == self._ranks[0] or not used:
            return found
        last_offset = used[-1].last_offset
        return [p._replace(offset=min(p.offset, last_offset)) for p in found]


def _is_rewritten(segments: list[Segment], comparisons: Comparisons) -> bool:
    """Compaction has been at work in a newer capture."""
    rank = {s.key: s.capture_rank for s in segments} if comparisons else {}
    return any(c.a_lost_offset is not None and rank[pair.a] < rank[pair.b] for pair, c in comparisons.items())


def _bounds(segments: list[Segment]) -> tuple[int, int] | None:
    """First and end offset of some files; None without any."""
    if not segments:
        return None
    return min(s.covered_from for s in segments), max(s.end_offset for s in segments)


def _disproven(stretch: Stretch) -> dict[int, int]:
    """The first of copies that agree, none of which is certain of what may be text, where another copy is; by what is
    doubted of it.
    """
    if len(stretch.contents) == 1:
        return {}
    others = [part for group in stretch.contents for part in group]
    return {
        id(group[0]): offset
        for group in stretch.contents
        if (offset := group[0].doubted_offset) is not None
        and all(part.doubted_offset is not None for part in group)
        and any(group[0].is_disproven_beside(other) for other in others)
    }


def _confirmed(parts: list[Part]) -> Part:
    """The first of copies that agree; what may be a client's text in it is not if another copy is certain of it."""
    chosen = parts[0]
    if any(part.doubted_offset is None for part in parts[1:]):
        settled = [piece._replace(doubtful_offset=None, contested_offset=None) for piece in chosen.pieces]
        return Part(chosen.segment, settled)
    return chosen
