"""Which of several copies is the log between two offsets: one choice for each stretch, and what it rests on.

Of the copies that cover some offsets, the newest capture's counts, and within it the one from which compaction removed
least. Where copies contradict each other, the higher partition leader epoch is the log (KIP-101).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.kafka.sections import ProblemKind
from txn_analysis.log.copies import Comparison, Pair, Part, Stretch
from txn_analysis.log.segments import TO_THE_END, Problem, Segment
from txn_analysis.log.two_logs import TwoLogs, differ_from_the_start

if TYPE_CHECKING:
    from txn_analysis.log.sections import SectionKey

Comparisons = Mapping[Pair, Comparison]


class Truncation(NamedTuple):
    """From an offset on, batches of a lower leader epoch are not in the log any more."""

    offset: int
    leader_epoch: int

    def removes(self, part: Part, start: int) -> bool:
        """What a copy holds from an offset on is not in the log."""
        epoch = part.leader_epoch
        return start >= self.offset and epoch is not None and epoch < self.leader_epoch


@dataclass(slots=True)
class Choice:
    """What was decided of one stretch.

    Attributes:
        stretch: the offsets, and the copies that cover them.
        chosen: the copy that is the log there; None where none is.
        groups: the contents that can be the log, as copies that agree; that of the chosen one among them.
        best: the copies that agree with the chosen one.
        lost: by copy, the last offset that compaction took from it and left in another one.
        truncations: which copies say that another one was truncated.
        truncated: copies that were, and from which offset on.
        cut_before: the last offset of a stretch that only earlier captures reach, and no truncation explains.
        problems: what copies that contradict each other do to the evidence.
        remarks: what explains it.
        two_logs: copies that are of two logs.
    """

    stretch: Stretch
    chosen: Part | None = None
    groups: Sequence[list[Part]] = ()
    best: Sequence[Part] = ()
    lost: dict[SectionKey, int] = field(default_factory=dict)
    truncations: tuple[Truncation, ...] = ()
    truncated: tuple[tuple[list[Part], int], ...] = ()
    cut_before: int | None = None
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()
    two_logs: tuple[TwoLogs, ...] = ()

    @property
    def passed_over(self) -> list[Part]:
        """The copies that are not the log, and say something else."""
        return [part for group in self.stretch.contents if group is not self.best for part in group]

    @property
    def compacted_until(self) -> int | None:
        """The last offset that compaction took from the chosen copy and left in another one."""
        return self.lost.get(self.best[0].segment.key) if self.best else None

    @property
    def fullest(self) -> Part:
        """Of the copies that can be the log, the one from which compaction took least."""
        return min(self.groups, key=lambda group: self.lost.get(group[0].segment.key, -1))[0]


@dataclass(frozen=True)
class Copies:
    """All copies of the segments of one partition, and how those differ that do.

    `shared_from` is the first offset that any two of them cover. `bounds` are by rank of a capture the first and the
    end offset of the files of newer captures; None where there are none. `is_rewritten` says that compaction has been
    at work in a newer capture.
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

    def choose(self, stretch: Stretch, truncations: Sequence[Truncation], chosen: Sequence[Part]) -> Choice:
        """The copy that is the log in a stretch, if any is.

        Args:
            stretch: the stretch.
            truncations: those that earlier stretches showed.
            chosen: what is the log there.
        """
        newer = self.bounds[stretch.parts[0].segment.capture_rank]
        if newer is not None and stretch.start >= newer[1]:
            return _beyond(stretch, chosen)
        if newer is not None and self.is_rewritten and stretch.start >= newer[0]:
            return Choice(stretch)  # compaction has been at work between newer files: it emptied these offsets as well
        if self._is_client_text(stretch):
            found = f"offset {stretch.start} on is text of a record's header keys: no other dump shows it"
            return Choice(stretch, remarks=(found,))
        choice = Choice(stretch)
        losers = self._losers(choice, truncations) if stretch.pairs or truncations else ()
        choice.groups = [group for group in stretch.contents if id(group[0]) not in losers]
        if choice.groups:
            self._take_best(choice)
        return choice

    def _is_client_text(self, stretch: Stretch) -> bool:
        """What may be text of a client is, where another dump of that segment reaches up to it and does not show it."""
        found = [part for part in stretch.parts if part.pieces]
        return bool(found) and all(self._is_not_in_other_dump(part, stretch.start) for part in found)

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
            for other in self.segments
            if other.pieces
        )

    def _losers(self, choice: Choice, before: Sequence[Truncation]) -> set[int]:
        """The contents that are not the log, by the identity of their first copies."""
        stretch = choice.stretch
        disproven = _disproven(stretch)
        losers = set(disproven)
        for pair in stretch.pairs:
            comparison = self.comparisons[pair]
            if comparison.conflict_offset is not None:
                a, b = (next(p for p in stretch.parts if p.segment.key == key) for key in (pair.a, pair.b))
                if _are_truncated((a, b), stretch.start, [*before, *choice.truncations]):
                    continue
                if not any(disproven.get(id(part), TO_THE_END) <= comparison.conflict_offset for part in (a, b)):
                    if differ_from_the_start(a, b, comparison.conflict_offset, self.shared_from):
                        choice.two_logs += (TwoLogs.of(a.segment.section, b.segment.section),)
                    losers |= _loser(choice, comparison, comparison.conflict_offset, a, b)
        known = [*before, *choice.truncations]
        truncated = [group for group in stretch.contents if _are_truncated(group[:1], stretch.start, known)]
        if truncated:
            choice.truncated += (([part for group in truncated for part in group], stretch.start),)
        return losers | {id(group[0]) for group in truncated}

    def _take_best(self, choice: Choice) -> None:
        if len(choice.groups) == 1 and not choice.stretch.pairs:
            choice.best = choice.groups[0]
            choice.chosen = _confirmed(choice.best)
            return
        rank = choice.groups[0][0].segment.capture_rank
        newest = [group for group in choice.groups if group[0].segment.capture_rank == rank]
        choice.lost = self._lost_offsets(choice.stretch)
        choice.best = min(newest, key=lambda group: choice.lost.get(group[0].segment.key, -1))
        choice.chosen = _confirmed(choice.best)

    def _lost_offsets(self, stretch: Stretch) -> dict[SectionKey, int]:
        lost: dict[SectionKey, int] = {}
        for pair in stretch.pairs:
            comparison = self.comparisons[pair]
            for key, offset in ((pair.a, comparison.a_lost_offset), (pair.b, comparison.b_lost_offset)):
                if offset is not None:
                    lost[key] = max(offset, lost.get(key, -1))
        return lost


