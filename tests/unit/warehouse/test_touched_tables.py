"""Tables in a lakehouse: what a colleague does to one by Delta in Spark, then an audit, then `findings`."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.tools.scene import EARLIER, LATER, Tables, differences, settings, tables
from tests.tools.sessions import no_session, opened
from txn_analysis import findings, read
from txn_analysis.errors import WarehouseError
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.tables import (
    ABORT_PLAN,
    FINDINGS,
    INPUTS,
    LOG_BATCHES,
    PARTITION_HEALTH,
    RUNS,
)

READ = (FINDINGS, ABORT_PLAN, PARTITION_HEALTH, LOG_BATCHES)
TOUCHED = (FINDINGS, INPUTS)
"""One that is written slice by slice, and one that grows row by row."""
PROPERTY = "ALTER TABLE {table} SET TBLPROPERTIES ('delta.%s' = '%s')"
VECTORS, NO_VECTORS = (PROPERTY % ("enableDeletionVectors", is_on) for is_on in ("true", "false"))
# VACUUM may take what was taken out a moment ago; and a few files need no 10,000 tasks, or rows 200.
OF_SESSION = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
}
GOES_ON = {
    "deletion vectors": [VECTORS],
    "deletion vectors on and off": [VECTORS, NO_VECTORS],
    "OPTIMIZE, ZORDER, VACUUM": [
        "OPTIMIZE {table} ZORDER BY ({column})",
        "OPTIMIZE {table}",
        "VACUUM {table} RETAIN 0 HOURS",
    ],
    "ADD COLUMN, change feed, checkpoints of version 2": [
        "ALTER TABLE {table} ADD COLUMN (team STRING COMMENT 'whom to ask')",
        PROPERTY % ("enableChangeDataFeed", "true"),
        PROPERTY % ("checkpointPolicy", "v2"),
    ],
}
REFUSED = {
    "columnMapping": [PROPERTY % ("columnMapping.mode", "name")],
    "rowTracking": [PROPERTY % ("enableRowTracking", "true")],
    "inCommitTimestamp": [PROPERTY % ("enableInCommitTimestamps", "true")],
    "checkpointProtection": [VECTORS, NO_VECTORS, "ALTER TABLE {table} DROP FEATURE deletionVectors"],
}


@pytest.fixture(autouse=True)
def of_session(spark: SparkSession) -> Iterator[None]:
    for name, value in OF_SESSION.items():
        spark.conf.set(name, value)
    yield
    for name in OF_SESSION:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse after its first night."""
    folder = tmp_path_factory.mktemp("lakehouse") / "warehouse"
    audit(folder, EARLIER)
    return folder


