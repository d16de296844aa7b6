"""What one chunk of an input's text says about its plan. Only this is sent back from the tasks that read all bytes."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from blake3 import blake3

from txn_analysis.kafka.batch_headers import Held, Read
from txn_analysis.kafka.names import BROKER_WRITTEN_TOPICS, LOG
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.grammar.forms import BATCH_LINE_START, DUMPING_START, INVALID_BYTES, RECORD_LINE_START
from txn_analysis.reading.grammar.lines import read_batch_line
from txn_analysis.reading.grammar.noise import NOISE_BYTES, export_noise, noise_end
from txn_analysis.reading.inputs.dumping_lines import LOOK_BACK_BYTES, StartProver, printed_reach
from txn_analysis.reading.inputs.recognise import HEAD_BYTES, Recognition, recognise
from txn_analysis.reading.inputs.refusals import COPY_AGAIN, Refusal
from txn_analysis.reading.inputs.sections import DumpedFile, describe_body, parse_dump_path, read_header
from txn_analysis.reading.text.section import ScanRange, Section

_TAILS_BYTES = (1 << 12, 1 << 16, 1 << 20)
_PROVING_BYTES = 8 << 20  # what can be text of a record's header keys is told by the batches before it
_BATCH, _RECORD, _TORN = b"\n" + BATCH_LINE_START, b"\n" + RECORD_LINE_START, b"\n" + INVALID_BYTES.fields[0].before
_ANY_TOPIC = "orders"  # of clients: their records may have header keys


class Cut(NamedTuple):
    """Where the line of a dump's last batch begins, and how many of its records are there."""

    start: int
    seen_count: int
    record_count: int

    def __str__(self) -> str:
        """Say it, without a full stop."""
        return (
            f"the dump ends inside this batch, behind {self.seen_count} of its {self.record_count} records: it was cut"
        )


def cut_before(read: Read, since: int, end: int) -> Cut | None:
    """How the section of a dump was cut that ends at a byte; None where it was not, or a client can have written that.

    A dump without record lines shows no cut.

    Args:
        read: the text from one byte to another.
        since: where the section's batches begin, or a part of them that is long enough.
        end: the byte behind its last line.
    """
    for tail_bytes in _TAILS_BYTES:
        start = max(since - 1, end - tail_bytes, 0)
        tail = read(start, end)
        at = tail.rfind(_BATCH)
        before = tail.rfind(_BATCH, 0, max(at, 0))
        if before >= 0 or start == since - 1:
            break
    if at < 0:
        return None
    line_end = tail.find(b"\n", at + 1)
    line = read_batch_line(tail[at + 1 : line_end]) if line_end >= 0 else None
    if line is None or tail.count(_RECORD, line_end) >= line["record_count"]:
        return None
    if tail.find(_RECORD, max(before, 0)) < 0 or tail.find(_TORN, line_end) >= 0:
        return None
    first_proving = max(since - 1, end - _PROVING_BYTES, 0)
    return _proven(Held(read(first_proving, end), first_proving), start + at + 1, line["record_count"])


def _proven(text: Held, at: int, record_count: int) -> Cut | None:
    """The cut at a byte, where the batches before it in a text, which ends there, show that its line is the tool's."""
    first, end = text.start + text.data.find(_BATCH) + 1, text.start + len(text.data)
    body = Section(LOG, _ANY_TOPIC, 0, 0, first, end, "")
    batches = scan_range(text, ScanRange("", None, "", body, first, end))
    if batches is None:
        return None
    last = {name: values[-1] for name, values in batches.columns.items()}
    is_tools = last["text_start_bytes"] == at and not (last["is_contested"] or last["may_be_header_keys"])
    is_cut = is_tools and 0 <= last["record_line_count"] < record_count
    return Cut(at, int(last["record_line_count"]), record_count) if is_cut else None


CHUNK_BYTES = 8 << 20  # part of what an `input_id` means: never to be changed
DIGEST_BYTES = 16
_PATH_BYTES = 1 << 12
_LOOK_AHEAD_BYTES = _PATH_BYTES + HEAD_BYTES

