"""What files of `__transaction_state` hold, summed up record by record: up to when each speaks, and what it lacks.

All records of a file are read with its partition, and so are those of exports whose ids hash to one: each is summed up
where they lie together, and only sums travel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, Array, codes_of, known, numbers
from txn_analysis.coordinator.state_columns import NO_TIME
from txn_analysis.tables.inputs import InputSection

SectionKey = tuple[str, int]
MOST_MISPLACED_IDS = 3


class SectionSum(NamedTuple):
    """The records of one file; None where it has none with an offset.

    `misplaced_count` counts records whose id belongs to another partition by Kafka's hash; `misplaced_ids` are the
    first few of these ids, by code point. `first_ms` and `last_ms` are the moments of the records at `first_offset` and
    `last_offset`. `keyless_count` counts the undecodable records whose key could not be read either, `newer_count`
    those that have fields of a newer Kafka.
    """

    first_offset: int | None = None
    first_ms: int | None = None
    last_offset: int | None = None
    undecodable_count: int = 0
    misplaced_count: int = 0
    misplaced_ids: tuple[str, ...] = ()
    last_ms: int | None = None
    keyless_count: int = 0
    newer_count: int = 0


class StateSection(NamedTuple):
    """One dumped file of one partition of `__transaction_state`, summed up.

    `end_offset` is the offset after its last batch, which compaction may have left without a record; `log_dir` the log
    directory that holds the file.
    """

    state_partition: int
    file_base_offset: int
    sum: SectionSum = SectionSum()
    end_offset: int | None = None
    log_dir: str | None = None

    @property
    def record_end_offset(self) -> int:
        """The offset after its last record."""
        return self.file_base_offset if self.sum.last_offset is None else self.sum.last_offset + 1


Sums = dict[SectionKey, SectionSum]


class StateSums(NamedTuple):
    """The sums of dumped files, and of console exports by the partition of the id (None: undecodable)."""

    files: Sums
    console: dict[int | None, SectionSum]

    def update(self, others: StateSums) -> None:
        """Add the sums of other files, and of exports for other partitions."""
        self.files.update(others.files)
        self.console.update(others.console)


def sums_of_records(states: pa.Table, hashed: Array) -> StateSums:
    """Sum up some records, of which those of the judged capture count.

    Args:
        states: rows of `STATES`, of one audit; all that some partitions hold.
        hashed: of each the partition that its id hashes to; -1 where it has none.
    """
    partition = numbers(states["state_partition"], ABSENT)
    offset, recorded_ms = numbers(states["offset"], ABSENT), numbers(states["recorded_ms"], NO_TIME)
    is_undecodable = states["is_undecodable"].to_numpy().astype(bool)
    is_keyless = is_undecodable & states["transactional_id"].is_null().to_numpy()
    is_newer = states["may_list_more"].is_valid().to_numpy()
    is_misplaced = (hashed != ABSENT) & (hashed != partition)
    is_judged = numbers(states["capture_rank"], 0) == 0
    # Copies that contradict each other can share an offset: which comes first is never left to chance.
    keys = [offset, np.maximum(recorded_ms, 0)]

    def counts(rows: Array) -> SectionSum:
        undecodable, keyless, newer = (int(values[rows].sum()) for values in (is_undecodable, is_keyless, is_newer))
        return SectionSum(undecodable_count=undecodable, keyless_count=keyless, newer_count=newer)

    def of_file(rows: Array) -> SectionSum:
        placed = rows[offset[rows] != ABSENT]
        ends = placed[np.lexsort([key[placed] for key in keys[::-1]])[[0, -1]]] if len(placed) else placed
        (first_offset, last_offset), (first_ms, last_ms) = (
            [known(int(values[end]), of_none) for end in ends] or (None, None)
            for values, of_none in ((offset, ABSENT), (recorded_ms, NO_TIME))
        )
        misplaced = rows[is_misplaced[rows]]
        names = states["transactional_id"].take(pa.array(misplaced)).unique().drop_null().to_pylist()
        return counts(rows)._replace(
            first_offset=first_offset,
            first_ms=first_ms,
            last_offset=last_offset,
            misplaced_count=len(misplaced),
            misplaced_ids=tuple(sorted(names)[:MOST_MISPLACED_IDS]),
            last_ms=last_ms,
        )

    files, section = codes_of(states["input_id"]), numbers(states["section_index"], 0)
    of_files = _parts([partition != ABSENT, is_judged], [files, section])
    of_exports = _parts([partition == ABSENT, is_judged], [hashed])
    return StateSums(
        {(states["input_id"][rows[0]].as_py(), int(section[rows[0]])): of_file(rows) for rows in of_files},
        {known(int(hashed[rows[0]])): counts(rows) for rows in of_exports},
    )


def _parts(conditions: Iterable[Array], keys: Sequence[Array]) -> list[Array]:
    """The rows that meet some conditions, in parts of equal keys."""
    rows = np.flatnonzero(np.logical_and.reduce([*conditions]))
    rows = rows[np.lexsort([key[rows] for key in keys])]
    is_other = np.logical_or.reduce([np.diff(key[rows]) != 0 for key in keys])
    return np.split(rows, np.flatnonzero(is_other) + 1) if len(rows) else []


def sections_of(sums: Sums, files: Iterable[InputSection]) -> list[StateSection]:
    """The dumped state files of the judged capture, with what was summed up of each; empty ones included."""
    return [
        StateSection(
            file.partition,
            file.file_base_offset,
            sums.get(file.key, SectionSum()),
            file.end_offset,
            file.log_dir,
        )
        for file in files
    ]


def by_partition(console: Mapping[int | None, SectionSum]) -> dict[int, SectionSum]:
    """What a console export of the judged capture holds, by the partition that each id hashes to."""
    # Those whose key could not be read may be of any partition.
    lost = console.get(None, SectionSum())
    return {
        number: part._replace(
            undecodable_count=part.undecodable_count + lost.undecodable_count,
            keyless_count=part.keyless_count + lost.keyless_count,
            newer_count=part.newer_count + lost.newer_count,
        )
        for number, part in console.items()
        if number is not None
    }
