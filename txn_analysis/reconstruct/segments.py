"""One dumped copy of one segment file: its pieces, and what is wrong inside it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

Row = dict[str, Any]
SectionKey = tuple[str, int]  # an input, and the index of the section in it

IN_NO_FILE = "are in no file"
_HOLE_IN_FILE = "has no batch for offset"
TO_THE_END = 2**63 - 1  # a problem that spoils everything after it, however long the log gets


class Problem(NamedTuple):
    """Why the evidence is not whole; it spoils every transaction that began at or before `offset`."""

    offset: int
    reason: str


def is_hole(reason: str) -> bool:
    """The problem is that offsets are missing, which compaction does as well."""
    return reason.endswith(IN_NO_FILE) or _HOLE_IN_FILE in reason


@dataclass
class Segment:
    """One dumped copy of one segment file: its section, and its pieces in position order."""

    section: Row
    pieces: list[Row]

    @property
    def key(self) -> SectionKey:
        """Its input and section."""
        return self.section["input_id"], self.section["section_index"]

    @property
    def capture_rank(self) -> int:
        """0 for the capture that is judged, 1 for the one before it, and so on."""
        return int(self.section["capture_rank"])

    @property
    def first_offset(self) -> int:
        """Base offset of its first batch; of its name where it has none."""
        return int(self.pieces[0]["first_offset"]) if self.pieces else int(self.section["file_base_offset"])

    @property
    def covered_from(self) -> int:
        """The offset in its name: a file holds all that is left from there on, even if compaction took its start."""
        return min(int(self.section["file_base_offset"]), self.first_offset)

    @property
    def end_offset(self) -> int:
        """The offset after its last batch."""
        return int(self.pieces[-1]["last_offset"]) + 1 if self.pieces else self.first_offset

    def problems(self, used: list[Row]) -> list[Problem]:
        """What is wrong inside this copy, as far as its `used` pieces reach; they are neighbours."""
        name = f"file {self.section['file_base_offset']}"
        found = [*self._text_problems(name)]
        if used and self.pieces[0]["first_position"] != 0:
            found.append(Problem(self.end_offset - 1, f"{name} does not begin at position 0"))
        for piece in used:
            found += self._piece_problems(piece, name)
        for before, piece in pairwise(used):
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


def segments_of(sections: list[Row], pieces: list[Row]) -> list[Segment]:
    """Each dumped copy of a segment file with its pieces, empty files included; content of several captures once."""
    found: dict[SectionKey, Segment] = {}
    for section in sorted(sections, key=lambda s: int(s["capture_rank"])):
        segment = Segment(section, [])
        found.setdefault(segment.key, segment)
    for piece in sorted(pieces, key=lambda p: (p["first_position"], p["text_start_bytes"])):
        segment = found[piece["input_id"], piece["section_index"]]
        segment.pieces.append(piece)
    return sorted(found.values(), key=lambda s: (s.first_offset, s.end_offset, s.key))
