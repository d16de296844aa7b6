"""A row for each table that breaks no constraint, and for each constraint one that breaks it and nothing else."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.tools.by_spark import frame_by_delta, frame_of
from txn_analysis.runs.past_run import RunRows
from txn_analysis.tables import (
    ABORT_PLAN,
    ABORTED_TRANSACTIONS,
    ACCEPTED,
    ENDED_TRANSACTIONS,
    FINDINGS,
    GROUP_OFFSETS,
    INPUTS,
    LOG_BATCHES,
    LOG_PIECES,
    PARTITION_HEALTH,
    PRODUCER_SNAPSHOTS,
    PRUNES,
    REJECTS,
    RUNS,
    TRANSACTION_STATES,
    TRANSACTIONS,
    Table,
)
from txn_analysis.warehouse.delta_tables import Warehouse
from txn_analysis.warehouse.new_table import FORMAT

Row = dict[str, Any]

WORDS: dict[str, Row] = {
    FINDINGS.name: {"verdict": "hanging", "rule": "unknown_producer", "coordinator_epoch_basis": "none_seen"},
    ABORT_PLAN.name: {
        "rule": "unknown_producer",
        "coordinator_epoch_basis": "none_seen",
        "not_after_ms": 2,
        "transaction_version": 0,
    },
    TRANSACTIONS.name: {"outcome": "open", "coordinator_epoch_basis": "none_seen"},
    ENDED_TRANSACTIONS.name: {"outcome": "ABORT", "coordinator_epoch_basis": "marker", "end_offset": 9},
    RUNS.name: {"outcome": "clean"},
    ACCEPTED.name: {"decision_number": 1, "verdict": "hanging"},
    INPUTS.name: {"kind": "log", "parsed_bytes": 1, "rejected_bytes": 0, "text_bytes": 1},
}
# For each constraint one row that breaks it, and nothing else.
VIOLATIONS: dict[tuple[str, str], Row] = {
    (INPUTS.name, "every_byte_accounted"): {"parsed_bytes": 1, "rejected_bytes": 1, "text_bytes": 3},
    (INPUTS.name, "sizes_not_negative"): {"parsed_bytes": 2, "rejected_bytes": -1},
    (REJECTS.name, "span_not_empty"): {"length_bytes": 0},
    (PRUNES.name, "numbered_from_zero"): {"last_run_number": -1},
    (LOG_BATCHES.name, "offsets_in_order"): {"base_offset": 5, "last_offset": 4},
    (LOG_BATCHES.name, "epochs_not_negative"): {"producer_epoch": -1},
    (LOG_BATCHES.name, "known_timestamp_type"): {"timestamp_type": "NoTimestampType"},
    (LOG_PIECES.name, "offsets_in_order"): {"first_offset": 5, "last_offset": 4},
    (LOG_PIECES.name, "positions_in_order"): {"first_position": 5, "end_position": 4},
    (GROUP_OFFSETS.name, "text_in_order"): {"text_start_bytes": 5, "text_end_bytes": 4},
    (PRODUCER_SNAPSHOTS.name, "epochs_not_negative"): {"coordinator_epoch": -1},
    (ABORTED_TRANSACTIONS.name, "offsets_in_order"): {"first_offset": 5, "last_offset": 4},
    (TRANSACTION_STATES.name, "epochs_not_negative"): {"producer_epoch": -1},
    (TRANSACTIONS.name, "start_not_negative"): {"txn_start_offset": -1},
    (TRANSACTIONS.name, "offsets_in_order"): {"txn_start_offset": 5, "last_offset": 4},
    (TRANSACTIONS.name, "epochs_not_negative"): {"end_producer_epoch": -1},
    (TRANSACTIONS.name, "known_outcome"): {"outcome": "LEADER_CHANGE", "end_offset": 9},
    (TRANSACTIONS.name, "known_basis"): {"coordinator_epoch_basis": "guessed"},
    (TRANSACTIONS.name, "only_open_has_no_end"): {"outcome": "open", "end_offset": 9},
    (ENDED_TRANSACTIONS.name, "start_not_negative"): {"txn_start_offset": -1},
    (ENDED_TRANSACTIONS.name, "offsets_in_order"): {"txn_start_offset": 5, "last_offset": 4},
    (ENDED_TRANSACTIONS.name, "epochs_not_negative"): {"end_producer_epoch": -1},
    (ENDED_TRANSACTIONS.name, "known_outcome"): {"outcome": "open", "end_offset": None},
    (ENDED_TRANSACTIONS.name, "known_basis"): {"coordinator_epoch_basis": "guessed"},
    (ENDED_TRANSACTIONS.name, "only_open_has_no_end"): {"end_offset": None},
    (PARTITION_HEALTH.name, "offsets_in_order"): {"first_offset": 5, "end_offset": 4},
    (PARTITION_HEALTH.name, "sizes_not_negative"): {"hidden_bytes": -1},
    (FINDINGS.name, "known_verdict"): {"verdict": "perhaps"},
    (FINDINGS.name, "known_basis"): {"coordinator_epoch_basis": "guessed"},
    (FINDINGS.name, "epochs_not_negative"): {"coordinator_epoch": -1},
    (ACCEPTED.name, "decided_from_one"): {"decision_number": 0},
    (ACCEPTED.name, "known_verdict"): {"verdict": "guilty"},
    (ABORT_PLAN.name, "only_aborts"): {"transaction_result": True},
    (ABORT_PLAN.name, "legacy_epoch_rule"): {"transaction_version": 2},
    (ABORT_PLAN.name, "epochs_not_negative"): {"producer_epoch": -1},
    (ABORT_PLAN.name, "known_basis"): {"coordinator_epoch_basis": "guessed"},
    (ABORT_PLAN.name, "window_in_order"): {"not_before_ms": 2, "not_after_ms": 2},
    (RUNS.name, "numbered_from_one"): {"run_number": 0},
    (RUNS.name, "known_outcome"): {"outcome": "perhaps"},
    (RUNS.name, "known_basis"): {"as_of_basis": "wall_clock"},
}


def row_of(table: Table, **columns: Any) -> Row:
    """A row that breaks no constraint; columns that may be NULL are."""
    needed = {c.name: plain(c.type) for c in table.columns if not c.nullable}
    return needed | WORDS.get(table.name, {}) | columns


def plain(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return []
    if pa.types.is_boolean(kind):
        return False
    return "x" if pa.types.is_string(kind) else 1


def batch(table: Table, *rows: Row) -> pa.RecordBatch:
    """Rows of a table; absent columns are NULL."""
    return pa.RecordBatch.from_pylist([*rows], table.arrow_schema)


def listed(stored: Warehouse | RunRows, table: Table, *names: str, **one_of: Collection[Any]) -> list[Row]:
    """Rows as plain data; structs and maps are dictionaries. Arguments as of `Warehouse.batches`."""
    return plain_rows(stored.batches(table, *names, **one_of))


def plain_rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """All rows as dictionaries."""
    return [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]


def replace_rows(warehouse: Warehouse, rows: Iterable[Row], table: Table, **slice_of: str) -> None:
    """Make rows the whole content of a slice of a table."""
    warehouse.replace([batch(table, *rows)], table, **slice_of)


def replace_slice(warehouse: Warehouse, table: Table, *rows: Row) -> None:
    """Make rows the whole content of the slice that the first one belongs to."""
    name = (table.partition_by or table.key)[0]
    warehouse.replace_by(frame_of(warehouse.spark, [batch(table, *rows)], table), iter, table, **{name: rows[0][name]})


def committed(warehouse: Warehouse, table: Table) -> DataFrame:
    """The committed rows of a table as it is now: what a reader of Delta may see."""
    rows = frame_by_delta(warehouse, table)
    runs = frame_by_delta(warehouse, RUNS).select("run_id")
    if "run_id" in table.partition_by:
        return rows.join(F.broadcast(runs), "run_id", "leftsemi")
    if "ingest_id" not in table.partition_by:
        return rows
    inputs = frame_by_delta(warehouse, INPUTS).select("input_id", "ingest_id")
    read = rows.join(F.broadcast(inputs), ["ingest_id", "input_id"], "leftsemi")
    if table is not ENDED_TRANSACTIONS:
        return read
    return read.unionByName(
        rows.join(F.broadcast(runs.withColumnRenamed("run_id", "ingest_id")), "ingest_id", "leftsemi")
    )


def collected(frame: DataFrame) -> list[Row]:
    """All rows as plain data, structs as dictionaries."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def give_format(root: Path, said: str | None) -> None:
    """Let the tables of a warehouse say that they are of another format, or of none, as other versions leave them."""
    other = '"no.format": ""' if said is None else f'"txn-analysis.format": "{said}"'
    for log in root.glob("*/_delta_log/*"):
        if log.suffix in {".json", ".crc"}:
            text = log.read_text(encoding="utf-8")
            log.write_text(re.sub(rf'"txn-analysis.format": ?"{FORMAT}"', other, text), encoding="utf-8")
