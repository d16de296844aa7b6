"""Transactions on their way from folding and linking to their tables: whole columns at a time.

There can be as many as a tenth of the batches. Each is made once, in the task that holds its batches or its partition;
Spark never looks at one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.equal_runs import is_in
from txn_analysis.tables import ENDED_TRANSACTIONS, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from txn_analysis.tables import Table


PIECE_KEY = ("input_id", "section_index", "first_position")
PieceKey = tuple[str, int, int]
LINKED_SCHEMA = pa.schema([field for field in TRANSACTIONS.arrow_schema if field.name != "run_id"])
_UNKNOWN, _MARKER = pa.array(["unknown", "marker"])
_NAMES_IN_FRAGMENTS = {
    "producer_id": "producer_id",
    "txn_start_offset": "start_offset",
    "first_producer_epoch": "first_epoch",
    "max_producer_epoch": "max_epoch",
    "last_offset": "last_offset",
    "last_sequence": "last_sequence",
    "record_count": "record_count",
    "size_bytes": "size_bytes",
    "last_timestamp_ms": "last_timestamp_ms",
    "first_appended_before_ms": "first_before_ms",
    "appended_after_ms": "last_after_ms",
    "appended_before_ms": "last_before_ms",
    "end_offset": "end_offset",
    "end_timestamp_ms": "end_timestamp_ms",
    "end_producer_epoch": "end_epoch",
    "coordinator_epoch": "end_coordinator_epoch",
}


def ended_rows(place: Mapping[str, pa.Array], fragments: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Rows of `ended_transactions` from fragments that are whole transactions, and where each of them lies."""
    epoch = fragments["end_coordinator_epoch"]
    columns = {name: fragments[source] for name, source in _NAMES_IN_FRAGMENTS.items()} | {
        "is_txn_start_exact": pa.repeat(pa.scalar(value=True, type=pa.bool_()), len(epoch)),
        "outcome": pc.fill_null(fragments["end_marker"], "ended"),
        "coordinator_epoch_basis": pc.if_else(pc.is_null(epoch), _UNKNOWN, _MARKER),
    }
    return _rows({**place, **columns}, len(epoch), ENDED_TRANSACTIONS.arrow_schema)


def open_rows(linked: pa.RecordBatch, run_id: str) -> pa.RecordBatch:
    """Of what linking decided, in `LINKED_SCHEMA`, the open transactions as rows of `transactions` of a run."""
    return _of_run(linked.filter(pc.equal(linked["outcome"], "open")), TRANSACTIONS, run_id)


def ended_by_run(rows: pa.RecordBatch, run_id: str, used: Collection[PieceKey]) -> pa.RecordBatch:
    """Rows of `ended_transactions` that are one run's alone.

    Args:
        rows: what linking decided, in `LINKED_SCHEMA`, of which those that ended span pieces; or what was folded anew
            of sections that the run had to cut.
        run_id: stands where the ingest stands of others.
        used: the pieces of such sections that the run was linked from.
    """
    is_own = pc.or_(pc.is_null(rows["input_id"]), pa.array(is_in(rows, PIECE_KEY, used)))
    return _of_run(rows.filter(pc.and_(is_own, pc.not_equal(rows["outcome"], "open"))), ENDED_TRANSACTIONS, run_id)


def _of_run(rows: pa.RecordBatch, table: Table, run_id: str) -> pa.RecordBatch:
    columns = {name: rows[name] for name in LINKED_SCHEMA.names}
    (slice_,) = table.partition_by
    return _rows(columns | {slice_: pa.repeat(run_id, rows.num_rows)}, rows.num_rows, table.arrow_schema)


def _rows(columns: Mapping[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
