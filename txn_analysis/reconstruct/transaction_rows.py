"""Rows of `transactions` from the lists of them that linking and folding left, whole columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.tables import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from txn_analysis.row_tasks import RowMaker

DECIDED = "decided"  # transactions as linking leaves them, which are open or span pieces
ENDED = "ended"  # transactions as folding leaves them, which began and ended inside one piece

_NAMES_IN_PIECES = {
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


def transaction_rows(run_id: str) -> RowMaker:
    """Makes rows of `transactions` of a run from rows with `topic`, `partition`, and lists in DECIDED and in ENDED."""

    def rows_of(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for name, columns_of in ((DECIDED, _fields), (ENDED, _ended)):
                columns = columns_of(pc.list_flatten(part[name]))
                parents = pc.list_parent_indices(part[name])
                place = {key: part[key].take(parents) for key in ("topic", "partition")}
                yield _rows(place | columns | {"run_id": pa.repeat(run_id, len(parents))}, len(parents))

    return rows_of


def _fields(structs: pa.Array) -> dict[str, pa.Array]:
    return dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))


def _ended(structs: pa.Array) -> dict[str, pa.Array]:
    found = _fields(structs)
    epoch = found["end_coordinator_epoch"]
    return {name: found[source] for name, source in _NAMES_IN_PIECES.items()} | {
        "is_txn_start_exact": pa.repeat(pa.scalar(value=True), len(structs)),
        "outcome": pc.fill_null(found["end_marker"], "ended"),
        "coordinator_epoch_basis": pc.if_else(pc.is_null(epoch), "unknown", "marker"),
    }


def _rows(columns: Mapping[str, pa.Array], count: int) -> pa.RecordBatch:
    schema = TRANSACTIONS.arrow_schema
    arrays = [columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)
