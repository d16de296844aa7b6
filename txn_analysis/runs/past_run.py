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
from txn_analysis.coordinator.partition_count import IdSums, sums_of_columns
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

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

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
        """Where the records of the coordinator belong; a finished run says how many partitions they have.

        Else all of them are looked at: they may say it themselves.
        """
        ids = IdSums()
        if self.settings.transaction_state_partitions is None and self.state_files.partitions:
            for batch in self.evidence.batches(TRANSACTION_STATES, "transactional_id_hash", "state_partition"):
                known = pc.drop_null(batch)
                hashes, partitions = (column.to_numpy(zero_copy_only=False) for column in known.columns[:2])
                ids = ids.plus(sums_of_columns(hashes, partitions))
        return Placing.of(self.settings, self.state_files, ids)


def finished_run(warehouse: Warehouse, run: RunRecord) -> PastRun:
    """A run that was completed before, with the settings and the evidence that it had."""
    said = {name: value for name, value in json.loads(run.parameters).items() if name in Settings.model_fields}
    place = {"warehouse": str(warehouse.root), "cluster": run.cluster, "capture": run.capture}
    evidence, settings = Evidence.of_run(warehouse, run), Settings.model_validate(said | place)
    return PastRun(warehouse, run.run_id, evidence, settings, run.as_of_ms)


def ended_batches(run: PastRun, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
    """The ended transactions of a run, one batch after another.

    Args:
        run: whose they are.
        names: of the columns that are wanted.
        one_of: as of `Warehouse.batches`.
    """
    pieces, piece_key = run.linked_pieces, UsedBatchRange._fields
    wanted = tuple(dict.fromkeys((*names, *piece_key)))
    ingests = sorted({run.run_id, *(piece.ingest_id for piece in pieces)})
    for batch in run.warehouse.batches(ENDED_TRANSACTIONS, *wanted, ingest_id=ingests, **one_of):
        of_piece = pa.array(is_in(batch, piece_key, pieces))
        own = batch.filter(pc.or_(pc.equal(batch["ingest_id"], run.run_id), of_piece))
        if len(own):
            yield own.select([*names])
