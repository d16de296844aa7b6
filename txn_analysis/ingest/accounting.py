"""Accounting: every byte of every input was parsed, or is listed as rejected with its place, length and reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txn_analysis.ingest.batch_lines import read_batch_line
from txn_analysis.ingest.grammar import BATCH_LINE_START, RECORD_LINE_START
from txn_analysis.ingest.text import TextError, open_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.ingest.plan import PlannedInput, Section
    from txn_analysis.ingest.text import Text

_LINE_BYTES = 4096  # enough for any line that is structure
_STRUCTURE = re.compile(
    rb"Dumping [^\n]*|(?:Log s|S)tarting offset: \d+|Found \d+ invalid bytes at the end of [^\n]*|"
    rb"kafka\.serializer\.\w+ is deprecated\. Please use [^\n]*"
)


@dataclass(frozen=True)
class Span:
    """A stretch of an input's text, in bytes."""

    start: int
    end: int


@dataclass(frozen=True)
class RejectedSpan:
    """A stretch of an input's text that was not understood; `section_index` is None outside any section."""

    input_id: str
    section_index: int | None
    offset_bytes: int
    length_bytes: int
    reason: str


def unproven_spans(section: Section, pieces: Iterable[dict[str, Any]]) -> list[Span]:
    """What of a log section's body no batch accounts for; `pieces` are its rows of `log_pieces`."""
    at, found = section.text_start_bytes, []
    for piece in sorted(pieces, key=lambda p: int(p["text_start_bytes"])):
        found.append(Span(at, piece["text_start_bytes"]))
        found += [Span(g["offset_bytes"], g["offset_bytes"] + g["length_bytes"]) for g in piece["text_gaps"]]
        at = piece["text_end_bytes"]
    found.append(Span(at, section.text_end_bytes))
    return [span for span in found if span.end > span.start]


def rejected_in_log(planned: PlannedInput, section: Section, spans: list[Span]) -> Iterator[RejectedSpan]:
    """The spans of one log section with the reason that their first line gives."""
    if not spans:
        return
    with open_text(planned.path, planned.compression) as text:
        for span in spans:
            line = text.read(span.start, min(span.end, span.start + _LINE_BYTES)).partition(b"\n")[0]
            yield RejectedSpan(planned.input_id, section.index, span.start, span.end - span.start, _reason(line))


def _reason(line: bytes) -> str:
    if line.startswith(BATCH_LINE_START):
        return "malformed batch line" if read_batch_line(line) is None else "breaks the position chain"
    if line.startswith(RECORD_LINE_START):
        return "record lines that do not fill their batch"
    return "not a line of kafka-dump-log"


def rejected_outside(planned: PlannedInput) -> list[RejectedSpan]:
    """What lies outside all sections and is not structure of the dump: noise, refused sections, a torn last line."""
    if not planned.sections:
        return (
            [RejectedSpan(planned.input_id, None, 0, planned.text_bytes, planned.problem or "nothing was understood")]
            if planned.text_bytes
            else []
        )
    bodies = sorted((s.text_start_bytes, s.text_end_bytes) for s in planned.sections)
    starts = [0, *(end for _, end in bodies)]
    ends = [*(start for start, _ in bodies), planned.text_bytes]
    try:
        with open_text(planned.path, planned.compression) as text:
            return [r for a, b in zip(starts, ends, strict=True) for r in _not_structure(text, planned, Span(a, b))]
    except TextError as error:
        return [RejectedSpan(planned.input_id, None, error.offset, planned.text_bytes - error.offset, error.reason)]


def _not_structure(text: Text, planned: PlannedInput, between: Span) -> Iterator[RejectedSpan]:
    at, rejected_from = between.start, None
    while at < between.end:
        line, _, rest = text.read(at, min(between.end, at + _LINE_BYTES)).partition(b"\n")
        stop = between.end if not rest and at + len(line) + 1 >= between.end else at + len(line) + 1
        is_structure = _STRUCTURE.fullmatch(line) is not None
        if rejected_from is not None and is_structure:
            yield _outside(planned, rejected_from, at)
            rejected_from = None
        elif rejected_from is None and not is_structure:
            rejected_from = at
        at = stop
    if rejected_from is not None:
        yield _outside(planned, rejected_from, between.end)


def _outside(planned: PlannedInput, start: int, end: int) -> RejectedSpan:
    return RejectedSpan(planned.input_id, None, start, end - start, planned.problem or "not a line of kafka-dump-log")
