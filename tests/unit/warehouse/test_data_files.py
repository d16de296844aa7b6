"""What a task writes by itself is what Spark reads, and what breaks a table's constraint leaves nothing behind."""

import json
import random
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.tools.table_rows import row_of
from txn_analysis.tables import (
    ALL_TABLES,
    ENDED_TRANSACTIONS,
    FINDINGS,
    LOG_BATCHES,
    REJECTS,
    TRANSACTION_STATES,
    Col,
    Table,
)
from txn_analysis.tables.schema import BIGINT, BOOLEAN, INT, STRING, struct
from txn_analysis.warehouse.data_files import DataFile, have_equal_rows, write_data_files
from txn_analysis.warehouse.errors import BrokenRowError
from txn_analysis.warehouse.roots import disk_root
from txn_analysis.warehouse.spark_tasks import spark_schema

LOOSE = pa.schema([field.with_nullable(nullable=True) for field in REJECTS.arrow_schema])
INNER = struct(offset=BIGINT, epoch=INT, marker=STRING)
EVERYTHING = Table(
    name="everything",
    grain="one of each kind of column",
    key=("number",),
    columns=(
        Col("slice", STRING, "the slice", nullable=False),
        Col("number", BIGINT, "in order", nullable=False),
        Col("digest", BIGINT, "all over the range"),
        Col("epoch", INT, "small or NULL"),
        Col("marker", STRING, "words, among them empty and strange ones"),
        Col("flag", BOOLEAN, "or NULL"),
        Col("transactions", pa.list_(pa.field("element", INNER, nullable=False)), "of any length"),
    ),
    partition_by=("slice",),
)
LONGS = (-(2**63), 2**63 - 1, 0, -1, None, 2**62, -(2**62), 1)
INTS = (-(2**31), 2**31 - 1, None, 0, 7, 7, 7)
WORDS = ("COMMIT", "", None, "ABORT", 'settlement,eu=west "q"', "\u20ac\U0001f600\n")


def rows_of_everything(count: int) -> list[dict[str, Any]]:
    longs, ints, words = (islice(cycle(values), count) for values in (LONGS, INTS, WORDS))
    chance = random.Random(1)
    inner = [{"offset": a, "epoch": b, "marker": c} for a, b, c in zip(LONGS, INTS, WORDS, strict=False)]
    return [
        {
            "slice": "a b/c",
            "number": number,
            "digest": chance.getrandbits(64) - 2**63 if number % 2 else long,
            "epoch": epoch,
            "marker": word,
            "flag": chance.choice((True, False, None)),
            "transactions": inner[: chance.randrange(len(inner))],
        }
        for number, (long, epoch, word) in enumerate(zip(longs, ints, words, strict=True))
    ]


def batch(table: Table, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=table.arrow_schema)


def test_spark_reads_what_was_written(spark: SparkSession, tmp_path: Path) -> None:
    rows = rows_of_everything(5_000)
    parts = [(EVERYTHING, batch(EVERYTHING, rows[at : at + 777])) for at in range(0, len(rows), 777)]
    write_data_files(parts, disk_root(tmp_path), {"slice": "a b/c"})
    found = (
        spark.read.schema(spark_schema(EVERYTHING)).parquet(str(tmp_path / "everything")).orderBy("number").collect()
    )
    assert [row.asDict(recursive=True) for row in found] == rows


def written(folder: Path, rows: list[dict[str, Any]], *, in_files_of: int = 1_000) -> list[DataFile]:
    root, parts = disk_root(folder), range(0, len(rows), in_files_of)
    batches = (batch(EVERYTHING, rows[start : start + in_files_of]) for start in parts)
    return [file for rows in batches for file in write_data_files([(EVERYTHING, rows)], root, {"slice": "a"})]


def test_rows_are_equal_in_whatever_order_and_files(tmp_path: Path) -> None:
    rows = rows_of_everything(3_000)
    shuffled = random.Random(2).sample(rows, len(rows))
    some, others = written(tmp_path, rows), written(tmp_path, shuffled, in_files_of=701)
    assert have_equal_rows(EVERYTHING, disk_root(tmp_path), some, others)
    assert not have_equal_rows(EVERYTHING, disk_root(tmp_path), some, others[1:])


INNER_NULL = {"offset": None, "epoch": None, "marker": None}
ROW = {"slice": "a", "number": 1, "digest": 1, "epoch": 1, "marker": "x", "flag": False, "transactions": []}


