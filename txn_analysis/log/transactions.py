"""Transactions on their way to their tables, as columns.

There can be as many as batches. Each is made once, in the task that holds its batches or its partition.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import NONE, Columns, is_in, names_in, nullable, rows_of_columns
from txn_analysis.kafka.names import END_MARKERS
from txn_analysis.log.producer_state import OPEN_TRANSACTION, ProducerStateManager
from txn_analysis.tables import ENDED_TRANSACTIONS, TRANSACTIONS, Transaction, UsedBatchRange
from txn_analysis.tables.schema import COORDINATOR_EPOCH_BASES, rows_of_run
from txn_analysis.tables.transactions import OPEN

BATCH_RANGE_KEY = UsedBatchRange._fields[1:]
"""The columns that name a batch range of one input."""
LINKED_SCHEMA = pa.schema([field for field in TRANSACTIONS.arrow_schema if field.name != "run_id"])
_UNKNOWN, _MARKER = pa.array(["unknown", "marker"])
_OTHER_NAMES = {
    "txn_start_offset": "start_offset",
    "first_producer_epoch": "first_epoch",
    "max_producer_epoch": "max_epoch",
    "first_appended_before_ms": "first_before_ms",
    "appended_after_ms": "last_after_ms",
    "appended_before_ms": "last_before_ms",
}
"""By column of `ended_transactions`, what `log_pieces` calls the same of a part of a transaction."""
_OF_OPEN = tuple(name for name in names_in(OPEN_TRANSACTION) if name in Transaction._fields)
_OF_ENDED = tuple(name for name in _OF_OPEN if name != "first_appended_after_ms")
"""What is said of a transaction that ended in linking; when it began at the earliest, an open one says."""
_ENDS = ("end_offset", "end_marker", "end_timestamp_ms", "end_epoch", "end_coordinator_epoch")


def open_in(state: ProducerStateManager) -> Columns:
    """What producers have open at the end of a log, by column of `transactions`; one row is one transaction."""
    rows = state.open_rows()
    txn, entry = state.opened[rows], state.entries[rows]
    newest, largest = entry["ended_coordinator_epoch"], entry["max_ended_coordinator_epoch"]
    return {name: txn[name] for name in _OF_OPEN} | {
        "producer_epoch": entry["producer_epoch"],
        "coordinator_epoch": entry["coordinator_epoch"],
        "coordinator_epoch_basis": entry["basis"],
        "last_marker_ms": entry["marker_timestamp_ms"],
        "previous_last_timestamp_ms": entry["previous_last_timestamp_ms"],
        "has_coordinator_epoch_fallen": (newest != NONE) & (newest < largest),
        "last_marker_offset": entry["log_marker_offset"],
    }


def ended_in(state: ProducerStateManager) -> Columns:
    """What ended with the lead of a batch range, by column of `ended_transactions`; no columns where nothing did."""
    if not state.ended_count:
        return {}
    txns, ends = (rows[: state.ended_count] for rows in (state.ended, state.ends))
    return {name: txns[name] for name in _OF_ENDED} | {name: ends[name] for name in _ENDS}


def open_in_linking(
    place: Mapping[str, pa.Array], opened: Columns, evidence_gaps: Sequence[tuple[str, ...]]
) -> pa.RecordBatch:
    """Rows in LINKED_SCHEMA, of transactions as of `RebuiltPartition.opened` and of where each of them lies."""
    columns = {name: nullable(values) for name, values in opened.items()}
    columns |= {
        "coordinator_epoch_basis": pa.array(COORDINATOR_EPOCH_BASES).take(columns["coordinator_epoch_basis"]),
        "outcome": pa.repeat(OPEN, len(evidence_gaps)),
        "evidence_gaps": pa.array(evidence_gaps, LINKED_SCHEMA.field("evidence_gaps").type),
    }
    return rows_of_columns(columns | dict(place), len(evidence_gaps), LINKED_SCHEMA)


def ended_in_linking(place: Mapping[str, pa.Array], ended: Columns) -> pa.RecordBatch:
    """Rows in LINKED_SCHEMA, of transactions as of `RebuiltPartition.ended` and of where each of them lies."""
    columns = {name: nullable(values) for name, values in ended.items()}
    columns["end_marker"] = pa.array(END_MARKERS).take(columns["end_marker"])
    return _ended(columns, place, LINKED_SCHEMA)


def ended_rows(place: Mapping[str, pa.Array], parts: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Rows of `ended_transactions`, of parts that are whole transactions and of where each of them lies."""
    exact = pa.repeat(pa.scalar(value=True, type=pa.bool_()), len(parts["end_offset"]))
    columns = {**parts, **{name: parts[source] for name, source in _OTHER_NAMES.items()}, "is_txn_start_exact": exact}
    return _ended(columns, place, ENDED_TRANSACTIONS.arrow_schema)


def _ended(part: Mapping[str, pa.Array], place: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    epoch = part["end_coordinator_epoch"]
    columns = {
        **part,
        "outcome": pc.fill_null(part["end_marker"], "ended"),
        "end_producer_epoch": part["end_epoch"],
        "coordinator_epoch": epoch,
        "coordinator_epoch_basis": pc.if_else(pc.is_null(epoch), _UNKNOWN, _MARKER),
        **place,
    }
    return rows_of_columns(columns, len(epoch), schema)


def ended_by_run(rows: pa.RecordBatch, run_id: str, used: Collection[tuple[str, int, int]]) -> pa.RecordBatch:
    """Rows of `ended_transactions` that are one run's alone.

    Args:
        rows: in `LINKED_SCHEMA`, what ended: over several batch ranges; or in sections that the run had to cut, whose
            batches it summed up anew.
        run_id: is written as their ingest.
        used: by BATCH_RANGE_KEY the batch ranges of such sections that the run's logs were put together from.
    """
    is_own = pc.or_(pc.is_null(rows["input_id"]), pa.array(is_in(rows, BATCH_RANGE_KEY, used)))
    return rows_of_run(ENDED_TRANSACTIONS, run_id)(rows.filter(is_own))
