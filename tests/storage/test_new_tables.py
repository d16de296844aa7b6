"""A table that is made on a disk of this machine, past Spark, is the one that Delta makes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.by_spark import create_by_delta, newest_version
from tests.table_rows import replace_rows, row_of
from txn_analysis.storage.delta_warehouse import DeltaWarehouse
from txn_analysis.storage.new_table import create_table
from txn_analysis.storage.roots import DiskRoot
from txn_analysis.tables import ALL_TABLES, FINDINGS, Table

OF_ITS_OWN = ("id", "createdTime")


def first_commit(folder: Path) -> dict[str, Any]:
    (text,) = (file.read_text(encoding="utf-8") for file in folder.glob("_delta_log/*.json"))
    actions: dict[str, Any] = {}
    for line in text.splitlines():
        actions |= json.loads(line)
    return {"protocol": actions["protocol"], "metadata": comparable(actions["metaData"])}


def checksum(folder: Path) -> dict[str, Any]:
    (text,) = (file.read_text(encoding="utf-8") for file in folder.glob("_delta_log/0*.crc"))
    found: dict[str, Any] = json.loads(text)
    return found | {"metadata": comparable(found["metadata"])}


def comparable(metadata: dict[str, Any]) -> dict[str, Any]:
    metadata["schemaString"] = json.loads(metadata["schemaString"])
    return {name: value for name, value in metadata.items() if name not in OF_ITS_OWN}


@pytest.mark.parametrize(
    "table",
    [pytest.param(table, marks=[] if table is FINDINGS else [pytest.mark.cluster]) for table in ALL_TABLES],
    ids=lambda table: table.name,
)
def test_it_is_defined_as_delta_defines_it(spark: SparkSession, tmp_path: Path, table: Table) -> None:
    here = tmp_path / table.name
    create_table(DiskRoot(tmp_path), table)
    create_by_delta(spark, str(tmp_path / "by_delta"), table)
    assert first_commit(here) == first_commit(tmp_path / "by_delta")
    own, its = checksum(here), checksum(tmp_path / "by_delta")
    assert {name: its[name] for name in own.keys() - {"txnId"}} == {n: v for n, v in own.items() if n != "txnId"}


def test_delta_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    for table in ALL_TABLES:
        create_table(DiskRoot(tmp_path), table)
        assert newest_version(spark, str(tmp_path / table.name)) == 0
        assert spark.read.format("delta").load(str(tmp_path / table.name)).schema.names == table.names


def test_delta_reads_it_after_a_night_whose_disk_was_full_before_the_checksum(
    spark: SparkSession, empty_warehouse: Path, tmp_path: Path
) -> None:
    warehouse = DeltaWarehouse(spark, DiskRoot(Path(shutil.copytree(empty_warehouse, tmp_path / "warehouse"))))
    for run_id in ("before", "full"):
        replace_rows(warehouse, [row_of(FINDINGS, run_id=run_id)], FINDINGS, run_id=run_id)
    newest = max((tmp_path / "warehouse" / FINDINGS.name / "_delta_log").glob("0*.crc"))
    newest.unlink()
    warehouse = DeltaWarehouse(spark, DiskRoot(tmp_path / "warehouse"))
    replace_rows(warehouse, [row_of(FINDINGS, run_id="after")], FINDINGS, run_id="after")
    found = spark.read.format("delta").load(warehouse.path(FINDINGS))
    assert found.filter("run_id <> 'full'").count() == 2
    spark.sql(f"DELETE FROM delta.`{warehouse.path(FINDINGS)}` WHERE run_id = 'full'")
    assert sorted(row.run_id for row in found.select("run_id").collect()) == ["after", "before"]


def test_one_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    first, *_ = ALL_TABLES
    create_table(DiskRoot(tmp_path), first)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    create_table(DiskRoot(tmp_path), first)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