@pytest.fixture(scope="module")
def second_night(audited: Path, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Tables:
    """All of its tables after the second one, which nobody touched in between."""
    folder = shutil.copytree(audited, tmp_path_factory.mktemp("untouched") / "warehouse")
    audit(folder, LATER)
    return tables(spark, folder)


@pytest.fixture
def warehouse(audited: Path, tmp_path: Path) -> Path:
    return shutil.copytree(audited, tmp_path / "warehouse")


def audit(warehouse: Path, paths: list[str]) -> None:
    pipeline.audit(no_session, paths, settings(warehouse))


def touch(spark: SparkSession, warehouse: Path, statements: list[str]) -> None:
    for table in TOUCHED:
        for statement in statements:
            spark.sql(statement.format(table=f"delta.`{warehouse}/{table.name}`", column=table.names[1])).collect()


def let_two_days_pass(warehouse: Path) -> None:
    """Whoever drops a feature has to wait for 24 hours: by the times of the log's files."""
    for table in TOUCHED:
        for file in (warehouse / table.name / "_delta_log").iterdir():
            before_ns = file.stat().st_mtime_ns - 2 * 86_400 * 10**9
            os.utime(file, ns=(before_ns, before_ns))


def in_order(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.parametrize("statements", GOES_ON.values(), ids=GOES_ON)
def test_audits_and_findings_go_on(
    spark: SparkSession, warehouse: Path, second_night: Tables, statements: list[str]
) -> None:
    before = in_order(findings(spark, warehouse))
    first_run = findings(spark, warehouse).collect()[0]["run_id"]
    touch(spark, warehouse, statements)
    assert in_order(findings(spark, warehouse)) == before
    audit(warehouse, LATER)
    assert differences(tables(spark, warehouse), second_night) == []
    assert findings(spark, warehouse, every_run=True).count() > len(before) > 0
    assert in_order(findings(spark, warehouse, run_id=first_run)) == before


def test_the_job_that_tries_a_table_by_delta_says_so_in_sparks_ui(spark: SparkSession, warehouse: Path) -> None:
    findings(spark, warehouse)
    jobs: Any = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    newest = max((jobs.apply(at) for at in range(jobs.size())), key=lambda job: job.jobId())
    assert newest.description().get() == "read: look whether Delta in Spark reads findings"


@pytest.mark.parametrize("feature", REFUSED)
def test_what_is_not_written_is_named_with_what_undoes_it(
    spark: SparkSession, warehouse: Path, second_night: Tables, feature: str
) -> None:
    before = in_order(findings(spark, warehouse))
    touch(spark, warehouse, REFUSED[feature])
    let_two_days_pass(warehouse)
    assert in_order(findings(spark, warehouse)) == before
    for _ in TOUCHED:
        with pytest.raises(WarehouseError, match=feature) as refused:
            audit(warehouse, LATER)
        assert "at the same time" not in str(refused.value)
        for statement in statements_in(str(refused.value)):
            spark.sql(statement).collect()
    audit(warehouse, LATER)
    assert differences(tables(spark, warehouse), second_night) == []


def statements_in(message: str) -> list[str]:
    """What a message says to type into Spark."""
    return re.findall(r"((?:ALTER|REORG) TABLE .+?)(?=, then|, which|\. Or)", message)


def test_a_feature_that_nobody_knows_here_is_no_race(spark: SparkSession, warehouse: Path) -> None:
    touch(spark, warehouse, [PROPERTY % ("enableTypeWidening", "true")])
    with pytest.raises(WarehouseError, match=r"a feature that is not written here .*TypeWidening"):
        audit(warehouse, LATER)


def test_rows_deleted_beside_the_files_stop_what_needs_them_alone(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    health = f"delta.`{warehouse}/{PARTITION_HEALTH.name}`"
    spark.sql(VECTORS.format(table=health))
    gone = read(spark, warehouse, PARTITION_HEALTH.name).orderBy("topic", "partition").first()
    assert gone is not None
    count = read(spark, warehouse, PARTITION_HEALTH.name).count()
    spark.sql(f"DELETE FROM {health} WHERE topic = '{gone['topic']}' AND partition = {gone['partition']}").collect()

    # Delta reads what is left, as does whoever needs another table.
    assert read(spark, warehouse, PARTITION_HEALTH.name).count() == count - 1
    assert findings(spark, warehouse).count() == opened(warehouse).rows(FINDINGS).num_rows
    with pytest.raises(WarehouseError, match=r"partition_health: .*deletionVectors") as refused:
        audit(warehouse, LATER)
    for statement in statements_in(str(refused.value)):
        spark.sql(statement).collect()
    audit(warehouse, LATER)
    assert read(None, warehouse, PARTITION_HEALTH.name).num_rows > count


def test_frames_are_read_by_delta_where_the_session_has_it(spark: SparkSession, warehouse: Path) -> None:
    audit(warehouse, LATER)
    touch(spark, warehouse, GOES_ON["OPTIMIZE, ZORDER, VACUUM"])
    first_run = min(read_runs(warehouse), key=lambda run: run["run_number"])["run_id"]
    for table in READ:
        frame = read(spark, warehouse, table.name, first_run)
        assert reads_parquet(frame)
        held = read(None, warehouse, table.name, first_run)
        assert sorted(map(repr, frame.toArrow().to_pylist())) == sorted(map(repr, held.to_pylist()))
        assert held.num_rows or table is ABORT_PLAN


def read_runs(warehouse: Path) -> list[dict[str, Any]]:
    held: list[dict[str, Any]] = opened(warehouse).rows(RUNS).to_pylist()
    return held


def reads_parquet(frame: DataFrame) -> bool:
    """Java reads the data files; else Python does, in tasks of ours."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return "FileScan parquet" in plan and "MapInArrow" not in plan


def test_a_frame_stays_what_it_was_when_it_was_asked_for(spark: SparkSession, warehouse: Path) -> None:
    every = findings(spark, warehouse, every_run=True)
    plan = read(spark, warehouse, ABORT_PLAN.name)
    counts = every.count(), plan.count()
    audit(warehouse, LATER)
    assert (every.count(), plan.count()) == counts
    assert findings(spark, warehouse, every_run=True).count() > counts[0]


def test_history_and_streams_of_findings_are_deltas(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    """Time travel, the change feed, and a stream that a night adds rows to."""
    path = f"{warehouse}/{FINDINGS.name}"
    touch(spark, warehouse, [PROPERTY % ("enableChangeDataFeed", "true")])
    stream = spark.readStream.format("delta").load(path).writeStream.format("memory").queryName("followed")
    before = spark.read.format("delta").load(path).count()
    version = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").agg({"version": "max"}).collect()[0][0]
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        assert spark.table("followed").count() == before
        audit(warehouse, LATER)
        audit(warehouse, LATER)  # the same again writes nothing
        query.processAllAvailable()
        after = spark.read.format("delta").load(path).count()
        assert spark.table("followed").count() == after > before
    finally:
        query.stop()
    assert spark.read.format("delta").option("versionAsOf", version).load(path).count() == before
    changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version + 1)
    assert changes.load(path).where("_change_type = 'insert'").count() == after - before
