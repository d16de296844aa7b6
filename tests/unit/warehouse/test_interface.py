"""What every warehouse does, wherever it lies: in a folder, in a bucket."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.tools.sessions import no_session
from tests.tools.table_rows import batch, listed, replace_rows, row_of
from txn_analysis.errors import WarehouseError
from txn_analysis.tables import FINDINGS, INPUTS, REJECTS, RUNS, Table
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.roots import disk_root, root_at
from txn_analysis.warehouse.rows import NamedRows, RowTasks, without


@pytest.fixture(params=["in a folder", "in a bucket"])
def warehouse(request: pytest.FixtureRequest, empty_warehouse: Path, tmp_path: Path) -> Warehouse:
    if request.param == "in a bucket":
        request.getfixturevalue("bucket").put_folder(empty_warehouse, "audits/kafka")
        return Warehouse(no_session, root_at("s3://kept/audits/kafka"))
    return Warehouse(no_session, disk_root(shutil.copytree(empty_warehouse, tmp_path / "warehouse")))


def runs_of(warehouse: Warehouse) -> list[str]:
    return sorted(row["run_id"] for row in listed(warehouse, FINDINGS, "run_id"))


def test_a_slice_is_replaced_as_a_whole(warehouse: Warehouse) -> None:
    for run_id in ("a", "b"):
        rows = [row_of(FINDINGS, run_id=run_id, partition=partition) for partition in (0, 1)]
        replace_rows(warehouse, rows, FINDINGS, run_id=run_id)
    assert runs_of(warehouse) == ["a", "a", "b", "b"]
    replace_rows(warehouse, [row_of(FINDINGS, run_id="a", partition=7)], FINDINGS, run_id="a")
    assert runs_of(warehouse) == ["a", "b", "b"]
    replace_rows(warehouse, [], FINDINGS, run_id="b")
    assert [row["partition"] for row in listed(warehouse, FINDINGS, "partition")] == [7]


def test_what_another_audit_commits_is_seen_at_the_next_look(empty_warehouse: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(empty_warehouse, tmp_path / "warehouse")
    one, other = (Warehouse(no_session, disk_root(folder)) for _ in range(2))
    for writer, run_id in ((one, "a"), (other, "b"), (one, "c")):
        replace_rows(writer, [row_of(FINDINGS, run_id=run_id)], FINDINGS, run_id=run_id)
        assert runs_of(one) == runs_of(other)
    assert runs_of(one) == ["a", "b", "c"]


def test_of_a_table_without_partitions_the_slice_is_its_rows_with_that_value(warehouse: Warehouse) -> None:
    for run_id, cluster in (("a", "east"), ("b", "east"), ("a", "west")):
        row = row_of(RUNS, run_id=run_id, cluster=cluster, table_versions={"inputs": 3})
        replace_rows(warehouse, [row], RUNS, run_id=run_id)
    found = listed(warehouse, RUNS, "run_id", "cluster", "table_versions")
    assert {row["run_id"]: row["cluster"] for row in found} == {"a": "west", "b": "east"}
    assert [row["table_versions"] for row in found] == [{"inputs": 3}, {"inputs": 3}]


def test_only_rows_that_hold_a_wanted_value_in_each_column_are_given(warehouse: Warehouse) -> None:
    for ingest_id in ("x", "y'%"):
        rows = [row_of(REJECTS, ingest_id=ingest_id, input_id=input_id) for input_id in ("1", "2", "3")]
        replace_rows(warehouse, rows, REJECTS, ingest_id=ingest_id)
    found = warehouse.rows(REJECTS, "input_id", "ingest_id", ingest_id=["y'%", "none"], input_id=["1", "3", "9"])
    assert found.schema.names == ["input_id", "ingest_id"]
    assert sorted(found.to_pylist(), key=str) == [{"input_id": n, "ingest_id": "y'%"} for n in ("1", "3")]


def test_of_a_table_without_partitions_all_rows_can_be_taken_away(warehouse: Warehouse) -> None:
    rows = [row_of(INPUTS, cluster="east", input_id=n) for n in ("1", "2")]
    warehouse.insert(INPUTS, lambda _: batch(INPUTS, *rows))
    replace_rows(warehouse, [], INPUTS, cluster="west", capture="c")
    assert len(listed(warehouse, INPUTS)) == 2
    replace_rows(warehouse, [], INPUTS, cluster="east")
    assert listed(warehouse, INPUTS) == []


def test_of_rows_that_are_alike_only_the_first_is_inserted(warehouse: Warehouse) -> None:
    first, other = row_of(INPUTS, input_id="1", path="first"), row_of(INPUTS, input_id="2")
    both = batch(INPUTS, first | {"path": "again"}, other)
    for rows in (batch(INPUTS, first), both):
        assert warehouse.insert(INPUTS, partial(without, rows), "input_id", "capture") == 1
    assert warehouse.insert(INPUTS, partial(without, both), "input_id", "capture") == 0
    assert {row["input_id"]: row["path"] for row in listed(warehouse, INPUTS)} == {"1": "first", "2": other["path"]}


def test_a_row_that_a_table_may_not_have_is_refused_and_nothing_is_written(warehouse: Warehouse) -> None:
    replace_rows(warehouse, [row_of(REJECTS, ingest_id="x")], REJECTS, ingest_id="x")
    bad = row_of(REJECTS, ingest_id="x", input_id="other", length_bytes=0)
    with pytest.raises(WarehouseError, match="/rejects: a row breaks CHECK span_not_empty: ") as refused:
        replace_rows(warehouse, [bad], REJECTS, ingest_id="x")
    assert "\n" not in str(refused.value)
    assert [row["input_id"] for row in listed(warehouse, REJECTS)] == [row_of(REJECTS)["input_id"]]


def test_tasks_fill_several_tables_and_tell_the_rest(warehouse: Warehouse) -> None:
    def rows_of(number: int) -> Iterator[NamedRows]:
        for table in (REJECTS, FINDINGS):
            row = row_of(table, **{table.partition_by[0]: "x"}, **({"partition": number} if table is FINDINGS else {}))
            yield table.name, pa.RecordBatch.from_pylist([row], table.arrow_schema)
        yield "done", pa.RecordBatch.from_pylist([{"number": number}])

    tasks = RowTasks(
        (0, 1), (FINDINGS,), lambda n: [named for named in rows_of(n) if named[0] != REJECTS.name], is_on_spark=False
    )
    told = warehouse.fill(tasks, run_id="x")
    assert sorted(row["partition"] for row in listed(warehouse, FINDINGS, run_id=["x"])) == [0, 1]
    assert sorted(told["done"]["number"].to_pylist()) == [0, 1]


def test_a_write_makes_a_new_version(warehouse: Warehouse) -> None:
    before = warehouse.versions([RUNS, FINDINGS])
    replace_rows(warehouse, [row_of(RUNS, run_id="a")], RUNS, run_id="a")
    after = warehouse.versions([RUNS, FINDINGS])
    assert after[RUNS.name] > before[RUNS.name]
    assert after[FINDINGS.name] == before[FINDINGS.name]


def keys(table: Table, **values: list[Any]) -> pa.Table:
    return pa.table({name: pa.array(own, table.arrow_schema.field(name).type) for name, own in values.items()})


def test_whole_slices_are_taken_out_at_once(warehouse: Warehouse) -> None:
    for run_id in ("a", "b", "c"):
        replace_rows(warehouse, [row_of(FINDINGS, run_id=run_id)], FINDINGS, run_id=run_id)
    gone = keys(FINDINGS, run_id=["a", "c", "not there"])
    version = warehouse.versions([FINDINGS])
    assert warehouse.remove(FINDINGS, gone, is_rehearsal=True) == warehouse.remove(FINDINGS, gone)
    assert runs_of(warehouse) == ["b"]
    assert warehouse.versions([FINDINGS]) == {name: number + 1 for name, number in version.items()}


def test_of_a_slice_some_rows_are_taken_out(warehouse: Warehouse) -> None:
    rows = [row_of(REJECTS, ingest_id="i", input_id=name, length_bytes=1) for name in ("x", "y", "y")]
    replace_rows(warehouse, rows, REJECTS, ingest_id="i")
    gone = keys(REJECTS, ingest_id=["i", "other"], input_id=["y", "x"])
    assert warehouse.remove(REJECTS, gone, is_rehearsal=True).row_count == 2
    assert warehouse.remove(REJECTS, gone).row_count == 2
    assert [row["input_id"] for row in listed(warehouse, REJECTS, "input_id")] == ["x"]


def test_rows_of_a_table_without_slices_are_taken_out(warehouse: Warehouse) -> None:
    for run_id in ("a", "b"):
        row = batch(RUNS, row_of(RUNS, run_id=run_id, run_number=1, outcome="clean"))
        warehouse.insert(RUNS, partial(without, row), "run_id")
    warehouse.revise(RUNS, lambda rows: without(rows, keys(RUNS, run_id=["a"])))
    assert [row["run_id"] for row in listed(warehouse, RUNS, "run_id")] == ["b"]


def test_to_tidy_a_warehouse_changes_no_row(warehouse: Warehouse) -> None:
    for run_id in ("a", "b"):
        replace_rows(warehouse, [row_of(FINDINGS, run_id=run_id)], FINDINGS, run_id=run_id)
        row = batch(RUNS, row_of(RUNS, run_id=run_id, run_number=1, outcome="clean"))
        warehouse.insert(RUNS, partial(without, row), "run_id")
    warehouse.remove(FINDINGS, keys(FINDINGS, run_id=["a"]))
    warehouse.tidy(0, is_rehearsal=False)
    warehouse.tidy(0, is_rehearsal=False)
    assert runs_of(warehouse) == ["b"]
    assert sorted(row["run_id"] for row in listed(warehouse, RUNS, "run_id")) == ["a", "b"]
