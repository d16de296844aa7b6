"""Which ended transactions are a run's: by the command, as a frame, and by the SQL that the page of tables gives."""

from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.tools.captures import SEGMENTS, VARIANTS, AuditOf, Variant, WarehouseOf
from tests.tools.docs.tables_page import ENDED_IN_A_RUN
from tests.tools.sessions import opened
from tests.tools.table_rows import collected, committed, listed, plain_rows
from txn_analysis.runs.ask import asked_batches
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.tables import ENDED_TRANSACTIONS, PARTITION_HEALTH, TRANSACTIONS
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.opening import open_warehouse

Row = dict[str, Any]

KEYS = "SELECT topic, `partition`, producer_id, txn_start_offset, ingest_id FROM ended_transactions"
DEMO = Variant("kafka-4.2/capture-1", SEGMENTS)


@pytest.fixture(scope="module")
def stored(warehouse_of: WarehouseOf, audit_of: AuditOf) -> Warehouse:
    """With the runs of other clusters that were given the same capture."""
    for variant in VARIANTS:
        if variant.capture == DEMO.capture:
            audit_of(variant)
    return opened(warehouse_of(DEMO))


def in_order(rows: Iterable[Row]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


@pytest.mark.cluster
def test_the_sql_of_the_docs_gives_the_rows_that_the_command_reads(spark: SparkSession, stored: Warehouse) -> None:
    run = run_tables(stored, DEMO.name).finished
    expected = plain_rows(asked_batches(run, "SELECT * FROM ended_transactions"))
    assert {row["outcome"] for row in expected} == {"COMMIT", "ABORT"}
    assert any(row["input_id"] is None for row in expected), "some span two segments"
    for table in (ENDED_TRANSACTIONS, PARTITION_HEALTH):
        committed(open_warehouse(spark, stored.root), table).createOrReplaceTempView(table.name)
    found = spark.sql(ENDED_IN_A_RUN.replace("RUN", run.run_id))
    assert in_order(collected(found)) == in_order(expected)


def test_transactions_of_a_run_are_those_that_are_open(stored: Warehouse) -> None:
    run = run_tables(stored, DEMO.name).finished
    assert {row["outcome"] for row in listed(run, TRANSACTIONS, "outcome")} == {"open"}


def test_what_another_run_linked_is_not_a_runs_own(stored: Warehouse) -> None:
    """The table holds the rows of all clusters of the warehouse; each transaction is a run's once."""
    run = run_tables(stored, DEMO.name).finished
    rows = plain_rows(asked_batches(run, KEYS))
    assert {row["ingest_id"] for row in rows} <= {run.run_id, *run.evidence.ingests}
    keys = [tuple(row.values())[:-1] for row in rows]
    assert len(keys) == len(set(keys))
