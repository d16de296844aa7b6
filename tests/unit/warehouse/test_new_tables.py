"""A table that is made on a disk of this machine, past Spark, is the one that Delta makes."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.tools.by_spark import create_by_delta, newest_version
from txn_analysis.tables import ALL_TABLES, FINDINGS, Table
from txn_analysis.warehouse.new_table import create_table
from txn_analysis.warehouse.roots import disk_root

OF_ITS_OWN = ("id", "createdTime")


def first_commit(folder: Path) -> dict[str, Any]:
    (text,) = (file.read_text(encoding="utf-8") for file in folder.glob("_delta_log/*.json"))
    actions: dict[str, Any] = {}
    for line in text.splitlines():
        actions |= json.loads(line)
    return {"protocol": actions["protocol"], "metadata": comparable(actions["metaData"])}


def comparable(metadata: dict[str, Any]) -> dict[str, Any]:
    metadata["schemaString"] = json.loads(metadata["schemaString"])
    metadata["configuration"].pop("delta.minWriterVersion", None)  # said by the protocol
    return {name: value for name, value in metadata.items() if name not in OF_ITS_OWN and value is not None}


@pytest.mark.parametrize(
    "table",
    [pytest.param(table, marks=[] if table is FINDINGS else [pytest.mark.cluster]) for table in ALL_TABLES],
    ids=lambda table: table.name,
)
def test_it_is_defined_as_delta_defines_it(spark: SparkSession, tmp_path: Path, table: Table) -> None:
    here = tmp_path / table.name
    create_table(disk_root(tmp_path), table)
    create_by_delta(spark, str(tmp_path / "by_delta"), table)
    assert first_commit(here) == first_commit(tmp_path / "by_delta")


def test_delta_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    for table in ALL_TABLES:
        create_table(disk_root(tmp_path), table)
        assert newest_version(spark, str(tmp_path / table.name)) == 0
        assert spark.read.format("delta").load(str(tmp_path / table.name)).schema.names == table.names


def test_one_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    first, *_ = ALL_TABLES
    create_table(disk_root(tmp_path), first)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    create_table(disk_root(tmp_path), first)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_one_that_another_audit_has_made_and_filled_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    # The log was looked for before the other audit made it, so nothing says any more that the table is there.
    root = disk_root(tmp_path)
    create_table(root, FINDINGS)
    (tmp_path / FINDINGS.name / "part-0.parquet").write_bytes(b"rows")
    create_table(root, FINDINGS)
    assert len(root.log(FINDINGS.name)) == 1
