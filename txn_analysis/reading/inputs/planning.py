"""All files of a call become planned inputs, and their sections become tasks.

Before that a first look refuses within a second what certainly cannot be read: small calls are read whole for it, of
large ones the heads of the first files. Brokers' own files, and what only all bytes of a large file can tell, are left
out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from operator import attrgetter

from txn_analysis.columns.arrays import by_key
from txn_analysis.kafka.names import BINARY_GRAMMARS, LOG_KINDS, STATE
from txn_analysis.reading.inputs.find_files import SourceFile, place_of
from txn_analysis.reading.inputs.manifest import manifest_problems, split_manifests
from txn_analysis.reading.inputs.planned_input import PlannedInput, check_inputs
from txn_analysis.reading.inputs.recognise import HEAD_BYTES
from txn_analysis.reading.inputs.survey import DIGEST_BYTES
from txn_analysis.reading.inputs.survey_files import (
    IsOnSpark,
    certain_plans,
    group_count,
    in_this_process,
    pack,
    survey_files,
)
from txn_analysis.reading.text.section import ScanRange, Section
from txn_analysis.spark.jobs import Spark
from txn_analysis.tables.inputs import Asked

_READ_WHOLE_BYTES = 16 << 20  # of all files together: a tenth of a second
_FIRST_FILES = 256  # whoever gives wrong files mostly gives wrong ones alone


def check_at_first_sight(files: Sequence[SourceFile]) -> None:
    """Refuses texts of which a first look already says that they cannot be read: all, where any of the first ones is.

    Args:
        files: all files of a call.

    Raises:
        InputError: one line for each such text, as `check_inputs` says it.
    """
    manifests, others = split_manifests(files)
    is_small = sum(file.size_bytes for file in others) <= _READ_WHOLE_BYTES
    misfits = [str(reason) for reasons in manifest_problems(manifests, others).values() for reason in reasons]
    look = partial(certain_plans, most_bytes=None if is_small else HEAD_BYTES)
    plans = [*look(others[:_FIRST_FILES])]
    if misfits or any(plan.problem for plan in plans):  # among all its neighbours a file may be a broker's
        plans = [*look(others)]
    check_inputs(plans, skip_unrecognised=False, misfits=misfits)


GONE = "the file disappeared, or became shorter, while it was read"


@dataclass(frozen=True)
class Planning:
    """The inputs of a call, how many other files are no evidence, by what they are, and of which partitions there is
    a log.
    """

    inputs: list[PlannedInput]
    passed_over: dict[str, int]
    partitions: set[tuple[str, int]]

    @property
    def left_out(self) -> str:
        """What was passed over, in one line; empty where nothing was."""
        return ", ".join(f"{count} {what}" for what, count in sorted(self.passed_over.items()))


def plan_inputs(
    spark: Spark,
    files: Sequence[SourceFile],
    *,
    is_on_spark: IsOnSpark = in_this_process,
    is_verified: bool = False,
    asked: Asked | None = None,
) -> Planning:
    """What each file is, by reading it once; a content given twice is planned once, by its first path.

    With `is_verified` the checksums of all batches of brokers' own segments are to be looked at. Such an input has
    another fingerprint, so that one that was read without is read again. A file that holds nothing of the partitions
    that are `asked` for, nor of `__transaction_state`, is left out. `is_on_spark` says of how many bytes Spark's tasks
    do it.
    """
    plans, passed_over, partitions = survey_files(
        spark, sorted(files), is_on_spark=is_on_spark, is_verified=is_verified, asked=asked
    )
    same = by_key(plans, attrgetter("input_id"))
    inputs = [replace(first, same_paths=tuple(o.path for o in others)) for first, *others in same.values()]
    gone = {plan.input_id for plan in inputs if plan.is_gone}
    lost = {"files that disappeared while they were read": len(gone)} if gone else {}
    return Planning(without_changed(inputs, gone), passed_over | lost, partitions)


def without_changed(inputs: Sequence[PlannedInput], changed: Collection[str]) -> list[PlannedInput]:
    """The inputs without brokers' files that were deleted or cut while they were read.

    An old segment is missing then as if it had been deleted before: the log begins later, or has a hole. The last
    segment of a partition stays, with nothing of it proven: what stood in it could have ended transactions.
    """
    if not changed:
        return list(inputs)
    newest: dict[tuple[str, int], int] = defaultdict(lambda: -1)
    for plan in inputs:
        for s in plan.sections if plan.input_id not in changed else ():
            if s.kind in LOG_KINDS:
                newest[s.topic, s.partition] = max(newest[s.topic, s.partition], s.file_base_offset)
    kept = []
    for plan in inputs:
        if plan.input_id not in changed:
            kept.append(plan)
        elif any(s.kind in LOG_KINDS and s.file_base_offset > newest[s.topic, s.partition] for s in plan.sections):
            kept.append(_unread(plan))
    return kept


def _unread(plan: PlannedInput) -> PlannedInput:
    """The plan of a segment of which nothing was seen but that it was there; like no other input's."""
    size = plan.size_bytes
    digest = blake2b(f"{plan.input_id} unread".encode(), digest_size=DIGEST_BYTES).hexdigest()
    sections = tuple(replace(s, text_end_bytes=size, torn_bytes=0, cuts=()) for s in plan.sections)
    return replace(plan, input_id=digest, sections=sections, rejects=((0, size, GONE),) if size else ())


