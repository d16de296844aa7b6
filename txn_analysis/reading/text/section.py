"""The parts of an input that are read by themselves, its sections and byte ranges of them; and the rows read in them.

The first columns of a row say which ingest, input and section it is of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import ABSENT, Array
from txn_analysis.files.store import Version
from txn_analysis.kafka.names import LAST_TIME_MS
from txn_analysis.tables import Table
from txn_analysis.tables.batches import BatchPlace

NO_PARTITION = -1  # a console export does not say which partitions of __transaction_state it covers
_WHERE_READ_COLUMNS = 3


@dataclass(frozen=True)
class Section:
    """One `Dumping …` section of an input, the whole text of a console export, or what a broker's own file holds.

    `kind` is log, state (a segment of __transaction_state with decoded records), snapshot, txnindex, console_text or
    console_json. [text_start_bytes, text_end_bytes) is the body, without the lines before it and the trailer after it;
    `torn_bytes` is what the trailer says of an incomplete last batch. Where `is_start_proven` is False, the section can
    be text inside a record of the section before. A broker's own segment can be cut at `cuts`, where batches begin; a
    statement of a checkpoint has the offset in `file_base_offset`, or the word in `stated`.
    """

    kind: str
    topic: str
    partition: int
    file_base_offset: int
    text_start_bytes: int
    text_end_bytes: int
    grammar: str
    dump_path: str = ""
    index: int = 0
    torn_bytes: int = 0
    is_start_proven: bool = True
    stated: str | None = None
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScanRange:
    """Bytes [start, end) of one section's body, for one task to parse, in some ingest."""

    path: str
    compression: str | None
    input_id: str
    section: Section
    start: int
    end: int
    version: Version | None = None
    ingest_id: str = ""

    @property
    def place(self) -> BatchPlace:
        """Where batches of it are read."""
        section = self.section
        return BatchPlace(self.ingest_id, self.input_id, section.index, section.topic, section.partition)

    def placed(self, rows: pa.RecordBatch, table: Table) -> pa.RecordBatch:
        """Rows of a table that were read in it, of `schema_read`, with their place."""
        place, schema = (self.ingest_id, self.input_id, self.section.index), table.arrow_schema
        first = (pa.repeat(pa.scalar(value, f.type), len(rows)) for value, f in zip(place, schema, strict=False))
        return pa.RecordBatch.from_arrays([*first, *rows.columns], schema=schema)


def schema_read(table: Table) -> pa.Schema:
    """The columns of a table without those that say where a row was read."""
    return pa.schema(list(table.arrow_schema)[_WHERE_READ_COLUMNS:])


def rows_read(table: Table, count: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Rows without those columns, NULL where no column is given.

    Args:
        table: whose rows they are.
        count: how many.
        columns: by name: numbers, of which ABSENT is NULL; an Arrow array as it is; or one value for all.
    """
    schema = schema_read(table)
    arrays = [
        _column(field.type, columns[field.name], count) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(kind: pa.DataType, values: Any, count: int) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if not isinstance(values, np.ndarray):
        return pa.repeat(pa.scalar(values, kind), count)
    return pa.array(values.astype(bool) if pa.types.is_boolean(kind) else values, kind, values == ABSENT)


def times(values: Array) -> Array:
    """The values without Kafka's -1, and without any other time that no calendar has; clients may send both."""
    known: Array = np.where((values < 0) | (values > LAST_TIME_MS), ABSENT, values)
    return known
