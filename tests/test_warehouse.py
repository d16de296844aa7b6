"""What the warehouse promises: whole slices, commits that come last, constraints, and several writers at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import ArrayType, BooleanType, DataType, StringType

from txn_analysis.commits import commit_inputs, commit_run
from txn_analysis.errors import WarehouseError
from txn_analysis.new_tables import create_table
from txn_analysis.tables import (
    ABORT_PLAN,
    ABORTED_TRANSACTIONS,
    ALL_TABLES,
    ENDED_TRANSACTIONS,
    FINDINGS,
    GROUP_OFFSETS,
    INPUTS,
    LOG_BATCHES,
    LOG_PIECES,
    PARTITION_HEALTH,
    PRODUCER_SNAPSHOTS,
    REJECTS,
    RUNS,
    TRANSACTION_STATES,
    TRANSACTIONS,
    Table,
)
from txn_analysis.warehouse import Warehouse

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    Row = dict[str, Any]

WORDS: dict[str, Row] = {
    FINDINGS.name: {"verdict": "hanging", "rule": "unknown_producer", "coordinator_epoch_basis": "none_seen"},
    ABORT_PLAN.name: {
        "rule": "unknown_producer",
        "coordinator_epoch_basis": "none_seen",
        "not_after_ms": 2,
        "transaction_version": 0,
    },
    TRANSACTIONS.name: {"outcome": "open"},
    ENDED_TRANSACTIONS.name: {"outcome": "ABORT", "end_offset": 9},
    RUNS.name: {"outcome": "clean"},
    INPUTS.name: {"kind": "log", "parsed_bytes": 1, "rejected_bytes": 0, "text_bytes": 1},
}
# For each constraint one row that breaks it, and nothing else.
VIOLATIONS: dict[tuple[str, str], Row] = {
    (INPUTS.name, "every_byte_accounted"): {"parsed_bytes": 1, "rejected_bytes": 1, "text_bytes": 3},
    (INPUTS.name, "sizes_not_negative"): {"parsed_bytes": 2, "rejected_bytes": -1},
    (REJECTS.name, "span_not_empty"): {"length_bytes": 0},
    (LOG_BATCHES.name, "offsets_in_order"): {"base_offset": 5, "last_offset": 4},
    (LOG_BATCHES.name, "epochs_not_negative"): {"producer_epoch": -1},
    (LOG_BATCHES.name, "known_timestamp_type"): {"timestamp_type": "NoTimestampType"},
    (LOG_PIECES.name, "offsets_in_order"): {"first_offset": 5, "last_offset": 4},
    (LOG_PIECES.name, "positions_in_order"): {"first_position": 5, "end_position": 4},
    (GROUP_OFFSETS.name, "text_in_order"): {"text_start_bytes": 5, "text_end_bytes": 4},
    (PRODUCER_SNAPSHOTS.name, "epochs_not_negative"): {"coordinator_epoch": -1},
    (ABORTED_TRANSACTIONS.name, "offsets_in_order"): {"first_offset": 5, "last_offset": 4},
    (TRANSACTION_STATES.name, "epochs_not_negative"): {"producer_epoch": -1},
    (TRANSACTIONS.name, "start_not_negative"): {"txn_start_offset": -1},
    (TRANSACTIONS.name, "offsets_in_order"): {"txn_start_offset": 5, "last_offset": 4},
    (TRANSACTIONS.name, "epochs_not_negative"): {"end_producer_epoch": -1},
    (TRANSACTIONS.name, "known_outcome"): {"outcome": "LEADER_CHANGE", "end_offset": 9},
    (TRANSACTIONS.name, "known_basis"): {"coordinator_epoch_basis": "guessed"},
    (TRANSACTIONS.name, "only_open_has_no_end"): {"outcome": "open", "end_offset": 9},
    (ENDED_TRANSACTIONS.name, "start_not_negative"): {"txn_start_offset": -1},
    (ENDED_TRANSACTIONS.name, "offsets_in_order"): {"txn_start_offset": 5, "last_offset": 4},
    (ENDED_TRANSACTIONS.name, "epochs_not_negative"): {"end_producer_epoch": -1},
    (ENDED_TRANSACTIONS.name, "known_outcome"): {"outcome": "open", "end_offset": None},
    (ENDED_TRANSACTIONS.name, "known_basis"): {"coordinator_epoch_basis": "guessed"},
    (ENDED_TRANSACTIONS.name, "only_open_has_no_end"): {"end_offset": None},
    (PARTITION_HEALTH.name, "offsets_in_order"): {"first_offset": 5, "end_offset": 4},
    (PARTITION_HEALTH.name, "sizes_not_negative"): {"hidden_bytes": -1},
    (FINDINGS.name, "known_verdict"): {"verdict": "perhaps"},
    (FINDINGS.name, "known_basis"): {"coordinator_epoch_basis": "guessed"},
    (FINDINGS.name, "epochs_not_negative"): {"coordinator_epoch": -1},
    (ABORT_PLAN.name, "only_aborts"): {"transaction_result": True},
    (ABORT_PLAN.name, "legacy_epoch_rule"): {"transaction_version": 2},
    (ABORT_PLAN.name, "epochs_not_negative"): {"producer_epoch": -1},
    (ABORT_PLAN.name, "known_basis"): {"coordinator_epoch_basis": "guessed"},
    (ABORT_PLAN.name, "window_in_order"): {"not_before_ms": 2, "not_after_ms": 2},
    (RUNS.name, "numbered_from_one"): {"run_number": 0},
    (RUNS.name, "known_outcome"): {"outcome": "perhaps"},
    (RUNS.name, "known_basis"): {"as_of_basis": "wall_clock"},
}
CHECKS = [pytest.param(table, name, id=f"{table.name}-{name}") for table in ALL_TABLES for name in table.checks]


def row_of(table: Table, **columns: Any) -> Row:
    """A row that breaks no constraint; columns that may be NULL are."""
    needed = {c.name: plain(c.type) for c in table.columns if not c.nullable}
    return needed | WORDS.get(table.name, {}) | columns


def plain(kind: DataType) -> Any:
    if isinstance(kind, ArrayType):
        return []
    if isinstance(kind, BooleanType):
        return False
    return "x" if isinstance(kind, StringType) else 1


def write(warehouse: Warehouse, table: Table, *rows: Row) -> None:
    """Replaces the slice that the first row belongs to."""
    name = (table.partition_by or table.key)[0]
    warehouse.replace(warehouse.rows(rows, table), table, **{name: rows[0][name]})


def keys(warehouse: Warehouse, table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in warehouse.read(table).select(*table.key).collect())


@pytest.fixture(scope="module")
def guarded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse that only ever holds what its constraints let through."""
    warehouse = Warehouse(spark, str(tmp_path_factory.mktemp("guarded") / "warehouse"))
    warehouse.create()
    return warehouse


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(spark, str(tmp_path / "warehouse"))
    warehouse.create()
    return warehouse


