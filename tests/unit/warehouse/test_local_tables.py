"""Tables on a local disk read past Spark: the same rows, and never a part of them without a word."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.tools.by_spark import frame_by_delta
from tests.tools.records import record_of
from tests.tools.sessions import opened
from tests.tools.table_rows import batch, collected, committed, listed, replace_rows
from txn_analysis.columns.records import records_of
from txn_analysis.errors import WarehouseError
from txn_analysis.runs.run_tables import latest_run
from txn_analysis.tables import INPUTS, REJECTS, RUNS
from txn_analysis.tables.inputs import ReadInput, RunRecord
from txn_analysis.warehouse.commits import commit_inputs, commit_run, inputs_of
from txn_analysis.warehouse.delta_folder import DeltaFolder
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.opening import open_warehouse
from txn_analysis.warehouse.roots import disk_root
from txn_analysis.warehouse.rows import without

Row = dict[str, Any]

NIGHTS = 12  # more commits than Delta leaves without a checkpoint
PAIRS = [*product(("x", "y", None), repeat=2)]
FIRST_COMMITS = [f"{version:020}" for version in range(3)]


def audited(night: int) -> tuple[Row, Row]:
    """An input and a run, as a night's audit commits them."""
    of_night = {"cluster": "east's", "capture": f"night {night}"}
    sizes = {"size_bytes": 9, "text_bytes": 9, "parsed_bytes": 9, "rejected_bytes": 0}
    section = {"section_index": 0, "kind": "log", "topic": "orders", "partition": 0}
    read = {
        "input_id": f"input {night}",
        "ingest_id": f"ingest {night}",
        "kind": "log_dump",
        "path": "a b%20/ä",
        "sections": [section],
    }
    run = {
        "run_id": f"run {night}",
        "earlier_captures": ["before"],
        "parameters": "{}",
        "input_count": 1,
        "state_coverage": "{}",
        "warnings": "[]",
    }
    run |= dict.fromkeys(("as_of_ms", "as_of_basis", "table_versions")) | {"run_number": 0}
    return of_night | read | sizes, of_night | run | {"verdict_counts": {"hanging": night}, "outcome": "clean"}