_DUMPING = b"\n" + DUMPING_START
_TRAILER = re.compile(rb"\n" + INVALID_BYTES.bounded(*INVALID_BYTES.names) + rb"\n")
_TRAILER_BYTES = 320
# Inside a JSON text its quotes are escaped, so this begins an object wherever it stands.
_CONSOLE_OBJECT = b'{"key":'
_CONSOLE_OBJECT_BYTES = 1 << 20

PROVEN, PROVEN_IF_DECODED, UNPROVEN = "proven", "proven_if_decoded", "unproven"


@dataclass(frozen=True)
class SectionMark:
    """One `Dumping …` line.

    `section` has no end yet; it is None where the text ends before its header line. `is_decoded`: it is of a topic
    whose records a decoder prints, and clients do not write. `proof` says whether the line can stand inside a record,
    by a look back that began at byte `anchor`. `cut_before` is how the section before it was cut.
    """

    start: int
    body_start: int
    section: Section | Refusal | None
    is_decoded: bool
    proof: str
    anchor: int
    cut_before: Cut | None = None


@dataclass(frozen=True)
class TrailerMark:
    """One `Found N invalid bytes at the end of FILE` line; only lines of the tool's environment follow up to `end`."""

    start: int
    end: int
    torn_bytes: int
    file_name: str


@dataclass(frozen=True)
class ChunkFacts:
    """What [start, end) of a text holds.

    `reach` is the last byte that a large printed record begun here can cover. The first chunk has the text's
    `recognition`. `cut_object` is where the text's last JSON object begins, if the text ends within it.
    """

    start: int
    end: int
    digest: bytes
    marks: tuple[SectionMark, ...]
    trailers: tuple[TrailerMark, ...]
    last_newline: int | None
    reach: int
    recognition: Recognition | Refusal | None
    cut_object: int | None
    cut: Cut | None = None


@dataclass(frozen=True)
class ReadFailure:
    """A file, or the rest of one, that could not be read; `offset` is a byte of its text.

    `remedy` is what to do where copying it again is no help.
    """

    offset: int
    reason: str
    remedy: str = COPY_AGAIN


def survey_chunk(read: Read, start: int, end: int) -> ChunkFacts | None:
    """The facts of the chunk [start, end), with a look at the text around it; None where the text ends before it.

    Args:
        read: the text from one byte to another, cut at its end.
        start: first byte of the chunk.
        end: byte after its last one; the last chunk of a text may be shorter.
    """
    # One byte earlier, and a little later, so that each line start in the chunk is found with the newline before it.
    around = read(start - 1, end + _TRAILER_BYTES) if start else b"\n" + read(0, end + _TRAILER_BYTES)
    text = memoryview(around)[1 : 1 + end - start]  # millions of bytes, not to be copied
    if not text:
        return None
    end = start + len(text)
    reach = [(start - 1 + at, start - 1 + bound) for at, bound in printed_reach(around, 1, 1 + len(text))]
    last_newline = start - 1 + around.rfind(b"\n", 1, 1 + len(text))
    if len(around) <= 1 + len(text) and _is_export_noise(around[last_newline - start + 2 :]):
        last_newline = end - 1  # a console that was stopped ends no line
    marks = _marks(read, around, start, end, reach)
    is_last = len(around) <= 1 + len(text)
    return ChunkFacts(
        start,
        end,
        blake3(text).digest(DIGEST_BYTES),
        marks,
        _trailers(read, around, start, end),
        last_newline if last_newline >= start else None,
        max((bound for _, bound in reach), default=0),
        recognise(bytes(text[:HEAD_BYTES]), len(text)) if start == 0 else None,
        None if not is_last or last_newline == end - 1 else _cut_object(read, end),
        cut_before(read, _since(read, marks, start), end) if is_last and last_newline == end - 1 else None,
    )


def _is_export_noise(line: bytes) -> bool:
    noise = export_noise(line, is_end=True) if 0 < len(line) <= NOISE_BYTES else None
    return noise is not None and noise.length == len(line)


def _cut_object(read: Read, text_bytes: int) -> int | None:
    start = max(0, text_bytes - _CONSOLE_OBJECT_BYTES)
    text = read(start, text_bytes)
    object_start = text.rfind(_CONSOLE_OBJECT)
    if object_start < 0:
        return None
    try:
        json.JSONDecoder().raw_decode(text[object_start:].decode())
    except (ValueError, RecursionError):  # cut, also within a character; nested without end
        return start + object_start
    return None


