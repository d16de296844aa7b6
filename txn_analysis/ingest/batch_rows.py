"""Rows of `log_batches` from what was read of one range, of a dump or of a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from txn_analysis.ingest.grammar import LAST_TIME_MS
from txn_analysis.ingest.line_form import ABSENT
from txn_analysis.tables import LOG_BATCHES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txn_analysis.ingest.line_form import Array
    from txn_analysis.ingest.plan import ScanRange


def batch_rows(part: ScanRange, ingest_id: str, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The batches of one range as rows of `log_batches`.

    Args:
        part: the range; it says whose batches these are.
        ingest_id: the ingest that reads it.
        columns: every column of the table but those that say where a row comes from; all of one length.
    """
    section = part.section
    place = {
        "ingest_id": ingest_id,
        "input_id": part.input_id,
        "section_index": section.index,
        "topic": section.topic,
        "partition": section.partition,
    }
    schema = LOG_BATCHES.arrow_schema
    count = len(columns["base_offset"])
    arrays = [
        pa.repeat(pa.scalar(place[f.name], f.type), count) if f.name in place else columns[f.name].cast(f.type)
        for f in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def no_batch_rows() -> pa.RecordBatch:
    """What a range gives in which no batch begins."""
    schema = LOG_BATCHES.arrow_schema
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def known(values: Array) -> pa.Array:
    """The values with Kafka's -1 as NULL."""
    return pa.array(values, mask=values == ABSENT)


def times(values: Array) -> pa.Array:
    """The values with NULL for Kafka's -1, and for any other time that no calendar has; clients may send both."""
    return pa.array(values, mask=(values < 0) | (values > LAST_TIME_MS))


def words(choice: Sequence[str], index: Array, is_absent: Array | None = None) -> pa.Array:
    """Of some words the one at each index; NULL where it is absent."""
    return pa.array(choice, pa.string()).take(pa.array(index, mask=is_absent))
