"""The same segments, dumped by eight versions of kafka-dump-log, give the same rows in every table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.captures import CASES
from txn_analysis import audit
from txn_analysis.config import Settings
from txn_analysis.errors import InputError
from txn_analysis.tables import ABORTED_TRANSACTIONS, INPUTS, LOG_BATCHES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES
from txn_analysis.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from txn_analysis.tables import Table

GRAMMAR = CASES / "grammar"
VERSIONS = ("2.1.1", "2.2.2", "2.8.2", "3.1.2", "3.3.2", "3.7.2", "4.1.0", "4.2.0")
# Where in a text a row stands, and which ingest read it, is no fact of the segment.
PLACE = {"ingest_id", "input_id", "section_index", "ordinal", "text_start_bytes", "text_bytes", "pieces"}
# What a version does not print.
NOT_PRINTED: dict[str, set[str]] = {
    # Shallow dumps print no records, so no marker with its coordinator epoch; a deep dump of 2.1 has no batch lines.
    "shallow": {"marker", "coordinator_epoch", "record_line_count"},
    # Before 4.1 the decoder leaves out the start time, and the tagged fields.
    "text state": {"start_ms", "client_transaction_version"},
    # Before 3.1 a producer without a cached batch has no timestamp.
    "old snapshot": {"last_timestamp_ms"},
}


def rows_of(spark: SparkSession, warehouse: str, table: Table, input_id: str, leave_out: set[str]) -> list[Any]:
    frame = Warehouse(spark, warehouse).read(table).where(f"input_id = '{input_id}'")
    names = [n for n in table.schema.names if n not in PLACE | leave_out]
    return sorted(frame.select(*names).collect(), key=str)


@pytest.fixture(scope="module")
def inputs(spark: SparkSession, warehouse: str) -> dict[str, str]:
    """The input id of every file of every version, all but the refused deep dumps of 2.1, read in one ingest.

    Files of the same content are one input, as the shallow dumps of neighbouring versions are.
    """
    files = [
        file
        for version in VERSIONS
        for file in sorted((GRAMMAR / version).iterdir())
        if (version, file.name) not in {("2.1.1", "orders-0.deep.txt"), ("2.1.1", "orders-0.payload.txt")}
    ]
    audit.ingest(spark, [str(file) for file in files], Settings(warehouse=warehouse, cluster="grammar"))
    rows = Warehouse(spark, warehouse).listed(INPUTS, "path", "input_id", cluster=["grammar"])
    by_content = {Path(row["path"]).read_bytes(): row["input_id"] for row in rows}
    return {f"{file.parent.name}/{file.name}": by_content[file.read_bytes()] for file in files}


@pytest.mark.parametrize("form", ["deep", "payload", "shallow"])
@pytest.mark.parametrize("version", VERSIONS)
def test_batches(spark: SparkSession, warehouse: str, inputs: dict[str, str], version: str, form: str) -> None:
    if version == "2.1.1" and form != "shallow":
        return
    leave_out = NOT_PRINTED["shallow"] if form == "shallow" else set()
    newest = rows_of(spark, warehouse, LOG_BATCHES, inputs["4.2.0/orders-0.deep.txt"], leave_out)
    assert len(newest) == 122
    assert rows_of(spark, warehouse, LOG_BATCHES, inputs[f"{version}/orders-0.{form}.txt"], leave_out) == newest


@pytest.mark.parametrize("version", VERSIONS)
def test_transaction_states(spark: SparkSession, warehouse: str, inputs: dict[str, str], version: str) -> None:
    leave_out = NOT_PRINTED["text state"]
    newest = rows_of(spark, warehouse, TRANSACTION_STATES, inputs["4.2.0/transaction_state-1.txt"], leave_out)
    assert len(newest) == 130
    found = rows_of(spark, warehouse, TRANSACTION_STATES, inputs[f"{version}/transaction_state-1.txt"], leave_out)
    assert found == newest


@pytest.mark.parametrize("version", VERSIONS)
def test_snapshots_and_aborted_transactions(
    spark: SparkSession, warehouse: str, inputs: dict[str, str], version: str
) -> None:
    for table, name, leave_out in (
        (PRODUCER_SNAPSHOTS, "orders-0.snapshot.txt", NOT_PRINTED["old snapshot"]),
        (ABORTED_TRANSACTIONS, "orders-0.txnindex.txt", set[str]()),
    ):
        newest = rows_of(spark, warehouse, table, inputs[f"4.2.0/{name}"], leave_out)
        assert newest
        assert rows_of(spark, warehouse, table, inputs[f"{version}/{name}"], leave_out) == newest


@pytest.mark.parametrize("name", ["orders-0.deep.txt", "orders-0.payload.txt"])
def test_a_deep_dump_of_2_1_is_refused_with_the_remedy(spark: SparkSession, warehouse: str, name: str) -> None:
    with pytest.raises(InputError, match=r"without --deep-iteration/--print-data-log, or with kafka-dump-log 2\.2"):
        audit.ingest(spark, [str(GRAMMAR / "2.1.1" / name)], Settings(warehouse=warehouse, cluster="refused"))
