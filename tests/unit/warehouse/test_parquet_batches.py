"""Parquet files are read some rows at a time, and only where they can hold what is asked for."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from txn_analysis.warehouse.data_files import batches_of

PLACE = pa.struct([("topic", pa.string()), ("partition", pa.int32())])
SCHEMA = pa.schema([("offset", pa.int64()), ("topic", pa.string()), ("place", PLACE), ("epoch", pa.int32())])


def rows(first: int, count: int, topic: str) -> pa.Table:
    listed = [
        {"offset": n, "topic": topic, "place": {"topic": topic, "partition": n % 3}, "epoch": n}
        for n in range(first, first + count)
    ]
    return pa.Table.from_pylist(listed, SCHEMA)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Of two topics, each in a row group of its own."""
    path = str(tmp_path / "new.parquet")
    with pq.ParquetWriter(path, SCHEMA) as writer:
        writer.write_table(rows(0, 100, "orders"))
        writer.write_table(rows(100, 50, "payments"))
    return path


def test_only_what_is_asked_for_is_given(file: str) -> None:
    wanted = {"topic": pa.array(["payments"]), "offset": pa.array([10, 120, 130])}
    found = list(batches_of([file], SCHEMA, ["place", "offset"], wanted))
    assert pa.Table.from_batches(found).to_pylist() == [
        {"place": {"topic": "payments", "partition": n % 3}, "offset": n} for n in (120, 130)
    ]


def test_without_a_condition_all_rows_are_given(file: str) -> None:
    found = list(batches_of([file, file], SCHEMA, ["offset"], {}))
    assert [row["offset"] for batch in found for row in batch.to_pylist()] == [*range(150), *range(150)]


def test_rows_are_counted_where_no_column_is_wanted(file: str) -> None:
    assert sum(map(len, batches_of([file], SCHEMA, [], {"topic": pa.array(["orders"])}))) == 100


def test_what_an_older_file_lacks_is_null(tmp_path: Path) -> None:
    """A column, and a field inside another one."""
    path = str(tmp_path / "old.parquet")
    older = pa.schema([("offset", pa.int64()), ("topic", pa.string()), ("place", pa.struct([("topic", pa.string())]))])
    pq.write_table(pa.Table.from_pylist([{"offset": 1, "topic": "orders", "place": {"topic": "orders"}}], older), path)
    (batch,) = batches_of([path], SCHEMA, ["offset", "place", "epoch"], {"topic": pa.array(["orders"])})
    assert batch.to_pylist() == [{"offset": 1, "place": {"topic": "orders", "partition": None}, "epoch": None}]
