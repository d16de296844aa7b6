"""The log of one partition, put together from the dumped segments of one capture and of those before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

Row = dict[str, Any]

_IN_NO_FILE = "are in no file"
_HOLE_IN_FILE = "has no batch for offset"
TO_THE_END = 2**63 - 1  # a problem that spoils everything after it, however long the log gets


class Problem(NamedTuple):
    """Why the evidence is not whole; it spoils every transaction that began at or before `offset`."""

    offset: int
    reason: str


def is_hole(reason: str) -> bool:
    """The problem is that offsets are missing, which compaction does as well."""
    return reason.endswith(_IN_NO_FILE) or _HOLE_IN_FILE in reason


@dataclass
class Segment:
    """One dumped copy of one segment file: its section, and its pieces in position order."""

    section: Row
    pieces: list[Row]

    @property
    def capture_rank(self) -> int:
        """0 for the capture that is judged, 1 for the one before it, and so on."""
        return int(self.section["capture_rank"])

    @property
    def first_offset(self) -> int:
        """Base offset of its first batch; of its name where it has none."""
        return int(self.pieces[0]["first_offset"]) if self.pieces else int(self.section["file_base_offset"])

    @property
    def end_offset(self) -> int:
        """The offset after its last batch."""
        return int(self.pieces[-1]["last_offset"]) + 1 if self.pieces else self.first_offset

    def problems(self) -> list[Problem]:
        """What is wrong inside this copy."""
        name = f"file {self.section['file_base_offset']}"
        found = [*self._text_problems(name)]
        if self.pieces and self.pieces[0]["first_position"] != 0:
            found.append(Problem(self.end_offset - 1, f"{name} does not begin at position 0"))
        for piece in self.pieces:
            found += self._piece_problems(piece, name)
        for before, piece in pairwise(self.pieces):
            if piece["first_position"] != before["end_position"] or piece["first_offset"] <= before["last_offset"]:
                found.append(Problem(self.end_offset - 1, f"{name} lacks batches at position {before['end_position']}"))
            elif piece["first_offset"] != before["last_offset"] + 1:
                found.append(Problem(piece["first_offset"] - 1, f"{name} {_HOLE_IN_FILE} {piece['first_offset'] - 1}"))
        return found

    def _text_problems(self, name: str) -> list[Problem]:
        section = self.section
        found = []
        if not section["is_start_proven"]:
            found.append(Problem(TO_THE_END, f"{name} may be text inside another file's record"))
        if not section["is_end_proven"]:
            found.append(Problem(TO_THE_END, f"{name}: its last record is not proven to be whole"))
        if section["input_problem"] is not None:
            found.append(Problem(TO_THE_END, f"{name}: {section['input_problem']}"))
        understood_to = self.pieces[-1]["text_end_bytes"] if self.pieces else section["text_start_bytes"]
        if understood_to < section["text_end_bytes"]:
            found.append(Problem(TO_THE_END, f"{name}: the text after offset {self.end_offset - 1} was not understood"))
        return found

    def _piece_problems(self, piece: Row, name: str) -> list[Problem]:
        found = []
        if piece["has_position_break"]:
            found.append(Problem(self.end_offset - 1, f"{name}: positions do not chain"))
        if piece["last_hole_offset"] is not None:
            found.append(Problem(piece["last_hole_offset"], f"{name} {_HOLE_IN_FILE} {piece['last_hole_offset']}"))
        if piece["last_invalid_offset"] is not None:
            found.append(
                Problem(
                    piece["last_invalid_offset"],
                    f"{name}: the batch that ends at offset {piece['last_invalid_offset']} is invalid",
                )
            )
        if piece["contested_offset"] is not None:
            found.append(
                Problem(TO_THE_END, f"{name}: two lines claim the position of offset {piece['contested_offset']}")
            )
        return found


@dataclass
class PartitionLog:
    """One log out of possibly many copies; pieces in offset order, problems in the order found."""

    segments: list[Segment] = field(default_factory=list)
    pieces: list[Row] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    # First offsets of pieces that follow offsets which no file holds.
    after_gap: dict[int, int] = field(default_factory=dict)

    @property
    def first_offset(self) -> int | None:
        """First offset of any file; None without files."""
        return min((s.first_offset for s in self.segments), default=None)

    @property
    def end_offset(self) -> int | None:
        """The offset after the last one of any file."""
        ends = [s.end_offset for s in self.segments if not s.pieces] + [p["last_offset"] + 1 for p in self.pieces[-1:]]
        return max(ends, default=None)


def segments_of(sections: list[Row], pieces: list[Row]) -> list[Segment]:
    """Each dumped copy of a segment file with its pieces, empty files included."""
    found = {(s["input_id"], s["section_index"], s["capture_rank"]): Segment(s, []) for s in sections}
    for piece in sorted(pieces, key=lambda p: int(p["first_position"])):
        for rank in {s["capture_rank"] for s in sections}:
            segment = found.get((piece["input_id"], piece["section_index"], rank))
            if segment:
                segment.pieces.append(piece)
    return sorted(found.values(), key=lambda s: (s.first_offset, s.end_offset, s.section["input_id"]))


def partition_log(segments: list[Segment]) -> PartitionLog:
    """The log that the captures hold: the judged one first, then what earlier ones add below its first offset."""
    log = PartitionLog()
    for rank in sorted({s.capture_rank for s in segments}):
        copies = [s for s in segments if s.capture_rank == rank]
        one = _one_capture(copies)
        log = one if not log.segments else _behind(one, log)
    return log


def _one_capture(copies: list[Segment]) -> PartitionLog:
    log = PartitionLog()
    bounds = sorted({s.first_offset for s in copies} | {s.end_offset for s in copies})
    truncated: set[int] = set()
    for start, stop in pairwise(bounds):
        covering = [
            s
            for s in copies
            if s.first_offset <= start and s.end_offset >= stop and s.pieces and id(s) not in truncated
        ]
        if not covering:
            continue
        chosen, losers, problem = _choose_copy(covering, start, stop)
        truncated |= {id(s) for s in losers}
        log.problems += [problem] if problem else []
        log.pieces += [p for p in chosen.pieces if start <= p["first_offset"] < stop]
    used = {id(p) for p in log.pieces}
    log.segments = [s for s in copies if not s.pieces or any(id(p) in used for p in s.pieces)]
    log.problems += [problem for s in log.segments for problem in s.problems()]
    _find_gaps(log)
    return log


def _choose_copy(covering: list[Segment], start: int, stop: int) -> tuple[Segment, list[Segment], Problem | None]:
    """The copy that is the log between two offsets.

    Where copies differ, the one with the higher partition leader epoch is the log, and the tail of the others was
    truncated (KIP-101); the same leader epoch with different content cannot be resolved.
    """
    parts = [(s, [p for p in s.pieces if start <= p["first_offset"] < stop]) for s in covering]
    # Of copies that agree, the one that prints its end markers says more.
    parts.sort(key=lambda part: -sum(p["is_marker_printed"] is True for p in part[1]))
    if len({_content(pieces) for _, pieces in parts}) == 1:
        return parts[0][0], [], None
    epochs = [
        max((p["leader_epoch"] for p in pieces if p["leader_epoch"] is not None), default=-1) for _, pieces in parts
    ]
    best = max(epochs)
    winners = [p for p, epoch in zip(parts, epochs, strict=True) if epoch == best]
    losers = [s for (s, _), epoch in zip(parts, epochs, strict=True) if epoch < best]
    is_resolved = len({_content(pieces) for _, pieces in winners}) == 1
    problem = None if is_resolved else Problem(TO_THE_END, f"copies differ between offsets {start} and {stop - 1}")
    return winners[0][0], losers, problem


def _content(pieces: list[Row]) -> int:
    return int(sum(p["content_digest"] for p in pieces) % 2**64)


def _behind(earlier: PartitionLog, log: PartitionLog) -> PartitionLog:
    """Put what an earlier capture holds below the first offset in front of a log."""
    first = log.first_offset
    older = [s for s in earlier.segments if first is None or s.first_offset < first]
    pieces = [p for p in earlier.pieces if first is None or p["last_offset"] < first]
    if not pieces:
        return log
    joined = PartitionLog(older + log.segments, pieces + log.pieces)
    spoiled_before = first if first is not None else TO_THE_END
    joined.problems = [
        p if p.offset < spoiled_before else Problem(spoiled_before - 1, p.reason) for p in earlier.problems
    ]
    joined.problems += log.problems
    _find_gaps(joined)
    return joined


def _find_gaps(log: PartitionLog) -> None:
    """Offsets between two files that neither holds; inside one file such a hole is compaction."""
    base_of = {(s.section["input_id"], s.section["section_index"]): s.section["file_base_offset"] for s in log.segments}
    log.problems = [p for p in log.problems if not p.reason.endswith(_IN_NO_FILE)]
    log.after_gap = {}
    for before, piece in pairwise(log.pieces):
        place = (piece["input_id"], piece["section_index"])
        if place == (before["input_id"], before["section_index"]) or piece["first_offset"] == before["last_offset"] + 1:
            continue
        if base_of[place] > before["last_offset"] + 1:
            log.after_gap[piece["first_offset"]] = base_of[place] - 1
        log.problems.append(_gap(before["last_offset"] + 1, piece["first_offset"] - 1))
    end = log.pieces[-1]["last_offset"] + 1 if log.pieces else None
    empty = max((s.first_offset for s in log.segments if not s.pieces), default=None)
    if end is not None and empty is not None and empty > end:
        log.problems.append(_gap(end, empty - 1))


def _gap(first: int, last: int) -> Problem:
    return Problem(last, f"offsets {first} to {last} {_IN_NO_FILE}")