_TASKS_PER_CORE = 3
# To start a task takes as long as to scan some megabytes; records of the coordinator are read far slower than batches.
_MIN_TASK_BYTES, _MAX_TASK_BYTES = 256 << 10, 512 << 20


def split_ranges(
    inputs: Sequence[PlannedInput], kinds: Collection[str], range_bytes: int, parallelism: int
) -> list[list[ScanRange]]:
    """The bodies of all sections of these kinds as tasks: lists of ranges, in text order, of about the same size each.

    Bodies of LOG_KINDS are cut at multiples of `range_bytes` from their start, or, in a broker's own segment, where the
    survey says that batches begin; all others are one range. All ranges of a compressed input stay in one task, as its
    text can only be read from the front; and those of a section of `__transaction_state`, as a cut may lie in an id
    that looks like lines of a dump. Empty bodies have no range.
    """
    units = [unit for plan in inputs for unit in _units(plan, kinds, range_bytes)]
    sizes = [sum(part.end - part.start for part in unit) for unit in units]
    least, most = (-(-sum(sizes) // size) for size in (_MAX_TASK_BYTES, _MIN_TASK_BYTES))
    wanted = parallelism * _TASKS_PER_CORE if parallelism > 1 else 1  # one core waits for none, but reads ahead in one
    count = group_count(max(min(wanted, most), least), parallelism)
    return [[part for unit in group for part in unit] for group in pack(units, sizes, count)]


def _units(plan: PlannedInput, kinds: Collection[str], range_bytes: int) -> Iterator[list[ScanRange]]:
    """The ranges of one input, those together that one task must read in their order."""
    place = place_of(plan.path), plan.compression, plan.input_id
    sections = [section for section in plan.sections if section.kind in kinds]
    ranges = [[ScanRange(*place, s, start, end, plan.version) for start, end in _cut(s, range_bytes)] for s in sections]
    if plan.compression:
        yield [part for parts in ranges for part in parts]
    else:
        for section, parts in zip(sections, ranges, strict=True):
            yield from [parts] if section.kind == STATE else ([part] for part in parts)


def _cut(section: Section, range_bytes: int) -> list[tuple[int, int]]:
    start, end = section.text_start_bytes, section.text_end_bytes
    if section.grammar in BINARY_GRAMMARS:
        bounds = [start, *section.cuts, end]
        return [(a, b) for a, b in pairwise(bounds) if a < b]
    step = range_bytes if section.kind in LOG_KINDS else max(1, end - start)
    return [(at, min(at + step, end)) for at in range(start, end, step)]
