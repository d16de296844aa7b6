"""The first reading of all bytes of the inputs, a job of Spark if they are many: fingerprints, sections, torn ends."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa

from txn_analysis.columns.arrays import together
from txn_analysis.columns.memory import keep_pages
from txn_analysis.kafka.batch_headers import PEEK_BYTES
from txn_analysis.kafka.names import LOG_KINDS
from txn_analysis.reading.inputs.find_files import place_of
from txn_analysis.reading.inputs.planned_input import IsInPart, PlannedInput, Section, no_part, plan_text
from txn_analysis.reading.inputs.recognise import HEAD_BYTES, Refusal, recognise
from txn_analysis.reading.inputs.survey import CHUNK_BYTES, ChunkFacts, ReadFailure, survey_chunk
from txn_analysis.reading.inputs.text import (
    TEXT_PER_PACKED_BYTE,
    Text,
    TextError,
    detect_compression,
    may_unpack_to,
)
from txn_analysis.reading.log_dir.files import PassedOver, sort_out
from txn_analysis.reading.log_dir.survey import is_small_log, survey_broker_file, survey_small_logs
from txn_analysis.spark.jobs import running
from txn_analysis.spark.workers import cores_of, in_tasks, numbered
from txn_analysis.storage.opening import fits_in_memory
from txn_analysis.stores.remote_file import ahead
from txn_analysis.tables.inputs import is_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from txn_analysis.reading.inputs.find_files import SourceFile
    from txn_analysis.reading.log_dir.files import Sorted
    from txn_analysis.spark.jobs import Spark
    from txn_analysis.stores.store import Version
    from txn_analysis.tables.inputs import Asked

_TASKS_PER_CORE = 4
_MAX_TASK_BYTES = 512 << 20
_TEXT_PER_COMPRESSED_BYTE = 5  # a guess that only balances tasks
_ROWS_PER_BATCH = 64
_SMALL_AT_ONCE_BYTES = 4 << 20
_SCHEMA = "file INT, start BIGINT, facts BINARY"
_ARROW_SCHEMA = pa.schema([("file", pa.int32()), ("start", pa.int64()), ("facts", pa.binary())])

Item = TypeVar("Item")
_SMALL_FILE_WEIGHT_BYTES = 1 << 16  # to open a file takes as long as to read so much


Facts = ChunkFacts | PlannedInput | ReadFailure  # of a broker's own file, its plan
_Said = tuple[int, int, Facts]  # file, the first byte of its text, what is there

# A file of a megabyte can unpack to terabytes of lines that look like a dump's.
_UNPACKS_WITHOUT_END = ReadFailure(
    0,
    f"the file unpacks to more than {TEXT_PER_PACKED_BYTE} times its size, as no dump does",
    "If it is one, unpack it and give the text",
)


class _Piece(NamedTuple):
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
    is_in_part: bool = False

    @property
    def size_bytes(self) -> int:
        return self.weight_bytes if self.end is None else self.end - self.start


def survey_files(
    spark: Spark,
    files: Sequence[SourceFile],
    *,
    is_verified: bool = False,
    is_in_part: IsInPart = no_part,
    asked: Asked | None = None,
) -> tuple[list[PlannedInput], Counter[str], set[tuple[str, int]]]:
    """The plan of each file that can be evidence; how many of the others were passed over, by kind; and the partitions
    of which there is a log, whether they were asked for or not.

    Every byte of texts is read, each chunk in one task, and the headers of brokers' own files that are asked for.
    """
    heads, every = _looked_at(files)
    found = [what if _is_asked(what, asked) else NOT_ASKED for what in every]
    kept = [k for k, what in enumerate(found) if not isinstance(what, PassedOver)]
    pieces = [_pieces(k, files[k], heads[k], found[k], is_verified=is_verified, is_in_part=is_in_part) for k in kept]
    facts = _read(spark, [piece for of_file in pieces for piece in of_file])
    plans = [_plan(files[k], heads[k], found[k], facts.get(k, [])) for k in kept]
    needed = [plan for plan in plans if plan.problem is not None or _is_needed(plan, asked)]
    passed_over = Counter(what.what for what in found if isinstance(what, PassedOver))
    if len(needed) < len(plans):
        passed_over[NOT_ASKED.what] += len(plans) - len(needed)
    sections = [*(what for what in every if isinstance(what, Section)), *(s for plan in plans for s in plan.sections)]
    return needed, passed_over, {(s.topic, s.partition) for s in sections if s.kind in LOG_KINDS}


NOT_ASKED = PassedOver("files of partitions that were not asked for")


def _is_asked(what: Sorted, asked: Asked | None) -> bool:
    """Files of a whole log directory are of no topic yet."""
    return not isinstance(what, Section) or is_asked(asked, what.topic, what.partition)


def _is_needed(plan: PlannedInput, asked: Asked | None) -> bool:
    return not plan.sections or any(is_asked(asked, s.topic, s.partition) for s in plan.sections)


def certain_plans(files: Sequence[SourceFile], most_bytes: int | None) -> Iterator[PlannedInput]:
    """The plans of the texts among `files` that are refused at once, or that end within what is looked at; no Spark.

    That is the first chunk of each text, or its first `most_bytes`.
    """
    texts = ((file, head) for file, head, what in zip(files, *_looked_at(files), strict=True) if what is None)
    coming = ahead(
        lambda text: _certain_plan(*text, most_bytes),
        texts,
        is_object=lambda text: text[0].version is not None,
        size_of=lambda text: min(text[0].size_bytes, CHUNK_BYTES),
    )
    yield from filter(None, (plan() for _, plan in coming))


def _certain_plan(file: SourceFile, head: bytes | ReadFailure, most_bytes: int | None) -> PlannedInput | None:
    """The plan of a text, as of `certain_plans`; None where all of it must be read first."""
    compression = _compression(head)
    end = min(file.size_bytes, most_bytes or CHUNK_BYTES)
    if compression is None and end < file.size_bytes and not _begins_refused(file, end):
        return None
    piece = _Piece(0, place_of(file.path), compression, 0, None if compression else end, version=file.version)
    facts = [head] if isinstance(head, ReadFailure) else [fact for _, fact in islice(survey_piece(piece), 1)]
    is_refused = any(isinstance(f, ReadFailure) or isinstance(f.recognition, Refusal) for f in facts)
    return (
        plan_text(file, compression, facts) if is_refused or (compression is None and end == file.size_bytes) else None
    )


def _begins_refused(file: SourceFile, end: int) -> bool:
    """Whether the first bytes of a text that goes on already say that it is refused, or cannot be read."""
    try:
        with Text(place_of(file.path), None, file.version) as text:
            beginning = text.read(0, end)
    except OSError:
        return True
    is_shorter = len(beginning) < end
    return is_shorter or isinstance(recognise(beginning[:HEAD_BYTES], len(beginning)), Refusal)


def _looked_at(files: Sequence[SourceFile]) -> tuple[list[bytes | ReadFailure], list[Sorted]]:
    """The first bytes of each file, and what it is in its log directory."""
    heads = _heads(files)
    return heads, sort_out(files, [head if isinstance(head, bytes) else b"" for head in heads])


def _plan(file: SourceFile, head: bytes | ReadFailure, what: Sorted, facts: Sequence[Facts]) -> PlannedInput:
    if what is None and isinstance(head, ReadFailure):
        return plan_text(file, None, [head])
    if facts and isinstance(facts[0], PlannedInput):
        return replace(facts[0], path=file.path, version=file.version)
    of_text = [fact for fact in facts if not isinstance(fact, PlannedInput)]
    plan = plan_text(file, _compression(head) if what is None else None, of_text)
    return replace(plan, problem=f"byte 0: {what}") if isinstance(what, Refusal) else plan


def _read(spark: Spark, pieces: list[_Piece]) -> dict[int, list[Facts]]:
    """By file, what its pieces say, in the order of the text; little of it is read here, as no job is as fast."""
    is_little = fits_in_memory(sum(piece.size_bytes for piece in pieces))
    said = _said_here(pieces) if is_little else _said_in_tasks(spark, pieces)
    found: dict[int, list[Facts]] = {}
    for file, _, facts in sorted(said, key=lambda one: one[:2]):
        found.setdefault(file, []).append(facts)
    return found


def _said_here(pieces: Iterable[_Piece]) -> Iterator[_Said]:
    """By file and first byte, what pieces say; small segments together, and those of objects side by side."""
    keep_pages()
    small, others = list[tuple[Section, _Piece]](), list[_Piece]()
    for piece in pieces:
        if piece.broker is None or piece.version is not None or piece.is_in_part or not is_small_log(piece.broker):
            others.append(piece)
        else:
            small.append((piece.broker, piece))
    for some in together(small, lambda own: own[1].size_bytes, _SMALL_AT_ONCE_BYTES):
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


def _held_bytes(piece: _Piece) -> int:
    """How much of a piece is in memory at once, at most: a chunk, and what was read of its neighbours."""
    return min(piece.size_bytes, 2 * CHUNK_BYTES)


def _said_in_tasks(spark: Spark, pieces: list[_Piece]) -> list[_Said]:
    session = running(spark)
    tasks = _tasks(pieces, cores_of(session))
    rows = in_tasks(numbered(session, len(tasks)), _surveyor(tasks), _SCHEMA).collect()
    return [(row["file"], row["start"], pickle.loads(row["facts"])) for row in rows]  # noqa: S301 our own tasks wrote it


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


def _heads(files: Sequence[SourceFile]) -> list[bytes | ReadFailure]:
    """The first bytes of each file; objects, which take long to answer, are asked side by side."""
    if any(file.version for file in files):
        return [head() for _, head in ahead(_head, files)]
    return [_head(file) for file in files]


def _head(file: SourceFile) -> bytes | ReadFailure:
    try:
        with Text(place_of(file.path), None, file.version) as text:
            return text.read(0, PEEK_BYTES)
    except OSError as error:
        return _unreadable(error)


def _compression(head: bytes | ReadFailure) -> str | None:
    return detect_compression(head) if isinstance(head, bytes) else None


def _pieces(
    number: int,
    file: SourceFile,
    head: bytes | ReadFailure,
    broker: Sorted,
    *,
    is_verified: bool,
    is_in_part: IsInPart,
) -> list[_Piece]:
    """One file's work; nothing of a file that cannot be read, or is refused."""
    if isinstance(broker, Section):
        weight = max(file.size_bytes, _SMALL_FILE_WEIGHT_BYTES)
        of_file = is_verified, weight, file.version, is_in_part(broker)
        return [_Piece(number, place_of(file.path), None, 0, file.size_bytes, broker, *of_file)]
    if broker is not None or isinstance(head, ReadFailure):
        return []
    compression = _compression(head)
    if compression is not None:
        weight = file.size_bytes * _TEXT_PER_COMPRESSED_BYTE
        return [_Piece(number, place_of(file.path), compression, 0, None, weight_bytes=weight, version=file.version)]
    ends = [(at, min(at + CHUNK_BYTES, file.size_bytes)) for at in range(0, file.size_bytes, CHUNK_BYTES)]
    place = number, place_of(file.path), None
    return [_Piece(*place, start, end, weight_bytes=end - start, version=file.version) for start, end in ends]


