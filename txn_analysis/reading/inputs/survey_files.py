"""From files to their plans: every byte of texts is read once, and of brokers' own files the headers.

Of many bytes it is a job of Spark. A piece is what a task reads of one file: a chunk of a text, a whole compressed
file, which can only be read from its front, or a broker's own file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from operator import itemgetter
from typing import NamedTuple, TypeVar

import pyarrow as pa

from txn_analysis.columns.arrays import by_key, together
from txn_analysis.columns.memory import keep_pages
from txn_analysis.columns.values import rows_of_values
from txn_analysis.files.remote_file import ahead
from txn_analysis.kafka.batch_headers import PEEK_BYTES
from txn_analysis.kafka.names import BINARY_VERIFIED, LOG_KINDS
from txn_analysis.reading.inputs.broker_files import PassedOver, Sorted, sort_out
from txn_analysis.reading.inputs.broker_survey import is_small_log, survey_broker_file, survey_small_logs
from txn_analysis.reading.inputs.find_files import SourceFile, place_of
from txn_analysis.reading.inputs.planned_input import PlannedInput, plan_text
from txn_analysis.reading.inputs.refusals import Refusal
from txn_analysis.reading.inputs.survey import CHUNK_BYTES, ChunkFacts, ReadFailure, survey_chunk
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import TEXT_PER_PACKED_BYTE, Text, TextError, detect_compression, may_unpack_to
from txn_analysis.spark.jobs import Spark, running
from txn_analysis.spark.workers import cores_of, values_of_tasks, work_for_tasks, work_in
from txn_analysis.tables.inputs import Asked, is_asked

IsOnSpark = Callable[[int], bool]

Item = TypeVar("Item")
Facts = ChunkFacts | PlannedInput | ReadFailure
"""What a piece says: of a broker's own file, its plan."""

NOT_ASKED = PassedOver("files of partitions that were not asked for")
_TEXT_PER_COMPRESSED_BYTE = 5  # a guess that only balances tasks
_SMALL_FILE_WEIGHT_BYTES = 1 << 16  # to open a file takes as long as to read so much
_SMALL_AT_ONCE_BYTES = 4 << 20
_TASKS_PER_CORE = 4
_MAX_TASK_BYTES = 512 << 20
_VALUES_PER_BATCH = 64

# A file of a megabyte can unpack to terabytes of lines that look like a dump's.
_UNPACKS_WITHOUT_END = ReadFailure(
    0,
    f"the file unpacks to more than {TEXT_PER_PACKED_BYTE} times its size, as no dump does",
    "If it is one, unpack it and give the text",
)


class Piece(NamedTuple):
    """What one task reads of a file: [start, end) of its text, all of a compressed one (`end` is None)."""

    number: int  # of the file
    file: SourceFile
    start: int
    end: int | None
    compression: str | None = None
    broker: Section | None = None

    @property
    def size_bytes(self) -> int:
        """Of what is read; of a compressed file as far as can be guessed."""
        return self.file.size_bytes * _TEXT_PER_COMPRESSED_BYTE if self.end is None else self.end - self.start


def in_this_process(_work_bytes: int) -> bool:
    """Spark's tasks do nothing of it."""
    return False


def survey_files(
    spark: Spark,
    files: Sequence[SourceFile],
    *,
    is_on_spark: IsOnSpark = in_this_process,
    is_verified: bool = False,
    asked: Asked | None = None,
    beside: Sequence[SourceFile] = (),
) -> tuple[list[PlannedInput], Counter[str], set[tuple[str, int]]]:
    """The plan of each file that can be evidence; how many of the others were passed over, by kind; and the partitions
    of which there is a log, whether they were asked for or not.

    `is_on_spark` says of how many bytes Spark's tasks do that. Of files `beside`, which say what their neighbours are,
    the first bytes alone are read.
    """
    heads, every = _looked_at([*files, *beside])
    every = every[: len(files)]
    # Files of a whole log directory are of no topic yet.
    is_wanted = [not isinstance(what, Section) or is_asked(asked, what.topic, what.partition) for what in every]
    checked = [what if is_kept else NOT_ASKED for what, is_kept in zip(every, is_wanted, strict=True)]
    kept = [k for k, what in enumerate(checked) if not isinstance(what, PassedOver)]
    pieces = [p for k in kept for p in _pieces(k, files[k], heads[k], checked[k], is_verified=is_verified)]
    is_in_tasks = bool(pieces) and is_on_spark(sum(piece.size_bytes for piece in pieces))
    surveyed = sorted(_in_tasks(spark, pieces) if is_in_tasks else _survey(pieces), key=itemgetter(0, 1))
    facts_of = by_key(surveyed, itemgetter(0))
    plans = [_plan(files[k], heads[k], checked[k], [facts for *_, facts in facts_of[k]]) for k in kept]
    needed = [plan for plan in plans if plan.problem is not None or _is_needed(plan, asked)]
    passed_over = Counter(what.what for what in checked if isinstance(what, PassedOver))
    if len(needed) < len(plans):
        passed_over[NOT_ASKED.what] += len(plans) - len(needed)
    sections = [*(what for what in every if isinstance(what, Section)), *(s for plan in plans for s in plan.sections)]
    return needed, passed_over, {(s.topic, s.partition) for s in sections if s.kind in LOG_KINDS}


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
    compression, end = compression_of(head), min(file.size_bytes, most_bytes or CHUNK_BYTES)
    piece = Piece(0, _at_its_place(file), 0, None if compression else end, compression)
    facts = [head] if isinstance(head, ReadFailure) else [fact for _, fact in islice(survey_piece(piece), 1)]
    is_refused = any(
        isinstance(f.recognition if isinstance(f, ChunkFacts) else f, Refusal | ReadFailure) for f in facts
    )
    is_whole = compression is None and end == file.size_bytes
    return plan_text(file, compression, facts) if is_refused or is_whole else None


