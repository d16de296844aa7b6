"""Survey of a broker's own file, in the task that reads it: its fingerprint, its whole part, where it can be cut."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from txn_analysis.files.store import ChangedError, Version
from txn_analysis.kafka.batch_headers import (
    FOREIGN,
    HEADER_BYTES,
    PEEK_BYTES,
    SMALL_FILE_BYTES,
    TORN,
    ZEROS,
    Headers,
    HeaderWalk,
    Held,
    Read,
    SmallSegments,
    Source,
    is_plausible,
)
from txn_analysis.kafka.names import (
    BINARY,
    BINARY_VERIFIED,
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK,
    LOG_KINDS,
    SNAPSHOT,
    STATE,
    TXNINDEX,
)
from txn_analysis.kafka.record_batch import crcs, is_right
from txn_analysis.reading.inputs.broker_files import statements
from txn_analysis.reading.inputs.find_files import is_there
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.inputs.refusals import Refused
from txn_analysis.reading.inputs.survey import DIGEST_BYTES
from txn_analysis.reading.log_dir.producer_files import TXNINDEX_ENTRY_BYTES, snapshot_problem
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import Text

Rejects = tuple[tuple[int, int, str], ...]

LOG_DIR = "log_dir"  # the contract's name of what a broker's own files are
CUT_BATCHES = 1 << 15  # as many batches as one task reads at a time
_STEP_BYTES = 4 << 20
_OF_RECORDS = frozenset({*LOG_KINDS, SNAPSHOT, TXNINDEX})  # brokers append to these; they replace all others as a whole
_CLEANLY_STOPPED = ".kafka_cleanshutdown"  # a broker removes it when it starts (`LogManager`)

_REASONS = {
    TORN: "half a batch at the end",
    ZEROS: "zeros at the end, where no batch was written yet",
    FOREIGN: "not a record batch",
}


def survey_broker_file(file: Section, path: str, version: Version | None = None) -> PlannedInput:
    """The plan of a file as large as it was when it was listed; what was appended since is not looked at.

    A checkpoint is read as it is now, to its end: brokers replace it, every few seconds, by one of any length. An
    object, which has a `version`, is what was listed, or gone.

    Raises:
        OSError: it is there, but cannot be read.
    """
    size_bytes = file.text_end_bytes
    if file.kind == HIGH_WATERMARK and is_there(path, _CLEANLY_STOPPED):
        file = replace(file, stated=CLEAN_SHUTDOWN)
    try:
        with Text(path, None, version) as text:
            if file.kind not in _OF_RECORDS:
                data = _read_to_end(text.read)
                file = replace(file, text_end_bytes=len(data))
                return survey_content(file, Held(data))
            # A file that became shorter is another one, of which only the beginning was seen.
            if size_bytes == 0 or text.read(size_bytes - 1, size_bytes):
                return survey_content(file, text)
    except (FileNotFoundError, ChangedError):
        pass
    # The path makes it no other file's equal, as nobody knows what was in it.
    digest = blake2b(os.fsencode(path), digest_size=DIGEST_BYTES)
    return replace(_plan(file, digest, (_of_kind(file),)), is_gone=True)


def survey_content(file: Section, source: Source) -> PlannedInput:
    """The plan of a file's content.

    The fingerprint is over the place (a segment does not say which partition it is of) and the content: of the segments
    of user topics over the size and all batch headers, each of which holds the checksum and the length of its records;
    of all other files, and of small ones, over every byte. That the checksums are looked at makes another input.
    """
    size_bytes, digest, file = file.text_end_bytes, _digest_of_place(file), _of_kind(file)
    if file.kind in LOG_KINDS:
        return _plan_segment(file, source, digest)
    data = source.read(0, size_bytes)
    digest.update(data)
    if file.kind == SNAPSHOT:
        problem = snapshot_problem(data)
        return _plan(file, digest, (), ((0, size_bytes, problem),)) if problem else _plan(file, digest, (file,))
    if file.kind == TXNINDEX:
        end = size_bytes - size_bytes % TXNINDEX_ENTRY_BYTES
        rejects = ((end, size_bytes, "half an entry at the end"),) if end < size_bytes else ()
        return _plan(file, digest, (replace(file, text_end_bytes=end),), rejects)
    stated = statements(file, data) if data else []
    if stated is not None:
        return _plan(file, digest, stated)
    refusal = Refused.NOT_AS_WRITTEN.of(file.dump_path)
    return replace(_plan(file, digest, ()), problem=f"byte 0: {refusal}", refused=(refusal.kind,))


def _digest_of_place(file: Section) -> blake2b:
    is_verified, size_bytes = file.grammar == BINARY_VERIFIED, file.text_end_bytes
    place = (file.kind, file.topic, file.partition, file.file_base_offset, file.stated, is_verified, size_bytes)
    return blake2b(repr(place).encode(), digest_size=DIGEST_BYTES)


def is_small_log(file: Section) -> bool:
    """A segment that `survey_small_logs` takes: all of it is read at once, and it has too few batches for a cut."""
    return file.kind in LOG_KINDS and 0 < file.text_end_bytes <= SMALL_FILE_BYTES


def survey_small_logs(files: Sequence[tuple[Section, str]]) -> list[PlannedInput | None]:
    """The plans of small segments of this machine, each with its path, as `survey_broker_file` makes them one by one.

    Returns:
        None for one that is not there as it was listed, or that its batches do not fill: it wants a survey of its own.
    """
    contents = [_content(path, file.text_end_bytes) for file, path in files]
    small = SmallSegments.of(contents, [file.file_base_offset for file, _ in files])
    plans: list[PlannedInput | None] = []
    for (file, _), data, is_whole in zip(files, contents, small.is_whole.tolist(), strict=True):
        digest = _digest_of_place(file)
        digest.update(data)
        plans.append(_plan(file, digest, (file,)) if is_whole else None)
    return plans


def _content(path: str, size_bytes: int) -> bytes:
    """All that was listed of a file of this machine; nothing where that is not there any more."""
    try:
        with Text(path, None) as text:
            data = text.read(0, size_bytes)
    except OSError:
        return b""
    return data if len(data) == size_bytes else b""


def _read_to_end(read: Read) -> bytes:
    pieces: list[bytes] = []
    at = 0
    while piece := read(at, at + _STEP_BYTES):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _of_kind(file: Section) -> Section:
    """Segments alone have checksums that are looked at, or not."""
    return file if file.kind in LOG_KINDS else replace(file, grammar=BINARY)


def _plan(file: Section, digest: blake2b, sections: Sequence[Section], rejects: Rejects = ()) -> PlannedInput:
    return PlannedInput(
        path=file.dump_path,
        input_id=digest.hexdigest(),
        kind=LOG_DIR if sections else None,
        grammar=sections[0].grammar if sections else BINARY,
        size_bytes=file.text_end_bytes,
        text_bytes=file.text_end_bytes,
        sections=tuple(sections),
        rejects=rejects,
    )


def _plan_segment(file: Section, source: Source, digest: blake2b) -> PlannedInput:
    size_bytes = file.text_end_bytes
    walk = HeaderWalk(source, 0, size_bytes, file.file_base_offset)
    is_hashed_whole = file.kind == STATE or size_bytes <= SMALL_FILE_BYTES
    cuts: list[int] = []
    count = 0
    for block in walk.blocks():
        if not is_hashed_whole:
            digest.update(block.headers)
        cuts += [int(p) for p in block.position[-count % CUT_BATCHES :: CUT_BATCHES] if p]
        count += len(block)
    if is_hashed_whole:
        source.will_read([(0, size_bytes)])
        for at in range(0, size_bytes, _STEP_BYTES):
            digest.update(source.read(at, min(at + _STEP_BYTES, size_bytes)))
    stop = walk.stop()
    reason = stop.reason
    if reason == TORN and holds_batch(source.read, stop.position, size_bytes, stop.last_offset + 1):
        reason = FOREIGN
    section = replace(file, cuts=tuple(cuts))
    if (
        reason != FOREIGN
    ):  # what nobody understands stays in the body, so that it spoils the evidence; a torn end does not
        section = replace(section, text_end_bytes=stop.position, torn_bytes=size_bytes - stop.position)
    rejects = ((stop.position, size_bytes, _REASONS[reason]),) if reason else ()
    return _plan(file, digest, (section,), rejects)


_MAGIC_AT, _MAGIC = 16, 2
_NEAR_OFFSETS = 2**31  # a batch spans fewer
_MOST_CHECKSUMS = 1000  # more look-alikes are no half batch, whatever they are


def holds_batch(read: Read, start: int, end: int, next_offset: int) -> bool:
    """Whether a whole batch of format 2 with the right checksum begins behind `start`, at `next_offset` or near it."""
    tried = 0
    for at in range(start + 1, end - HEADER_BYTES + 1, _STEP_BYTES):
        data = read(at, min(at + _STEP_BYTES + HEADER_BYTES - 1, end))
        raw = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(raw[_MAGIC_AT : len(raw) - HEADER_BYTES + 1 + _MAGIC_AT] == _MAGIC)
        headers = Headers.at(places, data + bytes(PEEK_BYTES), at)
        near = (headers.base_offset >= next_offset) & (headers.base_offset < next_offset + _NEAR_OFFSETS)
        near &= is_plausible(headers) & (headers.position + headers.size <= end)
        for row in np.flatnonzero(near).tolist():
            position = int(headers.position[row])
            batch = read(position, position + int(headers.size[row]))
            tried += 1
            if tried > _MOST_CHECKSUMS or is_right(batch, int(crcs(headers)[row])):
                return True
    return False
