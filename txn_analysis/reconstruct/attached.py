"""Pieces that travel with the batches which they are folded from: one look at a text gives both.

A task that reads text can fill one table only. It attaches the pieces of a range to the first of the range's batches,
and they are taken out again where the batches have been written; columns that are not asked for are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from txn_analysis.reconstruct.fold import fold
from txn_analysis.tables import LOG_BATCHES, LOG_PIECES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_COLUMN = "pieces"


def with_pieces(batches: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `log_batches`, at least one, of one range, the first of them with their pieces."""
    field = LOG_BATCHES.arrow_schema.field(_COLUMN)
    attached = fold(pa.Table.from_batches([batches])).serialize().to_pybytes()
    column = pa.concat_arrays([pa.array([attached], field.type), pa.nulls(batches.num_rows - 1, field.type)])
    return batches.set_column(batches.schema.get_field_index(_COLUMN), field, column)


def attached_pieces(batches: DataFrame) -> DataFrame:
    """Rows of `log_pieces` from rows of `log_batches` as they were read."""

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for attached in part.column(0):
                yield pa.ipc.read_record_batch(attached.as_buffer(), LOG_PIECES.arrow_schema)

    return batches.select(_COLUMN).where(F.col(_COLUMN).isNotNull()).mapInArrow(run, LOG_PIECES.schema)
