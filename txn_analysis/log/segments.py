"""One dumped copy of one segment file: its pieces, and what is wrong inside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.kafka.sections import LOG_KINDS, TOPIC_ID, ProblemKind
from txn_analysis.log.rivals import without_rivals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.log.pieces import LogPiece
    from txn_analysis.log.sections import LogSection, SectionKey

NO_RANK = 2**31 - 1  # above that of any capture
TO_THE_END = 2**63 - 1  # a problem that spoils everything after it, however long the log gets


class Problem(NamedTuple):
    """Why the evidence is not whole; it spoils every transaction that began at or before `offset`."""

    offset: int
    kind: ProblemKind
    reason: str


@dataclass(eq=False, slots=True)
class Segment:
    """One dumped copy of one segment file; each is equal to itself alone.

    Attributes:
        section: its section.
        pieces: in position order.
        key: its input and section.
        capture_rank: 0 for the capture that is judged, 1 for the one before it, and so on.
        log_dir: the log directory that it lies in; None for a dump.
        first_offset: base offset of its first batch; of its name where it has none.
        covered_from: the offset in its name: a file holds all that is left from there on, even if compaction took its
            start.
        end_offset: the offset after its last batch.
    """

    section: LogSection
    pieces: list[LogPiece]
    key: SectionKey = field(init=False)
    capture_rank: int = field(init=False)
    log_dir: str | None = field(init=False)
    first_offset: int = field(init=False)
    covered_from: int = field(init=False)
    end_offset: int = field(init=False)

    def __post_init__(self) -> None:
        section, pieces = self.section, self.pieces
        self.key, self.capture_rank, self.log_dir = section.key, section.capture_rank, section.log_dir
        named = section.file_base_offset
        self.first_offset = pieces[0].first_offset if pieces else named
        self.covered_from = min(named, self.first_offset)
        self.end_offset = pieces[-1].last_offset + 1 if pieces else self.first_offset

    @property
    def shown_path(self) -> str:
        """Where its file was found."""
        return self.section.shown_path

    def lacks_batches_before(self, piece: LogPiece) -> bool:
        """Positions do not chain up to this piece of it: what is missing there was not compacted."""
        before = max((p.end_position for p in self.pieces if p.first_position < piece.first_position), default=0)
        return before != piece.first_position

    def problems(self, used: list[LogPiece]) -> list[Problem]:
        """What is wrong inside this copy, as far as its `used` pieces reach; they are neighbours.

        Of what compaction leaves, and of damage, the last place is said: how the text was split does not matter.
        """
        name = f"file {self.section.file_base_offset}"
        found = self._text_problems(name)
        if used and self.pieces[0].first_position != 0:
            found.append(_missing(self.end_offset - 1, f"{name} does not begin at position 0"))
        holes = [piece.last_hole_offset for piece in used]
        for before, piece in pairwise(used):
            if piece.first_position != before.end_position or piece.first_offset <= before.last_offset:
                found.append(_missing(self.end_offset - 1, f"{name} lacks batches at position {before.end_position}"))
            elif piece.first_offset != before.last_offset + 1:
                holes.append(piece.first_offset - 1)
        return found + list(_last_places(name, used, holes))

    def _text_problems(self, name: str) -> list[Problem]:
        section = self.section
        found = []
        if not section.is_start_proven:
            found.append((ProblemKind.UNPROVEN_START, f"{name} may be text inside another file's record"))
        if not section.is_end_proven:
            found.append((ProblemKind.UNPROVEN_END, f"{name}: its last record is not proven to be whole"))
        if section.input_problem is not None:
            found.append((ProblemKind.INPUT_PROBLEM, f"{name}: {section.input_problem}"))
        understood_to = self.pieces[-1].text_end_bytes if self.pieces else section.text_start_bytes
        if understood_to < section.text_end_bytes:
            unread = f"{name}: the text after offset {self.end_offset - 1} was not understood"
            found.append((ProblemKind.TEXT_NOT_UNDERSTOOD, unread))
        return [Problem(TO_THE_END, kind, reason) for kind, reason in found]


def _last_places(name: str, used: list[LogPiece], holes: list[int | None]) -> Iterable[Problem]:
    hole = _largest(holes)
    if hole is not None:
        yield Problem(hole, ProblemKind.HOLE_IN_FILE, f"{name} has no batch for offset {hole}")
    invalid = _largest([piece.last_invalid_offset for piece in used])
    if invalid is not None:
        yield Problem(invalid, ProblemKind.INVALID_BATCH, f"{name}: the batch that ends at offset {invalid} is invalid")
    empty = _largest([piece.last_empty_offset for piece in used])
    if empty is not None:
        yield Problem(
            empty, ProblemKind.EMPTY_BATCH, f"{name}: the batch that ends at offset {empty} has no record left"
        )
    contested = [piece.contested_offset for piece in used if piece.contested_offset is not None]
    if contested:
        reason = f"{name}: two lines claim the position of offset {contested[0]}"
        yield Problem(TO_THE_END, ProblemKind.CONTESTED_LINE, reason)


def _largest(offsets: list[int | None]) -> int | None:
    return max([offset for offset in offsets if offset is not None], default=None)


def _missing(offset: int, reason: str) -> Problem:
    return Problem(offset, ProblemKind.BATCHES_MISSING, reason)


def segments_of(sections: list[LogSection], pieces: list[LogPiece]) -> list[Segment]:
    """Each dumped copy of a segment file with its pieces, empty files included; content of several captures once.

    `sections` may hold more than logs. Files of another partition of this name are left out.
    """
    newest: dict[SectionKey, LogSection] = {}
    found: dict[SectionKey, list[LogPiece]] = {}
    other = first_other_rank(sections, pieces)
    for section in sections:
        if section.kind in LOG_KINDS and section.capture_rank < other:
            key = section.key
            if key not in newest or section.capture_rank < newest[key].capture_rank:
                newest[key], found[key] = section, []
    for piece in pieces:
        of_section = found.get(piece.section)
        if of_section is not None:
            of_section.append(piece)
    segments = [Segment(newest[key], doubted_to_the_end(without_rivals(own))) for key, own in found.items()]
    return sorted(segments, key=lambda s: (s.first_offset, s.end_offset, s.key))


def first_other_rank(sections: list[LogSection], pieces: list[LogPiece]) -> int:
    """The rank of the newest capture that holds another partition of this name; it and those before it do not count.

    A topic that was deleted and made again has another topic id (KIP-516), and its leader epochs begin anew: the batch
    at offset 0 has a lower one in the newer capture. (A truncation leaves a higher one.)
    """
    if len({s.capture_rank for s in sections}) < 2:
        return NO_RANK
    return min(_other_topic_rank(sections), _other_epochs_rank(sections, pieces))


def _other_topic_rank(sections: list[LogSection]) -> int:
    ids: dict[int, set[str | None]] = {}
    for section in (s for s in sections if s.kind == TOPIC_ID):
        ids.setdefault(section.capture_rank, set()).add(section.stated)
    newest = ids[min(ids)] if ids else set()
    return min((rank for rank, found in ids.items() if not found <= newest), default=NO_RANK)


def _other_epochs_rank(sections: list[LogSection], pieces: list[LogPiece]) -> int:
    ranks: dict[SectionKey, int] = {}
    for s in sections:
        ranks[s.key] = min(s.capture_rank, ranks.get(s.key, NO_RANK))
    first_epochs: dict[int, int] = {}
    for piece in pieces:
        if piece.first_offset == 0 and piece.first_leader_epoch is not None and not piece.is_doubted:
            rank = ranks[piece.section]
            first_epochs[rank] = max(piece.first_leader_epoch, first_epochs.get(rank, 0))
    return next(
        (r for r in sorted(first_epochs) if any(first_epochs[n] < first_epochs[r] for n in first_epochs if n < r)),
        NO_RANK,
    )


def doubted_to_the_end(pieces: list[LogPiece]) -> list[LogPiece]:
    """The pieces of one file: where batches may stand in the header keys of a record, all behind them may as well."""
    first = next((n for n, piece in enumerate(pieces) if piece.doubtful_offset is not None), None)
    if first is None:
        return pieces
    return pieces[:first] + [p._replace(doubtful_offset=pieces[first].doubtful_offset) for p in pieces[first:]]
