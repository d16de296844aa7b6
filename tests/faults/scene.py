"""The warehouse that the faults happen to: one run is complete in it, and one more is about to be made."""

from __future__ import annotations

import json
import shutil
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis import audit
from txn_analysis.config import Settings
from txn_analysis.tables import ALL_TABLES, RUNS
from txn_analysis.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CAPTURE = Path(__file__).parents[2] / "data/cases/kafka-4.2-tv2/capture-1"
EARLIER = [str(CAPTURE / "segments/n1.refunds-0.txt"), str(CAPTURE / "transaction-state")]
LATER = [str(CAPTURE / "segments"), str(CAPTURE / "transaction-state")]
WORDS = ("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0", "--exit-zero")

# What an uninterrupted run need not have in common with one that was killed and run again: versions count every
# commit, also those of the first attempt.
MAY_DIFFER = {RUNS.name: ("table_versions",)}

Tables = dict[str, list[str]]


def settings(warehouse: Path, **others: Any) -> Settings:
    """The settings of the captures in `data/cases`."""
    base = {"warehouse": str(warehouse), "transaction_state_partitions": 4, "max_clock_skew_ms": 0}
    return Settings.model_validate(base | others)


def tables(spark: SparkSession, warehouse: Path) -> Tables:
    """The committed rows of all tables as sorted JSON, without what may differ; one Spark job."""
    stored = Warehouse(spark, str(warehouse))
    frames = [_as_text(stored.read(table).drop(*MAY_DIFFER.get(table.name, ())), table.name) for table in ALL_TABLES]
    found: Tables = {table.name: [] for table in ALL_TABLES}
    for name, row in reduce(lambda left, right: left.unionAll(right), frames).collect():
        found[name].append(row)
    return {name: sorted(rows) for name, rows in found.items()}


def _as_text(frame: DataFrame, name: str) -> DataFrame:
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
    """An earlier run, and what the warehouse looks like with and without the later one."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._base = folder / "base"
        audit.audit(spark, EARLIER, settings(self._base, cluster="earlier"))
        self.before = tables(spark, self._base)
        complete = self.warehouse("complete")
        files_before = len(list(complete.rglob("*")))
        self.audit(complete)
        self.after = tables(spark, complete)
        self.new_file_count = len(list(complete.rglob("*"))) - files_before

    def warehouse(self, name: str) -> Path:
        """A fresh copy of the warehouse with the earlier run alone."""
        copy = self._folder / name
        shutil.copytree(self._base, copy)
        return copy

    def audit(self, warehouse: Path) -> None:
        """The later audit, uninterrupted."""
        audit.audit(self._spark, LATER, settings(warehouse))

    def remove(self, warehouse: Path) -> None:
        """The warehouse, and what Delta remembers of its tables: of many warehouses that fills the driver's memory."""
        shutil.rmtree(warehouse)
        jvm: Any = self._spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def problems_before(self, warehouse: Path) -> list[str]:
        """What is wrong after an audit was cut short: readers see the later run whole or not at all."""
        found = tables(self._spark, warehouse)
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
        found = tables(self._spark, warehouse)
        return [*differences(found, self.after), *duplicates(found)]
