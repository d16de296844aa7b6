"""The files of which a partition's log is made: log segments with their batch ranges, snapshots, checkpoints.

Rows of `inputs.sections` become typed records here; behind `log_sections` no column is looked up by name. Batch ranges
of one dump are rivals where they claim the same positions, because tasks read different lines of its text: a client can
write text that looks like the batch lines after its record. Where one task's part of a dump ends between such text and
the true lines, one task follows the text and the next one the true lines. Only their positions show that not both are
the log's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeVar

from txn_analysis.kafka.names import (
    BINARY_GRAMMARS,
    LOG_KINDS,
    NO_LINES,
    SNAPSHOT,
    STATED_OF_PARTITION,
    TOPIC_ID,
)
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.tables import BatchRangeSummary, Problem
from txn_analysis.tables.inputs import InputSection

SectionKey = tuple[str, int]  # an input, and the index of the section in it
NO_RANK = 2**31 - 1  # above that of any capture
_KINDS = frozenset({*LOG_KINDS, SNAPSHOT, *STATED_OF_PARTITION})


def log_sections(sections: Iterable[InputSection]) -> list[InputSection]:
    """The sections of logs among some."""
    return [section for section in sections if section.kind in _KINDS]


def proves_nothing(section: InputSection) -> bool:
    """The section says nothing of its partition's log: a checkpoint's statement, or a snapshot's dump without a line.

    `kafka-dump-log` prints a header alone of a snapshot without producers, and of one that it cannot read as well
    (`DumpLogSegments.dumpProducerIdSnapshot`); and a dump that was cut looks so.
    """
    return section.kind in STATED_OF_PARTITION or is_empty_dump(section)


def is_empty_dump(section: InputSection) -> bool:
    """The dump of a producer snapshot that has no line; a broker's own file says by its checksum that it is whole."""
    return section.kind == SNAPSHOT and section.grammar == NO_LINES


@dataclass(eq=False, slots=True)
class Segment:
    """One copy of one segment file; each is equal to itself alone.

    Attributes:
        section: its section.
        summaries: of its batch ranges, in position order.
        first_offset: base offset of its first batch; the offset in its name where it has none.
        covered_from: the offset in its name: a file holds all that is left from there on, even where compaction removed
            its first batches.
        end_offset: the offset after its last batch.
    """

    section: InputSection
    summaries: list[BatchRangeSummary]
    first_offset: int = field(init=False)
    covered_from: int = field(init=False)
    end_offset: int = field(init=False)

    def __post_init__(self) -> None:
        named, summaries = self.section.file_base_offset, self.summaries
        self.first_offset = summaries[0].first_offset if summaries else named
        self.covered_from = min(named, self.first_offset)
        self.end_offset = summaries[-1].last_offset + 1 if summaries else self.first_offset

    @property
    def key(self) -> SectionKey:
        """Its input, and the index of the section in it."""
        return self.section.key

    @property
    def capture_rank(self) -> int:
        """0 for the capture that is judged, 1 for the one before it, and so on."""
        return self.section.capture_rank

    def lacks_batches_before(self, summary: BatchRangeSummary) -> bool:
        """Positions do not chain up to this range of it: what is missing there was not compacted."""
        before = max((s.end_position for s in self.summaries if s.first_position < summary.first_position), default=0)
        return before != summary.first_position

    def problems(self, used: list[BatchRangeSummary]) -> list[Problem]:
        """What is wrong inside this copy, up to the end of its `used` ranges, which are neighbours.

        Of holes, invalid and empty batches only the last one is named, so that the answer does not depend on how the
        text was split.
        """
        name = f"file {self.section.file_base_offset:020d}.log"
        problems = self._text_problems(name)
        last_offset = self.end_offset - 1
        if used and self.summaries[0].first_position != 0:
            reason = f"{name} does not begin at position 0"
            problems.append(Problem(last_offset, ProblemKind.BATCHES_MISSING, reason))
        holes = [summary.last_hole_offset for summary in used]
        for before, after in pairwise(used):
            if after.first_position != before.end_position or after.first_offset <= before.last_offset:
                reason = f"{name} lacks batches at position {before.end_position}"
                problems.append(Problem(last_offset, ProblemKind.BATCHES_MISSING, reason))
            elif after.first_offset != before.last_offset + 1:
                holes.append(after.first_offset - 1)
        return problems + list(_last_places(name, used, holes))

    def _text_problems(self, name: str) -> list[Problem]:
        section = self.section
        problems = []
        if not section.is_start_proven:
            problems.append((ProblemKind.UNPROVEN_START, f"{name} may be text inside another file's record"))
        if not section.is_end_proven:
            problems.append((ProblemKind.UNPROVEN_END, f"{name}: its last record is not proven to be whole"))
        if section.input_problem is not None:
            problems.append((ProblemKind.INPUT_PROBLEM, f"{name}: {section.input_problem}"))
        understood_to = self.summaries[-1].text_end_bytes if self.summaries else section.text_start_bytes
        if understood_to < section.text_end_bytes:
            unread = f"{name}: the text after offset {self.end_offset - 1} was not understood"
            if section.grammar in BINARY_GRAMMARS:
                problems.append((ProblemKind.TEXT_NOT_UNDERSTOOD, unread))
            else:
                where = f" (byte {understood_to} of {section.shown_path}); dump it again, without 2>&1"
                problems.append((ProblemKind.LINES_OF_OTHERS, unread + where))
        return [Problem(None, kind, reason) for kind, reason in problems]


