"""One dumped copy of one segment file: its pieces, and what is wrong inside it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

Row = dict[str, Any]
SectionKey = tuple[str, int]  # an input, and the index of the section in it

TO_THE_END = 2**63 - 1  # a problem that spoils everything after it, however long the log gets


class ProblemKind(StrEnum):
    """What a problem is, for whatever decides by it; the sentence beside it is for people alone."""

    OFFSETS_IN_NO_FILE = "offsets_in_no_file"  # between two files, or between a snapshot and the first file
    HOLE_IN_FILE = "hole_in_file"  # inside one file, whose positions go on
    BATCHES_MISSING = "batches_missing"  # inside one file, or at its start: its positions do not go on
    INVALID_BATCH = "invalid_batch"  # its checksum is wrong
    CONTESTED_LINE = "contested_line"  # two lines claim the position of one batch
    UNPROVEN_START = "unproven_start"  # the dump of the file may be text inside another file's record
    UNPROVEN_END = "unproven_end"  # its last record is not proven to be whole
    TEXT_NOT_UNDERSTOOD = "text_not_understood"  # behind its last batch
    INPUT_PROBLEM = "input_problem"  # what reading said of the input that it is in
    TORN_TAIL = "torn_tail"  # half a batch at the end of a file that is not the last one
    MAY_BE_HEADER_KEYS = "may_be_header_keys"  # batch lines that may be text of a record's header keys
    COPIES_DIFFER = "copies_differ"  # and nothing tells which of them is the log
    COPY_NOT_THE_LOG = "copy_not_the_log"  # the capture's own copy was truncated by a newer leader
    TAIL_IN_DOUBT = "tail_in_doubt"  # a newer leader may have truncated the end of an earlier capture
    ENDS_BEFORE_EARLIER_CAPTURE = "ends_before_earlier_capture"
    ENDS_BEFORE_SNAPSHOT = "ends_before_snapshot"
    SNAPSHOT_DISAGREES = "snapshot_disagrees"  # a producer snapshot, with the batches below it
    NOT_IN_CAPTURE = "not_in_capture"  # only earlier captures hold the partition
    SEVERAL_TOPIC_IDS = "several_topic_ids"  # of a topic that was deleted, and of one created again under its name
    ABOVE_HIGH_WATERMARK = "above_high_watermark"  # of one transaction: it was never committed to the log


# Compaction makes them as well.
HOLES = frozenset({ProblemKind.OFFSETS_IN_NO_FILE, ProblemKind.HOLE_IN_FILE})


class Problem(NamedTuple):
    """Why the evidence is not whole; it spoils every transaction that began at or before `offset`."""

    offset: int
    kind: ProblemKind
    reason: str


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
            found.append(_missing(self.end_offset - 1, f"{name} does not begin at position 0"))
        for piece in used:
            found += self._piece_problems(piece, name)
        for before, piece in pairwise(used):
            if piece["first_position"] != before["end_position"] or piece["first_offset"] <= before["last_offset"]:
                found.append(
                    _missing(self.end_offset - 1, f"{name} lacks batches at position {before['end_position']}")
                )
            elif piece["first_offset"] != before["last_offset"] + 1:
                found.append(_hole(name, piece["first_offset"] - 1))
        return found

    def _text_problems(self, name: str) -> list[Problem]:
        section = self.section
        found = []
        if not section["is_start_proven"]:
            found.append((ProblemKind.UNPROVEN_START, f"{name} may be text inside another file's record"))
        if not section["is_end_proven"]:
            found.append((ProblemKind.UNPROVEN_END, f"{name}: its last record is not proven to be whole"))
        if section["input_problem"] is not None:
            found.append((ProblemKind.INPUT_PROBLEM, f"{name}: {section['input_problem']}"))
        understood_to = self.pieces[-1]["text_end_bytes"] if self.pieces else section["text_start_bytes"]
        if understood_to < section["text_end_bytes"]:
            unread = f"{name}: the text after offset {self.end_offset - 1} was not understood"
            found.append((ProblemKind.TEXT_NOT_UNDERSTOOD, unread))
        return [Problem(TO_THE_END, kind, reason) for kind, reason in found]

    def _piece_problems(self, piece: Row, name: str) -> list[Problem]:
        found = []
        if piece["last_hole_offset"] is not None:
            found.append(_hole(name, piece["last_hole_offset"]))
        if piece["last_invalid_offset"] is not None:
            last_offset = piece["last_invalid_offset"]
            invalid = f"{name}: the batch that ends at offset {last_offset} is invalid"
            found.append(Problem(last_offset, ProblemKind.INVALID_BATCH, invalid))
        if piece["contested_offset"] is not None:
            contested = f"{name}: two lines claim the position of offset {piece['contested_offset']}"
            found.append(Problem(TO_THE_END, ProblemKind.CONTESTED_LINE, contested))
        return found


def _missing(offset: int, reason: str) -> Problem:
    return Problem(offset, ProblemKind.BATCHES_MISSING, reason)


def _hole(name: str, last_offset: int) -> Problem:
    return Problem(last_offset, ProblemKind.HOLE_IN_FILE, f"{name} has no batch for offset {last_offset}")


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