def _looked_at(files: Sequence[SourceFile]) -> tuple[list[bytes | ReadFailure], list[Sorted]]:
    """The first bytes of each file, and what it is in its log directory; objects are asked side by side."""
    if any(file.version for file in files):
        heads = [head() for _, head in ahead(_head, files)]
    else:
        heads = [_head(file) for file in files]
    return heads, sort_out(files, [head if isinstance(head, bytes) else b"" for head in heads])


def _head(file: SourceFile) -> bytes | ReadFailure:
    try:
        with Text(place_of(file.path), None, file.version) as text:
            return text.read(0, PEEK_BYTES)
    except OSError as error:
        return _unreadable(error)


def compression_of(head: bytes | ReadFailure) -> str | None:
    """How a file is compressed that begins so; None where it is not."""
    return detect_compression(head) if isinstance(head, bytes) else None


def _at_its_place(file: SourceFile) -> SourceFile:
    return replace(file, path=place_of(file.path))


def _pieces(
    number: int, file: SourceFile, head: bytes | ReadFailure, what: Sorted, *, is_verified: bool
) -> Iterator[Piece]:
    """One file's work; nothing of a file that cannot be read, or is refused."""
    whole = Piece(number, _at_its_place(file), 0, file.size_bytes)
    if isinstance(what, Section):
        yield whole._replace(broker=replace(what, grammar=BINARY_VERIFIED) if is_verified else what)
    elif what is None and isinstance(head, bytes):
        compression = compression_of(head)
        if compression is not None:
            yield whole._replace(end=None, compression=compression)
        for at in range(0, 0 if compression else file.size_bytes, CHUNK_BYTES):
            yield whole._replace(start=at, end=min(at + CHUNK_BYTES, file.size_bytes))


def _plan(file: SourceFile, head: bytes | ReadFailure, what: Sorted, facts: Sequence[Facts]) -> PlannedInput:
    if facts and isinstance(facts[0], PlannedInput):
        return replace(facts[0], path=file.path, version=file.version)
    if what is None and isinstance(head, ReadFailure):
        facts = [head]
    plan = plan_text(file, compression_of(head) if what is None else None, facts)
    if isinstance(what, Refusal):
        return replace(plan, problem=f"byte 0: {what}", refused=(what.kind,))
    return plan


def _in_tasks(spark: Spark, pieces: list[Piece]) -> Iterable[tuple[int, int, Facts]]:
    session = running(spark)
    sizes = [max(piece.size_bytes, 0 if piece.broker is None else _SMALL_FILE_WEIGHT_BYTES) for piece in pieces]
    total, parallelism = sum(sizes), cores_of(session, sum(sizes))
    wanted = min(parallelism * _TASKS_PER_CORE, total // CHUNK_BYTES)
    count = group_count(max(wanted, total // _MAX_TASK_BYTES), parallelism)
    return values_of_tasks(work_for_tasks(session, pack(pieces, sizes, count)), _survey_in_task)


def _survey_in_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    surveyed = _survey(piece for pieces in work_in(batches) for piece in pieces)
    while chunk := list(islice(surveyed, _VALUES_PER_BATCH)):
        yield from rows_of_values(*chunk).to_batches()


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


def _survey(pieces: Iterable[Piece]) -> Iterator[tuple[int, int, Facts]]:
    """By file and first byte, what pieces say; small segments together, and those of objects side by side."""
    keep_pages()
    small, others = list[tuple[Section, Piece]](), list[Piece]()
    for piece in pieces:
        if piece.broker is None or piece.file.version is not None or not is_small_log(piece.broker):
            others.append(piece)
        else:
            small.append((piece.broker, piece))
    for some in together(small, lambda each: each[1].size_bytes, _SMALL_AT_ONCE_BYTES):
        plans = survey_small_logs([(file, piece.file.path) for file, piece in some])
        for (_, piece), plan in zip(some, plans, strict=True):
            if plan is None:
                others.append(piece)
            else:
                yield piece.number, 0, plan
    coming = ahead(
        lambda piece: [*survey_piece(piece)],
        others,
        is_object=lambda piece: piece.file.version is not None,
        size_of=lambda piece: min(piece.size_bytes, 2 * CHUNK_BYTES),  # a chunk, and what was read of its neighbours
    )
    yield from ((piece.number, start, fact) for piece, facts in coming for start, fact in facts())


def survey_piece(piece: Piece) -> Iterator[tuple[int, Facts]]:
    """The facts of a text's chunks by their first byte, or the plan of a broker's file; a failure ends them."""
    start = piece.start
    try:
        if piece.broker is not None:
            yield start, survey_broker_file(piece.broker, piece.file.path, piece.file.version)
            return
        with Text(piece.file.path, piece.compression, piece.file.version) as text:
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
