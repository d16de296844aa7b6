"""Rows that carry what no engine looks at: values of our own, and rows of several kinds that one step makes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A document, as a text has it that is JSON."""

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What becomes of batches, one after another; each call sees some of them."""
GroupFunction = Callable[[Mapping[str, pa.Table]], pa.Table]
"""What becomes of all rows of some keys, by the name of their input; an input without any is an empty table."""

VALUES = pa.schema([("value", pa.binary())])
"""One row is one value that tasks give to the driver, or to each other; little, and made by our own code."""

NAMED = pa.schema([("name", pa.string()), ("rows", pa.binary())])
"""One row is all rows of one kind that a step made of some keys, packed: who asks for a kind unpacks no other one."""

# Of a few rows, threads take ten times as long to start as the rows take. By zstd rows take a sixth of their bytes, by
# lz4 a third, in about the same time.
_PACKED = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_MOST_BYTES = 256 << 20
_PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)


def rows_of_values(*values: Any) -> pa.Table:
    """Values as rows."""
    return pa.table({"value": pa.array([pickle.dumps(value) for value in values], pa.binary())}, schema=VALUES)


def values_in(rows: pa.Table | pa.RecordBatch) -> Iterator[Any]:
    """The values of such rows."""
    return unpickled(rows.column("value").to_pylist())


def unpickled(values: Iterable[bytes | None]) -> Iterator[Any]:
    """Values that our own code has pickled; None where there is none."""
    return (None if value is None else pickle.loads(value) for value in values)  # noqa: S301 nobody else's


def packed(rows: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema) -> bytes:
    """Rows of one schema as the bytes of a compressed Arrow stream; those of `NAMED` are compressed already."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_PLAIN if schema.equals(NAMED) else _PACKED) as stream:
        for part in rows:
            stream.write(part)
    return bytes(sink.getvalue())


def unpacked(rows: pa.BinaryScalar | pa.Buffer | bytes) -> pa.Table:
    """The rows that `packed` made bytes of."""
    stream = rows.as_buffer() if isinstance(rows, pa.BinaryScalar) else rows
    return pa.ipc.open_stream(stream, options=_READ).read_all()


def named(**kinds: pa.RecordBatch | pa.Table) -> pa.Table:
    """Rows of several kinds, by their names; those without any are left out."""
    parts = [(name, part) for name, rows in kinds.items() for part in _in_parts(rows)]
    streams = [packed([part], part.schema) for _, part in parts]
    return pa.table([pa.array([name for name, _ in parts], pa.string()), pa.array(streams, pa.binary())], schema=NAMED)


def _in_parts(rows: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch | pa.Table]:
    """The rows in parts that a binary value can hold: of Arrow's, it has no more than 2 GiB."""
    part = max(1, rows.num_rows * _MOST_BYTES // max(1, rows.nbytes))
    return (rows.slice(start, part) for start in range(0, rows.num_rows, part))


def rows_named(name: str) -> BatchFunction:
    """The rows of one kind, of rows of `NAMED`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for kind, stream in zip(batch.column("name").to_pylist(), batch.column("rows"), strict=True):
                if kind == name:
                    yield from unpacked(stream).to_batches()

    return run
