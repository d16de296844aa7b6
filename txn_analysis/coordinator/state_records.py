"""The coordinator's records in memory: those of one history, or those of a run that are few enough to be held."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from txn_analysis.coordinator.chain import StateRows
from txn_analysis.coordinator.partition_count import StateCount, state_count, sums_of_files, sums_of_rows
from txn_analysis.coordinator.sections import SectionRecord
from txn_analysis.kafka.sections import CLUSTER_ID, STATE
from txn_analysis.kafka.state_partition import state_partition
from txn_analysis.kafka.transactions import StateRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from txn_analysis.settings import Settings

Row = dict[str, Any]


@dataclass(frozen=True)
class StateRecords:
    """What was read of `__transaction_state`, and the settings that are true of it.

    Attributes:
        settings: as for the audit.
        sections: rows of `Evidence.section_rows`, with the offsets that their batches reach over.
        rows: of `transaction_states`, each with `capture_rank` and, for console exports, `input_moment_ms`.
    """

    settings: Settings
    sections: Sequence[Row]
    rows: Sequence[Row]

    @property
    def own_files(self) -> list[Row]:
        """The sections of the judged capture that are files of the state."""
        return [s for s in self.sections if s["kind"] == STATE and not s["capture_rank"]]

    @cached_property
    def count(self) -> StateCount:
        """How many partitions the state has, and why."""
        files = sums_of_files(s["partition"] for s in self.sections if s["kind"] == STATE)
        return state_count(self.settings.transaction_state_partitions, sums_of_rows(self.rows).plus(files))

    @property
    def cluster_ids(self) -> set[str]:
        """Every `cluster.id` that a log directory states."""
        return {s["stated"] for s in self.sections if s["kind"] == CLUSTER_ID}

    def histories(self, producer_ids: AbstractSet[int]) -> dict[str, list[StateRecord]]:
        """The coordinator's records of the ids that have, or had in any record, one of these producer ids."""
        if not producer_ids:
            return {}
        asked = {row["transactional_id"] for row in self.rows if not named_in(row).isdisjoint(producer_ids)}
        return self.of_ids(asked)

    def of_ids(self, transactional_ids: AbstractSet[str]) -> dict[str, list[StateRecord]]:
        """By transactional id its records, in whatever order they were read."""
        found: defaultdict[str, list[StateRecord]] = defaultdict(list)
        for row in self.rows:
            name = row["transactional_id"]
            if name is not None and name in transactional_ids:
                found[name].append(StateRecord.of(row, *self._place(row)))
        return found

    def in_order(self) -> dict[str, list[Row]]:
        """By transactional id its records in order; copies and captures hold the same record, which is here once."""
        found: defaultdict[str, dict[tuple[Any, ...], Row]] = defaultdict(dict)
        for row in self.rows:
            if row["transactional_id"] is not None:
                found[row["transactional_id"]][self._place(row)[1]] = row
        return {name: [own[order] for order in sorted(own)] for name, own in found.items()}

    def state_rows(self) -> dict[int, StateRows]:
        """All records of each partition of the state."""
        found: defaultdict[int, StateRows] = defaultdict(StateRows)
        for row in self.rows:
            number, order = self._place(row)
            if number is not None:
                found[number].add(row, order)
        return dict(found)

    def section_records(self) -> Iterator[SectionRecord]:
        """The judged capture's records as coverage asks for them."""
        count = self.count.used
        for row in self.rows:
            if row["capture_rank"]:
                continue
            is_console = row["state_partition"] is None
            hashed = own_partition(row, count)
            yield SectionRecord(
                row["input_id"],
                row["section_index"],
                is_console,
                hashed if is_console else row["state_partition"],
                hashed,
                row["offset"],
                row["recorded_ms"],
                row["is_undecodable"],
                row["transactional_id"],
            )

    @cached_property
    def _dumped_rank(self) -> int:
        return min((s["capture_rank"] for s in self.sections if s["kind"] == STATE), default=0)

    def _place(self, row: Row) -> tuple[int | None, tuple[Any, ...]]:
        """As `Evidence.states` on Spark: the partition that holds a record, and its place in the history of its id."""
        if row["state_partition"] is not None:
            return row["state_partition"], (-self._dumped_rank, True, row["offset"], "", 0)
        order = (-row["capture_rank"], False, row["input_moment_ms"] or 0, row["input_id"], row["ordinal"])
        return own_partition(row, self.count.used), order


def own_partition(row: Row, partition_count: int) -> int | None:
    """The partition of `__transaction_state` that the id of a record hashes to; None where it was not decoded."""
    hashed = row["transactional_id_hash"]
    return None if hashed is None else state_partition(hashed, partition_count)


def named_in(row: Row) -> set[int | None]:
    """The producer ids that a record stands for (KIP-890's tagged fields)."""
    return {row["producer_id"], row["previous_producer_id"], row["next_producer_id"]}
