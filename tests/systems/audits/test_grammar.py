"""The same segments, dumped by eight versions of kafka-dump-log, give the same rows in every table."""

from pathlib import Path
from typing import Any

import pytest

from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from tests.tools.table_rows import listed
from txn_analysis.errors import InputError
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings
from txn_analysis.tables import ABORTED_TRANSACTIONS, INPUTS, LOG_BATCHES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES, Table
from txn_analysis.warehouse.delta_tables import Warehouse

Row = dict[str, Any]

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
    "state without batches": {"batch_base_offset", "batch_last_offset", "leader_epoch"},
    # Before 3.1 a producer without a cached batch has no timestamp.
    "old snapshot": {"last_timestamp_ms"},
}


@pytest.fixture(scope="module")
def inputs(warehouse: str) -> dict[str, str]:
    """The input id of every file of every version, all but the refused deep dumps of 2.1, read in one ingest.

    Files of the same content are one input, as the shallow dumps of neighbouring versions are.
    """
    files = [
        file
        for version in VERSIONS
        for file in sorted((GRAMMAR / version).iterdir())
        if (version, file.name) not in {("2.1.1", "orders-0.deep.txt"), ("2.1.1", "orders-0.payload.txt")}
    ]
    pipeline.ingest(no_session, [str(file) for file in files], Settings(warehouse=warehouse, cluster="grammar"))
    rows = listed(opened(warehouse), INPUTS, "path", "input_id", cluster=["grammar"])
    by_content = {Path(row["path"]).read_bytes(): row["input_id"] for row in rows}
    return {f"{file.parent.name}/{file.name}": by_content[file.read_bytes()] for file in files}


class Stored:
    """What the ingest wrote, each table read once."""

    def __init__(self, warehouse: Warehouse, inputs: dict[str, str]) -> None:
        self._inputs = inputs
        self._rows: dict[tuple[str, str], list[Row]] = {}
        for table in (ABORTED_TRANSACTIONS, LOG_BATCHES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES):
            for row in listed(warehouse, table, input_id=inputs.values()):
                self._rows.setdefault((table.name, row["input_id"]), []).append(row)

    def rows(self, table: Table, file: str, leave_out: set[str]) -> list[Row]:
        """The rows of one file, without their places and some columns."""
        found = self._rows.get((table.name, self._inputs[file]), [])
        return sorted(({n: row[n] for n in row if n not in PLACE | leave_out} for row in found), key=str)


@pytest.fixture(scope="module")
def stored(warehouse: str, inputs: dict[str, str]) -> Stored:
    return Stored(opened(warehouse), inputs)


@pytest.mark.parametrize("form", ["deep", "payload", "shallow"])
@pytest.mark.parametrize("version", VERSIONS)
def test_batches(stored: Stored, version: str, form: str) -> None:
    if version == "2.1.1" and form != "shallow":
        return
    leave_out = NOT_PRINTED["shallow"] if form == "shallow" else set()
    newest = stored.rows(LOG_BATCHES, "4.2.0/orders-0.deep.txt", leave_out)
    assert len(newest) == 122
    assert stored.rows(LOG_BATCHES, f"{version}/orders-0.{form}.txt", leave_out) == newest


@pytest.mark.parametrize("version", VERSIONS)
def test_transaction_states(stored: Stored, version: str) -> None:
    without_batches = NOT_PRINTED["state without batches"] if version == "2.1.1" else set[str]()
    leave_out = NOT_PRINTED["text state"] | without_batches
    newest = stored.rows(TRANSACTION_STATES, "4.2.0/transaction_state-1.txt", leave_out)
    assert len(newest) == 130
    found = stored.rows(TRANSACTION_STATES, f"{version}/transaction_state-1.txt", leave_out)
    assert found == newest


@pytest.mark.parametrize("version", VERSIONS)
def test_snapshots_and_aborted_transactions(stored: Stored, version: str) -> None:
    for table, name, leave_out in (
        (PRODUCER_SNAPSHOTS, "orders-0.snapshot.txt", NOT_PRINTED["old snapshot"]),
        (ABORTED_TRANSACTIONS, "orders-0.txnindex.txt", set[str]()),
    ):
        newest = stored.rows(table, f"4.2.0/{name}", leave_out)
        assert newest
        assert stored.rows(table, f"{version}/{name}", leave_out) == newest


@pytest.mark.parametrize("name", ["orders-0.deep.txt", "orders-0.payload.txt"])
def test_a_deep_dump_of_2_1_is_refused_with_the_remedy(warehouse: str, name: str) -> None:
    with pytest.raises(InputError, match=r"without --deep-iteration/--print-data-log, or with kafka-dump-log 2\.2"):
        pipeline.ingest(no_session, [str(GRAMMAR / "2.1.1" / name)], Settings(warehouse=warehouse, cluster="refused"))
