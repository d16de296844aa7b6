"""Transactions on their way from folding and linking to their tables: whole columns at a time.

There can be as many as a tenth of the batches. Each is made once, in the task that holds its batches or its partition;
Spark never looks at one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import is_in
from txn_analysis.columns.records import plain
from txn_analysis.tables import ENDED_TRANSACTIONS, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from txn_analysis.log.producer_entry import EndedTransaction, OpenTransaction, ProducerEntry
    from txn_analysis.log.sections import SectionKey
    from txn_analysis.tables import Table

OPEN = "open"  # the outcome of a transaction without one


class PieceKey(NamedTuple):
    """Which piece of which section of which input."""

    input_id: str
    section_index: int
    first_position: int

    @property
    def section(self) -> SectionKey:
        """The section that it is of."""
        return self.input_id, self.section_index


class LinkedPiece(NamedTuple):
    """A piece that a run linked a log from, and the ingest that wrote its ended transactions."""

    ingest_id: str
    input_id: str
    section_index: int
    first_position: int


PIECE_KEY = PieceKey._fields
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


class LinkedTransaction(NamedTuple):
    """One row of `transactions` that linking decided, without its run and its place: it is open, or spans pieces.

    The table's comments say what each column is, and of which of them only open ones have some.
    """

    producer_id: int
    txn_start_offset: int
    is_txn_start_exact: bool
    first_producer_epoch: int | None
    max_producer_epoch: int | None
    last_offset: int | None
    last_sequence: int | None
    record_count: int | None
    size_bytes: int | None
    last_timestamp_ms: int | None
    first_appended_before_ms: int | None
    appended_after_ms: int | None
    appended_before_ms: int | None
    outcome: str
    coordinator_epoch: int | None
    coordinator_epoch_basis: str
    end_offset: int | None = None
    end_timestamp_ms: int | None = None
    end_producer_epoch: int | None = None
    producer_epoch: int | None = None
    last_marker_ms: int | None = None
    previous_last_timestamp_ms: int | None = None
    has_coordinator_epoch_fallen: bool | None = None
    evidence_gaps: tuple[str, ...] | None = None
    first_appended_after_ms: int | None = None
    last_marker_offset: int | None = None
    other_copy_commit_offset: int | None = None
    is_above_high_watermark: bool | None = None

    @classmethod
    def open(
        cls,
        entry: ProducerEntry,
        txn: OpenTransaction,
        evidence_gaps: tuple[str, ...],
        other_copy_commit_offset: int | None,
        *,
        is_above_high_watermark: bool,
    ) -> LinkedTransaction:
        """The transaction that a producer has open at the end of the log; the arguments behind it are columns."""
        return cls(
            *_of_data(txn),
            OPEN,
            entry.coordinator_epoch,
            entry.coordinator_epoch_basis,
            producer_epoch=entry.producer_epoch,
            last_marker_ms=entry.marker_timestamp_ms,
            previous_last_timestamp_ms=entry.previous_last_timestamp_ms,
            has_coordinator_epoch_fallen=entry.has_coordinator_epoch_fallen,
            evidence_gaps=evidence_gaps,
            first_appended_after_ms=txn.first_after_ms,
            last_marker_offset=entry.log_marker_offset,
            other_copy_commit_offset=other_copy_commit_offset,
            is_above_high_watermark=is_above_high_watermark,
        )

    @classmethod
    def ended(cls, ended: EndedTransaction) -> LinkedTransaction:
        """A transaction whose end marker was followed."""
        epoch = ended.coordinator_epoch
        return cls(
            *_of_data(ended.transaction),
            ended.outcome or "ended",
            epoch,
            "unknown" if epoch is None else "marker",
            end_offset=ended.end_offset,
            end_timestamp_ms=ended.timestamp_ms,
            end_producer_epoch=ended.producer_epoch,
        )

    @property
    def is_open(self) -> bool:
        """No end marker follows its data."""
        return self.outcome == OPEN

    def row(self, **place: Any) -> dict[str, Any]:
        """The columns as plain data, with those of its place."""
        return plain(self) | place


_Known = int | None
_Data = tuple[int, int, bool, _Known, _Known, _Known, _Known, _Known, _Known, _Known, _Known, _Known, _Known]


def _of_data(txn: OpenTransaction) -> _Data:
    """The first columns of a `LinkedTransaction`, in their order: what its data says."""
    return (
        txn.producer_id,
        txn.start_offset,
        txn.is_start_exact,
        txn.first_epoch,
        txn.max_epoch,
        txn.last_offset,
        txn.last_sequence,
        txn.record_count,
        txn.size_bytes,
        txn.last_timestamp_ms,
        txn.first_before_ms,
        txn.last_after_ms,
        txn.last_before_ms,
    )


def ended_rows(place: Mapping[str, pa.Array], fragments: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Rows of `ended_transactions` from fragments that are whole transactions, and where each of them lies."""
    epoch = fragments["end_coordinator_epoch"]
    columns = {name: fragments[source] for name, source in _NAMES_IN_FRAGMENTS.items()} | {
        "is_txn_start_exact": pa.repeat(pa.scalar(value=True, type=pa.bool_()), len(epoch)),
        "outcome": pc.fill_null(fragments["end_marker"], "ended"),
        "coordinator_epoch_basis": pc.if_else(pc.is_null(epoch), _UNKNOWN, _MARKER),
    }
    return _rows({**place, **columns}, len(epoch), ENDED_TRANSACTIONS.arrow_schema)


def linked_pieces(
    used: Iterable[PieceKey], ingest_of: Mapping[str, str], cut: Collection[SectionKey]
) -> tuple[LinkedPiece, ...]:
    """The pieces whose ended transactions are a run's: without those of sections that it cut and folded anew."""
    return tuple(LinkedPiece(ingest_of[piece.input_id], *piece) for piece in used if piece.section not in cut)


def open_rows(linked: pa.RecordBatch, run_id: str) -> pa.RecordBatch:
    """Of what linking decided, in `LINKED_SCHEMA`, the open transactions as rows of `transactions` of a run."""
    return _of_run(linked.filter(pc.equal(linked["outcome"], OPEN)), TRANSACTIONS, run_id)


def ended_by_run(rows: pa.RecordBatch, run_id: str, used: Collection[PieceKey]) -> pa.RecordBatch:
    """Rows of `ended_transactions` that are one run's alone.

    Args:
        rows: what linking decided, in `LINKED_SCHEMA`, of which those that ended span pieces; or what was folded anew
            of sections that the run had to cut.
        run_id: stands where the ingest stands of others.
        used: the pieces of such sections that the run was linked from.
    """
    is_own = pc.or_(pc.is_null(rows["input_id"]), pa.array(is_in(rows, PIECE_KEY, used)))
    return _of_run(rows.filter(pc.and_(is_own, pc.not_equal(rows["outcome"], OPEN))), ENDED_TRANSACTIONS, run_id)


def _of_run(rows: pa.RecordBatch, table: Table, run_id: str) -> pa.RecordBatch:
    columns = {name: rows[name] for name in LINKED_SCHEMA.names}
    (slice_,) = table.partition_by
    return _rows(columns | {slice_: pa.repeat(run_id, rows.num_rows)}, rows.num_rows, table.arrow_schema)


def _rows(columns: Mapping[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
