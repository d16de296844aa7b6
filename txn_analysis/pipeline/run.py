"""A run that is made: one judgement of one capture, and where its rows are read and written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from txn_analysis.coordinator.partition_count import IdSums
from txn_analysis.coordinator.state_records import Placing
from txn_analysis.engine.in_process import InProcess
from txn_analysis.engine.on_spark import OnSpark, bucket_count
from txn_analysis.engine.told import TOLD, heard
from txn_analysis.pipeline.on_spark.evidence import EvidenceFrames
from txn_analysis.pipeline.state_steps import id_sums
from txn_analysis.runs.evidence import GIVEN, own_columns
from txn_analysis.runs.past_run import PastRun
from txn_analysis.tables import TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from txn_analysis.engine.engine import Engine
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

    @cached_property
    def engine(self) -> Engine[Any]:
        """What runs the steps: this process where all that the run rests on is held, else Spark's tasks."""
        if self.evidence.is_at_hand:
            return InProcess(self.warehouse)
        text_bytes = sum(item["text_bytes"] for item in self.evidence.inputs)
        return OnSpark(self.warehouse.spark, bucket_count(text_bytes), self.warehouse)

    @cached_property
    def placing(self) -> Placing:
        """Where the records of the coordinator belong, and why there are so many partitions."""
        return Placing(self.state_count, self.state_files.dumped_rank, self.settings.as_of_ms)

    def evidence_rows(self, table: Table, *names: str) -> Any:
        """Some columns of the rows of a content table that are evidence, with `GIVEN` behind them, for the engine."""
        schema = pa.schema([*(table.arrow_schema.field(name) for name in names), *((n, pa.int64()) for n in GIVEN)])
        rows = self.engine.table(table, *own_columns(*names), ingest_id=self.evidence.ingests)
        return self.engine.mapped(rows, self.evidence.given(*names), schema)

    def _id_sums(self) -> IdSums:
        rows = self.evidence_rows(TRANSACTION_STATES, "transactional_id_hash", "state_partition")
        return reduce(IdSums.plus, heard(self.engine.collected(self.engine.mapped(rows, id_sums, TOLD))), IdSums())

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
