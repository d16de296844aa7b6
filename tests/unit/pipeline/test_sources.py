"""Files as frames of Spark's own reader, without a warehouse: the rows are those of an audit's tables."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType

from tests.tools.repository import CASES
from tests.tools.s3_server import Bucket
from tests.tools.sessions import no_session, opened
from tests.tools.table_rows import listed, plain_rows
from txn_analysis import sources
from txn_analysis.errors import InputError
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import INPUTS, LOG_BATCHES, PRODUCER_SNAPSHOTS, REJECTS, TRANSACTION_STATES, Table
from txn_analysis.warehouse.spark_tasks import spark_schema

pytestmark = pytest.mark.quick

DUMPS = CASES / "kafka-4.2/capture-2"
LOG_DIRS = CASES / "kafka-4.2/capture-1/log-dirs"
EXPORT = CASES / "kafka-2.8/console"
DUMP = CASES / "kafka-4.2/capture-1/segments/n1.orders-0.txt"
READ = (
    ("kafka_dump", DUMPS / "segments", LOG_BATCHES),
    ("kafka_dump", DUMPS / "transaction-state", LOG_BATCHES),
    ("kafka_transaction_state", DUMPS / "transaction-state", TRANSACTION_STATES),
    ("kafka_producer_snapshot", DUMPS / "producer-snapshots", PRODUCER_SNAPSHOTS),
    ("kafka_transaction_state", EXPORT, TRANSACTION_STATES),
    ("kafka_log_dir", LOG_DIRS, LOG_BATCHES),
    ("kafka_transaction_state", LOG_DIRS, TRANSACTION_STATES),
    ("kafka_producer_snapshot", CASES / "kafka-4.2-three-nodes/capture-2/log-dirs/n2", PRODUCER_SNAPSHOTS),
)
"""Formats, files that they read, and the table of an audit that has the same rows."""


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    sources.register(spark)


def audited(folder: Path, path: Path, table: Table) -> list[str]:
    """What an audit has in a table, with paths in place of ids."""
    settings = Settings(warehouse=str(folder), engine=EngineName.LOCAL, skip_unrecognised=True)
    pipeline.ingest(no_session, [str(path)], settings)
    stored = opened(folder)
    paths = {row["input_id"]: row["path"] for row in listed(stored, INPUTS)}
    named = ({"path": paths[row["input_id"]]} | row for row in listed(stored, table))
    return sorted(map(_as_text, named))


def rows_of(frame: DataFrame, table: Table) -> list[str]:
    """The rows of a frame whose columns are those of a table, with paths in place of ids."""
    types = {field.name: field.dataType for field in spark_schema(table) if field.name not in {"ingest_id", "input_id"}}
    assert {field.name: field.dataType for field in frame.schema} == {"path": StringType()} | types
    return sorted(map(_as_text, plain_rows(frame.toArrow().to_batches())))


def _as_text(row: dict[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if name not in {"ingest_id", "input_id"}))


@pytest.mark.parametrize(
    ("name", "path", "table"), READ, ids=lambda value: getattr(value, "name", str(value).rpartition("cases/")[2])
)
def test_rows_are_those_of_an_audits_table(
    spark: SparkSession, tmp_path: Path, name: str, path: Path, table: Table
) -> None:
    expected = audited(tmp_path / "warehouse", path, table)
    assert expected
    assert rows_of(spark.read.format(name).load(str(path)), table) == expected


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A dump in which a line of a batch is broken, one that a copy cut, and a file of something else."""
    folder = tmp_path / "damaged"
    folder.mkdir()
    lines = DUMP.read_bytes().splitlines(keepends=True)
    (folder / "broken.txt").write_bytes(b"".join([*lines[:9], lines[9].replace(b"baseOffset", b"base"), *lines[10:]]))
    (folder / "cut.txt").write_bytes(DUMP.read_bytes()[:-40])
    (folder / "notes.txt").write_text("what the broker said that night\n")
    return folder


