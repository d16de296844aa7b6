"""A run whose rows are asked for: one judgement of one capture, with the settings and the evidence that it had."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.partition_count import (
    GIVEN,
    IdSums,
    StateCount,
    state_count,
    sums_of_columns,
    sums_of_files,
)
from txn_analysis.coordinator.state_records import Placing
from txn_analysis.coordinator.state_row import StateFiles
from txn_analysis.judge.fact_finding import Moments
from txn_analysis.log.transactions import LinkedPiece
from txn_analysis.runs.evidence import Evidence
from txn_analysis.settings import Settings
from txn_analysis.tables import PARTITION_HEALTH, TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from txn_analysis.runs.run_record import RunRecord
    from txn_analysis.storage.stored import Stored
    from txn_analysis.tables import Table

_MANY = frozenset({"producers", "bare_markers", "linked_pieces"})


@dataclass(frozen=True)
class PastRun:
    """One judgement of one capture; `run_id` digests its evidence and parameters, so a repeat is the same run."""

    run_id: str
    evidence: Evidence
    settings: Settings
    as_of_ms: int | None

    @property
    def moments(self) -> Moments:
        """When its files were copied."""
        return Moments(self.as_of_ms, self.evidence.newest_moment_ms)

    @property
    def warehouse(self) -> Stored:
        """Where its rows are."""
        return self.evidence.warehouse

    def listed(self, table: Table, *names: str, **one_of: Collection[Any]) -> list[dict[str, Any]]:
        """The run's own rows of a result table as plain data, where there are few; see `Stored.listed`."""
        return self.warehouse.listed(table, *names, run_id=[self.run_id], **one_of)

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """The run's own rows of a result table of any size, one batch after another; see `Stored.batches`."""
        return self.warehouse.batches(table, *names, run_id=[self.run_id], **one_of)

    def health(self) -> list[dict[str, Any]]:
        """The run's rows of `partition_health` without the producers, to judge by: as many as there are partitions."""
        return self.listed(PARTITION_HEALTH, *[name for name in PARTITION_HEALTH.names if name not in _MANY])

    @cached_property
    def linked_pieces(self) -> frozenset[LinkedPiece]:
        """Ingest, input, section and first position of each piece that its logs were linked from.

        As many as there are ranges of text.
        """
        batches = self.batches(PARTITION_HEALTH, "linked_pieces")
        return frozenset(
            piece for batch in batches for piece in records_of(LinkedPiece, batch["linked_pieces"].flatten())
        )

    @cached_property
    def state_files(self) -> StateFiles:
        """The files of the evidence, as far as the coordinator's side asks."""
        return StateFiles.of(self.evidence.section_rows)

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


def finished_run(warehouse: Stored, run: RunRecord) -> PastRun:
    """A run that was completed before, with the settings and the evidence that it had."""
    said = {name: value for name, value in json.loads(run.parameters).items() if name in Settings.model_fields}
    place = {"warehouse": str(warehouse.root), "cluster": run.cluster, "capture": run.capture}
    return PastRun(
        run.run_id, Evidence.of_run(warehouse, run.row()), Settings.model_validate(said | place), run.as_of_ms
    )
