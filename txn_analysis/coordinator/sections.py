"""What files of `__transaction_state` hold, summed up record by record: up to when each speaks, and what it lacks.

Sums of parts of one file add up to the sum of the file, so that Spark's tasks sum up what they hold and only sums
travel.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.coordinator.coverage import MOST_MISPLACED_IDS, StateSection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txn_analysis.coordinator.state_records import Placing, StateFile, StateRow

SectionKey = tuple[str, int]


class SectionSum(NamedTuple):
    """The records of one file, or of a part of it; `misplaced_ids` are the first few by code point."""

    first_offset: int | None = None
    first_ms: int | None = None
    last_offset: int | None = None
    undecodable_count: int = 0
    misplaced_count: int = 0
    misplaced_ids: tuple[str, ...] = ()
    last_ms: int | None = None
    keyless_count: int = 0
    newer_count: int = 0

    def plus(self, other: SectionSum) -> SectionSum:
        """The sum of both."""
        first = min((s for s in (self, other) if s.first_offset is not None), key=_first, default=self)
        last = max((s for s in (self, other) if s.last_offset is not None), key=_last, default=self)
        ids = sorted({*self.misplaced_ids, *other.misplaced_ids})
        return SectionSum(
            first.first_offset,
            first.first_ms,
            last.last_offset,
            self.undecodable_count + other.undecodable_count,
            self.misplaced_count + other.misplaced_count,
            tuple(ids[:MOST_MISPLACED_IDS]),
            last.last_ms,
            self.keyless_count + other.keyless_count,
            self.newer_count + other.newer_count,
        )


def _first(part: SectionSum) -> tuple[int, int]:
    # Copies that contradict each other can share an offset: which comes first is never left to chance.
    return part.first_offset or 0, part.first_ms or 0


def _last(part: SectionSum) -> tuple[int, int]:
    return part.last_offset or 0, part.last_ms or 0


Sums = dict[SectionKey, SectionSum]


class StateSums(NamedTuple):
    """The sums of dumped files, and of console exports by the partition of the id (None: undecodable)."""

    files: Sums
    console: dict[int | None, SectionSum]


def sums_of_records(rows: Iterable[StateRow], placing: Placing) -> StateSums:
    """Sum up some records, of which those of the judged capture count; sums of parts of them add up."""
    files: defaultdict[SectionKey, list[StateRow]] = defaultdict(list)
    console: defaultdict[int | None, list[StateRow]] = defaultdict(list)
    for row in rows:
        if row.capture_rank:
            continue
        if row.is_console:
            console[placing.hashed(row)].append(row)
        else:
            files[row.input_id, row.section_index].append(row)
    return StateSums(
        {key: _file_sum(found, placing) for key, found in files.items()},
        {number: _console_sum(found) for number, found in console.items()},
    )


def file_sums_added_up(parts: Iterable[StateSums]) -> StateSums:
    """The sums of several parts of the records."""
    whole = StateSums({}, {})
    for part in parts:
        for key, of_file in part.files.items():
            whole.files[key] = whole.files.get(key, SectionSum()).plus(of_file)
        for number, of_partition in part.console.items():
            whole.console[number] = whole.console.get(number, SectionSum()).plus(of_partition)
    return whole


def _file_sum(records: list[StateRow], placing: Placing) -> SectionSum:
    placed = [(r.offset, r.recorded_ms or 0, r.recorded_ms) for r in records if r.offset is not None]
    first_offset, _, first_ms = min(placed, default=(None, 0, None))
    last_offset, _, last_ms = max(placed, default=(None, 0, None))
    misplaced = [r.transactional_id for r in records if placing.hashed(r) not in {None, r.state_partition}]
    return SectionSum(
        first_offset,
        first_ms,
        last_offset,
        sum(r.is_undecodable for r in records),
        len(misplaced),
        tuple(sorted({name for name in misplaced if name is not None})[:MOST_MISPLACED_IDS]),
        last_ms,
        _keyless_count(records),
        _newer_count(records),
    )


def _console_sum(records: list[StateRow]) -> SectionSum:
    return SectionSum(
        undecodable_count=sum(r.is_undecodable for r in records),
        keyless_count=_keyless_count(records),
        newer_count=_newer_count(records),
    )


def _keyless_count(records: Iterable[StateRow]) -> int:
    return sum(r.is_undecodable and r.transactional_id is None for r in records)


def _newer_count(records: Iterable[StateRow]) -> int:
    return sum(r.may_list_more is not None for r in records)


def sections_of(sums: Sums, files: Iterable[StateFile]) -> list[StateSection]:
    """The dumped state files of the judged capture, with what was summed up of each; empty ones included."""
    return [
        StateSection(
            state_partition=file.partition,
            file_base_offset=file.file_base_offset,
            end_offset=file.end_offset,
            log_dir=file.log_dir,
            **sums.get((file.input_id, file.section_index), SectionSum())._asdict(),
        )
        for file in files
    ]


def console_sections(console: Mapping[int | None, SectionSum]) -> dict[int, StateSection]:
    """What a console export of the judged capture holds, by the partition that each id hashes to."""
    # Those whose key could not be read may be of any partition.
    lost = console.get(None, SectionSum())
    return {
        number: StateSection(state_partition=number, file_base_offset=0, **part.plus(lost)._asdict())
        for number, part in console.items()
        if number is not None
    }
