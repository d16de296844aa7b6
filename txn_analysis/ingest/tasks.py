"""Runs readers over byte ranges in Spark tasks; a task holds one range at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from txn_analysis.ingest.body import Reject
from txn_analysis.ingest.console import read_console_json, read_console_text
from txn_analysis.ingest.line_records import read_snapshot_section, read_txnindex_section
from txn_analysis.ingest.scan_batches import scan_range
from txn_analysis.ingest.state_records import read_state_section
from txn_analysis.ingest.text import open_text
from txn_analysis.reconstruct.fold import fold
from txn_analysis.tables import LOG_BATCHES, LOG_PIECES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.ingest.plan import ScanRange, Section
    from txn_analysis.ingest.text import Text
    from txn_analysis.tables import Table

RangeReader = Callable[["Text", "ScanRange"], Iterable[pa.RecordBatch]]
_ROWS_PER_BATCH = 50_000
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
                yield from _read_task(tasks[task], read)

    return spark.range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(run, schema)


def _read_task(ranges: list[ScanRange], read: RangeReader) -> Iterator[pa.RecordBatch]:
    for (path, compression), parts in groupby(ranges, key=lambda part: (part.path, part.compression)):
        with open_text(path, compression) as text:
            for part in parts:
                yield from read(text, part)


def batches_of_ranges(spark: SparkSession, tasks: list[list[ScanRange]], ingest_id: str) -> DataFrame:
    """Rows of `log_batches` from the bodies of log sections."""
    return read_ranges(spark, tasks, LOG_BATCHES.schema, lambda text, part: [scan_range(text, part, ingest_id)])


def pieces_of_ranges(spark: SparkSession, tasks: list[list[ScanRange]], ingest_id: str) -> DataFrame:
    """Rows of `log_pieces` from the bodies of log sections: what `batches_of_ranges` gives, folded where it is read."""

    def read(text: Text, part: ScanRange) -> Iterator[pa.RecordBatch]:
        batches = scan_range(text, part, ingest_id)
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
