"""Accounting: every byte of every input was parsed, or is listed as rejected with its place, length and reason."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.errors import AccountingError, InputError
from txn_analysis.read.dump.batch_lines import read_batch_line
from txn_analysis.read.dump.forms import (
    BATCH_LINE_START,
    DEPRECATED,
    DUMPING,
    INVALID_BYTES,
    RECORD_LINE_START,
    STARTING_OFFSET,
)
from txn_analysis.read.inputs.text import TextError, open_text
from txn_analysis.read.log_dir.producer_files import CHANGED
from txn_analysis.tables.inputs import RejectedSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.read.inputs.planned_input import PlannedInput, Section
    from txn_analysis.read.inputs.text import Text

_LINE_BYTES = 4096 + 64  # no line that is structure is longer
_BLOCK_BYTES = 4 << 20
_STRUCTURE = re.compile(
    rb"(?<=\n)(?:"
    + b"|".join(form.bounded() for form in (DUMPING, STARTING_OFFSET, INVALID_BYTES, DEPRECATED))
    + rb")\n"
)


@dataclass(frozen=True)
class Span:
    """A stretch of an input's text, in bytes."""

    start: int
    end: int


class TextGap(NamedTuple):
    """Text inside a piece that nothing proves."""

    offset_bytes: int
    length_bytes: int


class ReadPiece(NamedTuple):
    """Where a piece of a log lies, in the text and in the file, and the newest moment of a broker's clock in it."""

    input_id: str
    section_index: int
    text_start_bytes: int
    text_end_bytes: int
    text_gaps: tuple[TextGap, ...]
    first_position: int
    end_position: int
    first_offset: int
    last_offset: int
    max_moment_ms: int | None


def unproven_spans(section: Section, pieces: Iterable[ReadPiece]) -> list[Span]:
    """What of a log section's body no batch accounts for; `pieces` are all that were read from it.

    The spans lie apart, in order. Pieces follow the positions in the segment; where a damaged dump repeats positions,
    that is not the order of the text, and what two pieces leave out between them is one span.
    """
    at, found = section.text_start_bytes, []
    for piece in sorted(pieces, key=lambda p: p.text_start_bytes):
        found.append(Span(at, piece.text_start_bytes))
        found += [Span(gap.offset_bytes, gap.offset_bytes + gap.length_bytes) for gap in piece.text_gaps]
        at = piece.text_end_bytes
    found.append(Span(at, section.text_end_bytes))
    return _apart(span for span in found if span.end > span.start)


def _apart(spans: Iterable[Span]) -> list[Span]:
    apart: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        if apart and span.start < apart[-1].end:
            apart[-1] = Span(apart[-1].start, max(apart[-1].end, span.end))
        else:
            apart.append(span)
    return apart


def rejected_in_log(planned: PlannedInput, section: Section, spans: list[Span]) -> Iterator[RejectedSpan]:
    """The spans of one log section with the reason that their first line gives.

    Raises:
        InputError: the file is not what it was when it was planned.
    """
    if planned.is_broker_file:
        yield from _rejected_in_segment(planned, section, spans)
        return
    if not spans:
        return
    with _reading(planned) as text:
        for span in spans:
            line = text.read(span.start, min(span.end, span.start + _LINE_BYTES)).partition(b"\n")[0]
            yield RejectedSpan(planned.input_id, section.index, span.start, span.end - span.start, _reason(line))


def _rejected_in_segment(planned: PlannedInput, section: Section, spans: list[Span]) -> Iterator[RejectedSpan]:
    """Planning followed every batch, so that only a file that changed since has other spans than planning has."""
    reasons = {(start, end): reason for start, end, reason in planned.rejects}
    for span in spans:
        reason = reasons.get((span.start, span.end), CHANGED)
        yield RejectedSpan(planned.input_id, section.index, span.start, span.end - span.start, reason)


def _reason(line: bytes) -> str:
    if line.startswith(BATCH_LINE_START):
        return "malformed batch line" if read_batch_line(line) is None else "breaks the position chain"
    if line.startswith(RECORD_LINE_START):
        return "record lines that do not fill their batch"
    return "not a line of kafka-dump-log"


def rejected_outside(planned: PlannedInput) -> list[RejectedSpan]:
    """What lies outside all sections and is not structure of the dump: noise, refused sections, a torn last line.

    Raises:
        InputError: the file is not what it was when it was planned.
    """
    if planned.is_broker_file:
        body_end = max((s.text_end_bytes for s in planned.sections), default=0)
        outside = [span for span in planned.rejects if span[0] >= body_end]
        return [RejectedSpan(planned.input_id, None, start, end - start, why) for start, end, why in outside]
    if not planned.sections:
        return (
            [RejectedSpan(planned.input_id, None, 0, planned.text_bytes, planned.problem or "nothing was understood")]
            if planned.text_bytes
            else []
        )
    bodies = sorted((s.text_start_bytes, s.text_end_bytes) for s in planned.sections)
    starts = [0, *(end for _, end in bodies)]
    ends = [*(start for start, _ in bodies), planned.text_bytes]
    with _reading(planned) as text:
        return [r for a, b in zip(starts, ends, strict=True) for r in _not_structure(text, planned, Span(a, b))]


@contextmanager
def _reading(planned: PlannedInput) -> Iterator[Text]:
    try:
        with open_text(planned.path, planned.compression) as text:
            yield text
    except (OSError, TextError):
        raise InputError([f"{planned.path}: {CHANGED}. Audit again"]) from None


def _not_structure(text: Text, planned: PlannedInput, between: Span) -> Iterator[RejectedSpan]:
    at = between.start
    for line in _structure(text, between):
        if line.start > at:
            yield _outside(planned, at, line.start)
        at = line.end
    if at < between.end:
        yield _outside(planned, at, between.end)


def _structure(text: Text, between: Span) -> Iterator[Span]:
    """The whole lines between two bodies that are the dump's own; `between` begins at the start of a line."""
    for at in range(between.start, between.end, _BLOCK_BYTES):
        stop = min(at + _BLOCK_BYTES, between.end)
        before = b"\n" if at == between.start else text.read(at - 1, at)
        block = before + text.read(at, min(stop + _LINE_BYTES, between.end))
        for line in _STRUCTURE.finditer(block):
            start = at + line.start() - len(before)
            if start < stop:
                yield Span(start, start + len(line[0]))


def _outside(planned: PlannedInput, start: int, end: int) -> RejectedSpan:
    return RejectedSpan(planned.input_id, None, start, end - start, planned.problem or "not a line of kafka-dump-log")


def rejected_bytes(planned: PlannedInput, rejects: Iterable[RejectedSpan]) -> int:
    """How much of an input was not understood; every other byte of its text was parsed.

    Raises:
        AccountingError: spans overlap or leave the text, so that the sum would not be the truth.
    """
    at, total = 0, 0
    for span in sorted(rejects, key=lambda r: r.offset_bytes):
        if span.length_bytes <= 0 or span.offset_bytes < at:
            raise AccountingError(f"{planned.path}: byte {span.offset_bytes} is accounted for twice ({span.reason})")
        at = span.offset_bytes + span.length_bytes
        total += span.length_bytes
    if at > planned.text_bytes:
        raise AccountingError(f"{planned.path}: byte {at} is rejected, but the text ends at {planned.text_bytes}")
    return total