@pytest.mark.parametrize(("table", "check"), CHECKS)
def test_a_row_that_breaks_a_constraint_is_refused(guarded: Warehouse, table: Table, check: str) -> None:
    with pytest.raises(WarehouseError, match=f"/{table.name}: a row breaks CHECK {check}: ") as refused:
        write(guarded, table, row_of(table) | VIOLATIONS[table.name, check])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_the_same_row_without_the_flaw_is_taken(guarded: Warehouse, table: Table) -> None:
    write(guarded, table, row_of(table))
    assert guarded.read_uncommitted(table).count() == 1


def test_a_missing_value_is_refused_by_name(guarded: Warehouse) -> None:
    rows = guarded.rows([row_of(REJECTS)], REJECTS).selectExpr("* EXCEPT (reason)", "CAST(NULL AS STRING) AS reason")
    with pytest.raises(WarehouseError, match="a row breaks NOT NULL of column reason"):
        guarded.replace(rows, REJECTS, ingest_id="x")


def test_results_count_once_their_run_is_complete(warehouse: Warehouse) -> None:
    write(warehouse, FINDINGS, row_of(FINDINGS, run_id="cut-short"))
    write(warehouse, FINDINGS, row_of(FINDINGS, run_id="whole"))
    commit_run(warehouse, row_of(RUNS, run_id="whole"))
    assert [key[0] for key in keys(warehouse, FINDINGS)] == ["whole"]


