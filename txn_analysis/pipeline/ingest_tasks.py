"""Runs readers over byte ranges; a task holds one range at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import batch_of
from txn_analysis.kafka.sections import BINARY_GRAMMARS
from txn_analysis.log.summary import fold
from txn_analysis.read.dump.scan import scan_range
from txn_analysis.read.dump.snapshot_lines import read_snapshot_section, read_txnindex_section
from txn_analysis.read.entries import AbortedTxn, ProducerStateEntry
from txn_analysis.read.group_offsets import group_rows
from txn_analysis.read.inputs.accounting import ReadPiece, RejectedSpan
from txn_analysis.read.inputs.text import NoText, open_text
from txn_analysis.read.inputs.window import Reject
from txn_analysis.read.log_dir.producer_files import read_snapshot_file, read_txnindex_file
from txn_analysis.read.log_dir.segment import scan_segment
from txn_analysis.read.state.console_export import read_console_json, read_console_text
from txn_analysis.read.state.decoded_dump import read_state_section
from txn_analysis.read.state.records import ReadStateRecord
from txn_analysis.read.state.segment import read_state_segment
from txn_analysis.storage.row_tasks import RowTasks
from txn_analysis.tables import (
    ABORTED_TRANSACTIONS,
    ENDED_TRANSACTIONS,
    GROUP_OFFSETS,
    LOG_BATCHES,
    LOG_PIECES,
    PRODUCER_SNAPSHOTS,
    TRANSACTION_STATES,
)

if TYPE_CHECKING:
    from txn_analysis.read.inputs.planned_input import ScanRange, Section
    from txn_analysis.read.inputs.text import Text
    from txn_analysis.storage.row_tasks import NamedRows
    from txn_analysis.tables import Table

RangeReader = Callable[["Text", "ScanRange"], Iterable["NamedRows"]]
# What tasks tell the driver, besides the rows of tables:
PLACES = "places"  # where each piece lies: `ReadPiece`
MOMENTS = "moments"  # the newest broker clock in some records: `Moment`
REJECTED = "rejected"  # spans that were not understood: `RejectedSpan`

_ROWS_PER_BATCH = 50_000
_REJECTED_SCHEMA = pa.schema(
    [
        ("input_id", pa.string()),
        ("section_index", pa.int32()),
        ("offset_bytes", pa.int64()),
        ("length_bytes", pa.int64()),
        ("reason", pa.string()),
    ]
)
_RECORDS: Mapping[str, tuple[type[tuple[Any, ...]], Table]] = {
    "state": (ReadStateRecord, TRANSACTION_STATES),
    "console_text": (ReadStateRecord, TRANSACTION_STATES),
    "console_json": (ReadStateRecord, TRANSACTION_STATES),
    "snapshot": (ProducerStateEntry, PRODUCER_SNAPSHOTS),
    "txnindex": (AbortedTxn, ABORTED_TRANSACTIONS),
}
RECORD_KINDS = frozenset(_RECORDS)
_OF_LOGS = (LOG_BATCHES, LOG_PIECES, ENDED_TRANSACTIONS, GROUP_OFFSETS)
_TEXT_READERS: Mapping[str, Callable[[Text, Section], Iterable[tuple[Any, ...] | Reject]]] = {
    "state": read_state_section,
    "snapshot": read_snapshot_section,
    "txnindex": read_txnindex_section,
    "console_text": read_console_text,
    "console_json": read_console_json,
}
_BROKER_READERS: Mapping[str, Callable[[Text, Section], Iterable[tuple[Any, ...] | Reject]]] = {
    "state": read_state_segment,
    "snapshot": read_snapshot_file,
    "txnindex": read_txnindex_file,
}


class Moment(NamedTuple):
    """A broker's clock in some records of an input."""

    input_id: str
    moment_ms: int


