"""Pieces of files, and what is in them: whole chunks of a text, or a broker's own file; read wherever a task runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from txn_analysis.columns.arrays import together
from txn_analysis.columns.memory import keep_pages
from txn_analysis.reading.inputs.broker_survey import is_small_log, survey_broker_file, survey_small_logs
from txn_analysis.reading.inputs.find_files import place_of
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.inputs.survey import CHUNK_BYTES, ChunkFacts, ReadFailure, survey_chunk
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import TEXT_PER_PACKED_BYTE, Text, TextError, detect_compression, may_unpack_to
from txn_analysis.stores.remote_file import ahead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txn_analysis.reading.inputs.broker_files import Sorted
    from txn_analysis.reading.inputs.find_files import SourceFile
    from txn_analysis.stores.store import Version

_TEXT_PER_COMPRESSED_BYTE = 5  # a guess that only balances tasks
_SMALL_FILE_WEIGHT_BYTES = 1 << 16  # to open a file takes as long as to read so much
_SMALL_AT_ONCE_BYTES = 4 << 20

Item = TypeVar("Item")
Facts = ChunkFacts | PlannedInput | ReadFailure  # of a broker's own file, its plan
Said = tuple[int, int, Facts]  # file, the first byte of its text, what is there

# A file of a megabyte can unpack to terabytes of lines that look like a dump's.
_UNPACKS_WITHOUT_END = ReadFailure(
    0,
    f"the file unpacks to more than {TEXT_PER_PACKED_BYTE} times its size, as no dump does",
    "If it is one, unpack it and give the text",
)


class Piece(NamedTuple):
    """Whole chunks of one file for one task; `end` is None for a compressed file, which is read from end to end.

    `weight_bytes` is what balances tasks, `size_bytes` what is read, of a compressed file as far as can be guessed.
    """

    file: int
    path: str
    compression: str | None
    start: int
    end: int | None
    broker: Section | None = None
    is_verified: bool = False
    weight_bytes: int = 0
    version: Version | None = None

    @property
    def size_bytes(self) -> int:
        """Of what is read, as far as is known before."""
        return self.weight_bytes if self.end is None else self.end - self.start


def pieces_of(
    number: int,
    file: SourceFile,
    head: bytes | ReadFailure,
    broker: Sorted,
    *,
    is_verified: bool,
) -> list[Piece]:
    """One file's work; nothing of a file that cannot be read, or is refused."""
    if isinstance(broker, Section):
        weight = max(file.size_bytes, _SMALL_FILE_WEIGHT_BYTES)
        of_file = is_verified, weight, file.version
        return [Piece(number, place_of(file.path), None, 0, file.size_bytes, broker, *of_file)]
    if broker is not None or isinstance(head, ReadFailure):
        return []
    compression = compression_of(head)
    if compression is not None:
        weight = file.size_bytes * _TEXT_PER_COMPRESSED_BYTE
        return [Piece(number, place_of(file.path), compression, 0, None, weight_bytes=weight, version=file.version)]
    ends = [(at, min(at + CHUNK_BYTES, file.size_bytes)) for at in range(0, file.size_bytes, CHUNK_BYTES)]
    place = number, place_of(file.path), None
    return [Piece(*place, start, end, weight_bytes=end - start, version=file.version) for start, end in ends]


def joined(pieces: list[Piece]) -> list[Piece]:
    """The pieces with neighbours in the same file made one, which keeps a task's description short."""
    longer: list[Piece] = []
    for piece in pieces:
        if longer and longer[-1].file == piece.file and longer[-1].end == piece.start:
            longer[-1] = longer[-1]._replace(end=piece.end)
        else:
            longer.append(piece)
    return longer


def pack(items: Sequence[Item], sizes: Iterable[int], group_count: int) -> list[list[Item]]:
    """The items in their order, cut into at most `group_count` groups of about the same total size."""
    sizes = list(sizes)
    total = max(1, sum(sizes))
    groups: dict[int, list[Item]] = {}
    for item, size, end in zip(items, sizes, accumulate(sizes), strict=True):
        middle = end - size / 2
        groups.setdefault(min(group_count - 1, int(middle * group_count / total)), []).append(item)
    return list(groups.values())


def group_count(wanted: int, parallelism: int) -> int:
    """How many groups of equal work to make where so many are wanted: no core waits while others do a last one."""
    return -(-wanted // parallelism) * parallelism if wanted > parallelism else max(1, wanted)


def said_of(pieces: Iterable[Piece]) -> Iterator[Said]:
    """By file and first byte, what pieces say; small segments together, and those of objects side by side."""
    keep_pages()
    small, others = list[tuple[Section, Piece]](), list[Piece]()
    for piece in pieces:
        if piece.broker is None or piece.version is not None or not is_small_log(piece.broker):
            others.append(piece)
        else:
            small.append((piece.broker, piece))
    for some in together(small, lambda each: each[1].size_bytes, _SMALL_AT_ONCE_BYTES):
        plans = survey_small_logs([(file, piece.path, piece.is_verified) for file, piece in some])
        for (_, piece), plan in zip(some, plans, strict=True):
            if plan is None:
                others.append(piece)
            else:
                yield piece.file, 0, plan
    coming = ahead(
        lambda piece: [*_facts(piece)],
        others,
        is_object=lambda piece: piece.version is not None,
        size_of=_held_bytes,
    )
    yield from ((piece.file, start, fact) for piece, facts in coming for start, fact in facts())


def _held_bytes(piece: Piece) -> int:
    """How much of a piece is in memory at once, at most: a chunk, and what was read of its neighbours."""
    return min(piece.size_bytes, 2 * CHUNK_BYTES)


def _facts(piece: Piece) -> Iterator[tuple[int, Facts]]:
    if piece.broker is None:
        yield from survey_piece(piece)
        return
    try:
        yield 0, survey_broker_file(piece.broker, piece.path, version=piece.version, is_verified=piece.is_verified)
    except OSError as error:
        yield 0, unreadable(error)


def survey_piece(piece: Piece) -> Iterator[tuple[int, ChunkFacts | ReadFailure]]:
    """The facts of a piece's chunks by their first byte; a failure ends them."""
    start = piece.start
    try:
        with Text(piece.path, piece.compression, piece.version) as text:
            while piece.end is None or start < piece.end:
                end = start + CHUNK_BYTES if piece.end is None else min(start + CHUNK_BYTES, piece.end)
                facts = survey_chunk(text.read, start, end)
                if facts is None and piece.end is None:
                    return
                if facts is None or (piece.end is not None and facts.end < end):
                    yield start, ReadFailure(start, "the file became shorter while it was read")
                    return
                yield start, facts
                start = facts.end
                if piece.end is None and start > may_unpack_to(text.packed_bytes):
                    yield start, replace(_UNPACKS_WITHOUT_END, offset=start)
                    return
    except TextError as error:
        yield start, ReadFailure(error.offset, error.reason)
    except OSError as error:
        yield start, unreadable(error)


def unreadable(error: OSError) -> ReadFailure:
    """That a file cannot be read, and why."""
    return ReadFailure(0, f"the file cannot be read ({error.strerror or error})")


def compression_of(head: bytes | ReadFailure) -> str | None:
    """How a file is compressed that begins so; None where it is not."""
    return detect_compression(head) if isinstance(head, bytes) else None
