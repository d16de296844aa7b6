"""Rows in one value: an Arrow stream, for what passes through Spark without being looked at there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def packed(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """The rows of batches of one schema as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_COMPRESSED) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(rows: pa.BinaryScalar | bytes) -> pa.Table:
    """The rows that `packed` made bytes of."""
    return pa.ipc.open_stream(rows if isinstance(rows, bytes) else rows.as_buffer()).read_all()