def log_tasks(tasks: list[list[ScanRange]], ingest_id: str) -> RowTasks:
    """Fills `log_batches` and what they fold to from one look at the bodies of logs; tells PLACES with the pieces.

    Args:
        tasks: ranges of sections of LOG_KINDS; one Spark task for each list.
        ingest_id: the ingest that reads them.
    """

    def read(text: Text, part: ScanRange) -> Iterator[NamedRows]:
        scan = scan_segment if part.section.grammar in BINARY_GRAMMARS else scan_range
        batches = scan(text, part, ingest_id)
        if not batches:
            return
        folded = fold(batches)
        yield LOG_BATCHES.name, batches.rows()
        yield LOG_PIECES.name, folded.pieces
        yield ENDED_TRANSACTIONS.name, folded.transactions
        yield PLACES, folded.pieces.select(ReadPiece._fields)
        if batches.groups is not None:
            yield GROUP_OFFSETS.name, group_rows(batches, batches.groups)

    return RowTasks(len(tasks), _OF_LOGS, lambda number: _read_task(tasks[number], read), _size_bytes(tasks))


def record_tasks(tasks: list[list[ScanRange]], ingest_id: str) -> RowTasks:
    """Fills the tables of RECORD_KINDS; tells MOMENTS and REJECTED."""

    def read(text: Text, part: ScanRange) -> Iterator[NamedRows]:
        items = iter(_read_section(text, part.section))
        while chunk := list(islice(items, _ROWS_PER_BATCH)):
            yield REJECTED, _rejected([item for item in chunk if isinstance(item, Reject)], part)
            yield from _records([item for item in chunk if not isinstance(item, Reject)], part, ingest_id)

    tables = (TRANSACTION_STATES, PRODUCER_SNAPSHOTS, ABORTED_TRANSACTIONS)
    return RowTasks(len(tasks), tables, lambda number: _read_task(tasks[number], read), _size_bytes(tasks))


def _size_bytes(tasks: list[list[ScanRange]]) -> int:
    return sum(part.end - part.start for task in tasks for part in task)


def _rejected(rejects: list[Reject], part: ScanRange) -> pa.RecordBatch:
    place = part.input_id, part.section.index
    spans = [RejectedSpan(*place, each.offset_bytes, each.length_bytes, each.reason) for each in rejects]
    return batch_of(RejectedSpan, spans, _REJECTED_SCHEMA)


def _records(records: list[tuple[Any, ...]], part: ScanRange, ingest_id: str) -> Iterator[NamedRows]:
    kind, table = _RECORDS[part.section.kind]
    place = {"ingest_id": ingest_id, "input_id": part.input_id, "section_index": part.section.index}
    rows = batch_of(kind, records, table.arrow_schema, **place)
    yield table.name, rows
    clocks = ("last_update_ms", "recorded_ms") if table is TRANSACTION_STATES else ()
    moments = [moment for clock in clocks if (moment := pc.max(rows.column(clock)).as_py()) is not None]
    if moments:
        yield MOMENTS, pa.RecordBatch.from_pylist([{"input_id": part.input_id, "moment_ms": max(moments)}])


def _read_section(text: Text, section: Section) -> Iterable[tuple[Any, ...] | Reject]:
    readers = _BROKER_READERS if section.grammar in BINARY_GRAMMARS else _TEXT_READERS
    return readers[section.kind](text, section)


def _read_task(ranges: list[ScanRange], read: RangeReader) -> Iterator[NamedRows]:
    for (path, compression), parts in groupby(ranges, key=lambda part: (part.path, part.compression)):
        own = list(parts)
        with _open(path, compression, is_broker_file=own[0].section.grammar in BINARY_GRAMMARS) as text:
            for part in own:
                yield from read(text, part)


def _open(path: str, compression: str | None, *, is_broker_file: bool) -> Text:
    try:
        return open_text(path, compression)
    except FileNotFoundError:
        if is_broker_file:  # deleted since it was planned, as happens on a broker that runs
            return NoText()
        raise
