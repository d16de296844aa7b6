"""The one Spark job that reads all bytes of all inputs: fingerprints, section starts, torn ends."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa

from txn_analysis.ingest.survey import CHUNK_BYTES, ChunkFacts, survey_chunk
from txn_analysis.ingest.text import MAGIC_BYTES, TextError, detect_compression, open_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from txn_analysis.ingest.sources import SourceFile

_TASKS_PER_CORE = 4
_MAX_TASK_BYTES = 512 << 20
_TEXT_PER_COMPRESSED_BYTE = 5  # a guess that only balances tasks
_SCHEMA = "file INT, start BIGINT, facts BINARY"
_ARROW_SCHEMA = pa.schema([("file", pa.int32()), ("start", pa.int64()), ("facts", pa.binary())])

Item = TypeVar("Item")


@dataclass(frozen=True)
class ReadFailure:
    """A file, or the rest of one, that could not be read; `offset` is a byte of its text."""

    offset: int
    reason: str


@dataclass(frozen=True)
class FileSurvey:
    """All that is known of one file's text, in the order of the text."""

    source: SourceFile
    compression: str | None
    chunks: tuple[ChunkFacts, ...]
    failure: ReadFailure | None


class _Piece(NamedTuple):
    """Whole chunks of one file for one task; `end` is None for a compressed file, which is read from end to end."""

    file: int
    path: str
    compression: str | None
    start: int
    end: int | None


def survey_files(spark: SparkSession, files: Sequence[SourceFile]) -> list[FileSurvey]:
    """Reads every byte of `files`, each chunk in one task, and returns one survey for each file."""
    heads = [_compression(file) for file in files]
    tasks = _tasks(files, heads, spark.sparkContext.defaultParallelism)
    found: dict[int, list[ChunkFacts]] = {}
    failures: dict[int, ReadFailure] = {k: head for k, head in enumerate(heads) if isinstance(head, ReadFailure)}
    if tasks:
        rows = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(_surveyor(tasks), _SCHEMA).collect()
        for row in sorted(rows, key=lambda row: (row["file"], row["start"])):
            facts = pickle.loads(row["facts"])  # noqa: S301 - see the import
            if isinstance(facts, ReadFailure):
                failures.setdefault(row["file"], facts)
            else:
                found.setdefault(row["file"], []).append(facts)
    return [
        FileSurvey(file, head if isinstance(head, str) else None, tuple(found.get(k, ())), failures.get(k))
        for k, (file, head) in enumerate(zip(files, heads, strict=True))
    ]


def pack(items: Sequence[Item], sizes: Iterable[int], group_count: int) -> list[list[Item]]:
    """The items in their order, cut into at most `group_count` groups of about the same total size."""
    sizes = list(sizes)
    total = max(1, sum(sizes))
    groups: dict[int, list[Item]] = {}
    for item, size, end in zip(items, sizes, accumulate(sizes), strict=True):
        middle = end - size / 2
        groups.setdefault(min(group_count - 1, int(middle * group_count / total)), []).append(item)
    return list(groups.values())


def _compression(file: SourceFile) -> str | ReadFailure | None:
    try:
        with open_text(file.path, None) as text:
            return detect_compression(text.read(0, MAGIC_BYTES))
    except OSError as error:
        return _unreadable(error)


def _tasks(
    files: Sequence[SourceFile], heads: Sequence[str | ReadFailure | None], parallelism: int
) -> list[list[_Piece]]:
    pieces: list[_Piece] = []
    sizes: list[int] = []
    for k, (file, head) in enumerate(zip(files, heads, strict=True)):
        if isinstance(head, ReadFailure):
            continue
        if head is not None:
            pieces.append(_Piece(k, file.path, head, 0, None))
            sizes.append(file.size_bytes * _TEXT_PER_COMPRESSED_BYTE)
            continue
        for start in range(0, file.size_bytes, CHUNK_BYTES):
            end = min(start + CHUNK_BYTES, file.size_bytes)
            pieces.append(_Piece(k, file.path, None, start, end))
            sizes.append(end - start)
    total = sum(sizes)
    count = max(1, min(parallelism * _TASKS_PER_CORE, total // CHUNK_BYTES), total // _MAX_TASK_BYTES)
    return [_joined(group) for group in pack(pieces, sizes, count)]


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces with neighbours in the same file made one, which keeps a task's description short."""
    joined: list[_Piece] = []
    for piece in pieces:
        if joined and joined[-1].file == piece.file and joined[-1].end == piece.start:
            joined[-1] = joined[-1]._replace(end=piece.end)
        else:
            joined.append(piece)
    return joined


def _surveyor(
    tasks: list[list[_Piece]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def survey(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for piece in tasks[task]:
                    rows = [
                        {"file": piece.file, "start": start, "facts": pickle.dumps(facts)}
                        for start, facts in survey_piece(piece)
                    ]
                    yield pa.RecordBatch.from_pylist(rows, schema=_ARROW_SCHEMA)

    return survey


def survey_piece(piece: _Piece) -> Iterator[tuple[int, ChunkFacts | ReadFailure]]:
    """The facts of a piece's chunks by their first byte; a failure ends them."""
    start = piece.start
    try:
        with open_text(piece.path, piece.compression) as text:
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
    except TextError as error:
        yield start, ReadFailure(error.offset, error.reason)
    except OSError as error:
        yield start, _unreadable(error)


def _unreadable(error: OSError) -> ReadFailure:
    return ReadFailure(0, f"the file cannot be read ({error.strerror or error})")
