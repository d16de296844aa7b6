"""The pipeline by Spark's tasks, step by step as in `jobs/`: the tables are those of the command's own process.

`make test` runs it: a newcomer sees Spark at work. Clusters, Spark Connect and other versions are in
`tests/systems/spark`.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tools.repository import CASES
from tests.tools.scene import Tables, tables
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import ALL_TABLES

pytestmark = pytest.mark.quick

# Hanging in four ways, and a pending commit. `make cluster` and `make test-spark` compare every other capture.
CAPTURE = [str(CASES / "kafka-4.2/capture-1" / part) for part in ("segments", "transaction-state")]


def settings(folder: Path, engine: EngineName) -> Settings:
    own = Settings(transaction_state_partitions=4, max_clock_skew_ms=0, transaction_state_complete=True)
    return own.model_copy(update={"warehouse": str(folder), "engine": engine, "capture": "tonight"})


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[EngineName, Tables]:
    """One capture, audited at once in this process, and by the steps of `jobs/` in Spark's tasks."""
    local, tasks = (
        settings(tmp_path_factory.mktemp(engine), engine) for engine in (EngineName.LOCAL, EngineName.SPARK)
    )
    pipeline.audit(spark, CAPTURE, local)
    pipeline.ingest(spark, CAPTURE, tasks)
    pipeline.reconstruct(spark, tasks)
    pipeline.judge(spark, tasks)
    pipeline.plan_aborts(spark, tasks)
    return {own.engine: tables(spark, Path(own.warehouse)) for own in (local, tasks)}


@pytest.mark.parametrize("table", [table.name for table in ALL_TABLES])
def test_the_rows_of_each_table_are_equal(rows: dict[EngineName, Tables], table: str) -> None:
    assert rows[EngineName.SPARK][table] == rows[EngineName.LOCAL][table]