def _marks(read: Read, around: bytes, start: int, end: int, reach: list[tuple[int, int]]) -> tuple[SectionMark, ...]:
    marks: list[SectionMark] = []
    places = [place for place, _ in reach]
    bounds = list(accumulate((bound for _, bound in reach), max))
    provers = StartProver(read, is_decoded=False), StartProver(read, is_decoded=True)
    dumping = _next_dumping(around, 0)
    while 0 <= dumping < end - start:
        at = start + dumping
        mark = _mark(read, at, provers)
        if mark is not None:
            before = bisect_left(places, mark.anchor)
            is_hidden = before > 0 and mark.anchor < bounds[before - 1]
            mark = replace(mark, cut_before=cut_before(read, _since(read, marks, start), at))
            marks.append(replace(mark, proof=UNPROVEN) if is_hidden else mark)
        dumping = _next_dumping(around, dumping + 1)
    return tuple(marks)


def _since(read: Read, marks: Sequence[SectionMark], start: int) -> int:
    """Where the batches of the section begin that a chunk from `start` on goes on with, behind some marks of it; or a
    part of them.
    """
    if marks:
        return marks[-1].body_start
    back = max(0, start - LOOK_BACK_BYTES)
    before = read(back, start)
    return back + max(before.rfind(DUMPING_START), 0)


def _next_dumping(text: bytes, at: int) -> int:
    """Where the newline before the next `Dumping …` line is, from a place on; -1 where there is none."""
    first = text.find(b"D", at + 1)  # one byte is looked for ten times as fast as nine; most files have one such line
    return text.find(_DUMPING, first - 1) if first >= 0 else -1


def _mark(read: Read, at: int, provers: tuple[StartProver, StartProver]) -> SectionMark | None:
    text = read(at, at + _LOOK_AHEAD_BYTES)
    line, newline, _ = text.partition(b"\n")
    if not newline or len(line) > _PATH_BYTES:
        return None
    path = line.removeprefix(DUMPING_START).decode(errors="replace")
    file = parse_dump_path(path)
    if file is None:
        return None
    header_at = noise_end(text, len(line) + 1, len(text))
    body_at: int | None = header_at
    is_cut = False
    if isinstance(file, DumpedFile) and file.kind == LOG:
        body_at = read_header(text, header_at, file.base_offset)
        # The text ends within the header line: not a forged section, but a dump that was cut.
        is_cut = body_at is None and text.find(b"\n", header_at) < 0 and len(text) < _LOOK_AHEAD_BYTES
    if body_at is None and not is_cut:
        return None
    proof, anchor = _proof(at, provers)
    is_decoded = isinstance(file, DumpedFile) and file.topic in BROKER_WRITTEN_TOPICS
    if isinstance(file, Refusal) or body_at is None:
        refusal = file if isinstance(file, Refusal) else None
        return SectionMark(at, at + header_at, refusal, is_decoded, proof, anchor)
    body_at = noise_end(text, body_at, len(text))
    following = _next_dumping(text, body_at - 1)
    first_lines = text[body_at : (following if following >= 0 else text.rfind(b"\n")) + 1]
    body, start = describe_body(file, first_lines), at + body_at
    place = file.topic, file.partition, file.base_offset, start, start
    section = body if isinstance(body, Refusal) else Section(body.kind, *place, body.grammar, path)
    return SectionMark(at, start, section, is_decoded, proof, anchor)


def _proof(at: int, provers: tuple[StartProver, StartProver]) -> tuple[str, int]:
    raw, decoded = provers
    if raw.is_proven(at):
        return PROVEN, raw.anchor
    if decoded.is_proven(at):
        return PROVEN_IF_DECODED, decoded.anchor
    return UNPROVEN, at


def _trailers(read: Read, around: bytes, start: int, end: int) -> tuple[TrailerMark, ...]:
    if b"F" not in around:
        return ()
    trailers = []
    for trailer in _TRAILER.finditer(around):
        at = start + trailer.start()
        if at >= end:
            break
        after = start + trailer.end() - 1
        behind = read(after, after + HEAD_BYTES)
        name = trailer["file_name"].decode(errors="replace")
        trailers.append(TrailerMark(at, after + noise_end(behind, 0, len(behind)), int(trailer["torn_bytes"]), name))
    return tuple(trailers)