def _last_places(name: str, used: list[BatchRangeSummary], holes: list[int | None]) -> Iterable[Problem]:
    hole = _largest(holes)
    if hole is not None:
        yield Problem(hole, ProblemKind.HOLE_IN_FILE, f"{name} has no batch for offset {hole}")
    invalid = _largest([summary.last_invalid_offset for summary in used])
    if invalid is not None:
        yield Problem(invalid, ProblemKind.INVALID_BATCH, f"{name}: the batch that ends at offset {invalid} is invalid")
    empty = _largest([summary.last_empty_offset for summary in used])
    if empty is not None:
        reason = f"{name}: the batch that ends at offset {empty} has no record left"
        yield Problem(empty, ProblemKind.EMPTY_BATCH, reason)
    contested = next((s.contested_offset for s in used if s.contested_offset is not None), None)
    if contested is not None:
        yield Problem(None, ProblemKind.CONTESTED_LINE, f"{name}: two lines claim the position of offset {contested}")


def _largest(offsets: list[int | None]) -> int | None:
    return max([offset for offset in offsets if offset is not None], default=None)


def segments_of(sections: list[InputSection], summaries: list[BatchRangeSummary]) -> list[Segment]:
    """Each copy of a segment file with its batch ranges, empty files included; content of several captures once.

    `sections` may hold more than logs. Files of another topic of the same name are left out.
    """
    newest: dict[SectionKey, InputSection] = {}
    ranges: dict[SectionKey, list[BatchRangeSummary]] = {}
    other = first_other_rank(sections, summaries)
    for section in sections:
        if section.kind in LOG_KINDS and section.capture_rank < other:
            key = section.key
            if key not in newest or section.capture_rank < newest[key].capture_rank:
                newest[key], ranges[key] = section, []
    for summary in summaries:
        of_section = ranges.get(summary.section)
        if of_section is not None:
            of_section.append(summary)
    segments = [
        Segment(newest[key], _doubtful_to_the_end(without_rivals(own_ranges))) for key, own_ranges in ranges.items()
    ]
    return sorted(segments, key=lambda s: (s.first_offset, s.end_offset, s.key))


def first_other_rank(sections: list[InputSection], summaries: list[BatchRangeSummary]) -> int:
    """The rank of the newest capture that holds another topic of the same name; it and older ones do not count.

    A topic that was deleted and created again has another topic id (KIP-516), and its leader epochs begin anew: the
    batch at offset 0 has a lower one in the newer capture. (A truncation leaves a higher one.) NO_RANK without one.
    """
    if len({s.capture_rank for s in sections}) < 2:
        return NO_RANK
    return min(_other_topic_rank(sections), _other_epochs_rank(sections, summaries))


def _other_topic_rank(sections: list[InputSection]) -> int:
    ids: dict[int, set[str | None]] = {}
    for section in (s for s in sections if s.kind == TOPIC_ID):
        ids.setdefault(section.capture_rank, set()).add(section.stated)
    newest = ids[min(ids)] if ids else set()
    return min((rank for rank, of_rank in ids.items() if not of_rank <= newest), default=NO_RANK)