@pytest.fixture(scope="module")
def nightly(spark: SparkSession, empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse whose folder has a name that a URI would escape."""
    folder = shutil.copytree(empty_warehouse, tmp_path_factory.mktemp("nights") / "ware house#1 100% ä")
    warehouse = open_warehouse(spark, str(folder))
    for night in range(NIGHTS):
        item, run = audited(night)
        commit_inputs(warehouse, records_of(ReadInput, batch(INPUTS, item)), prior=[])
        commit_run(warehouse, record_of(RunRecord, run))
    item, _ = audited(0)
    place = {name: item[name] for name in ("cluster", "capture")}
    replace_rows(warehouse, [item | {"ingest_id": "anew"}], INPUTS, **place)  # all rows lie in one data file now
    return warehouse


def test_rows_are_those_that_spark_reads(nightly: Warehouse) -> None:
    for table in (INPUTS, RUNS):
        expected = collected(committed(nightly, table))
        assert sorted(listed(nightly, table), key=str) == sorted(expected, key=str)
        assert len(expected) == NIGHTS


def test_only_some_rows_and_columns(nightly: Warehouse) -> None:
    found = listed(nightly, INPUTS, "input_id", "ingest_id", cluster=["east's"], capture=["night 0", "night 7", "none"])
    assert sorted(found, key=str) == [
        {"input_id": "input 0", "ingest_id": "anew"},
        {"input_id": "input 7", "ingest_id": "ingest 7"},
    ]
    assert latest_run(nightly, "east's") == f"run {NIGHTS - 1}"
    assert inputs_of(nightly, input_id=["never read"]) == []


MANY = 70  # nights, of which each adds one small file


@pytest.mark.cluster  # a commit for each night
def test_many_small_files_become_one_and_no_row_is_lost(empty_warehouse: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(empty_warehouse, tmp_path / "warehouse")
    warehouse = opened(folder)
    reading: Iterator[pa.RecordBatch] = iter(())
    for night in range(MANY):
        run = record_of(RunRecord, {name: value for name, value in audited(night)[1].items() if name in RUNS.names})
        commit_run(warehouse, run)
        if night == MANY // 3:
            reading = warehouse.batches(RUNS, "run_id")  # somebody begins to read, and goes on when all is written
    numbers = warehouse.rows(RUNS, "run_number")["run_number"].to_pylist()
    assert sorted(numbers) == [*range(1, MANY + 1)]
    assert len(DeltaFolder(disk_root(folder), RUNS).files) < MANY // 2
    assert sum(len(batch) for batch in reading) == MANY // 3 + 1


def test_of_a_long_log_only_what_is_older_than_delta_keeps_is_freed(empty_warehouse: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(empty_warehouse, tmp_path / "warehouse")
    warehouse, log = opened(folder), folder / RUNS.name / "_delta_log"
    for night in range(NIGHTS):
        row = batch(RUNS, audited(night)[1] | {"run_number": night + 1})
        warehouse.insert(RUNS, partial(without, row), "run_id")
    warehouse.tidy(0, is_rehearsal=False)
    assert [*log.glob("*.checkpoint.parquet")]
    assert (log / f"{0:020}.json").exists()
    for file in log.iterdir():
        os.utime(file, (0, 0))
    warehouse.tidy(0, is_rehearsal=False)
    assert not (log / f"{0:020}.json").exists()
    assert len(listed(opened(folder), RUNS)) == NIGHTS


@pytest.mark.parametrize(
    "gone", [FIRST_COMMITS[:1], FIRST_COMMITS[:2], FIRST_COMMITS[1:2]], ids=["first", "both", "second"]
)
def test_a_log_without_some_commits_is_damaged(
    spark: SparkSession, nightly: Warehouse, tmp_path: Path, gone: list[str]
) -> None:
    shutil.copytree(nightly.root, tmp_path / "copy")
    log = tmp_path / "copy" / INPUTS.name / "_delta_log"
    for path in log.glob("*"):
        if path.is_file() and (".checkpoint" in path.name or path.name[:20] not in FIRST_COMMITS):
            path.unlink()
    shutil.rmtree(log / "_sidecars", ignore_errors=True)
    copy = open_warehouse(spark, str(tmp_path / "copy"))
    assert len(listed(copy, INPUTS)) == 2
    for name in gone:
        (log / f"{name}.json").unlink()
    for look in (lambda: listed(copy, INPUTS), lambda: open_warehouse(spark, copy.root)):
        with pytest.raises(WarehouseError, match="the warehouse is damaged here"):
            look()


def test_a_warehouse_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match=r"no warehouse here \(inputs is missing\)"):
        listed(open_warehouse(spark, str(tmp_path)), INPUTS)


def test_a_file_that_is_renamed_while_a_log_is_listed_hides_no_table(tmp_path: Path) -> None:
    log = tmp_path / "runs/_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("{}")
    (log / ".next.tmp").symlink_to("renamed")  # listed, and not there any more when its size is asked for
    assert disk_root(tmp_path).log("runs") == {f"{0:020}.json": 2}


def test_rows_of_some_slices_are_those_that_spark_reads(nightly: Warehouse) -> None:
    for name in ("a 1", "b'2", "c"):
        spans = [{"input_id": i, "section_index": 0, "offset_bytes": 0, "length_bytes": 9} for i in ("x", "y")]
        replace_rows(nightly, [span | {"ingest_id": name, "reason": name} for span in spans], REJECTS, ingest_id=name)
    expected = collected(frame_by_delta(nightly, REJECTS).where("ingest_id != 'c' AND input_id = 'x'"))
    found = listed(nightly, REJECTS, ingest_id=["b'2", "a 1", "never written"], input_id=["x"])
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(found) == 2
    assert listed(nightly, REJECTS, "reason", ingest_id=["c"], input_id=["y"]) == [{"reason": "c"}]
    assert listed(nightly, REJECTS, ingest_id=["never written"]) == []


def test_rows_go_where_all_values_of_a_key_are_equal_null_as_well() -> None:
    for key in (("x", "y"), (None, "y")):
        assert without(_rows(*PAIRS), _rows(key)).to_pylist() == [{"a": a, "b": b} for a, b in PAIRS if (a, b) != key]
    assert without(_rows(*PAIRS), _rows((None, "y")).select(["a"])).to_pylist() == [
        {"a": a, "b": b} for a, b in PAIRS if a is not None
    ]


def _rows(*values: tuple[str | None, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(column, pa.string()) for column in zip(*values, strict=True)], ["a", "b"]
    )