def _shared_from(segments: Sequence[Segment]) -> int:
    """The first offset that any two of some files cover; 0 where none is."""
    reached = -1
    for segment in sorted((s for s in segments if s.pieces), key=lambda s: (s.covered_from, s.end_offset)):
        if segment.covered_from < reached:
            return segment.covered_from
        reached = max(reached, segment.end_offset)
    return 0


def _bounds(segments: list[Segment]) -> tuple[int, int] | None:
    """First and end offset of some files; None without any."""
    if not segments:
        return None
    return min(s.covered_from for s in segments), max(s.end_offset for s in segments)


def _beyond(stretch: Stretch, chosen: Sequence[Part]) -> Choice:
    """Only earlier captures reach so far: what was judged is cut short, unless its leaders truncated the log."""
    epoch = stretch.parts[0].leader_epoch
    epochs = [e for part in chosen if (e := part.leader_epoch) is not None]
    if epoch is None or epoch >= max(epochs, default=epoch):
        return Choice(stretch, cut_before=stretch.stop - 1)
    since = f"an earlier capture's tail from offset {stretch.start} on was truncated since"
    return Choice(stretch, truncated=((stretch.parts, stretch.start),), remarks=(since,))


def _are_truncated(parts: Sequence[Part], start: int, truncations: Sequence[Truncation]) -> bool:
    """Some of these copies were truncated, as far as they hold a stretch that begins there."""
    return any(truncation.removes(part, start) for part in parts for truncation in truncations)


def _loser(choice: Choice, comparison: Comparison, offset: int, a: Part, b: Part) -> set[int]:
    """Which of two copies that contradict each other from an offset on is not the log; none where nothing can tell."""
    of_a, of_b = comparison.a_leader_epoch, comparison.b_leader_epoch
    if of_a is None or of_b is None or of_a == of_b:
        differ = f"copies differ from offset {offset} on: {a.segment.shown_path} and {b.segment.shown_path}"
        choice.problems += (Problem(TO_THE_END, ProblemKind.COPIES_DIFFER, differ),)
        return set()
    winner, loser = (a, b) if of_a > of_b else (b, a)
    choice.truncations += (Truncation(offset, max(of_a, of_b)),)
    lost, kept = loser.segment.shown_path, winner.segment.shown_path
    truncated_since = f"from offset {offset} on, {lost} was truncated: leader epoch {min(of_a, of_b)} there"
    choice.remarks += (f"{truncated_since}, {max(of_a, of_b)} in {kept}",)
    if loser.segment.capture_rank < winner.segment.capture_rank:
        not_the_log = f"this capture's copy is not the log from offset {offset} on"
        choice.problems += (Problem(TO_THE_END, ProblemKind.COPY_NOT_THE_LOG, not_the_log),)
    truncated = [part for group in choice.stretch.contents if loser in group for part in group]
    choice.truncated += ((truncated, offset),)
    return {id(part) for part in truncated}


def _disproven(stretch: Stretch) -> dict[int, int]:
    """By the first of copies that agree, the offset from which on another copy disproves what may be text in them.

    None of them is certain of it, and the other copy is.
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


def _confirmed(parts: Sequence[Part]) -> Part:
    """The first of copies that agree; what may be a client's text in it is not if another copy is certain of it."""
    chosen = parts[0]
    if any(part.doubted_offset is None for part in parts[1:]):
        settled = [piece._replace(doubtful_offset=None, contested_offset=None) for piece in chosen.pieces]
        return Part(chosen.segment, settled)
    return chosen
