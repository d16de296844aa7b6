"""Accounting: every byte of every input was parsed, or is listed as rejected with its place, length and reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from txn_analysis.errors import AccountingError, InputError
from txn_analysis.files.store import ChangedError, StoreError
from txn_analysis.reading.grammar.forms import (
    BATCH_LINE_START,
    DUMPING,
    INVALID_BYTES,
    RECORD_LINE_START,
    STARTING_OFFSET,
)
from txn_analysis.reading.grammar.lines import read_batch_line
from txn_analysis.reading.grammar.noise import NOISE_LINE
from txn_analysis.reading.inputs.find_files import place_of
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.log_dir.producer_files import CHANGED
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import Text, TextError
from txn_analysis.tables.inputs import RejectedSpan
from txn_analysis.tables.logs import TextGap

Span = tuple[int, int]  # the first byte of a stretch of text, and the one after its last

_LINE_BYTES = 4096 + 64  # no line that is structure is longer
_BLOCK_BYTES = 4 << 20
_NO_LINE = "not a line of kafka-dump-log"
_STRUCTURE = re.compile(
    rb"(?<=\n)(?:"
    + (b"(?:" + b"|".join(form.bounded() for form in (DUMPING, STARTING_OFFSET, INVALID_BYTES)) + rb")\n")
    + (b"|" + NOISE_LINE.pattern + b")")
)


class ReadPiece(NamedTuple):
    """Where a piece of a log lies, in the text and in the file, and its newest broker's clock and leader epoch."""

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
    leader_epoch: int | None = None


def rejected_in_log(planned: PlannedInput, section: Section, pieces: Iterable[ReadPiece]) -> Iterator[RejectedSpan]:
    """What of a log section's body no batch accounts for, in order; `pieces` are all that were read from it.

    Raises:
        InputError: the file is not what it was when it was planned.
    """
    spans = _unproven(section, pieces)
    if planned.is_broker_file:
        # Planning followed every batch, so that only a file that changed since has other spans than planning has.
        reasons = {(start, end): reason for start, end, reason in planned.rejects}
        for span in spans:
            yield _rejected(planned, section.index, span, reasons.get(span, CHANGED))
    elif spans:
        with _reading(planned) as text:
            for start, end in spans:
                line = text.read(start, min(end, start + _LINE_BYTES)).partition(b"\n")[0]
                yield _rejected(planned, section.index, (start, end), _reason(line))


def _unproven(section: Section, pieces: Iterable[ReadPiece]) -> list[Span]:
    """What lies between the pieces, and their gaps.

    Pieces follow the positions in the segment; where a damaged dump repeats positions, that is not the order of the
    text, and what two pieces leave out between them is one span.
    """
    at, gaps = section.text_start_bytes, []
    for piece in sorted(pieces, key=lambda p: p.text_start_bytes):
        gaps.append((at, piece.text_start_bytes))
        gaps += [(gap.offset_bytes, gap.offset_bytes + gap.length_bytes) for gap in piece.text_gaps]
        at = piece.text_end_bytes
    gaps.append((at, section.text_end_bytes))
    apart: list[Span] = []
    for start, end in sorted(span for span in gaps if span[0] < span[1]):
        if apart and start < apart[-1][1]:
            apart[-1] = apart[-1][0], max(apart[-1][1], end)
        else:
            apart.append((start, end))
    return apart


def _reason(line: bytes) -> str:
    if line.startswith(BATCH_LINE_START):
        return "malformed batch line" if read_batch_line(line) is None else "breaks the position chain"
    if line.startswith(RECORD_LINE_START):
        return "record lines that do not fill their batch"
    return _NO_LINE


def rejected_outside(planned: PlannedInput) -> list[RejectedSpan]:
    """What lies outside all sections and is not structure of the dump: noise, refused sections, a torn last line.

    Raises:
        InputError: the file is not what it was when it was planned.
    """
    if planned.manifest is not None:
        return []
    bodies = sorted((s.text_start_bytes, s.text_end_bytes) for s in planned.sections)
    if planned.is_broker_file:
        body_end = max((end for _, end in bodies), default=0)
        outside = [reject for reject in planned.rejects if reject[0] >= body_end]
        return [_rejected(planned, None, (start, end), why) for start, end, why in outside]
    if not bodies:
        whole = (0, planned.text_bytes)
        return [_rejected(planned, None, whole, planned.problem or "nothing was understood")] if whole[1] else []
    starts = [0, *(end for _, end in bodies)]
    ends = [*(start for start, _ in bodies), planned.text_bytes]
    with _reading(planned) as text:
        spans = [span for between in zip(starts, ends, strict=True) for span in _not_structure(text, between)]
    return [_rejected(planned, None, span, planned.problem or _NO_LINE) for span in spans]


def _rejected(planned: PlannedInput, section_index: int | None, span: Span, reason: str) -> RejectedSpan:
    return RejectedSpan(planned.input_id, section_index, span[0], span[1] - span[0], reason)


@contextmanager
def _reading(planned: PlannedInput) -> Iterator[Text]:
    try:
        with Text(place_of(planned.path), planned.compression, planned.version) as text:
            yield text
    except ChangedError:
        raise changed_text(planned) from None
    except StoreError as error:
        raise InputError([f"{planned.path}: {error}"]) from error
    except (OSError, TextError):
        raise changed_text(planned) from None


def changed_text(planned: PlannedInput) -> InputError:
    """The error of a text that is not what it was when it was planned: nothing tells what stood in it."""
    return InputError([f"{planned.path}: {CHANGED}. Audit again"])


def _not_structure(text: Text, between: Span) -> Iterator[Span]:
    at, end = between
    for line_start, line_end in _structure(text, between):
        if line_start > at:
            yield at, line_start
        at = line_end
    if at < end:
        yield at, end


def _structure(text: Text, between: Span) -> Iterator[Span]:
    """The whole lines between two bodies that are the dump's own; `between` begins at the start of a line."""
    first, end = between
    for at in range(first, end, _BLOCK_BYTES):
        stop = min(at + _BLOCK_BYTES, end)
        before = b"\n" if at == first else text.read(at - 1, at)
        block = before + text.read(at, min(stop + _LINE_BYTES, end))
        for line in _STRUCTURE.finditer(block):
            start = at + line.start() - len(before)
            if start < stop:
                yield start, start + len(line[0])


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
