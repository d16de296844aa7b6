"""Each constraint refuses the row that breaks it, and no other: where we write the files, and where Delta does."""

import json
import shutil
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.tools.by_spark import frame_of
from tests.tools.table_rows import VIOLATIONS, Row, batch, listed, replace_rows, replace_slice, row_of
from txn_analysis.errors import WarehouseError
from txn_analysis.tables import ALL_TABLES, FINDINGS, INPUTS, REJECTS, Table
from txn_analysis.warehouse.data_files import write_data_files
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.errors import BrokenRowError, storage_error
from txn_analysis.warehouse.opening import open_warehouse
from txn_analysis.warehouse.roots import disk_root
from txn_analysis.warehouse.spark_tasks import spark_schema

CHECKS = [(table, name) for table in ALL_TABLES for name in table.checks]


def written(table: Table, row: Row, folder: Path) -> None:
    """The row as a data file of our own."""
    slice_of = {name: row[name] for name in table.partition_by}
    rows = pa.RecordBatch.from_pylist([row], schema=table.arrow_schema)
    write_data_files([(table, rows)], disk_root(folder), slice_of)


@pytest.mark.parametrize(("table", "check"), CHECKS, ids=[f"{table.name}-{name}" for table, name in CHECKS])
def test_a_row_that_breaks_a_constraint_gets_no_file(tmp_path: Path, table: Table, check: str) -> None:
    with pytest.raises(BrokenRowError) as refused:
        written(table, row_of(table) | VIOLATIONS[table.name, check], tmp_path)
    said = str(storage_error(refused.value, f"/w/{table.name}"))
    assert said.startswith(f"/w/{table.name}: a row breaks CHECK {check}: ")
    assert "\n" not in said
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_the_same_row_without_the_flaw_gets_one(tmp_path: Path, table: Table) -> None:
    written(table, row_of(table), tmp_path)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_spark_says_the_same_of_every_row(spark: SparkSession) -> None:
    """The constraints as Delta is told them, each on the row that breaks it and on all others of its table."""
    asked = reduce(DataFrame.unionAll, [_asked(spark, table) for table in ALL_TABLES if table.checks])
    refused = {(row["table"], row["flaw"]): set(row["refused_by"]) for row in asked.collect()}
    assert refused == {(table.name, ""): set() for table in ALL_TABLES if table.checks} | {
        (table.name, check): _refused_by_arrow(table, check) for table, check in CHECKS
    }
    assert all(check in refused[table.name, check] for table, check in CHECKS)


def _asked(spark: SparkSession, table: Table) -> DataFrame:
    """Which constraints refuse the sound row of a table, and each row that has a flaw."""
    rows = [("", row_of(table)), *((name, row_of(table) | VIOLATIONS[table.name, name]) for name in table.checks)]
    names = table.names
    frame = spark.createDataFrame(
        [(flaw, tuple(row.get(name) for name in names)) for flaw, row in rows],
        f"flaw string, row {spark_schema(table).simpleString()}",
    ).select("flaw", "row.*")
    # As in Delta, what is unknown is refused.
    refused = [F.when(~F.coalesce(F.expr(c.sql), F.lit(False)), F.lit(name)) for name, c in table.checks.items()]
    return frame.select(
        F.lit(table.name).alias("table"), "flaw", F.array_compact(F.array(*refused)).alias("refused_by")
    )


def _refused_by_arrow(table: Table, flaw: str) -> set[str]:
    rows = pa.RecordBatch.from_pylist([row_of(table) | VIOLATIONS[table.name, flaw]], schema=table.arrow_schema)
    return {name for name, check in table.checks.items() if not check.is_kept_by(rows)}


def test_delta_is_told_every_constraint_with_the_table(empty_warehouse: Path) -> None:
    for table in ALL_TABLES:
        described = _as_it_was_made(empty_warehouse / table.name)
        assert {
            key.removeprefix("delta.constraints."): value
            for key, value in described["configuration"].items()
            if key.startswith("delta.constraints.")
        } == {name: check.sql for name, check in table.checks.items()}
        columns = json.loads(described["schemaString"])["fields"]
        assert {c["name"] for c in columns if not c["nullable"]} == {c.name for c in table.columns if not c.nullable}


def _as_it_was_made(table: Path) -> dict[str, Any]:
    commit = (table / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8")
    (described,) = [entry["metaData"] for line in commit.splitlines() if "metaData" in (entry := json.loads(line))]
    return dict(described)


@pytest.fixture
def warehouse(spark: SparkSession, empty_warehouse: Path, tmp_path: Path) -> Warehouse:
    return open_warehouse(spark, str(shutil.copytree(empty_warehouse, tmp_path / "warehouse")))


# Of the first our tasks write the files, of the other one Delta does.
@pytest.mark.parametrize(("table", "check"), [(FINDINGS, "known_verdict"), (INPUTS, "every_byte_accounted")])
def test_a_warehouse_names_the_constraint_on_one_line(warehouse: Warehouse, table: Table, check: str) -> None:
    with pytest.raises(WarehouseError, match=f"/{table.name}: a row breaks CHECK {check}: ") as refused:
        replace_slice(warehouse, table, row_of(table) | VIOLATIONS[table.name, check])
    assert "\n" not in str(refused.value)


def test_a_missing_value_is_refused_by_name(warehouse: Warehouse) -> None:
    rows = frame_of(warehouse.spark, [batch(REJECTS, row_of(REJECTS))], REJECTS).selectExpr(
        "* EXCEPT (reason)", "CAST(NULL AS STRING) AS reason"
    )
    with pytest.raises(WarehouseError, match="a row breaks NOT NULL of column reason"):
        warehouse.replace_by(rows.select(*REJECTS.names), iter, REJECTS, ingest_id="x")


def test_a_row_of_each_table_is_taken(warehouse: Warehouse) -> None:
    for table in ALL_TABLES:
        row, column = row_of(table), (table.partition_by or table.key)[0]
        replace_rows(warehouse, [row], table, **{column: row[column]})
        assert [found[column] for found in listed(warehouse, table, column, **{column: [row[column]]})] == [row[column]]
