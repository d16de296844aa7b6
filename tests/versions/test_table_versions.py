"""Tables of an earlier version get what is declared today, and what cannot be changed is refused in one line."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from tests.by_spark import only_by_spark
from tests.table_rows import row_of
from txn_analysis.errors import WarehouseError
from txn_analysis.storage.commits import commit_inputs, deepen_inputs
from txn_analysis.storage.local.delta_folder import DeltaFolder
from txn_analysis.storage.match import Alike
from txn_analysis.storage.on_spark.tables import create_table
from txn_analysis.storage.on_spark.types import frame_of
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.storage.table_versions import bring_up_to_date, differences
from txn_analysis.tables import INPUTS, Col, Table
from txn_analysis.tables._schema import BIGINT, INT, STRING, array, at_least, one_of, struct
from txn_analysis.tables.inputs import SECTION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from txn_analysis.storage.local.delta_folder import Definition
    from txn_analysis.storage.warehouse import Warehouse

    Row = dict[str, Any]

EARLIER = Table(
    name="weather",
    grain="one day in one run",
    key=("run_id", "day"),
    columns=(
        Col("run_id", STRING, "the run", nullable=False),
        Col("day", INT, "the day", nullable=False),
        Col("wind", STRING, "its direction", nullable=False),
        Col("place", struct(name=STRING), "where"),
        Col("showers", array(struct(at=BIGINT, words=STRING)), "when it rained"),
    ),
    partition_by=("run_id",),
    checks={"known_wind": one_of("wind", ("north", "south")), "in_a_year": at_least("day", 0)},
)
TODAY = replace(
    EARLIER,
    columns=(
        *EARLIER.columns[:2],
        Col("place", struct(height=INT, name=STRING, owner=struct(name=STRING)), "where"),
        Col(
            "showers",
            array(struct(at=BIGINT, kind=STRING, words=STRING, drops=struct(ml=INT))),
            "when it rained",
        ),
        Col("sky", STRING, "what it looked like", nullable=False),
    ),
    checks={"in_a_year": at_least("day", 1), "known_sky": one_of("sky", ("clear", "half clear"))},
)
OLD: Row = {"run_id": "old", "day": 3, "wind": "north", "place": {"name": "Lund"}}
NEW: Row = {"run_id": "new", "day": 4, "sky": "half clear", "place": {"name": "Lund", "height": 9}}
SHOWER = {"at": 1, "kind": "hail", "words": "loud", "drops": {"ml": 2}}


@pytest.fixture(scope="module")
def made_earlier(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With one row of the earlier version; tests work on copies."""
    warehouse = open_warehouse(spark, str(tmp_path_factory.mktemp("earlier") / "warehouse"))
    create_table(spark, warehouse.path(EARLIER), EARLIER)
    warehouse.replace_rows([OLD | {"showers": [{"at": 1, "words": "loud"}]}], EARLIER, run_id="old")
    return Path(warehouse.root)


@pytest.fixture
def warehouse(spark: SparkSession, made_earlier: Path, tmp_path: Path) -> Warehouse:
    """A copy of its own, in a folder whose name a URI would escape."""
    return open_warehouse(spark, str(shutil.copytree(made_earlier, tmp_path / "ware house#1%20ä")))


@pytest.fixture(params=["our writer", pytest.param("Spark's writer", marks=pytest.mark.cluster)])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "Spark's writer":
        only_by_spark(monkeypatch)


def stored(path: str) -> Definition:
    return DeltaFolder(Path(path)).definition


def upgrade(warehouse: Warehouse, table: Table = TODAY) -> None:
    bring_up_to_date(warehouse.spark, stored(warehouse.path(table)), warehouse.path(table), table)


def rows(warehouse: Warehouse, run_id: str) -> list[Row]:
    found = warehouse.frame(TODAY).where(f"run_id = '{run_id}'")
    return [row.asDict(recursive=True) for row in found.select(*TODAY.names).collect()]


OLD_TODAY = {
    "run_id": "old",
    "day": 3,
    "sky": None,
    "place": {"name": "Lund", "height": None, "owner": None},
    "showers": [{"at": 1, "kind": None, "words": "loud", "drops": None}],
}


def test_old_rows_have_null_in_what_they_lack_before_and_after(warehouse: Warehouse) -> None:
    assert rows(warehouse, "old") == [OLD_TODAY]
    upgrade(warehouse)
    assert rows(warehouse, "old") == [OLD_TODAY]


def test_new_rows_have_what_is_inside_old_columns(writer: None, warehouse: Warehouse) -> None:
    upgrade(warehouse)
    new = NEW | {"showers": [SHOWER]}
    warehouse.replace_rows([new], TODAY, run_id="new")
    assert rows(warehouse, "new") == [new | {"place": {"name": "Lund", "height": 9, "owner": None}}]
    showers = warehouse.frame(TODAY).select("run_id", F.explode("showers").alias("shower"))
    kinds = showers.select("run_id", "shower.kind").collect()
    assert {row["run_id"]: row["kind"] for row in kinds} == {"old": None, "new": "hail"}  # of old files nothing else


