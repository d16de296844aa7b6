"""Types of columns as others have them: what may be NULL, and how wide the offsets of strings are."""

from __future__ import annotations

import pyarrow as pa


def typed(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows by columns of other types, which differ in what may be NULL, or in the width of their offsets.

    Spark knows no list whose elements are never NULL, or not in every version; sessions may hand over large strings.
    """
    columns = [_typed(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_struct(kind):  # where it is NULL its fields are, whatever they say
        columns = [_typed(column.field(place), field.type) for place, field in enumerate(kind)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(columns, fields=[*kind], mask=mask)
    try:
        return column.view(kind)  # of the same buffers
    except pa.ArrowInvalid:
        return column.cast(nullable_type(kind)).view(kind)


def nullable_type(kind: pa.DataType) -> pa.DataType:
    """The same type, in which anything may be NULL but the keys of maps."""
    if pa.types.is_list(kind):
        return pa.list_(nullable_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, nullable_type(field.type)) for field in kind])
    return pa.map_(kind.key_type, nullable_type(kind.item_type)) if pa.types.is_map(kind) else kind
