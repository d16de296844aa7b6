"""The warehouse that the faults happen to: one run is complete in it, and one more is about to be made."""

import base64
import json
import shutil
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.tools.repository import CASES
from tests.tools.table_rows import committed, listed
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings
from txn_analysis.tables import ALL_TABLES, INPUTS, RUNS, Table
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.opening import open_warehouse

CAPTURE = CASES / "kafka-4.2-tv2/capture-1"
EARLIER = [str(CAPTURE / "segments/n1.refunds-0.txt"), str(CAPTURE / "transaction-state")]
LATER = [str(CAPTURE / "segments"), str(CAPTURE / "transaction-state")]
WORDS = ("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0", "--exit-zero")

# What an uninterrupted run need not have in common with one that was killed and run again: versions count every
# commit, also those of the first attempt.
MAY_DIFFER = {RUNS.name: ("table_versions",)}

Tables = dict[str, list[str]]
Row = dict[str, Any]


def settings(warehouse: Path, **others: Any) -> Settings:
    """The settings of the captures in `data/cases`."""
    base = {"warehouse": str(warehouse), "transaction_state_partitions": 4, "max_clock_skew_ms": 0}
    return Settings.model_validate(base | others)


def tables(spark: SparkSession, warehouse: Path) -> Tables:
    """The committed rows of all tables as sorted JSON, without what may differ.

    Delta's log says which files they are in, and Arrow reads them: a tenth of what Spark takes for so little.
    """
    local = open_warehouse(spark, str(warehouse))
    found = {table.name: listed(local, table) for table in ALL_TABLES if not table.partition_by}
    inputs, runs = found[INPUTS.name], found[RUNS.name]
    read, run_ids = {(row["ingest_id"], row["input_id"]) for row in inputs}, {row["run_id"] for row in runs}
    for table in ALL_TABLES:
        if table.partition_by == ("run_id",):
            found[table.name] = _rows(local, table, run_ids)
        elif table.partition_by == ("ingest_id",):
            rows = _rows(local, table, {ingest_id for ingest_id, _ in read} | run_ids)
            found[table.name] = [
                row for row in rows if (row["ingest_id"], row["input_id"]) in read or row["ingest_id"] in run_ids
            ]
    return {table.name: sorted(map(_as_text(table), found[table.name])) for table in ALL_TABLES}


def _rows(local: Warehouse, table: Table, slices: set[str]) -> list[Row]:
    (column,) = table.partition_by
    return listed(local, table, **{column: slices})


def _as_text(table: Table) -> Callable[[Row], str]:
    left_out = MAY_DIFFER.get(table.name, ())

    def text(row: Row) -> str:
        return json.dumps({n: v for n, v in row.items() if n not in left_out}, sort_keys=True, default=_base_64)

    return text


def _base_64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def tables_by_spark(spark: SparkSession, warehouse: Path, wanted: Sequence[Table] = ALL_TABLES) -> Tables:
    """The same rows as Spark reads them; one job."""
    stored = open_warehouse(spark, str(warehouse))
    frames = [_named(committed(stored, table).drop(*MAY_DIFFER.get(table.name, ())), table.name) for table in wanted]
    found: Tables = {table.name: [] for table in wanted}
    for name, row in reduce(DataFrame.unionAll, frames).collect():
        found[name].append(json.dumps(json.loads(row), sort_keys=True))
    return {name: sorted(rows) for name, rows in found.items()}


def _named(frame: DataFrame, name: str) -> DataFrame:
    return frame.select(F.lit(name), F.to_json(F.struct("*"), {"ignoreNullFields": "false"}))


def duplicates(found: Tables) -> list[str]:
    """A line for each table that holds two rows of one key."""
    problems = []
    for table in ALL_TABLES:
        keys = [tuple(json.loads(row)[name] for name in table.key) for row in found[table.name]]
        twice = len(keys) - len(set(keys))
        problems += [f"{table.name}: {twice} rows too many of the same key"] if twice else []
    return problems


def differences(found: Tables, expected: Tables) -> list[str]:
    """A line for each table whose rows are not those expected."""
    return [
        f"{name}: {len(set(found[name]) - set(rows))} rows too many, {len(set(rows) - set(found[name]))} missing,"
        f" {len(found[name])} in all instead of {len(rows)}"
        for name, rows in expected.items()
        if found[name] != rows
    ]


class Scene:
    """An earlier run, and what the warehouse looks like with and without the later one.

    Args:
        spark: the session to audit in.
        folder: where the warehouses are made.
        read: how their rows are read.
        empty: a warehouse whose tables were just made, to begin with a copy of it; without one they are made.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        read: Callable[[SparkSession, Path], Tables] = tables,
        empty: Path | None = None,
    ) -> None:
        self.spark = spark
        self.folder = folder
        self._read = read
        self._base = folder / "base"
        if empty:
            shutil.copytree(empty, self._base)
        pipeline.audit(spark, EARLIER, settings(self._base, cluster="earlier"))
        self.before = self.rows(self._base)
        complete = self.warehouse("complete")
        files_before = len(list(complete.rglob("*")))
        self.audit(complete)
        self.after = self.rows(complete)
        self.new_file_count = len(list(complete.rglob("*"))) - files_before
        self.new_bytes = _size_bytes(complete) - _size_bytes(self._base)

    def rows(self, warehouse: Path) -> Tables:
        """The committed rows of all tables."""
        return self._read(self.spark, warehouse)

    def warehouse(self, name: str) -> Path:
        """A fresh copy of the warehouse with the earlier run alone."""
        return self.copied_to(self.folder / name)

    def copied_to(self, folder: Path) -> Path:
        """The same in a folder of the caller's."""
        return Path(shutil.copytree(self._base, folder))

    def audit(self, warehouse: Path) -> AuditReport:
        """The later audit, uninterrupted."""
        return pipeline.audit(self.spark, LATER, settings(warehouse))

    def remove(self, warehouse: Path) -> None:
        """The warehouse, and what Delta remembers of its tables: of many warehouses that fills the driver's memory."""
        shutil.rmtree(warehouse)
        jvm: Any = self.spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def problems_before(self, warehouse: Path) -> list[str]:
        """What is wrong after an audit was cut short: readers see the later run whole or not at all."""
        found = self.rows(warehouse)
        if len(found[RUNS.name]) == len(self.after[RUNS.name]):
            return differences(found, self.after)
        lost = [name for name, rows in self.before.items() if not set(rows) <= set(found[name])]
        results = [table.name for table in ALL_TABLES if "run_id" in table.key]
        invented = [name for name, rows in found.items() if not set(rows) <= set(self.after[name])]
        early = [name for name in results if found[name] != self.before[name]]
        return [
            *[f"{name}: rows of the earlier run are gone" for name in lost],
            *[f"{name}: rows that no uninterrupted audit writes" for name in invented],
            *[f"{name}: rows of a run that is not complete" for name in early],
            *duplicates(found),
        ]

    def problems_after(self, warehouse: Path) -> list[str]:
        """What is wrong after the same audit was run again."""
        found = self.rows(warehouse)
        return [*differences(found, self.after), *duplicates(found)]


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
