"""Transactions on their way from folding and linking to their tables: whole columns at a time.

There can be as many as a tenth of the batches. Each is made once, in the task that holds its batches or its partition;
Spark never looks at one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.equal_runs import is_in
from txn_analysis.tables import ENDED_TRANSACTIONS, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


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


def linked_rows(rows: Iterable[Mapping[str, Any]], run_id: str) -> pa.RecordBatch:
    """Transactions that linking decided, as rows of `transactions` of a run."""
    return pa.RecordBatch.from_pylist([{**row, "run_id": run_id} for row in rows], schema=TRANSACTIONS.arrow_schema)


def own_rows(batch: pa.RecordBatch, run_id: str, used: Collection[PieceKey]) -> pa.RecordBatch:
    """Packed transactions as rows of `transactions` of a run; what is whole in a piece only where that is `used`."""
    is_used = pa.array(is_in(batch, PIECE_KEY, used))
    own = batch.filter(pc.or_(is_used, pc.is_null(batch["input_id"])))
    columns = {name: own[name] for name in LINKED_SCHEMA.names}
    columns["run_id"] = pa.repeat(run_id, own.num_rows)
    return _rows(columns, own.num_rows, TRANSACTIONS.arrow_schema)


def _rows(columns: Mapping[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
