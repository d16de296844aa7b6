"""Runs readers over byte ranges in Spark tasks; a task holds one range at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from txn_analysis.ingest.body import Reject
from txn_analysis.ingest.console import read_console_json, read_console_text
from txn_analysis.ingest.line_records import read_snapshot_section, read_txnindex_section
from txn_analysis.ingest.producer_files import read_snapshot_file, read_txnindex_file
from txn_analysis.ingest.scan_batches import scan_range
from txn_analysis.ingest.sections import BINARY_GRAMMARS
from txn_analysis.ingest.segment_scan import scan_segment
from txn_analysis.ingest.state_records import read_state_section
from txn_analysis.ingest.state_segment import read_state_segment
from txn_analysis.ingest.text import NoText, open_text
from txn_analysis.reconstruct.attached import with_pieces
from txn_analysis.reconstruct.fold import fold
from txn_analysis.tables import LOG_BATCHES, LOG_PIECES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.ingest.plan import ScanRange, Section
    from txn_analysis.ingest.text import Text
    from txn_analysis.tables import Table

RangeReader = Callable[["Text", "ScanRange"], Iterable[pa.RecordBatch]]
_ROWS_PER_BATCH = 50_000
_FEW_ROWS = 5_000
_BROKER_READERS: Mapping[str, Callable[[Text, Section], Iterable[dict[str, Any] | Reject]]] = {
    "state": read_state_segment,
    "snapshot": read_snapshot_file,
    "txnindex": read_txnindex_file,
}
REJECT_FIELDS = (
    StructField("reject_offset_bytes", LongType()),
    StructField("reject_length_bytes", LongType()),
    StructField("reject_reason", StringType()),
)


def read_ranges(spark: SparkSession, tasks: list[list[ScanRange]], schema: StructType, read: RangeReader) -> DataFrame:
    """What `read` makes of every range; one Spark task per list of ranges."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield from _coalesced(_read_task(tasks[task], read))

    return spark.range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(run, schema)


def _coalesced(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer parts: each crosses to the JVM by itself, and of small files there are many."""
    held: list[pa.RecordBatch] = []
    for part in parts:
        held.append(part)
        if sum(one.num_rows for one in held) >= _FEW_ROWS:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held = []
    yield from pa.Table.from_batches(held).combine_chunks().to_batches() if held else ()


def _read_task(ranges: list[ScanRange], read: RangeReader) -> Iterator[pa.RecordBatch]:
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


def batches_of_ranges(spark: SparkSession, tasks: list[list[ScanRange]], ingest_id: str) -> DataFrame:
    """Rows of `log_batches` from the bodies of log sections, with the pieces that they are folded into."""

    def read(text: Text, part: ScanRange) -> Iterator[pa.RecordBatch]:
        batches = _scan(text, part, ingest_id)
        if batches.num_rows:
            yield with_pieces(batches)

    return read_ranges(spark, tasks, LOG_BATCHES.schema, read)


def _scan(text: Text, part: ScanRange, ingest_id: str) -> pa.RecordBatch:
    scan = scan_segment if part.section.grammar in BINARY_GRAMMARS else scan_range
    return scan(text, part, ingest_id)


def pieces_of_ranges(spark: SparkSession, tasks: list[list[ScanRange]], ingest_id: str) -> DataFrame:
    """Rows of `log_pieces` from the bodies of log sections, without the batches that they are folded from."""

    def read(text: Text, part: ScanRange) -> Iterator[pa.RecordBatch]:
        batches = _scan(text, part, ingest_id)
        if batches.num_rows:
            yield fold(pa.Table.from_batches([batches]))

    return read_ranges(spark, tasks, LOG_PIECES.schema, read)


def records_of_sections(spark: SparkSession, tasks: list[list[ScanRange]], table: Table, ingest_id: str) -> DataFrame:
    """Rows of one of the small tables, and, in the same frame with REJECT_FIELDS, the spans that were not understood.

    A row is either a record (`reject_reason` is NULL) or a reject (NULL in all columns but its place).
    """
    fields = [StructField(f.name, f.dataType, nullable=True) for f in table.schema]
    schema = StructType([*fields, *REJECT_FIELDS])
    arrow_schema = to_arrow_schema(schema)

    def read(text: Text, part: ScanRange) -> Iterator[pa.RecordBatch]:
        place = {"ingest_id": ingest_id, "input_id": part.input_id, "section_index": part.section.index}
        rows = (_as_row(item) | place for item in _read_section(text, part.section))
        while chunk := list(islice(rows, _ROWS_PER_BATCH)):
            yield pa.RecordBatch.from_pylist(chunk, schema=arrow_schema)

    return read_ranges(spark, tasks, schema, read)


def _read_section(text: Text, section: Section) -> Iterable[dict[str, Any] | Reject]:
    if section.grammar in BINARY_GRAMMARS:
        return _BROKER_READERS[section.kind](text, section)
    if section.kind == "state":
        return read_state_section(text, section)
    readers = {
        "snapshot": read_snapshot_section,
        "txnindex": read_txnindex_section,
        "console_text": read_console_text,
        "console_json": read_console_json,
    }
    return readers[section.kind](text, section)


def _as_row(item: dict[str, Any] | Reject) -> dict[str, Any]:
    return {f"reject_{n}": v for n, v in asdict(item).items()} if isinstance(item, Reject) else item
