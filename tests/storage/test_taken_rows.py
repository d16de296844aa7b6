"""What a run takes over from a scan: the rows of the pieces that it uses, and no second copy of a whole file."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from tests.log.evidence import INPUT
from txn_analysis.storage.local.taken_rows import Wanted, take_file
from txn_analysis.storage.on_spark.tables import create_table
from txn_analysis.storage.warehouse import Warehouse
from txn_analysis.tables import ENDED_TRANSACTIONS, TRANSACTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]

PIECE = ("input_id", "section_index", "first_position")
NIGHTS = ("monday", "tuesday")


def ended(producer_id: int, first_position: int) -> Row:
    return {
        "topic": "orders",
        "partition": 0,
        "producer_id": producer_id,
        "txn_start_offset": 10 * producer_id,
        "is_txn_start_exact": True,
        "outcome": "COMMIT",
        "end_offset": 10 * producer_id + 5,
        "input_id": INPUT,
        "section_index": 0,
        "first_position": first_position,
    }


@pytest.fixture(scope="module")
def scanned(spark: SparkSession, empty_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse in which each night read one file, of two pieces with two transactions each."""
    folder = shutil.copytree(empty_warehouse, tmp_path_factory.mktemp("scanned") / "warehouse")
    warehouse = Warehouse(spark, str(folder))
    for night in NIGHTS:
        rows = [ended(1, 0), ended(2, 0), ended(3, 700), ended(4, 700)]
        warehouse.replace_rows([row | {"ingest_id": night} for row in rows], ENDED_TRANSACTIONS, ingest_id=night)
    return warehouse


def take(warehouse: Warehouse, run_id: str, **pieces: list[int]) -> None:
    """Let a run use these pieces of each night, by their first positions."""
    wanted = {night: {(INPUT, 0, position) for position in positions} for night, positions in pieces.items()}
    nothing = warehouse.rows([], TRANSACTIONS)
    files = warehouse.files_of(ENDED_TRANSACTIONS, wanted)
    taken = Wanted(ENDED_TRANSACTIONS, PIECE, wanted, files)
    warehouse.replace_by(nothing, None, TRANSACTIONS, taken, run_id=run_id)


def producers_of(warehouse: Warehouse, run_id: str) -> list[int]:
    rows = warehouse.read_uncommitted(TRANSACTIONS).where(F.col("run_id") == run_id)
    return sorted(row["producer_id"] for row in rows.select("producer_id").collect())


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize(
    ("used", "producers"),
    [
        ({"monday": [0, 700]}, [1, 2, 3, 4]),
        ({"monday": [700]}, [3, 4]),
        ({"tuesday": [0], "monday": [700]}, [1, 2, 3, 4]),
        ({"monday": [5]}, []),
        ({}, []),
    ],
)
def test_a_run_has_the_transactions_of_the_pieces_that_it_uses(
    scanned: Warehouse,
    used: dict[str, list[int]],
    producers: list[int],
    is_local: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_local:
        monkeypatch.setattr(Warehouse, "_local", None)
    take(scanned, "run", **used)
    assert producers_of(scanned, "run") == producers


def test_what_is_wanted_whole_is_not_written_again(scanned: Warehouse) -> None:
    take(scanned, "thrifty", monday=[0, 700], tuesday=[0])
    files = {path.stat().st_ino for path in data_files(scanned, "ended_transactions")}
    assert sorted(path.stat().st_ino in files for path in data_files(scanned, "transactions/run_id=thrifty")) == [
        False,
        True,
    ]


def test_a_file_system_without_second_names_gets_a_copy(
    scanned: Warehouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (source,) = data_files(scanned, "ended_transactions/ingest_id=monday")

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    (copy,) = take_file(source, PIECE, {(INPUT, 0, 0), (INPUT, 0, 700)}, TRANSACTIONS, tmp_path, {"run_id": "run"})
    assert (tmp_path / "transactions" / copy.path).read_bytes() == source.read_bytes()


@pytest.mark.parametrize("positions", [[0, 700], [700]], ids=["whole", "in part"])
def test_a_file_of_an_earlier_version_lacks_a_column(spark: SparkSession, tmp_path: Path, positions: list[int]) -> None:
    columns = tuple(c for c in ENDED_TRANSACTIONS.columns if c.name != "previous_last_timestamp_ms")
    earlier, warehouse = replace(ENDED_TRANSACTIONS, columns=columns), Warehouse(spark, str(tmp_path))
    create_table(spark, warehouse.path(earlier), earlier)
    rows = [row | {"ingest_id": "monday"} for row in (ended(1, 0), ended(2, 700))]
    warehouse.replace_rows(rows, earlier, ingest_id="monday")
    warehouse.create()
    take(warehouse, "run", monday=positions)
    found = warehouse.read_uncommitted(TRANSACTIONS).select("first_position", "previous_last_timestamp_ms").collect()
    assert sorted(map(tuple, found)) == [(position, None) for position in positions]


def test_files_of_a_scan_can_go_and_the_run_keeps_its_rows(scanned: Warehouse) -> None:
    scanned.replace_rows([ended(9, 0) | {"ingest_id": "sunday"}], ENDED_TRANSACTIONS, ingest_id="sunday")
    take(scanned, "late", sunday=[0])
    for path in data_files(scanned, "ended_transactions/ingest_id=sunday"):
        path.unlink()
    assert producers_of(scanned, "late") == [9]


def data_files(warehouse: Warehouse, folder: str) -> list[Path]:
    return sorted((Path(warehouse.root) / folder).rglob("*.parquet"))
