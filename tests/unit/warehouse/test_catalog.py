"""The tables in a catalog that outlives the session: a Hive metastore on Derby, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tools.scene import EARLIER, LATER
from tests.tools.sessions import no_session, opened
from txn_analysis import register
from txn_analysis.errors import ConfigError
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings
from txn_analysis.tables import ALL_TABLES, FINDINGS, LOG_BATCHES
from txn_analysis.warehouse.delta_tables import Warehouse

OF_HIVE = """
    --conf spark.sql.catalogImplementation=hive
    --conf spark.sql.warehouse.dir={0}/hive
    --conf spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:derby:;databaseName={0}/metastore;create=true
    --conf spark.hadoop.datanucleus.schema.autoCreateAll=true
    pyspark-shell
"""

SESSION = """
import sys
from txn_analysis import register
from txn_analysis.errors import AuditError
from txn_analysis.spark.session import session

warehouse, spark = sys.argv[1], session("local[2]")
"""
ASK = """
spark.sql("CREATE TABLE audit.teams AS SELECT 'refunds' AS topic, 'shop' AS team")
print("views", len(register(spark, warehouse, "audit")))
print("findings", spark.sql("SELECT count(*) FROM audit.findings").collect()[0][0])
print("of files", spark.sql("SELECT count(*) FROM audit.findings_files").collect()[0][0])
print("joined", spark.sql("SELECT count(*) FROM audit.log_batches JOIN audit.teams USING (topic)").collect()[0][0])
print("ended", spark.sql("SELECT count(*) FROM audit.ended_transactions").collect()[0][0])
described = spark.sql("DESCRIBE TABLE audit.findings_files").collect()
print("uncommented", sum(not row["comment"] for row in described if row["col_name"] == "verdict"))
comment = [row["data_type"] for row in spark.sql("DESCRIBE EXTENDED audit.findings").collect() if row[0] == "Comment"]
print("view", comment)
"""
VIEWED = """
spark.sql("CREATE SCHEMA IF NOT EXISTS viewed")
spark.sql("CREATE VIEW viewed.findings_files AS SELECT 1 AS one")
try:
    register(spark, warehouse, "viewed")
except AuditError as error:
    print("refused", error)
"""
ELSEWHERE = """
try:
    register(spark, warehouse, "audit")
except AuditError as error:
    print("refused", error)
"""


def ran(folder: Path, *words: str | Path) -> str:
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": " ".join(OF_HIVE.format(folder).split())}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env=environment, cwd=folder
    )
    assert done.returncode < 2, done.stderr[-3000:]
    return done.stdout


def batches_of(warehouse: Warehouse, topic: str) -> int:
    return sum(row["topic"] == topic for row in warehouse.rows(LOG_BATCHES, "topic").to_pylist())


def test_comments_of_columns_fit_into_a_hive_metastore() -> None:
    """`COLUMNS_V2.COMMENT` is a VARCHAR(256); what is longer it refuses, ten times, on stderr."""
    assert not [(table.name, one.name) for table in ALL_TABLES for one in table.columns if len(one.comment) > 256]


@pytest.mark.parametrize("schema", ["my-audit", "nocat.audit"])
def test_a_schema_that_the_catalog_does_not_take_is_refused_by_its_name(
    spark: SparkSession, tmp_path: Path, schema: str
) -> None:
    pipeline.audit(no_session, EARLIER, Settings(warehouse=str(tmp_path), transaction_state_partitions=4))
    with pytest.raises(ConfigError, match=rf"^schema {schema}: the session's catalog does not take it: \[.*Give "):
        register(spark, tmp_path, schema)


@pytest.mark.cluster
def test_tables_are_registered_once_and_ask_as_sql_in_the_next_session(tmp_path: Path) -> None:
    folder, warehouse, other = tmp_path / "catalog", tmp_path / "warehouse", tmp_path / "other"
    folder.mkdir()
    words = ("--transaction-state-partitions", "4", "--engine", "local", "--register", "audit")
    ran(folder, "-m", "txn_analysis", "audit", *EARLIER, "--warehouse", warehouse, *words)
    stored = opened(warehouse)
    rows = stored.rows(FINDINGS)
    gone = rows.set_column(0, "run_id", [["run-that-was-killed"] * len(rows)])
    stored.replace(gone.cast(FINDINGS.arrow_schema).to_batches(), FINDINGS, run_id="run-that-was-killed")
    pipeline.audit(no_session, LATER, Settings(warehouse=str(other), transaction_state_partitions=4))

    said = ran(folder, "-c", SESSION + ASK, warehouse).splitlines()
    assert "views 16" in said
    assert f"findings {len(rows)}" in said
    assert f"of files {2 * len(rows)}" in said
    assert f"joined {batches_of(stored, 'refunds')}" in said
    assert "uncommented 0" in said
    assert "view ['Of all complete audits. One row is one open transaction in one run.']" in said
    assert "findings_files`: it is there, and is a view, not the table of " in ran(
        folder, "-c", SESSION + VIEWED, warehouse
    )
    refused = ran(folder, "-c", SESSION + ELSEWHERE, other)
    assert f"is of file:{warehouse}/" in refused
    assert f"not of {other}/" in refused
