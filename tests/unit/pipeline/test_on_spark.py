"""The pipeline by Spark's tasks, step by step as in `jobs/`: the tables are those of the command's own process.

`make test` runs it: a newcomer sees Spark at work. Clusters, Spark Connect and other versions are in
`tests/systems/spark`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from tests.tools.repository import CASES
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import EngineName, Settings
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.tables import ALL_TABLES

pytestmark = pytest.mark.quick

# Hanging in four ways, a pending commit, state as JSON; and texts of an old broker, whose state is a console export.
CAPTURES = {
    "4.2": [CASES / "kafka-4.2/capture-1/segments", CASES / "kafka-4.2/capture-1/transaction-state"],
    "2.8": [CASES / "kafka-2.8/capture-1/segments", CASES / "kafka-2.8/console"],
}
# A version counts commits, and a step that is run by itself makes one more; Spark sorts by no map.
NOT_COMPARED = {"runs": ["table_versions", "verdict_counts"]}


def settings(folder: Path, engine: EngineName) -> Settings:
    own = Settings(transaction_state_partitions=4, max_clock_skew_ms=0, transaction_state_complete=True)
    return own.model_copy(update={"warehouse": str(folder), "engine": engine, "capture": "tonight"})


@pytest.fixture(scope="module", params=CAPTURES)
def warehouses(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[EngineName, str]:
    """One capture, audited at once in this process, and by the steps of `jobs/` in Spark's tasks."""
    paths = [str(path) for path in CAPTURES[request.param]]
    local, tasks = (
        settings(tmp_path_factory.mktemp(engine), engine) for engine in (EngineName.LOCAL, EngineName.SPARK)
    )
    pipeline.audit(spark, paths, local)
    pipeline.ingest(spark, paths, tasks)
    pipeline.reconstruct(spark, tasks)
    pipeline.judge(spark, tasks)
    pipeline.plan_aborts(spark, tasks)
    return {own.engine: own.warehouse for own in (local, tasks)}


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_the_rows_of_each_table_are_equal(spark: SparkSession, warehouses: dict[EngineName, str], table: Any) -> None:
    local, tasks = (
        open_warehouse(spark, warehouses[engine]).frame(table).drop(*NOT_COMPARED.get(table.name, []))
        for engine in (EngineName.LOCAL, EngineName.SPARK)
    )
    assert_df_equality(tasks, local, ignore_row_order=True)
