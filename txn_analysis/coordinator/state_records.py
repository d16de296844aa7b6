"""The coordinator's records in memory: those of one history, or those of a run that are few enough to be held."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from txn_analysis.coordinator.chain import StateRows
from txn_analysis.coordinator.partition_count import StateCount, state_count, sums_of_files, sums_of_ids
from txn_analysis.coordinator.sections import SectionRecord
from txn_analysis.coordinator.state_row import StateFiles, StateRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.settings import Settings


@dataclass(frozen=True)
class StateRecords:
    """What was read of `__transaction_state`, and the settings that are true of it.

    Attributes:
        settings: as for the audit.
        files: the files that hold it.
        rows: its records, of all captures, in any order.
    """

    settings: Settings
    files: StateFiles
    rows: Sequence[StateRow]

    @classmethod
    def of(
        cls, settings: Settings, section_rows: Iterable[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]
    ) -> StateRecords:
        """From rows of tables.

        Args:
            settings: as for the audit.
            section_rows: rows of `Evidence.section_rows`, with the offsets that their batches reach over.
            rows: of `transaction_states`, each with `capture_rank` and, for console exports, `input_moment_ms`.
        """
        return cls(settings, StateFiles.of(section_rows), [StateRow.of(row) for row in rows])

    @cached_property
    def count(self) -> StateCount:
        """How many partitions the state has, and why."""
        ids = sums_of_ids((row.transactional_id_hash, row.state_partition) for row in self.rows)
        return state_count(self.settings.transaction_state_partitions, ids.plus(sums_of_files(self.files.partitions)))

    def histories(self, producer_ids: AbstractSet[int]) -> dict[str, list[StateRecord]]:
        """The coordinator's records of the ids that have, or had in any record, one of these producer ids."""
        if not producer_ids:
            return {}
        asked = {row.transactional_id for row in self.rows if not row.producer_ids.isdisjoint(producer_ids)}
        return self.of_ids(asked)

    def of_ids(self, transactional_ids: AbstractSet[str | None]) -> dict[str, list[StateRecord]]:
        """By transactional id its records, in whatever order they were read."""
        found: defaultdict[str, list[StateRecord]] = defaultdict(list)
        for row in self.rows:
            name = row.transactional_id
            if name is not None and name in transactional_ids:
                found[name].append(row.placed(*self._place(row)))
        return found

    def in_order(self) -> dict[str, list[StateRow]]:
        """By transactional id its records in order; copies and captures hold the same record, which is here once.

        Those are among them that could not be decoded, where no copy could be.
        """
        found: defaultdict[str, dict[tuple[Any, ...], StateRow]] = defaultdict(dict)
        for row in self.rows:
            if row.transactional_id is not None:
                own, order = found[row.transactional_id], self._place(row)[1]
                if not row.is_undecodable or order not in own:
                    own[order] = row
        return {name: [own[order] for order in sorted(own)] for name, own in found.items()}

    def state_rows(self) -> dict[int, StateRows]:
        """All records of each partition of the state."""
        found: defaultdict[int, StateRows] = defaultdict(partial(StateRows, self.settings.as_of_ms))
        for row in self.rows:
            number, order = self._place(row)
            if number is not None:
                found[number].add(row, order)
        return dict(found)

    def section_records(self) -> Iterator[SectionRecord]:
        """The judged capture's records as coverage asks for them."""
        count = self.count.used
        for row in self.rows:
            if row.capture_rank:
                continue
            hashed = row.hashed_partition(count)
            yield SectionRecord(
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

    @cached_property
    def _dumped_rank(self) -> int:
        return self.files.dumped_rank

    def _place(self, row: StateRow) -> tuple[int | None, tuple[Any, ...]]:
        """As `EvidenceFrames.states`: the partition that holds a record, and its place in the history of its id."""
        if row.state_partition is not None:
            return row.state_partition, (-self._dumped_rank, True, row.offset, "", 0)
        order = (-row.capture_rank, False, row.input_moment_ms or 0, row.input_id, row.ordinal)
        return row.hashed_partition(self.count.used), order