def test_constraints_are_those_of_today(writer: None, warehouse: Warehouse) -> None:
    upgrade(warehouse)
    assert not differences(stored(warehouse.path(TODAY)), warehouse.path(TODAY), TODAY)
    checks = stored(warehouse.path(TODAY)).checks
    assert checks.keys() == TODAY.checks.keys()
    for flaw in ({"sky": "plaid"}, {"day": 0}):
        with pytest.raises(WarehouseError, match=r"a row breaks CHECK (known_sky|in_a_year)"):
            warehouse.replace_rows([NEW | flaw], TODAY, run_id="new")


def test_what_is_declared_no_more_may_be_null_and_stays(warehouse: Warehouse) -> None:
    upgrade(warehouse)
    warehouse.replace_by(frame_of(warehouse.spark, [NEW], TODAY), None, TODAY, run_id="new")
    winds = warehouse.frame(TODAY).select("run_id", "wind").collect()
    assert {row["run_id"]: row["wind"] for row in winds} == {"old": "north", "new": None}


def test_an_upgrade_that_was_cut_short_is_finished_and_none_is_made_twice(warehouse: Warehouse) -> None:
    half = replace(TODAY, checks={})
    upgrade(warehouse, half)
    upgrade(warehouse)
    version = warehouse.versions([TODAY])
    upgrade(warehouse)
    assert warehouse.versions([TODAY]) == version
    assert not differences(stored(warehouse.path(TODAY)), warehouse.path(TODAY), TODAY)


def test_two_audits_at_once(writer: None, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("local", "on_spark"):
        monkeypatch.setattr(f"txn_analysis.storage.{place}.warehouse.ALL_TABLES", (TODAY,))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: open_warehouse(warehouse.spark, warehouse.root).create(), range(4)))
    assert not differences(stored(warehouse.path(TODAY)), warehouse.path(TODAY), TODAY)
    assert rows(warehouse, "old") == [OLD_TODAY]


def test_a_table_of_today_costs_no_spark_job_and_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = open_warehouse(spark, str(tmp_path / "warehouse"))
    create_table(spark, warehouse.path(TODAY), TODAY)
    jobs = spark.sparkContext.statusTracker()
    before = jobs.getJobIdsForGroup()
    assert not differences(stored(warehouse.path(TODAY)), warehouse.path(TODAY), TODAY)
    assert warehouse.versions([TODAY]) == {TODAY.name: 0}
    assert jobs.getJobIdsForGroup() == before


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (
            replace(EARLIER, checks={"in_june": at_least("day", 4)}),
            "rows that another version wrote break CHECK in_june",
        ),
        (
            replace(EARLIER, columns=(*EARLIER.columns[:3], Col("place", struct(name=INT), "where"))),
            "place: name is string here, and int in this version",
        ),
        (replace(EARLIER, partition_by=()), "was made by another version, in other partitions"),
    ],
    ids=["constraint", "type", "partitions"],
)
def test_what_cannot_be_changed_is_refused(warehouse: Warehouse, table: Table, what: str) -> None:
    with pytest.raises(WarehouseError) as refused:
        upgrade(warehouse, table)
    assert str(refused.value) == f"{warehouse.path(table)}: {what}. Audit the files again into a new --warehouse"


def test_a_table_of_other_types_is_not_read(warehouse: Warehouse) -> None:
    other = replace(EARLIER, columns=(*EARLIER.columns[:2], Col("wind", BIGINT, "in m/s")))
    with pytest.raises(WarehouseError, match="wind is string here, and bigint in this version"):
        warehouse.frame(other)


def test_inputs_are_listed_though_their_sections_say_less(writer: None, spark: SparkSession, tmp_path: Path) -> None:
    less = struct(**{f.name: f.type for f in SECTION if f.name not in {"stated", "kind"}})
    columns = tuple(replace(c, type=array(less)) if c.name == "sections" else c for c in INPUTS.columns)
    earlier = replace(INPUTS, columns=tuple(c for c in columns if c.name != "problem"))
    warehouse = open_warehouse(spark, str(tmp_path / "warehouse"))
    create_table(spark, warehouse.path(earlier), earlier)
    old = row_of(earlier, input_id="old", sections=[{"section_index": 0, "topic": "orders"}])
    warehouse.insert([old], earlier, [Alike(("input_id",))])
    (row,) = warehouse.listed(INPUTS)
    section = row["sections"][0]
    assert (row["problem"], section["stated"], section["topic"]) == (None, None, "orders")
    warehouse.create()
    deeper = old | {"sections": [{"section_index": 0, "topic": "orders", "kind": "log"}], "ingest_id": "deeper"}
    deepen_inputs(warehouse, [deeper])  # Spark writes the file anew, with the fields in the table's order
    commit_inputs(warehouse, [deeper | {"input_id": "new"}], held=[])
    found = {row["input_id"]: row["sections"][0]["kind"] for row in warehouse.listed(INPUTS)}
    assert found == {"old": "log", "new": "log"}
