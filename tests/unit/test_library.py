"""The library in a session that somebody else made: same answers, and nothing of it is left there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from pyspark.core.rdd import RDD
from pyspark.testing import assertDataFrameEqual

import txn_analysis
from tests.tools.repository import ROOT
from txn_analysis import AuditError, Settings, abort_plan, audit, captures, findings, ingest, load_report, read
from txn_analysis.engine import memory
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.spark.jobs import running
from txn_analysis.tables import ALL_TABLES

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from txn_analysis.report.model import AuditReport
    from txn_analysis.spark.jobs import Spark

CAPTURE = ROOT / "data/cases/kafka-4.2/capture-1"
PARTS = [CAPTURE / "segments", CAPTURE / "transaction-state"]
# Taken over, some of these make an audit fail, some read less than there is, some make it take minutes.
OWN_WAYS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.caseSensitive": "true",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.databricks.delta.snapshotPartitions": "50",
    "spark.databricks.delta.properties.defaults.columnMapping.mode": "name",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
}


def settings(folder: Path) -> Settings:
    return Settings(warehouse=str(folder), transaction_state_partitions=4, max_clock_skew_ms=0)


@pytest.fixture(scope="module")
def theirs(spark: SparkSession) -> SparkSession:
    """A session with settings of its own, which has run something before."""
    session = spark.newSession()
    for name, value in OWN_WAYS.items():
        session.conf.set(name, value)
    session.sql("SELECT 1").collect()
    return session


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("library") / "warehouse"


@pytest.fixture(scope="module")
def report(theirs: SparkSession, folder: Path) -> AuditReport:
    before = left_in(theirs)
    report = audit(theirs, PARTS, settings(folder))
    assert left_in(theirs) == before
    return report


def left_in(spark: SparkSession) -> dict[str, Any]:
    """All that a call could leave behind."""
    return {
        "settings": dict(spark.conf.getAll),
        "views": [table.name for table in spark.catalog.listTables()],
        "environment": dict(spark.sparkContext.environment),
        "toDF": RDD.toDF,
    }


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("", marks=pytest.mark.cluster),
        "import txn_analysis.pipeline.steps, txn_analysis.pipeline.ingest, txn_analysis.plan.abort_plan",
    ],
)
def test_a_public_name_is_no_module_whatever_was_imported_before(before: str) -> None:
    """Python binds a module that is imported in its package: what a name is must not depend on those before it."""
    names = [*txn_analysis.__all__, *reversed(txn_analysis.__all__)]
    lines = [before, "import txn_analysis", *[f"print('{name}', type(txn_analysis.{name}).__name__)" for name in names]]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = [line.split() for line in done.stdout.splitlines()]
    assert [name for name, _ in found] == names
    assert [name for name, kind in found if kind == "module"] == ["sources"] * 2  # which is one, for users


def test_nothing_heavy_is_imported_before_it_is_asked_for() -> None:
    program = "import sys, txn_analysis; print({'pyspark', 'pydantic', 'numba'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_name_that_is_not_there_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'txn_analysis' has no attribute 'nosuch'"):
        txn_analysis.nosuch  # type: ignore[attr-defined]  # noqa: B018


def test_types_are_shipped() -> None:
    assert (ROOT / "txn_analysis/py.typed").exists()


def test_a_session_with_ways_of_its_own_gets_the_same_answer(
    spark: SparkSession, theirs: SparkSession, report: AuditReport, folder: Path, tmp_path: Path
) -> None:
    usual = audit(spark, PARTS, settings(tmp_path / "warehouse"))
    assert usual.findings
    assert report.findings == usual.findings
    assertDataFrameEqual(findings(spark, folder), findings(spark, tmp_path / "warehouse"))


def test_without_a_session_this_process_answers_the_same(report: AuditReport, tmp_path: Path) -> None:
    alone = audit(None, PARTS, settings(tmp_path / "warehouse"))
    assert alone.findings == report.findings
    assert load_report(None, settings(tmp_path / "warehouse")).findings == report.findings
    assert [one.name for one in captures(None, tmp_path / "warehouse")] == [alone.run.capture]


def test_without_a_session_more_than_this_process_may_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MEMORY_BYTES", -1)
    with pytest.raises(AuditError, match="give a session of Spark in place of None"):
        audit(None, PARTS, settings(tmp_path / "warehouse"))


def test_what_was_ingested_is_read_before_any_audit(spark: SparkSession, tmp_path: Path) -> None:
    ours = settings(tmp_path).model_copy(update={"capture": "tonight"})
    ingest(spark, PARTS, ours)
    batches = read(None, tmp_path, "log_batches", capture="tonight")
    assert len(batches) == read(spark, tmp_path, "log_batches", capture="tonight").count() > 0
    inputs = read(None, tmp_path, "inputs", capture="tonight")
    assert {*batches["input_id"].to_pylist()} <= {*inputs["input_id"].to_pylist()}
    with pytest.raises(AuditError, match="table findings: its rows are a run's: name a run in place of capture"):
        read(None, tmp_path, "findings", capture="tonight")
    with pytest.raises(AuditError, match="cluster default has no capture yesterday yet"):
        read(None, tmp_path, "inputs", capture="yesterday")


def test_frames_belong_to_the_session_that_asked(theirs: SparkSession, report: AuditReport, folder: Path) -> None:
    found = findings(theirs, folder)
    found.createOrReplaceTempView("found_now")
    assert theirs.sql("SELECT count(*) AS n FROM found_now").collect()[0]["n"] == len(report.findings)
    theirs.catalog.dropTempView("found_now")


def test_the_latest_run_is_meant_unless_another_is_named(
    theirs: SparkSession, report: AuditReport, folder: Path
) -> None:
    run_id, count = report.run.run_id, len(report.findings)
    assert findings(theirs, folder, run_id=run_id).count() == findings(theirs, folder, every_run=True).count() == count
    assert abort_plan(theirs, folder).count() == sum(f.verdict == "hanging" for f in report.findings)
    told = load_report(theirs, settings(folder))
    assert told.run.engine is None  # the tables do not say
    assert told.model_copy(update={"run": report.run}) == report
    with pytest.raises(AuditError, match="no run nosuch here: the last ones are"):
        findings(theirs, folder, run_id="nosuch")
    with pytest.raises(AuditError, match="no run of cluster nosuch yet"):
        abort_plan(theirs, folder, cluster="nosuch")


def in_order(rows: pa.Table) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows.to_pylist())


def test_any_table_of_a_run_is_read_without_a_session(report: AuditReport, folder: Path) -> None:
    """And no row of another one in the warehouse, which is of a cluster with other topics."""
    other = ROOT / "data/cases/kafka-4.3-wrong-order/capture-1"
    elsewhere = settings(folder).model_copy(update={"cluster": "elsewhere"})
    audit(None, [other / "shallow", other / "state"], elsewhere)
    tables = {table.name: read(None, folder, table.name, report.run.run_id) for table in ALL_TABLES}
    assert [table.name for table in ALL_TABLES if tables[table.name].schema.names != table.arrow_schema.names] == []
    assert tables["findings"].num_rows == len(report.findings)
    assert tables["inputs"].num_rows == len(report.inputs)
    assert {*tables["log_batches"]["topic"].to_pylist()} == {*tables["partition_health"]["topic"].to_pylist()}
    assert {*tables["ended_transactions"]["outcome"].to_pylist()} == {"COMMIT", "ABORT"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one.name, marks=() if one.name == "log_batches" else pytest.mark.cluster) for one in ALL_TABLES],
)
def test_a_session_reads_the_rows_that_are_read_without_one(
    theirs: SparkSession, report: AuditReport, folder: Path, name: str
) -> None:
    run_id = report.run.run_id
    frame = read(theirs, folder, name, run_id).toArrow()
    assert in_order(frame) == in_order(read(None, folder, name, run_id))


def test_a_table_that_is_not_there_is_refused_with_those_that_are(report: AuditReport, folder: Path) -> None:
    with pytest.raises(
        AuditError, match=r"^table nosuch: there is no such table; there are abort_plan, .*, transactions$"
    ):
        read(None, folder, "nosuch", report.run.run_id)
    with pytest.raises(AuditError, match="no run nosuch here: the last ones are"):
        read(None, folder, "findings", "nosuch")


def test_one_path_is_one_path(spark: SparkSession, tmp_path: Path) -> None:
    assert ingest(spark, str(PARTS[1]), settings(tmp_path / "text")).input_count > 0
    assert ingest(spark, PARTS[1], settings(tmp_path / "path")).input_count > 0
    with pytest.raises(AuditError, match=r"^/nosuch: no such file or folder"):
        audit(spark, "/nosuch", settings(tmp_path / "none"))


def test_after_an_error_the_session_is_as_it_was(
    theirs: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(spark: Spark, *_: object) -> None:
        running(spark).createDataFrame([(1,)], "a INT").collect()
        raise OSError("it failed in between")

    monkeypatch.setattr(pipeline, "audit", fail)
    before = left_in(theirs)
    with pytest.raises(Exception, match="it failed in between"):
        audit(theirs, PARTS, settings(tmp_path))
    assert left_in(theirs) == before


def test_what_is_no_session_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match=r"^the first argument is a session of Spark, or None; this is '/audit'$"):
        findings("/audit", tmp_path)  # type: ignore[arg-type] # the session was forgotten


def test_a_session_that_names_delta_without_its_jars_is_refused_in_one_line(
    theirs: SparkSession, report: AuditReport, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark then fails every query: here a stand-in for its reader does."""

    def fails(_reader: object) -> NoReturn:
        raise RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure the provider")

    monkeypatch.setattr("txn_analysis.warehouse.spark_tasks.has_delta", lambda _spark: True)
    monkeypatch.setattr(type(theirs), "read", property(fails))
    with pytest.raises(AuditError, match=r": the session's settings name Delta, and Delta's jars are missing\. Start"):
        findings(theirs, folder)


def test_a_session_of_an_older_spark_is_refused_in_one_line(tmp_path: Path) -> None:
    class Older:
        """Has no `applyInArrow` of groups."""

        version = "3.5.6"

    with pytest.raises(AuditError, match=r"^this is Spark 3\.5\.6: give a session of Spark 4\.0 or newer$"):
        findings(Older(), os.fspath(tmp_path))  # type: ignore[arg-type]