def _other_epochs_rank(sections: list[InputSection], summaries: list[BatchRangeSummary]) -> int:
    ranks: dict[SectionKey, int] = {}
    for s in sections:
        ranks[s.key] = min(s.capture_rank, ranks.get(s.key, NO_RANK))
    first_epochs: dict[int, int] = {}
    for summary in summaries:
        if summary.first_offset == 0 and summary.first_leader_epoch is not None and not summary.is_doubted:
            rank = ranks[summary.section]
            first_epochs[rank] = max(summary.first_leader_epoch, first_epochs.get(rank, 0))
    return next(
        (r for r in sorted(first_epochs) if any(first_epochs[n] < first_epochs[r] for n in first_epochs if n < r)),
        NO_RANK,
    )


def _doubtful_to_the_end(summaries: list[BatchRangeSummary]) -> list[BatchRangeSummary]:
    """The batch ranges of one file: from the first that may be header keys of a record on, all of them may be."""
    first = next((n for n, summary in enumerate(summaries) if summary.doubtful_offset is not None), None)
    if first is None:
        return summaries
    doubtful_offset = summaries[first].doubtful_offset
    return summaries[:first] + [s._replace(doubtful_offset=doubtful_offset) for s in summaries[first:]]


class Cuts(NamedTuple):
    """Where batch ranges of one file must end, beside where they end anyway.

    Before the first batch that begins at or after one of the offsets, or ends after one of the positions.
    """

    offsets: Sequence[int] = ()
    positions: Sequence[int] = ()

    @property
    def first(self) -> str:
        """The first of them, in words."""
        return f"offset {self.offsets[0]}" if self.offsets else f"position {self.positions[0]}"


UNCUT = Cuts()


_Range = TypeVar("_Range")


def rival_positions(places: Iterable[tuple[int, int]]) -> list[int] | None:
    """Where one of a file's batch ranges, or of the parts of its text that tasks read, begins inside another one; None
    where none does. A place is the first position and the end position.
    """
    rivals, reached = set(), -1
    for first, end in sorted(places):
        if first < reached:
            rivals.add(first)
        reached = max(reached, end)
    return sorted(rivals) or None


def without_rivals(pieces: Sequence[BatchRangeSummary]) -> list[BatchRangeSummary]:
    """The batch ranges of one file in order of position, without those that claim the positions of another one.

    Of ranges that claim the same positions, the one that reaches farthest is kept, of several the last in the text. It
    is contested: either can be text of a client, from the first position on that both claim.
    """
    kept: list[BatchRangeSummary] = []
    for group in _groups((p.first_position, p.end_position, p.text_start_bytes, p) for p in pieces):
        if len(group) > 1:
            first_offset = min(piece.first_offset for piece in group)
            kept += [piece._replace(contested_offset=first_offset) for piece in _farthest(group)]
        else:
            kept += group
    return kept


def certain_moment_ms(ranges: Iterable[tuple[int, int, int | None]]) -> int | None:
    """The largest moment of one file, of batch ranges without rivals; None without one.

    In: first position, end position and largest moment of each range.
    """
    groups = _groups((first, end, number, ms) for number, (first, end, ms) in enumerate(ranges))
    return max((group[0] for group in groups if len(group) == 1 and group[0] is not None), default=None)


def _groups(ranges: Iterable[tuple[int, int, int, _Range]]) -> list[list[_Range]]:
    """Batch ranges, each behind its first and its end position and a number of its own: those that claim the same
    positions together, and each other one alone, in order of position.
    """
    groups: list[list[_Range]] = []
    reached = -1
    for first, end, _, each in sorted(ranges, key=lambda placed: (placed[0], placed[2])):
        if first >= reached:
            groups.append([])
        groups[-1].append(each)
        reached = max(reached, end)
    return groups


def _farthest(rivals: Sequence[BatchRangeSummary]) -> list[BatchRangeSummary]:
    """Of batch ranges that claim the same positions those that are kept, in order of position."""
    kept: list[BatchRangeSummary] = []
    for one in sorted(rivals, key=lambda p: (-p.end_position, -p.text_start_bytes)):
        if all(one.end_position <= p.first_position or p.end_position <= one.first_position for p in kept):
            kept.append(one)
    return sorted(kept, key=lambda p: p.first_position)
