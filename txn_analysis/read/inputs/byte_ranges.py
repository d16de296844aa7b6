"""How the bodies of sections become tasks of about the same size."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from txn_analysis.kafka.sections import BINARY_GRAMMARS, LOG, STATE
from txn_analysis.read.inputs.find_files import place_of
from txn_analysis.read.inputs.planned_input import ScanRange
from txn_analysis.read.inputs.survey_job import group_count, pack

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from txn_analysis.read.inputs.planned_input import PlannedInput, Section

_TASKS_PER_CORE = 3
# To start a task takes as long as to scan some megabytes; records of the coordinator are read far slower than batches.
_MIN_TASK_BYTES, _MAX_TASK_BYTES = 256 << 10, 512 << 20


def split_ranges(
    inputs: Sequence[PlannedInput], kinds: Collection[str], range_bytes: int, parallelism: int
) -> list[list[ScanRange]]:
    """The bodies of all sections of these kinds as tasks: lists of ranges, in text order, of about the same size each.

    Bodies of kind `log` are cut at multiples of `range_bytes` from their start, or, in a broker's own segment, where
    the survey says that batches begin; all others are one range, and all ranges of a compressed input stay in one task,
    as its text can only be read from the front. Asked for `log` and `state` together, `state` is cut like `log`. Empty
    bodies have no range.
    """
    cut_kinds = {LOG, STATE} if LOG in kinds else set()
    units: list[list[ScanRange]] = []
    for plan in inputs:
        ranges = [
            ScanRange(place_of(plan.path), plan.compression, plan.input_id, section, start, end)
            for section in plan.sections
            if section.kind in kinds
            for start, end in _cut(section, range_bytes if section.kind in cut_kinds else None)
        ]
        units += [ranges] if plan.compression and ranges else [[part] for part in ranges]
    sizes = [sum(part.end - part.start for part in unit) for unit in units]
    least, most = (-(-sum(sizes) // size) for size in (_MAX_TASK_BYTES, _MIN_TASK_BYTES))
    count = group_count(max(min(parallelism * _TASKS_PER_CORE, most), least), parallelism)
    return [[part for unit in group for part in unit] for group in pack(units, sizes, count)]


def _cut(section: Section, range_bytes: int | None) -> list[tuple[int, int]]:
    start, end = section.text_start_bytes, section.text_end_bytes
    if range_bytes is not None and section.grammar in BINARY_GRAMMARS:
        bounds = [start, *section.cuts, end]
        return [(a, b) for a, b in pairwise(bounds) if a < b]
    step = range_bytes or max(1, end - start)
    return [(at, min(at + step, end)) for at in range(start, end, step)]
