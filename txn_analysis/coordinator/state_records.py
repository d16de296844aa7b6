"""The records of the coordinator in the partitions that hold them, and those of each id in their order."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.coordinator.chain import StateRows
from txn_analysis.coordinator.history import in_order
from txn_analysis.coordinator.partition_count import StateCount, state_count, sums_of_files
from txn_analysis.coordinator.sections import SectionRecord, StateSums, sums_of
from txn_analysis.kafka.topics import state_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.coordinator.chain import StateChain
    from txn_analysis.coordinator.history import History
    from txn_analysis.coordinator.partition_count import IdSums
    from txn_analysis.coordinator.state_row import StateFiles, StateRow
    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.settings import Settings


class Placing(NamedTuple):
    """Where the records of a run belong.

    Attributes:
        state_count: how many partitions the state has, and why.
        dumped_rank: of the newest capture that has a dump or a folder of the state; 0 where none has.
        as_of_ms: the moment of the copy, where the operator states it.
    """

    state_count: StateCount
    dumped_rank: int
    as_of_ms: int | None

    @classmethod
    def of(cls, settings: Settings, files: StateFiles, ids: IdSums) -> Placing:
        """By what the ids of all records, and the names of the files, say of the count."""
        counted = state_count(settings.transaction_state_partitions, ids.plus(sums_of_files(files.partitions)))
        return cls(counted, files.dumped_rank, settings.as_of_ms)

    def partition_of(self, row: StateRow) -> int | None:
        """The partition of the state that holds a record: its own, or for an export the one that its id hashes to."""
        return self._hashed(row) if row.state_partition is None else row.state_partition

    def order_of(self, row: StateRow) -> tuple[Any, ...]:
        """The place of a record among those of its id.

        Dumped ones by offset, whichever capture they are from: the offset alone says which record it is. Console
        exports, which have no offsets, by capture, then by the newest moment of each export, then by arrival. Within
        one capture a dump counts after an export.
        """
        if row.state_partition is None:
            return (-row.capture_rank, False, row.input_moment_ms or 0, row.input_id, row.ordinal)
        return (-self.dumped_rank, True, row.offset, "", 0)

    def record_of(self, row: StateRow) -> StateRecord:
        """A row as a record in its place."""
        return row.placed(self.partition_of(row), self.order_of(row))

    def section_record_of(self, row: StateRow) -> SectionRecord:
        """A row as coverage asks for it."""
        hashed = self._hashed(row)
        return SectionRecord(
            row.input_id,
            row.section_index,
            row.is_console,
            hashed if row.is_console else row.state_partition,
            hashed,
            row.offset,
            row.recorded_ms,
            row.is_undecodable,
            row.transactional_id,
            row.may_list_more,
        )

    def _hashed(self, row: StateRow) -> int | None:
        hashed = row.transactional_id_hash
        return None if hashed is None else state_partition(hashed, self.state_count.used)


def section_sums_of(rows: Iterable[StateRow], placing: Placing) -> StateSums:
    """What the files of the judged capture hold, summed up; parts of the records add up."""
    return sums_of(placing.section_record_of(row) for row in rows if not row.capture_rank)


def chains_of(rows: Iterable[StateRow], placing: Placing) -> dict[int, StateChain]:
    """By partition of the state what its records say of themselves; all records of each partition are needed."""
    found: dict[int, StateRows] = {}
    for row in rows:
        number = placing.partition_of(row)
        if number is not None:
            found.setdefault(number, StateRows(placing.as_of_ms)).add(row, placing.order_of(row))
    return {number: own.chain() for number, own in found.items()}


def histories_of(rows: Iterable[StateRow], placing: Placing) -> Iterator[History]:
    """The records of each id, in order; all records of each id are needed. None is empty."""
    found: defaultdict[str, list[StateRecord]] = defaultdict(list)
    for row in rows:
        if row.transactional_id is not None:
            found[row.transactional_id].append(placing.record_of(row))
    return filter(None, map(in_order, found.values()))


def producers_of(history: History) -> set[int]:
    """The producer ids that an id has, or had."""
    return {i for record in history for i in record.producer_ids if i is not None}


def by_producer(histories: Iterable[History]) -> dict[int, list[History]]:
    """By producer id the histories of the ids that have, or had, it."""
    found: defaultdict[int, list[History]] = defaultdict(list)
    for history in histories:
        for producer_id in producers_of(history):
            found[producer_id].append(history)
    return dict(found)
