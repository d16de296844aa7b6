"""Values of our own as rows, rows as bytes, and rows of several kinds that one step makes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A document, as a text has it that is JSON."""

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What becomes of batches, one after another; each call sees some of them."""
GroupFunction = Callable[[Mapping[str, pa.Table]], pa.Table]
"""What becomes of all rows of some keys, by the name of their input; an input without any is an empty table."""

VALUES = pa.schema([("value", pa.binary())])
"""One row is one value that tasks give to the driver, or to each other; little, and made by our own code."""

# Of a few rows, threads take ten times as long to start as the rows take. By zstd rows take a sixth of their bytes, by
# lz4 a third, in about the same time.
_PACKED = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
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
    """Rows of one schema as the bytes of a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_PACKED) as stream:
        for part in rows:
            stream.write(part)
    return bytes(sink.getvalue())


def unpacked(rows: pa.BinaryScalar | pa.Buffer | bytes) -> pa.Table:
    """The rows that `packed` made bytes of."""
    stream = rows.as_buffer() if isinstance(rows, pa.BinaryScalar) else rows
    return pa.ipc.open_stream(stream, options=_READ).read_all()


def schema_of_kinds(**kinds: pa.Schema) -> pa.Schema:
    """One row is a row of one of several kinds: a struct of its columns; the structs of other kinds are NULL."""
    return pa.schema([(name, pa.struct([*schema])) for name, schema in kinds.items()])


def rows_of_kinds(schema: pa.Schema, **kinds: pa.RecordBatch | pa.Table) -> pa.Table:
    """Rows of several kinds as rows of `schema_of_kinds`; each batch has rows of one kind alone."""
    batches = []
    for kind, rows in kinds.items():
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
            structs = pa.StructArray.from_arrays(batch.columns, fields=[*schema.field(kind).type])
            columns = [structs if field.name == kind else pa.nulls(len(batch), field.type) for field in schema]
            batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(filter(len, batches), schema)


def of_kind(batch: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    """The rows of one kind, of rows of `schema_of_kinds`, or of inputs of a step in the same form."""
    rows = batch[kind]
    return pa.RecordBatch.from_struct_array(rows.drop_null() if rows.null_count else rows)


def each_of_kind(batches: Iterable[pa.RecordBatch], kind: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of the rows of one kind, of each batch that has any."""
    return (rows.select(names) for rows in (of_kind(batch, kind) for batch in batches) if len(rows))
