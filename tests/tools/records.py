"""Records of tables from rows as plain data, and back."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from txn_analysis.columns.records import Counts, Record, RecordField, fields_of
from txn_analysis.tables.inputs import InputSection

_PLAIN = frozenset({bool, int, float, str, bytes, type(None)})


def record_of(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """A row as a record; numbers may be beyond what a column holds. What the row lacks is None, or its default."""
    named: Any = kind
    absent = dict.fromkeys(name for name in named._fields if name not in named._field_defaults)
    return kind(**absent | {name: value_of(field, row[name]) for name, field in fields_of(kind).items() if name in row})


def value_of(field: RecordField, value: Any) -> Any:
    if value is None:
        return None
    of_one = partial(record_of, field.inner) if field.inner else dict if field.kind is Counts else field.kind
    return tuple(map(of_one, value)) if field.is_many else of_one(value)


def plain(value: Any) -> Any:
    """A record as a row of a table: structs are dictionaries, tuples lists, enumerated words words."""
    if type(value) in _PLAIN:  # most of all that is asked for; to look for fields takes longer
        return value
    if hasattr(value, "_fields"):
        return {name: plain(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, (tuple, list)):
        return [*map(plain, value)]
    return str(value) if isinstance(value, StrEnum) else value


def sections_of(rows: Iterable[Mapping[str, Any]]) -> list[InputSection]:
    """Sections from rows of some of their fields."""
    return [InputSection._make(map(row.get, InputSection._fields)) for row in rows]
