"""A run: one judgement of one capture, and where its rows are read and written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.config import Settings
from txn_analysis.core.state_records import StateRecords
from txn_analysis.errors import WarehouseError
from txn_analysis.evidence import Evidence, evidence_of, evidence_of_run
from txn_analysis.judge.fact_finding import Moments
from txn_analysis.judge.state_count import StateCount, state_count, sums_of_files
from txn_analysis.judge.state_frames import id_sums
from txn_analysis.reading.sections import STATE
from txn_analysis.tables import PARTITION_HEALTH, TRANSACTION_STATES
from txn_analysis.warehouse import Warehouse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import DataFrame

    from txn_analysis.tables import Table
    from txn_analysis.when_needed import Spark

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
class Run:
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
    def warehouse(self) -> Warehouse:
        """Where the run reads and writes."""
        return self.evidence.warehouse

    def rows(self, table: Table) -> DataFrame:
        """The run's own rows of a result table, whether the run is complete or not."""
        return self.warehouse.read_uncommitted(table).where(F.col("run_id") == self.run_id)

    def listed(self, table: Table, *names: str, **one_of: Collection[str]) -> list[dict[str, Any]]:
        """The same as plain data, where there are few; see `Warehouse.listed`."""
        return self.warehouse.listed(table, *names, run_id=[self.run_id], **one_of)

    def health(self) -> list[dict[str, Any]]:
        """Its rows of `partition_health` without the producers, to judge by: as many as there are partitions.

        Raises:
            WarehouseError: an earlier version reconstructed it, and did not say what kind of problems it found.
        """
        names = [name for name in PARTITION_HEALTH.names if name not in {"producers", "bare_markers"}]
        rows = self.listed(PARTITION_HEALTH, *names)
        if any(problem["kind"] is None for row in rows for problem in row["problems"] or ()):
            made = f"{self.warehouse.root}: {self.run_id} was reconstructed by an earlier version"
            raise WarehouseError(f"{made}: reconstruct again (jobs/reconstruct.py), or audit its files again")
        return rows

    def states(self) -> DataFrame:
        """The records of the coordinator that are evidence in the run."""
        said = self.settings.transaction_state_partitions
        return self.evidence.states(self.state_count.used if said is None else said)

    @cached_property
    def state_records(self) -> StateRecords:
        """The same in memory, where they are few enough to be held."""
        return StateRecords(self.settings, self.evidence.section_rows, self.evidence.listed(TRANSACTION_STATES))

    @cached_property
    def state_count(self) -> StateCount:
        """How many partitions the state has, and why; looks at all records of the state."""
        files = [section for section in self.evidence.section_rows if section["kind"] == STATE]
        sums = sums_of_files(section["partition"] for section in files)
        if files:
            size_bytes = sum(item["text_bytes"] for item in self.evidence.inputs)
            sums = sums.plus(id_sums(self.evidence.of(TRANSACTION_STATES), size_bytes))
        return state_count(self.settings.transaction_state_partitions, sums)

    def replace(self, frame: DataFrame, table: Table) -> None:
        """Make `frame` the run's rows of a result table."""
        self.warehouse.replace(frame, table, run_id=self.run_id)

    def replace_rows(self, rows: list[dict[str, Any]], table: Table) -> None:
        """The same with rows made on the driver."""
        self.warehouse.replace_rows(rows, table, run_id=self.run_id)


def start_run(spark: Spark, settings: Settings) -> Run:
    """The run for a capture: the named one, or else the cluster's newest by its brokers' clocks.

    Whoever writes its rows prepares the tables before (`Warehouse.create`).
    """
    known = evidence_of(Warehouse(spark, settings.warehouse), settings.cluster, settings.capture)
    as_of_ms = settings.as_of_ms if settings.as_of_ms is not None else known.newest_moment_ms
    return Run(_run_id(known, settings), known, settings, as_of_ms)


def finished_run(warehouse: Warehouse, row: Mapping[str, Any]) -> Run:
    """A run that was completed before, from its row of `runs`, with the settings and the evidence that it had."""
    judged_with = {
        name: value for name, value in json.loads(row["parameters"]).items() if name in Settings.model_fields
    }
    settings = Settings.model_validate(
        judged_with | {"warehouse": warehouse.root, "cluster": row["cluster"], "capture": row["capture"]}
    )
    return Run(row["run_id"], evidence_of_run(warehouse, dict(row)), settings, row["as_of_ms"])


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