def test_content_counts_once_its_input_names_the_ingest(warehouse: Warehouse) -> None:
    for ingest_id in ("cut-short", "whole"):
        write(warehouse, REJECTS, row_of(REJECTS, ingest_id=ingest_id, input_id="a"))
    assert keys(warehouse, REJECTS) == []
    commit_inputs(warehouse, [row_of(INPUTS, input_id="a", ingest_id="whole")], held=[])
    assert [row["ingest_id"] for row in warehouse.read(REJECTS).collect()] == ["whole"]


def test_content_that_another_ingest_read_meanwhile_counts_once(warehouse: Warehouse) -> None:
    for ingest_id in ("first", "second"):
        rows = [row_of(REJECTS, ingest_id=ingest_id, input_id=name) for name in ("shared", ingest_id)]
        write(warehouse, REJECTS, *rows)
        inputs = [row_of(INPUTS, capture=ingest_id, ingest_id=ingest_id, input_id=row["input_id"]) for row in rows]
        commit_inputs(warehouse, inputs, held=[])
    assert keys(warehouse, REJECTS) == [("first", 1), ("second", 1), ("shared", 1)]
    assert len(keys(warehouse, INPUTS)) == 4


def test_inputs_of_one_capture_from_many_writers(warehouse: Warehouse) -> None:
    def commit(writer: int) -> None:
        commit_inputs(
            warehouse, [row_of(INPUTS, ingest_id=f"{writer}", input_id=f"{n}") for n in (writer, writer + 1)], held=[]
        )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(commit, range(4)))
    assert keys(warehouse, INPUTS) == [("x", "x", f"{n}") for n in range(5)]


def test_runs_that_end_together_are_numbered_one_by_one(warehouse: Warehouse) -> None:
    run_ids = ["a", "b", "a", "c"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda run_id: commit_run(warehouse, row_of(RUNS, run_id=run_id)), run_ids))
    rows = warehouse.read(RUNS).collect()
    assert sorted(row["run_number"] for row in rows) == [1, 2, 3]
    assert {row["run_id"] for row in rows} == set(run_ids)


def test_a_run_keeps_its_number_when_it_is_made_again(warehouse: Warehouse) -> None:
    for run_id in ("a", "b", "a"):
        commit_run(warehouse, row_of(RUNS, run_id=run_id))
    assert {row["run_id"]: row["run_number"] for row in warehouse.read(RUNS).collect()} == {"a": 1, "b": 2}


def test_one_slice_from_many_writers_is_there_once(warehouse: Warehouse) -> None:
    rows = [row_of(REJECTS, offset_bytes=n) for n in range(3)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: write(warehouse, REJECTS, *rows), range(4)))
    assert warehouse.read_uncommitted(REJECTS).count() == 3


def test_a_warehouse_of_an_earlier_version_gets_the_columns_that_it_lacks(spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path / "warehouse")
    before = replace(FINDINGS, columns=tuple(c for c in FINDINGS.columns if c.name not in {"cause", "impact"}))
    earlier = Warehouse(spark, root)
    create_table(spark, earlier.path(before), before)
    write(earlier, before, row_of(before, run_id="old"))
    earlier.create()
    known = {"name": "marker_missing", "confidence": "certain", "evidence_for": ["a"], "evidence_against": []}
    write(earlier, FINDINGS, row_of(FINDINGS, run_id="new", cause=known))
    rows = {row["run_id"]: row["cause"] for row in earlier.read_uncommitted(FINDINGS).collect()}
    assert rows["old"] is None
    assert rows["new"].asDict() == known


def test_tables_are_created_by_two_at_once(spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path / "warehouse")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: Warehouse(spark, root).create(), range(2)))
    assert Warehouse(spark, root).versions(ALL_TABLES) == dict.fromkeys((table.name for table in ALL_TABLES), 0)
