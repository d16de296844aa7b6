"""A column that a later version adds is NULL in what is there, and comes to Delta's schema at the first write."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from tests.tools.sessions import no_session
from tests.tools.table_rows import batch, listed, row_of
from txn_analysis.tables import INPUTS, REJECTS, Col, Table
from txn_analysis.tables.schema import BOOLEAN, STRING
from txn_analysis.warehouse.delta_folder import DeltaFolder
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.roots import Root, disk_root, root_at
from txn_analysis.warehouse.rows import RowTasks, without

# As a later version declares them: one more column, and one more field of the structs in a list.
GROWN = replace(REJECTS, columns=(*REJECTS.columns, Col("is_loud", BOOLEAN, "somebody should look")))
_SECTIONS = INPUTS.arrow_schema.field("sections").type
_SECTION = pa.struct([*_SECTIONS.value_type, pa.field("colour", STRING)])
GROWN_INSIDE = replace(
    INPUTS,
    columns=tuple(
        replace(column, type=pa.list_(_SECTIONS.value_field.with_type(_SECTION)))
        if column.name == "sections"
        else column
        for column in INPUTS.columns
    ),
)


@pytest.fixture(params=["in a folder", "in a bucket"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    empty: Path = request.getfixturevalue("empty_warehouse")
    if request.param == "in a bucket":
        request.getfixturevalue("bucket").put_folder(empty, "audits/kafka")
        return root_at("s3://kept/audits/kafka")
    return disk_root(shutil.copytree(empty, tmp_path / "warehouse"))


def opened(root: Root) -> Warehouse:
    return Warehouse(no_session, root)


def loud(ingest_id: str) -> pa.RecordBatch:
    return batch(GROWN, row_of(REJECTS, ingest_id=ingest_id) | {"is_loud": True})


def columns(root: Root, table: Table) -> dict[str, Any]:
    place, options = root.for_delta(table.name)
    schema = DeltaTable(place, storage_options=options).schema()
    return {field.name: field for field in schema.fields}


def test_it_is_null_in_what_is_there_and_written_from_then_on(root: Root) -> None:
    opened(root).replace([batch(REJECTS, row_of(REJECTS, ingest_id="old"))], REJECTS, ingest_id="old")
    assert [row["is_loud"] for row in listed(opened(root), GROWN)] == [None]
    assert "is_loud" not in columns(root, GROWN)
    opened(root).replace([loud("new")], GROWN, ingest_id="new")
    assert {row["ingest_id"]: row["is_loud"] for row in listed(opened(root), GROWN)} == {"old": None, "new": True}
    assert columns(root, GROWN)["is_loud"].metadata == {"comment": "somebody should look"}


def test_it_is_added_once(root: Root) -> None:
    for ingest_id in ("a", "b"):
        opened(root).replace([loud(ingest_id)], GROWN, ingest_id=ingest_id)
    assert opened(root).versions([GROWN])[GROWN.name] == 3


def test_a_reader_that_does_not_know_it_reads_on(root: Root) -> None:
    before = opened(root)
    opened(root).replace([loud("new")], GROWN, ingest_id="new")
    for reader in (before, opened(root)):
        assert [row["ingest_id"] for row in listed(reader, REJECTS)] == ["new"]


def test_what_only_another_tool_knows_stays(root: Root) -> None:
    opened(root).replace([loud("new")], GROWN, ingest_id="new")
    other = replace(REJECTS, columns=(*REJECTS.columns, Col("is_quiet", BOOLEAN, "nobody need look")))
    own = batch(other, row_of(REJECTS, ingest_id="other") | {"is_quiet": True})
    opened(root).replace([own], other, ingest_id="other")
    assert {"is_loud", "is_quiet"} <= columns(root, other).keys()
    assert {row["ingest_id"]: row["is_loud"] for row in listed(opened(root), GROWN)} == {"new": True, "other": None}


def test_a_field_of_a_struct_in_a_list_is_added_as_well(root: Root) -> None:
    sections = [dict.fromkeys((field.name for field in _SECTION), None) | {"kind": "log", "section_index": 0}]
    plain = [{name: value for name, value in section.items() if name != "colour"} for section in sections]
    old = batch(INPUTS, row_of(INPUTS, input_id="old") | {"sections": plain})
    opened(root).insert(INPUTS, lambda _: old)
    coloured = [section | {"colour": "red"} for section in sections]
    own = batch(GROWN_INSIDE, row_of(INPUTS, input_id="new") | {"sections": coloured})
    assert opened(root).insert(GROWN_INSIDE, partial(without, own), "input_id") == 1
    found = {row["input_id"]: row["sections"] for row in listed(opened(root), GROWN_INSIDE)}
    assert {name: [(one["kind"], one["colour"]) for one in of_input] for name, of_input in found.items()} == {
        "old": [("log", None)],
        "new": [("log", "red")],
    }
    metadata = columns(root, GROWN_INSIDE)["sections"].metadata
    assert metadata == {"comment": dict(zip(INPUTS.names, INPUTS.columns, strict=True))["sections"].comment}


def test_rows_that_are_rewritten_get_it(root: Root) -> None:
    """Of a table without partitions a write puts its rows anew."""
    opened(root).insert(INPUTS, lambda _: batch(INPUTS, row_of(INPUTS, input_id="old")))
    grown = replace(INPUTS, columns=(*INPUTS.columns, Col("colour", STRING, "of the cover")))
    own = batch(grown, row_of(INPUTS, input_id="new") | {"colour": "red"})
    opened(root).replace([own], grown, input_id="new")
    assert {row["input_id"]: row["colour"] for row in listed(opened(root), grown)} == {"old": None, "new": "red"}


def test_two_who_add_it_at_once_add_it_once(empty_warehouse: Path, tmp_path: Path) -> None:
    root = disk_root(shutil.copytree(empty_warehouse, tmp_path / "warehouse"))
    first, second = (DeltaFolder(root, GROWN) for _ in range(2))
    assert first.grow()
    with pytest.raises(CommitFailedError):
        second.grow()
    assert not DeltaFolder(root, GROWN).grow()


def test_delta_in_spark_reads_and_writes_it(spark: SparkSession, empty_warehouse: Path, tmp_path: Path) -> None:
    """Old files and new ones, those of Spark's tasks included."""
    root = disk_root(shutil.copytree(empty_warehouse, tmp_path / "warehouse"))
    opened(root).replace([batch(REJECTS, row_of(REJECTS, ingest_id="old"))], REJECTS, ingest_id="old")
    warehouse = Warehouse(spark, root)
    tasks = RowTasks((0, 1), (GROWN,), lambda number: [(GROWN.name, loud("new").slice(0, number))], is_on_spark=True)
    warehouse.fill(tasks, ingest_id="new")
    by_delta = spark.read.format("delta").load(warehouse.path(GROWN))
    found = {row.ingest_id: row.is_loud for row in by_delta.select("ingest_id", "is_loud").collect()}
    assert found == {"old": None, "new": True}
    assert {row.ingest_id: row.is_loud for row in warehouse.frame(GROWN).collect()} == found
    spark.sql(f"DELETE FROM delta.`{warehouse.path(GROWN)}` WHERE is_loud")
    assert [row["ingest_id"] for row in listed(opened(root), GROWN)] == ["old"]
