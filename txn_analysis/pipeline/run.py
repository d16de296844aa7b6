"""A run that is made: one judgement of one capture, and where its rows are read and written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.pipeline.on_spark.evidence import EvidenceFrames
from txn_analysis.pipeline.on_spark.state import id_sums
from txn_analysis.runs.ended_transactions import LINKED_PIECE_KEY
from txn_analysis.runs.past_run import PastRun
from txn_analysis.tables import ENDED_TRANSACTIONS, PARTITION_HEALTH, TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from txn_analysis.coordinator.partition_count import IdSums
    from txn_analysis.runs.evidence import Evidence
    from txn_analysis.settings import Settings
    from txn_analysis.storage.on_spark.tasks import RowMaker
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Table

# What decides a verdict; where the answer is printed does not.
JUDGING = (
    "as_of_ms",
    "transaction_max_timeout_ms",
    "transaction_state_partitions",
    "transaction_state_complete",
    "state_copied_last",
    "max_clock_skew_ms",
    "transactional_id_expiration_ms",
    "plan_valid_ms",
)


# What decides more than the verdicts; recorded where it was said, so that runs without it keep their names.
_OPTIONAL = ("no_records_lost", "topic_config", "free_bytes")


@dataclass(frozen=True)
class Run(PastRun):
    """A run that is made, or made anew: its rows are written, and read as frames of Spark where they are many."""

    evidence: EvidenceFrames

    @property
    def warehouse(self) -> Warehouse:
        """Where the run reads and writes."""
        return self.evidence.warehouse

    def rows(self, table: Table) -> DataFrame:
        """The run's own rows of a result table, whether the run is complete or not."""
        return self.warehouse.frame(table).where(F.col("run_id") == self.run_id)

    def states(self) -> DataFrame:
        """The records of the coordinator that are evidence in the run."""
        return self.evidence.states(self.state_partition_count)

    def _id_sums(self) -> IdSums:
        size_bytes = sum(item["text_bytes"] for item in self.evidence.inputs)
        return id_sums(self.evidence.of(TRANSACTION_STATES), size_bytes)

    def replace_by(self, frame: DataFrame, rows_of: RowMaker | None, table: Table) -> None:
        """Make a frame, or what `rows_of` makes of it in a Spark worker, the run's rows of a table."""
        self.warehouse.replace_by(frame, rows_of, table, **self._slice(table))

    def replace(self, rows: Sequence[pa.RecordBatch], table: Table) -> None:
        """Make rows in memory the run's rows of a table."""
        self.warehouse.replace(rows, table, **self._slice(table))

    def replace_rows(self, rows: list[dict[str, Any]], table: Table) -> None:
        """Make rows of plain data the run's rows of a table."""
        self.warehouse.replace_rows(rows, table, **self._slice(table))

    def _slice(self, table: Table) -> dict[str, str]:
        return dict.fromkeys(table.partition_by, self.run_id)

    def ended_transactions(self) -> DataFrame:
        """The ended transactions of the run, in the columns of the table, see `runs.ended_transactions`."""
        ingests = [self.run_id, *self.evidence.ingests]
        rows = self.warehouse.frame(ENDED_TRANSACTIONS).where(F.col("ingest_id").isin(ingests))
        own = F.explode("linked_pieces").alias("piece")
        pieces = self.rows(PARTITION_HEALTH).select(own).select("piece.*")
        whole = rows.join(F.broadcast(pieces), list(LINKED_PIECE_KEY), "left_semi")
        return whole.unionByName(rows.where(F.col("ingest_id") == self.run_id))


def start_run(warehouse: Warehouse, settings: Settings) -> Run:
    """The run for a capture: the named one, or else the cluster's newest by its brokers' clocks.

    Whoever writes its rows prepares the tables before (`Warehouse.create`).
    """
    known = EvidenceFrames.of_capture(warehouse, settings.cluster, settings.capture)
    as_of_ms = settings.as_of_ms if settings.as_of_ms is not None else known.newest_moment_ms
    return Run(_run_id(known, settings), known, settings, as_of_ms)


def _run_id(known: Evidence, settings: Settings) -> str:
    inputs = sorted((item["capture"], item["input_id"]) for item in known.inputs)
    return "run-" + digest((settings.cluster, known.captures, inputs, parameters(settings)))


def parameters(settings: Settings) -> dict[str, Any]:
    """The effective settings that a run depends on, as plain data; of a topic configuration its content counts."""
    judging = settings.model_dump(mode="json", include=set(JUDGING))
    said = settings.model_dump(mode="json", include=set(_OPTIONAL), exclude_defaults=True)
    if settings.topic_config is not None:
        content = Path(settings.topic_config).read_bytes() if Path(settings.topic_config).is_file() else b""
        said["topic_config_digest"] = blake2b(content, digest_size=8).hexdigest()
    return judging | said


def digest(basis: Any) -> str:
    """A short name for plain data; the same data has the same one."""
    return blake2b(json.dumps(basis, sort_keys=True).encode(), digest_size=8).hexdigest()