def test_what_was_not_understood_comes_as_rows_where_it_is_asked_for(
    spark: SparkSession, tmp_path: Path, damaged: Path
) -> None:
    rejects = spark.read.format("kafka_dump").option("rejects", "true").load(str(damaged))
    found = rows_of(rejects, REJECTS)
    assert found == audited(tmp_path / "warehouse", damaged, REJECTS)
    assert all(any(f"damaged/{name}" in row for row in found) for name in ("broken.txt", "cut.txt", "notes.txt"))


def test_a_file_that_gives_no_byte_of_text_has_a_row_that_says_why(spark: SparkSession, damaged: Path) -> None:
    (damaged / "empty.txt").touch()
    (damaged / "cut.txt.gz").write_bytes(gzip.compress(DUMP.read_bytes())[:-2000])
    rejects = spark.read.format("kafka_dump").option("rejects", "true").load(str(damaged))
    reasons = {row["path"].rpartition("/")[2]: row["reason"] for row in rejects.where("length_bytes = 0").collect()}
    assert reasons.keys() == {"empty.txt", "cut.txt.gz"}
    assert "the file is empty" in reasons["empty.txt"]
    assert "the gzip stream is cut or damaged" in reasons["cut.txt.gz"]


def test_a_file_that_is_not_understood_fails_the_query_by_its_name_and_byte(spark: SparkSession, damaged: Path) -> None:
    with pytest.raises(PySparkException, match=r"damaged/cut\.txt: byte \d+: the text ends inside this line"):
        spark.read.format("kafka_dump").load(str(damaged / "cut.txt")).count()


def test_a_format_says_of_one_file_that_it_reads_another_kind(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match=r"kafka_transaction_state reads nothing\. Read it by kafka_dump$"):
        spark.read.format("kafka_transaction_state").load(str(DUMP)).count()


def test_a_format_says_of_a_folder_that_all_of_it_is_of_another_kind(spark: SparkSession) -> None:
    with pytest.raises(
        PySparkException,
        match=r"log-dirs/.*: log_dir, of which kafka_dump reads nothing\. Read it by kafka_(log_dir|trans)",
    ):
        spark.read.format("kafka_dump").load(str(LOG_DIRS)).count()


def test_a_path_that_leads_nowhere_is_named_when_the_query_is_planned(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="/no/such/folder: no such file or folder"):
        spark.read.format("kafka_log_dir").load("/no/such/folder").count()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"reject": "true"}, "there is no option reject"), ({"rejects": "yes"}, "option rejects is true or false")],
)
def test_an_option_that_does_not_exist_is_named(spark: SparkSession, options: dict[str, str], words: str) -> None:
    with pytest.raises(PySparkException, match=words):
        spark.read.format("kafka_dump").options(**options).load(str(DUMP)).count()


def test_options_name_the_partition_whose_sections_are_read(spark: SparkSession) -> None:
    read = spark.read.format("kafka_dump").option("topic", "orders").option("partition", "1")
    found = rows_of(read.load(str(DUMPS / "segments")), LOG_BATCHES)
    whole = rows_of(spark.read.format("kafka_dump").load(str(DUMPS / "segments")), LOG_BATCHES)
    assert found == [row for row in whole if "('topic', 'orders')" in row and "('partition', 1)" in row]
    assert 0 < len(found) < len(whole)


def test_the_state_of_one_partition_is_read_by_its_number() -> None:
    place, state = str(DUMPS / "transaction-state"), "kafka_transaction_state"
    whole, one = rows_without_spark(place, state), rows_without_spark(place, state, partition="1")
    assert one == [row for row in whole if "__transaction_state-1.txt" in row]
    assert 0 < len(one) < len(whole)


def test_planning_reads_no_file(tmp_path: Path) -> None:
    """Spark plans a query more than once, on the driver alone."""
    folder = shutil.copytree(LOG_DIRS, tmp_path / "log-dirs")
    names = [path for path in folder.rglob("*") if path.is_file()]
    source = sources.source_of("kafka_log_dir")({"path": str(folder)})
    for path in names:
        path.write_bytes(b"")
        path.touch()
    assert len(source.reader(source.schema()).partitions()) == 1
    shares = source.reader(source.schema()).partitions()
    assert {file.path for share in shares for file in share.files} == {str(path) for path in names}  # type: ignore[attr-defined]  # Spark's type has none


