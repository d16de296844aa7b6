"""What the warehouse promises: whole slices, commits that come last, and several writers at once."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.tools.by_spark import frame_by_delta
from tests.tools.records import record_of
from tests.tools.sessions import opened
from tests.tools.table_rows import batch, committed, give_format, listed, replace_slice, row_of
from txn_analysis.columns.records import records_of
from txn_analysis.errors import WarehouseError
from txn_analysis.tables import ALL_TABLES, FINDINGS, INPUTS, REJECTS, RUNS, Table
from txn_analysis.tables.inputs import ReadInput, RunRecord
from txn_analysis.warehouse.commits import commit_inputs, commit_run
from txn_analysis.warehouse.delta_folder import DeltaFolder
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.new_table import FORMAT
from txn_analysis.warehouse.opening import open_warehouse
from txn_analysis.warehouse.roots import disk_root, root_at


def input_of(**columns: str) -> ReadInput:
    (found,) = records_of(ReadInput, batch(INPUTS, row_of(INPUTS, **columns)))
    return found


def run_record(run_id: str) -> RunRecord:
    absent = dict.fromkeys(RUNS.names)
    return record_of(RunRecord, absent | row_of(RUNS, run_id=run_id))


def keys(warehouse: Warehouse, table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in committed(warehouse, table).select(*table.key).collect())


@pytest.fixture
def warehouse(spark: SparkSession, empty_warehouse: Path, tmp_path: Path) -> Warehouse:
    return open_warehouse(spark, str(shutil.copytree(empty_warehouse, tmp_path / "warehouse")))


def test_results_count_once_their_run_is_complete(warehouse: Warehouse) -> None:
    replace_slice(warehouse, FINDINGS, row_of(FINDINGS, run_id="cut-short"))
    replace_slice(warehouse, FINDINGS, row_of(FINDINGS, run_id="whole"))
    commit_run(warehouse, run_record(run_id="whole"))
    assert [key[0] for key in keys(warehouse, FINDINGS)] == ["whole"]


def test_content_counts_once_its_input_names_the_ingest(warehouse: Warehouse) -> None:
    for ingest_id in ("cut-short", "whole"):
        replace_slice(warehouse, REJECTS, row_of(REJECTS, ingest_id=ingest_id, input_id="a"))
    assert keys(warehouse, REJECTS) == []
    commit_inputs(warehouse, [input_of(input_id="a", ingest_id="whole")], prior=[])
    assert [row["ingest_id"] for row in committed(warehouse, REJECTS).collect()] == ["whole"]


def test_content_that_another_ingest_read_meanwhile_counts_once(empty_warehouse: Path, tmp_path: Path) -> None:
    """Who commits it second names the rows of the first."""
    warehouse = opened(shutil.copytree(empty_warehouse, tmp_path / "warehouse"))
    for ingest_id in ("first", "second"):
        inputs = [input_of(capture=ingest_id, ingest_id=ingest_id, input_id=name) for name in ("shared", ingest_id)]
        commit_inputs(warehouse, inputs, prior=[])
    assert {(row["capture"], row["input_id"]): row["ingest_id"] for row in listed(warehouse, INPUTS)} == {
        ("first", "shared"): "first",
        ("first", "first"): "first",
        ("second", "shared"): "first",
        ("second", "second"): "second",
    }


def test_inputs_of_one_capture_from_many_writers(warehouse: Warehouse) -> None:
    def commit(writer: int) -> None:
        commit_inputs(
            warehouse, [input_of(ingest_id=f"{writer}", input_id=f"{n}") for n in (writer, writer + 1)], prior=[]
        )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(commit, range(4)))
    assert keys(warehouse, INPUTS) == [("x", "x", f"{n}") for n in range(5)]


def test_runs_that_end_together_are_numbered_one_by_one(warehouse: Warehouse) -> None:
    run_ids = ["a", "b", "a", "c"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda run_id: commit_run(warehouse, run_record(run_id=run_id)), run_ids))
    rows = committed(warehouse, RUNS).collect()
    assert sorted(row["run_number"] for row in rows) == [1, 2, 3]
    assert {row["run_id"] for row in rows} == set(run_ids)


def test_a_run_keeps_its_number_when_it_is_made_again(warehouse: Warehouse) -> None:
    for run_id in ("a", "b", "a"):
        commit_run(warehouse, run_record(run_id=run_id))
    assert {row["run_id"]: row["run_number"] for row in committed(warehouse, RUNS).collect()} == {"a": 1, "b": 2}


def test_one_slice_from_many_writers_is_there_once(warehouse: Warehouse) -> None:
    rows = [row_of(REJECTS, offset_bytes=n) for n in range(3)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: replace_slice(warehouse, REJECTS, *rows), range(4)))
    assert frame_by_delta(warehouse, REJECTS).count() == warehouse.frame(REJECTS).count() == 3


@pytest.mark.parametrize(
    "said", [str(FORMAT + 1), None], ids=["a later version", "a version before there was a number"]
)
def test_a_warehouse_of_another_version_is_neither_read_nor_written(warehouse: Warehouse, said: str | None) -> None:
    folder = Path(warehouse.root)
    give_format(folder, said)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    refused = f"^{folder}: made by another version of txn-analysis: audit again into a new --warehouse$"
    with pytest.raises(WarehouseError, match=refused):
        open_warehouse(warehouse.spark, warehouse.root)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_every_table_says_the_format(spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path / "warehouse")
    open_warehouse(spark, root).create()
    said = {table.name: DeltaFolder(disk_root(Path(root)), table).properties for table in ALL_TABLES}
    assert {name: known["txn-analysis.format"] for name, known in said.items()} == dict.fromkeys(said, str(FORMAT))


def test_tables_are_created_by_two_at_once(spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path / "warehouse")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: open_warehouse(spark, root).create(), range(2)))
    assert open_warehouse(spark, root).versions(ALL_TABLES) == dict.fromkeys((table.name for table in ALL_TABLES), 0)


@pytest.mark.parametrize("name", ["ware%20house", "ware\\house", "ware\nhouse"])
def test_a_folder_whose_name_deltas_library_takes_for_another_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WarehouseError, match="Move it to another name") as refused:
        root_at(str(tmp_path / name / "audits"))
    assert "\n" not in str(refused.value)
