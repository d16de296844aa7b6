"""Parquet as it is written here: words by their place in a list, and numbers in one of two ways."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator


DIFFERENCES, BYTES_BY_PLACE = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"
"""How numbers are written: by how far each is from the one before; or the first bytes of all, then the second ones."""


@lru_cache(maxsize=64)
def encodings(schema: pa.Schema, numbers: str = DIFFERENCES) -> dict[str, Any]:
    """What a writer of Parquet is told of the columns of a schema.

    Numbers repeat too seldom for a list of them; most are near the one before, or are it.
    """
    leaves = dict(leaf for field in schema for leaf in _leaves(field.name, field.type))
    return {
        "use_dictionary": [path for path, kind in leaves.items() if pa.types.is_string(kind)],
        "column_encoding": {path: numbers for path, kind in leaves.items() if pa.types.is_integer(kind)},
    }


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns that Parquet really stores of one column, by their dotted paths."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


def parquet_of(rows: pa.RecordBatch, numbers: str) -> pa.Buffer:
    """Rows as the bytes of a file that nobody else reads: not compressed, without statistics, without their schema."""
    sink = pa.BufferOutputStream()
    bare = {"compression": "none", "write_statistics": False, "store_schema": False}
    with pq.ParquetWriter(sink, rows.schema, **bare, **encodings(rows.schema, numbers)) as file:
        file.write_batch(rows)
    return sink.getvalue()


def rows_of_parquet(file: pa.Buffer, schema: pa.Schema) -> pa.Table:
    """The rows of which `parquet_of` made these bytes, which had this schema."""
    return pq.ParquetFile(pa.BufferReader(file)).read(use_threads=False).cast(schema)
