"""Typed records and whole Arrow columns, each made of the other: behind this module mypy knows every field.

A record is a `NamedTuple` whose fields are named as the columns. A field that is itself such a record is a struct, one
that is a tuple of them a list of structs; None is NULL. Where there are too many of these to be records, a field holds
them as columns: its kind says as `RECORD` what they would be, and `of_lists` makes it. `Annotated[…, "what it counts"]`
makes a field a column of the record's table; a field without such a comment is told of a row beside its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from itertools import islice, repeat
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc

Record = TypeVar("Record", bound=tuple[Any, ...])

Int32 = Annotated[int, pa.int32()]
"""A number of Kafka's type INT32 or INT16; a plain `int` is an INT64."""
Counts = Mapping[str, int]
"""A map of counts, by what is counted."""

_TYPES = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    Counts: pa.map_(pa.string(), pa.int64()),
}


class RecordField(NamedTuple):
    """One field of a record as its annotation says it: `kind` is what it holds, or holds many of.

    `inner` is the same where that is a record, else None. `type` is the Arrow type of its column, None where only rows
    that somebody else declared are read into it. `comment` is None where it is no column. `columns` is the kind that
    holds many records as columns, None where they are records.
    """

    kind: Any
    inner: Any
    is_many: bool
    is_nullable: bool
    type: pa.DataType | None = None
    comment: str | None = None
    columns: Any = None


@cache
def fields_of(kind: Any, *, is_in_list: bool = False) -> dict[str, RecordField]:
    """The fields of a kind of records, by name; `is_in_list` says that a column holds lists of them."""
    hints = get_type_hints(kind, include_extras=True).items()
    return {name: _field(hint, is_in_list=is_in_list) for name, hint in hints}


def _field(hint: Any, *, is_in_list: bool) -> RecordField:
    hint, notes = _without_notes(hint)
    known = [each for each in get_args(hint) if each is not NoneType]
    is_nullable = NoneType in get_args(hint)
    value_type = known[0] if is_nullable else hint
    columns = value_type if hasattr(value_type, "RECORD") else None
    is_many = columns is not None or get_origin(value_type) in {tuple, list}
    element, more = _without_notes(_one_of_many(value_type) if is_many else value_type)
    inner = element if hasattr(element, "_fields") else None
    noted = next((note for note in (*notes, *more) if isinstance(note, pa.DataType)), None)
    arrow_type = noted or _type_of(element, is_in_list=is_in_list or is_many)
    if is_many and arrow_type is not None:
        # Inside a struct of a list Delta knows no elements that are never NULL.
        arrow_type = pa.list_(pa.field("element", arrow_type, nullable=is_in_list))
    comment = next((note for note in notes if isinstance(note, str)), None)
    return RecordField(element, inner, is_many, is_nullable, arrow_type, comment, columns)


def _one_of_many(hint: Any) -> Any:
    return hint.RECORD if hasattr(hint, "RECORD") else get_args(hint)[0]


def _without_notes(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _type_of(hint: Any, *, is_in_list: bool) -> pa.DataType | None:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return pa.string()
    if get_origin(hint) is Literal:
        return _TYPES[type(get_args(hint)[0])]
    if not hasattr(hint, "_fields"):
        return _TYPES.get(hint)
    fields = {name: field.type for name, field in fields_of(hint, is_in_list=is_in_list).items()}
    return None if None in fields.values() else pa.struct([*fields.items()])


def records_of(kind: type[Record], rows: pa.RecordBatch | pa.Table | pa.StructArray) -> list[Record]:
    """The rows as records; columns that no field is named after are left out.

    A column that rows lack gives the field's default.

    Raises:
        KeyError: a field without a default has no column.
    """
    if isinstance(rows, pa.Table):
        return [record for batch in rows.to_batches() for record in records_of(kind, batch)]
    names = rows.schema.names if isinstance(rows, pa.RecordBatch) else [field.name for field in rows.type]
    array_of = rows.column if isinstance(rows, pa.RecordBatch) else rows.field
    columns = [_column(kind, name, field, names, array_of, len(rows)) for name, field in fields_of(kind).items()]
    make: Callable[[Iterable[Any]], Record] = kind._make  # type: ignore[attr-defined]  # of every NamedTuple
    return [*map(make, zip(*columns, strict=True))]


def _column(
    kind: Any, name: str, field: RecordField, names: list[str], array_of: Callable[[str], pa.Array], count: int
) -> list[Any]:
    if name not in names:
        return [kind._field_defaults[name]] * count
    return _values(array_of(name), field)


def _values(array: pa.Array, field: RecordField) -> list[Any]:
    if field.columns is not None:
        return list(field.columns.of_lists(array))
    if field.is_many:
        items = iter(records_of(field.inner, array.flatten()) if field.inner else array.flatten().to_pylist())
        lengths = pc.list_value_length(array).to_pylist()
        return [None if length is None else tuple(islice(items, length)) for length in lengths]
    if field.inner is None:
        return _plain_values(array, field.kind)
    if not array.null_count:
        return records_of(field.inner, array)
    inner = iter(records_of(field.inner, array.drop_null()))
    return [next(inner) if is_there else None for is_there in array.is_valid().to_pylist()]


def _plain_values(array: pa.Array, kind: Any) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        known = {word: None if word is None else kind(word) for word in array.unique().to_pylist()}
        return [known[word] for word in array.to_pylist()]
    if pa.types.is_map(array.type):
        return [None if pairs is None else dict(pairs) for pairs in array.to_pylist()]
    return array.to_pylist()  # type: ignore[no-any-return]  # Arrow has no types


def batch_of(kind: type[Record], records: Sequence[Record], schema: pa.Schema, **alike: Any) -> pa.RecordBatch:
    """Records as rows that are to be written; `alike` are columns that have one value in all of them.

    Raises:
        KeyError: a column of the schema is neither a field nor alike.
    """
    columns = zip(*records, strict=True) if records else repeat(())
    named: dict[str, Any] = dict(zip(fields_of(kind), columns, strict=False))
    for name, value in alike.items():
        named[name] = pa.repeat(pa.scalar(value, schema.field(name).type), len(records))
    return pa.RecordBatch.from_pydict(named, schema=schema)