@pytest.mark.parametrize(
    ("some", "others"),
    [
        ([{"epoch": None}], [{"epoch": 0}]),
        ([{"epoch": None}], [{"epoch": -1}]),
        ([{"digest": None, "epoch": 1}], [{"digest": 1, "epoch": None}]),
        ([{"digest": 2, "epoch": 3}], [{"digest": 3, "epoch": 2}]),
        (
            [{"digest": 2, "epoch": 3}, {"digest": 4, "epoch": 5}],
            [{"digest": 2, "epoch": 5}, {"digest": 4, "epoch": 3}],
        ),
        ([{"marker": "a", "epoch": 3}, {"marker": "b"}], [{"marker": "b", "epoch": 3}, {"marker": "a"}]),
        ([{}, {}, {"digest": 2}], [{}, {"digest": 2}, {"digest": 2}]),
        ([{"marker": None}], [{"marker": ""}]),
        ([{"flag": None}], [{"flag": False}]),
        ([{"transactions": None}], [{"transactions": []}]),
        ([{"transactions": []}], [{"transactions": [INNER_NULL]}]),
        ([{"transactions": [INNER_NULL]}], [{"transactions": [INNER_NULL] * 2}]),
        ([{"transactions": [INNER_NULL]}], [{"transactions": [INNER_NULL | {"offset": 0}]}]),
        (
            [{"transactions": [INNER_NULL | {"offset": 1}, INNER_NULL | {"offset": 2}]}],
            [{"transactions": [INNER_NULL | {"offset": 2}, INNER_NULL | {"offset": 1}]}],
        ),
        (
            [{"transactions": [INNER_NULL]}, {"transactions": [INNER_NULL] * 2, "digest": 2}],
            [{"transactions": [INNER_NULL] * 2}, {"transactions": [INNER_NULL], "digest": 2}],
        ),
    ],
)
def test_rows_that_differ_in_any_value_are_not_equal(
    some: list[dict[str, Any]], others: list[dict[str, Any]], tmp_path: Path
) -> None:
    one, another = (written(tmp_path, [ROW | each for each in rows]) for rows in (some, others))
    assert not have_equal_rows(EVERYTHING, disk_root(tmp_path), one, another)
    assert have_equal_rows(EVERYTHING, disk_root(tmp_path), another, another[::-1])


@pytest.mark.parametrize("table", [each for each in ALL_TABLES if each.partition_by], ids=lambda table: table.name)
def test_rows_of_each_table_that_has_slices_can_be_compared(table: Table, tmp_path: Path) -> None:
    rows = [row_of(table)]
    files = write_data_files([(table, batch(table, rows))], disk_root(tmp_path), {table.partition_by[0]: "a"})
    assert have_equal_rows(table, disk_root(tmp_path), files, files)


def test_a_file_says_what_range_its_rows_are_in(tmp_path: Path) -> None:
    rows = [reject(section_index=3), reject(section_index=1), reject(section_index=2, offset_bytes=9)]
    (written,) = write_data_files([(REJECTS, batch(REJECTS, rows))], disk_root(tmp_path), {"ingest_id": "i"})
    known = json.loads(written.statistics)
    assert known["numRecords"] == 3
    ranges = {name: (known["minValues"][name], known["maxValues"][name]) for name in ("section_index", "offset_bytes")}
    assert ranges == {"section_index": (1, 3), "offset_bytes": (0, 9)}


def test_of_a_long_word_the_log_has_its_beginning_and_a_bound_behind_it(tmp_path: Path) -> None:
    rows = [reject(input_id="x" * 33), reject(input_id="y")]
    (written,) = write_data_files([(REJECTS, batch(REJECTS, rows))], disk_root(tmp_path), {"ingest_id": "i"})
    known = json.loads(written.statistics)
    assert (known["minValues"]["input_id"], known["maxValues"]["input_id"]) == ("x" * 32, "y")
    rows = [reject(input_id="x" * 33)]
    (written,) = write_data_files([(REJECTS, batch(REJECTS, rows))], disk_root(tmp_path), {"ingest_id": "i"})
    assert json.loads(written.statistics)["maxValues"]["input_id"] == "x" * 32 + "\U0010ffff"


def test_words_of_which_parquet_keeps_no_range_have_none(tmp_path: Path) -> None:
    """Else a file would be skipped that has a row."""
    rows = [reject(input_id="x"), reject(input_id="y" * 5_000)]
    parts = [(REJECTS, batch(REJECTS, [row])) for row in rows]
    parts.insert(1, (REJECTS, batch(REJECTS, [reject()]).cast(LOOSE)))  # what may be NULL differs: a group of its own
    (written,) = write_data_files(parts, disk_root(tmp_path), {"ingest_id": "i"})
    assert "input_id" not in json.loads(written.statistics)["maxValues"]


def test_what_questions_ask_by_has_a_range_wherever_it_stands(tmp_path: Path) -> None:
    for table in (LOG_BATCHES, TRANSACTION_STATES, ENDED_TRANSACTIONS, FINDINGS):
        row = row_of(table, producer_id=7) | ({"transactional_id": "a"} if "transactional_id" in table.names else {})
        slice_of = {name: row[name] for name in table.partition_by}
        (written,) = write_data_files([(table, batch(table, [row]))], disk_root(tmp_path), slice_of)
        least = json.loads(written.statistics)["minValues"]
        assert least["producer_id"] == 7
        assert least.get("transactional_id") == row.get("transactional_id")


@pytest.mark.parametrize("is_first", [True, False], ids=["in an earlier row group", "in the last one"])
@pytest.mark.parametrize("flaw", [{"length_bytes": 0}, {"reason": None}])
def test_a_row_that_breaks_a_constraint_leaves_no_file(tmp_path: Path, flaw: dict[str, Any], is_first: bool) -> None:
    broken = pa.RecordBatch.from_pylist([reject() | flaw], schema=LOOSE)
    rows = [(REJECTS, broken), (REJECTS, batch(REJECTS, [reject()]))][:: 1 if is_first else -1]
    with pytest.raises(BrokenRowError):
        write_data_files(rows, disk_root(tmp_path), {"ingest_id": "i"})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def reject(**columns: Any) -> dict[str, Any]:
    plain = {"ingest_id": "i", "input_id": "x", "section_index": 0, "offset_bytes": 0, "length_bytes": 1, "reason": "?"}
    return plain | columns
