"""Transactions on their way from folding and linking to their table: packed, whole columns at a time.

There can be as many as a tenth of the batches. Each is made once, in the task that holds its batches or its partition;
from there on Spark passes them on without looking at one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.arrow_streams import packed, unpacked
from txn_analysis.tables import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txn_analysis.row_tasks import RowMaker

_PLACE = ("run_id", "topic", "partition")
_SCHEMA = pa.schema([field for field in TRANSACTIONS.arrow_schema if field.name not in _PLACE])
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


def packed_transactions(rows: Iterable[Mapping[str, Any]]) -> bytes | None:
    """Transactions of one partition, as rows of `transactions` without place and run; None where there are none."""
    batch = pa.RecordBatch.from_pylist(list(rows), schema=_SCHEMA)
    return packed([batch], _SCHEMA) if batch.num_rows else None


def packed_fragments(fragments: Mapping[str, pa.Array], bounds: Iterable[tuple[int, int]]) -> list[bytes | None]:
    """The same for fragments that are whole transactions: columns of them, and from where to where each piece's go."""
    epoch = fragments["end_coordinator_epoch"]
    columns = {name: fragments[source] for name, source in _NAMES_IN_FRAGMENTS.items()} | {
        "is_txn_start_exact": pa.repeat(pa.scalar(value=True), len(epoch)),
        "outcome": pc.fill_null(fragments["end_marker"], "ended"),
        "coordinator_epoch_basis": pc.if_else(pc.is_null(epoch), "unknown", "marker"),
    }
    rows = _rows(columns, len(epoch), _SCHEMA)
    return [packed([rows.slice(start, stop - start)], _SCHEMA) if stop > start else None for start, stop in bounds]


def transaction_rows(run_id: str) -> RowMaker:
    """Makes rows of `transactions` of a run from rows with `topic`, `partition`, and packed `transactions`."""

    def rows_of(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for topic, partition, rows in zip(part["topic"], part["partition"], part["transactions"], strict=True):
                for batch in unpacked(rows).to_batches() if rows.is_valid else ():
                    place = {"run_id": run_id, "topic": topic, "partition": partition}
                    repeated = {name: pa.repeat(value, batch.num_rows) for name, value in place.items()}
                    columns = dict(zip(_SCHEMA.names, batch.columns, strict=True))
                    yield _rows(repeated | columns, batch.num_rows, TRANSACTIONS.arrow_schema)

    return rows_of


def _rows(columns: Mapping[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