def rows_without_spark(place: str, name: str = "kafka_log_dir", **options: str) -> list[str]:
    """What the tasks of a read would give, in this process."""
    source = sources.source_of(name)({"path": place} | options)
    reader = source.reader(source.schema())
    batches: Any = (batch for share in reader.partitions() for batch in reader.read(share))
    return sorted(repr(row).replace(place, "") for batch in batches for row in batch.to_pylist())


def test_files_in_a_bucket_have_the_rows_of_those_on_a_disk(bucket: Bucket) -> None:
    bucket.put_folder(LOG_DIRS, "copies")
    assert rows_without_spark("s3://kept/copies") == rows_without_spark(str(LOG_DIRS))


@pytest.mark.parametrize("given", ["log-dirs", "log-di*", "./log-dirs"])
def test_a_relative_path_is_the_drivers_wherever_a_task_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """Executors of a cluster have working folders of their own."""
    (driver := tmp_path / "driver [1]").mkdir()
    (driver / "log-dirs").symlink_to(LOG_DIRS)
    monkeypatch.chdir(driver)
    source = sources.source_of("kafka_transaction_state")({"path": given})
    reader = source.reader(source.schema())
    shares = reader.partitions()
    monkeypatch.chdir(tmp_path)
    batches: Any = (batch for share in shares for batch in reader.read(share))
    paths = {row["path"] for batch in batches for row in batch.to_pylist()}
    assert paths
    assert all(path.startswith(f"{driver}/log-dirs/") for path in paths)


def test_small_shares_know_by_their_neighbours_what_their_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file of a log directory in a task of its own: the rows are those of one task."""
    together = rows_without_spark(str(LOG_DIRS))
    monkeypatch.setattr(sources, "_SHARE_BYTES", 1)
    assert rows_without_spark(str(LOG_DIRS)) == together


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        ("kafka_dump", LOG_DIRS, "log_dir"),
        ("kafka_transaction_state", DUMPS / "segments", "log_dump"),
        ("kafka_log_dir", DUMPS / "segments", "log_dump"),
    ],
)
def test_a_folder_of_many_shares_that_is_of_another_kind_is_no_folder_without_rows(
    monkeypatch: pytest.MonkeyPatch, name: str, path: Path, kind: str
) -> None:
    monkeypatch.setattr(sources, "_SHARE_BYTES", 1)
    with pytest.raises(InputError, match=f"/{path.name}/.*: {kind}, of which {name} reads nothing"):
        rows_without_spark(str(path), name)


def test_what_only_the_last_share_has_is_no_error_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows_without_spark(str(LOG_DIRS), "kafka_transaction_state")
    monkeypatch.setattr(sources, "_SHARE_BYTES", 1)
    assert rows_without_spark(str(LOG_DIRS), "kafka_transaction_state") == whole
    assert whole


def test_a_schema_names_the_columns_that_are_read(spark: SparkSession) -> None:
    whole = spark.read.format("kafka_dump").load(str(DUMPS / "segments"))
    few = spark.read.format("kafka_dump").schema("base_offset BIGINT, path STRING").load(str(DUMPS / "segments"))
    assert few.columns == ["base_offset", "path"]
    names = [field.simpleString() for field in few.schema]
    assert names == ["base_offset:bigint", "path:string"]
    expected = whole.toArrow().select(few.columns).to_pylist()
    assert sorted(map(repr, few.toArrow().to_pylist())) == sorted(map(repr, expected))
    with pytest.raises(PySparkException, match="kafka_dump: there is no column key"):
        spark.read.format("kafka_dump").schema("key STRING").load(str(DUMP)).count()


@pytest.mark.parametrize("asked", ["TIMESTAMP_NTZ", "TIMESTAMP", "INT"])
def test_a_schema_that_would_change_values_is_refused(spark: SparkSession, asked: str) -> None:
    with pytest.raises(PySparkException, match=f"is bigint, not {asked.lower()}"):
        spark.read.format("kafka_dump").schema(f"max_timestamp_ms {asked}").load(str(DUMP)).count()
