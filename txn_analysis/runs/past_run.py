"""A run whose rows are asked for: one judgement of one capture, with the settings and the evidence that it had."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import is_in
from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.partition_count import (
    GIVEN,
    IdSums,
    StateCount,
    state_count,
    sums_of_columns,
    sums_of_files,
)
from txn_analysis.coordinator.state_records import Placing, StateFiles
from txn_analysis.judge.fact_finding import Moments
from txn_analysis.runs.evidence import Evidence
from txn_analysis.settings import Settings
from txn_analysis.tables import (
    ENDED_TRANSACTIONS,
    PARTITION_HEALTH,
    TRANSACTION_STATES,
    PartitionHealth,
    UsedBatchRange,
)
from txn_analysis.tables.transactions import ENDED_OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from txn_analysis.columns.records import Record
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table
    from txn_analysis.tables.inputs import RunRecord


_MANY = frozenset({"run_id", "producers", "bare_markers", "linked_pieces"})
JUDGED_BY = tuple(name for name in PARTITION_HEALTH.names if name not in _MANY)
"""The columns of `partition_health` that a run is judged and reported by."""


@dataclass(frozen=True)
class RunRows:
    """The rows of one run in the result tables of its warehouse."""

    warehouse: Warehouse
    run_id: str

    def records(self, kind: type[Record], table: Table, **one_of: Collection[Any]) -> list[Record]:
        """The run's own rows of a result table as records, where there are few; see `Warehouse.records`."""
        return self.warehouse.records(kind, table, run_id=[self.run_id], **one_of)

    def held(self, table: Table, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """The run's own rows of a result table as Arrow, where there are few; see `Warehouse.held`."""
        return self.warehouse.held(table, *names, run_id=[self.run_id], **one_of)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """The run's own rows of a result table of any size, one batch after another; see `Warehouse.batches`."""
        return self.warehouse.batches(table, *names, run_id=[self.run_id], **one_of)

    def health(self) -> list[PartitionHealth]:
        """What is known of each partition, without its producers, to judge by."""
        return records_of(PartitionHealth, self.held(PARTITION_HEALTH, *JUDGED_BY))


@dataclass(frozen=True)
class PastRun(RunRows):
    """One judgement of one capture; `run_id` digests its evidence and parameters, so a repeat is the same run."""

    evidence: Evidence
    settings: Settings
    as_of_ms: int | None

    @property
    def moments(self) -> Moments:
        """When its files were copied."""
        return Moments(self.as_of_ms, self.evidence.newest_moment_ms)

    @cached_property
    def linked_pieces(self) -> frozenset[UsedBatchRange]:
        """Ingest, input, section and first position of each piece that its logs were linked from.

        As many as there are ranges of text.
        """
        batches = self.batches(PARTITION_HEALTH, "linked_pieces")
        return frozenset(
            piece for batch in batches for piece in records_of(UsedBatchRange, batch["linked_pieces"].flatten())
        )

    @cached_property
    def state_files(self) -> StateFiles:
        """The files of the evidence, as far as the coordinator's side asks."""
        return StateFiles.of(self.evidence.sections)

    @cached_property
    def placing(self) -> Placing:
        """Where the records of the coordinator belong, by the count of partitions that the run counts on."""
        counted = StateCount(self.state_partition_count, GIVEN)
        return Placing(counted, self.state_files.dumped_rank, self.settings.as_of_ms)

    @cached_property
    def state_partition_count(self) -> int:
        """How many partitions of the state are counted on; a finished run says it."""
        said = self.settings.transaction_state_partitions
        return self.state_count.used if said is None else said

    @cached_property
    def state_count(self) -> StateCount:
        """How many partitions the state has, and why; looks at all records of the state."""
        partitions = self.state_files.partitions
        sums = sums_of_files(partitions)
        if partitions:
            sums = sums.plus(self._id_sums())
        return state_count(self.settings.transaction_state_partitions, sums)

    def _id_sums(self) -> IdSums:
        """What the ids of all records say of the count, and the partitions that hold them."""
        sums = IdSums()
        for batch in self.evidence.batches(TRANSACTION_STATES, "transactional_id_hash", "state_partition"):
            known = pc.drop_null(batch)
            sums = sums.plus(sums_of_columns(*[column.to_numpy(zero_copy_only=False) for column in known.columns[:2]]))
        return sums


def finished_run(warehouse: Warehouse, run: RunRecord) -> PastRun:
    """A run that was completed before, with the settings and the evidence that it had."""
    said = {name: value for name, value in json.loads(run.parameters).items() if name in Settings.model_fields}
    place = {"warehouse": str(warehouse.root), "cluster": run.cluster, "capture": run.capture}
    evidence, settings = Evidence.of_run(warehouse, run), Settings.model_validate(said | place)
    return PastRun(warehouse, run.run_id, evidence, settings, run.as_of_ms)


LINKED_PIECE_KEY = UsedBatchRange._fields
"""The columns of `ended_transactions` that say which piece holds a transaction whole."""


def ended_batches(
    run: PastRun, *names: str, outcomes: Collection[str] = ENDED_OUTCOMES, **one_of: Collection[Any]
) -> Iterator[pa.RecordBatch]:
    """The ended transactions of a run, one batch after another.

    Args:
        run: whose they are.
        names: of the columns that are wanted.
        outcomes: only those that ended like this.
        one_of: as of `Warehouse.batches`.
    """
    stored = run.warehouse.batches(
        ENDED_TRANSACTIONS, *ended_columns(*names), ingest_id=ended_ingests(run), outcome=outcomes, **one_of
    )
    for batch in ended_filter(run)(stored):
        if len(batch):
            yield batch.select([*names])


def ended_columns(*names: str) -> tuple[str, ...]:
    """Columns of `ended_transactions`, with those that say which rows are a run's."""
    return tuple(dict.fromkeys((*names, *LINKED_PIECE_KEY)))


def ended_ingests(run: PastRun) -> list[str]:
    """Which slices of `ended_transactions` have rows of a run: its own, and those of its pieces."""
    return sorted({run.run_id, *(piece.ingest_id for piece in run.linked_pieces)})


def ended_filter(run: PastRun) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Of rows of `ended_transactions` those of a run."""
    pieces, run_id = run.linked_pieces, run.run_id

    def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            of_piece = pa.array(is_in(batch, LINKED_PIECE_KEY, pieces))
            yield batch.filter(pc.or_(pc.equal(batch["ingest_id"], run_id), of_piece))

    return own
