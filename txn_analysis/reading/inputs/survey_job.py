"""The first reading of all bytes of the inputs, a job of Spark if they are many: fingerprints, sections, torn ends."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from txn_analysis.kafka.batch_headers import PEEK_BYTES
from txn_analysis.kafka.names import LOG_KINDS
from txn_analysis.reading.inputs.broker_files import PassedOver, sort_out
from txn_analysis.reading.inputs.find_files import place_of
from txn_analysis.reading.inputs.planned_input import PlannedInput, plan_text
from txn_analysis.reading.inputs.recognise import HEAD_BYTES, recognise
from txn_analysis.reading.inputs.refusals import Refusal
from txn_analysis.reading.inputs.survey import CHUNK_BYTES, ReadFailure
from txn_analysis.reading.inputs.survey_pieces import (
    Facts,
    Piece,
    Said,
    compression_of,
    group_count,
    joined,
    pack,
    pieces_of,
    said_of,
    survey_piece,
    unreadable,
)
from txn_analysis.reading.text.section import Section
from txn_analysis.reading.text.text import Text
from txn_analysis.spark.jobs import named_jobs, running
from txn_analysis.spark.workers import cores_of, in_tasks, work_for_tasks, work_in
from txn_analysis.stores.remote_file import ahead
from txn_analysis.tables.inputs import is_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from txn_analysis.reading.inputs.broker_files import Sorted
    from txn_analysis.reading.inputs.find_files import SourceFile
    from txn_analysis.spark.jobs import Spark
    from txn_analysis.tables.inputs import Asked

    IsOnSpark = Callable[[int], bool]

_TASKS_PER_CORE = 4
_MAX_TASK_BYTES = 512 << 20
_ROWS_PER_BATCH = 64
_SCHEMA = "file INT, start BIGINT, facts BINARY"
_ARROW_SCHEMA = pa.schema([("file", pa.int32()), ("start", pa.int64()), ("facts", pa.binary())])


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

    Every byte of texts is read, each chunk in one task, and the headers of brokers' own files that are asked for.
    `is_on_spark` says of how many bytes Spark's tasks do that. Of files `beside`, which say what their neighbours are,
    the first bytes alone are read.
    """
    heads, every = _looked_at([*files, *beside])
    every = every[: len(files)]
    checked = [what if _is_asked(what, asked) else NOT_ASKED for what in every]
    kept = [k for k, what in enumerate(checked) if not isinstance(what, PassedOver)]
    pieces = [pieces_of(k, files[k], heads[k], checked[k], is_verified=is_verified) for k in kept]
    facts = _read(spark, [piece for of_file in pieces for piece in of_file], is_on_spark)
    plans = [_plan(files[k], heads[k], checked[k], facts.get(k, [])) for k in kept]
    needed = [plan for plan in plans if plan.problem is not None or _is_needed(plan, asked)]
    passed_over = Counter(what.what for what in checked if isinstance(what, PassedOver))
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
    compression = compression_of(head)
    end = min(file.size_bytes, most_bytes or CHUNK_BYTES)
    if compression is None and end < file.size_bytes and not _begins_refused(file, end):
        return None
    piece = Piece(0, place_of(file.path), compression, 0, None if compression else end, version=file.version)
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
    plan = plan_text(file, compression_of(head) if what is None else None, of_text)
    if isinstance(what, Refusal):
        return replace(plan, problem=f"byte 0: {what}", refused=(what.kind,))
    return plan


def _read(spark: Spark, pieces: list[Piece], is_on_spark: IsOnSpark) -> dict[int, list[Facts]]:
    """By file, what its pieces say, in the order of the text."""
    is_in_tasks = is_on_spark(sum(piece.size_bytes for piece in pieces))
    surveyed = _said_in_tasks(spark, pieces) if is_in_tasks and pieces else said_of(pieces)
    facts_of: dict[int, list[Facts]] = {}
    for file, _, facts in sorted(surveyed, key=lambda one: one[:2]):
        facts_of.setdefault(file, []).append(facts)
    return facts_of


def _said_in_tasks(spark: Spark, pieces: list[Piece]) -> list[Said]:
    session = running(spark)
    tasks = _tasks(pieces, cores_of(session, sum(piece.weight_bytes for piece in pieces)))
    with named_jobs(session):
        rows = in_tasks(work_for_tasks(session, tasks), _survey, _SCHEMA).collect()
    return [(row["file"], row["start"], pickle.loads(row["facts"])) for row in rows]  # noqa: S301 our own tasks wrote it


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
        return unreadable(error)


def _tasks(pieces: list[Piece], parallelism: int) -> list[list[Piece]]:
    sizes = [piece.weight_bytes for piece in pieces]
    total = sum(sizes)
    wanted = min(parallelism * _TASKS_PER_CORE, total // CHUNK_BYTES)
    count = group_count(max(wanted, total // _MAX_TASK_BYTES), parallelism)
    return [joined(group) for group in pack(pieces, sizes, count)]


def _survey(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the pieces of a task say, as rows of `_SCHEMA`."""
    surveyed = said_of(piece for pieces in work_in(batches) for piece in pieces)
    rows = ((file, start, pickle.dumps(facts)) for file, start, facts in surveyed)
    while chunk := list(islice(rows, _ROWS_PER_BATCH)):
        yield pa.RecordBatch.from_arrays([*map(pa.array, zip(*chunk, strict=True))], schema=_ARROW_SCHEMA)
