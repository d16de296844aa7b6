"""Transactions on their way to their tables: those that are open or span batch ranges as records, others as columns.

There can be a tenth as many as batches. Each is made once, in the task that holds its batches or its partition.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import is_in, of_types
from txn_analysis.tables import ENDED_TRANSACTIONS, TRANSACTIONS, Transaction, TransactionPart, UsedBatchRange
from txn_analysis.tables.transactions import OPEN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from txn_analysis.kafka.transactions import TopicPartition
    from txn_analysis.log.producer_state import OpenTransaction, ProducerStateEntry
    from txn_analysis.tables import Table


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
    "end_producer_epoch": "end_epoch",
    "coordinator_epoch": "end_coordinator_epoch",
}
"""By column of `ended_transactions`, what `log_pieces` calls the same of a part of a transaction."""
_OF_PART = tuple(name for name in Transaction._fields if _OTHER_NAMES.get(name, name) in TransactionPart._fields)
_part_says = attrgetter(*(_OTHER_NAMES.get(name, name) for name in _OF_PART))


def open_transaction(
    partition: TopicPartition,
    entry: ProducerStateEntry,
    txn: OpenTransaction,
    evidence_gaps: tuple[str, ...],
    other_copy_commit_offset: int | None,
    *,
    is_above_high_watermark: bool,
) -> Transaction:
    """The transaction that a producer has open at the end of the log; the last three arguments are columns."""
    return Transaction(
        *partition,
        **_columns_of(txn),
        outcome=OPEN,
        producer_epoch=entry.producer_epoch,
        coordinator_epoch=entry.coordinator_epoch,
        coordinator_epoch_basis=entry.coordinator_epoch_basis,
        last_marker_ms=entry.marker_timestamp_ms,
        previous_last_timestamp_ms=entry.previous_last_timestamp_ms,
        has_coordinator_epoch_fallen=entry.has_coordinator_epoch_fallen,
        evidence_gaps=evidence_gaps,
        last_marker_offset=entry.log_marker_offset,
        other_copy_commit_offset=other_copy_commit_offset,
        is_above_high_watermark=is_above_high_watermark,
    )


def ended_transaction(partition: TopicPartition, txn: OpenTransaction, part: TransactionPart) -> Transaction:
    """A transaction that spans batch ranges, and that the end marker of its last part ended."""
    return Transaction(*partition, **_said_by(part) | _columns_of(txn) | {"first_appended_after_ms": None})


def whole_transaction(
    partition: TopicPartition, producer_id: int, part: TransactionPart, moment_before_ms: int | None, *, is_exact: bool
) -> Transaction:
    """A transaction that is one part of a batch range; `moment_before_ms` is the last moment before that range."""
    said = _said_by(part)
    said["max_producer_epoch"] = said["max_producer_epoch"] or 0
    if said["appended_after_ms"] is None:
        said["appended_after_ms"] = moment_before_ms
    return Transaction(*partition, producer_id, is_txn_start_exact=is_exact, **said)


def _said_by(part: TransactionPart) -> dict[str, Any]:
    """What the last part of a transaction says, by column; of its data, where there was none before."""
    said = dict(zip(_OF_PART, _part_says(part), strict=True))
    said["outcome"] = part.end_marker or "ended"
    said["coordinator_epoch_basis"] = "unknown" if said["coordinator_epoch"] is None else "marker"
    return said


def _columns_of(txn: OpenTransaction) -> dict[str, Any]:
    """What a transaction's data says; both records name it alike."""
    return {name: value for name, value in vars(txn).items() if name in _COLUMNS}


_COLUMNS = frozenset(Transaction._fields)


def ended_rows(place: Mapping[str, pa.Array], parts: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Rows of `ended_transactions`, of parts that are whole transactions and of where each of them lies."""
    epoch = parts["end_coordinator_epoch"]
    columns = {
        **parts,
        **{name: parts[source] for name, source in _OTHER_NAMES.items()},
        "is_txn_start_exact": pa.repeat(pa.scalar(value=True, type=pa.bool_()), len(epoch)),
        "outcome": pc.fill_null(parts["end_marker"], "ended"),
        "coordinator_epoch_basis": pc.if_else(pc.is_null(epoch), _UNKNOWN, _MARKER),
        **place,
    }
    return _rows(columns, len(epoch), ENDED_TRANSACTIONS.arrow_schema)


def open_rows(linked: pa.RecordBatch, run_id: str) -> pa.RecordBatch:
    """Of rows in `LINKED_SCHEMA` the open transactions, as rows of `transactions` of a run."""
    return _of_run(linked.filter(pc.equal(linked["outcome"], OPEN)), TRANSACTIONS, run_id)


def ended_by_run(rows: pa.RecordBatch, run_id: str, used: Collection[tuple[str, int, int]]) -> pa.RecordBatch:
    """Rows of `ended_transactions` that are one run's alone.

    Args:
        rows: in `LINKED_SCHEMA` those of `RebuiltPartition`, of which those that ended span batch ranges; or those of
            sections that the run had to cut, whose batches it summed up anew.
        run_id: is written as their ingest.
        used: by BATCH_RANGE_KEY the batch ranges of such sections that the run's logs were put together from.
    """
    is_own = pc.or_(pc.is_null(rows["input_id"]), pa.array(is_in(rows, BATCH_RANGE_KEY, used)))
    return _of_run(rows.filter(pc.and_(is_own, pc.not_equal(rows["outcome"], OPEN))), ENDED_TRANSACTIONS, run_id)


def _of_run(rows: pa.RecordBatch, table: Table, run_id: str) -> pa.RecordBatch:
    columns = {name: rows[name] for name in LINKED_SCHEMA.names}
    (slice_,) = table.partition_by
    return _rows(columns | {slice_: pa.repeat(run_id, rows.num_rows)}, rows.num_rows, table.arrow_schema)


def _rows(columns: Mapping[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(of_types(arrays, schema), schema=schema)