def _tasks(pieces: list[_Piece], parallelism: int) -> list[list[_Piece]]:
    sizes = [piece.weight_bytes for piece in pieces]
    total = sum(sizes)
    wanted = min(parallelism * _TASKS_PER_CORE, total // CHUNK_BYTES)
    count = group_count(max(wanted, total // _MAX_TASK_BYTES), parallelism)
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
            said = _said_here(piece for task in batch.column(0).to_pylist() for piece in tasks[task])
            packed = ((file, start, pickle.dumps(facts)) for file, start, facts in said)
            while chunk := list(islice(packed, _ROWS_PER_BATCH)):
                yield pa.RecordBatch.from_arrays([*map(pa.array, zip(*chunk, strict=True))], schema=_ARROW_SCHEMA)

    return survey


def _facts(piece: _Piece) -> Iterator[tuple[int, Facts]]:
    if piece.broker is None:
        yield from survey_piece(piece)
        return
    try:
        of_file = {"is_verified": piece.is_verified, "is_in_part": piece.is_in_part}
        yield 0, survey_broker_file(piece.broker, piece.path, version=piece.version, **of_file)
    except OSError as error:
        yield 0, _unreadable(error)


def survey_piece(piece: _Piece) -> Iterator[tuple[int, ChunkFacts | ReadFailure]]:
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
        yield start, _unreadable(error)


def _unreadable(error: OSError) -> ReadFailure:
    return ReadFailure(0, f"the file cannot be read ({error.strerror or error})")
