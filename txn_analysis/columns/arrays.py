"""Helpers for whole columns: NULL-aware values, reductions per group, runs of equal keys, and rows that match."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

T = TypeVar("T")
K = TypeVar("K")

Array = np.ndarray[Any, np.dtype[Any]]
Columns = dict[str, Array]
"""Columns of as many rows, by name."""

ABSENT = -1
"""Kafka's own word for "none" and "not known", wherever a number cannot be negative; NULL in the tables."""
NONE = ABSENT  # stands for NULL


def known(value: int, of_none: int = ABSENT) -> int | None:
    """The number; None where ABSENT, or another word for it, stands there."""
    return None if value == of_none else value


def numbers_named(*names: str) -> np.dtype[Any]:
    """A row with these fields, each a number; NONE stands in them for what is not known."""
    return np.dtype([(name, np.int64) for name in names])


def names_in(rows: np.dtype[Any]) -> tuple[str, ...]:
    """The names of the fields of such rows."""
    return rows.names or ()


def lists(values: pa.Array, piece: Array, count: int) -> pa.Array:
    """One list per piece, from values that are sorted by piece."""
    return pa.ListArray.from_arrays(pa.array(np.searchsorted(piece, np.arange(count + 1)), pa.int32()), values)


def nullable(values: Array) -> pa.Array:
    """The values with NONE as NULL."""
    return pa.array(values, mask=values == NONE)


def of_types(columns: Iterable[Any], fields: Iterable[pa.Field]) -> list[Any]:
    """Columns, each of its field's type; Arrow takes as long to cast a few values that have it already as others."""
    return [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, fields, strict=True)]


def rows_of_columns(columns: Mapping[str, Any], count: int, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a schema, of some of its columns by name; NULL in the others."""
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(of_types(arrays, schema), schema=schema)


def numbers(column: pa.Array | pa.ChunkedArray, of_null: int) -> Array:
    """A column of numbers, with a number for NULL."""
    integers = column if column.type == pa.int64() else column.cast(pa.int64())
    values: Array = (integers.fill_null(of_null) if integers.null_count else integers).to_numpy()
    return values


def numbers_of(values: Iterable[int | None]) -> Array:
    """Some numbers as a column, NONE for None."""
    return np.array([NONE if value is None else value for value in values], np.int64)


def known_of(column: Array) -> list[int | None]:
    """The numbers of a column, None for NONE."""
    return [None if value == NONE else value for value in column.tolist()]


def place_in(ordered: Array, values: Array) -> Array:
    """The place of each value among others, which are in order and differ; -1 where it is none of them."""
    if not len(ordered):
        return np.full(len(values), ABSENT)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.where(ordered[place] == values, place, ABSENT)


def mixed(numbers: Array) -> Array:
    """SplitMix64's finalizer of UINT64: numbers in a row do not stay in a row."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashed: Array = numbers ^ (numbers >> np.uint64(31))
    return hashed


def counted(values: pa.Array | pa.ChunkedArray) -> Counter[int]:
    """How often each number occurs."""
    counts = values.value_counts()
    return Counter(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    combined = pa.chunked_array(column).combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def codes_of(column: pa.Array | pa.ChunkedArray, *, is_sorted: bool = False) -> Array:
    """A number for each different value of a column, -1 for NULL; in the order of the values if `is_sorted`."""
    encoded = pc.dictionary_encode(pa.chunked_array(column).combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = numbers(encoded.indices, ABSENT)
    if not is_sorted or len(encoded.dictionary) < 2:
        return codes
    rank = np.argsort(pc.sort_indices(encoded.dictionary).to_numpy())
    return np.where(codes == ABSENT, ABSENT, rank[codes])


def max_of(values: Array, first: Array) -> Array:
    """The largest value of each group; groups begin at `first`. NONE loses against any value."""
    return np.maximum.reduceat(values, first) if len(first) else np.array([], np.int64)


def at(values: Array, row: Array) -> Array:
    """The values at some rows; NONE where there is no such row."""
    # NONE reads the last value, which is not taken.
    return np.where(row == NONE, NONE, values[row]) if len(values) else row


def rows_at(columns: Mapping[str, Array], rows: Array | slice) -> Columns:
    """Some rows of columns; where a mask takes all, as most do, these are not copied."""
    if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.all():
        return dict(columns)
    return {name: values[rows] for name, values in columns.items()}


def tuples_of(rows: pa.RecordBatch | pa.Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Of each row its values in some columns."""
    columns = [rows[name].to_pylist() for name in names]
    return zip(*columns, strict=True) if columns else repeat((), rows.num_rows)


def by_key(items: Iterable[T], key: Callable[[T], K]) -> defaultdict[K, list[T]]:
    """The items by their keys, those of each key in their order; none of a key that none has."""
    groups: defaultdict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def together(items: Iterable[T], rows_of: Callable[[T], int], most_rows: int) -> Iterator[list[T]]:
    """Items in their order, as many at a time as have so many rows together, or one alone that has more."""
    group, count = list[T](), 0
    for item in items:
        own_rows = rows_of(item)
        if group and count + own_rows > most_rows:
            yield group
            group, count = [], 0
        group.append(item)
        count += own_rows
    if group:
        yield group


def equal_runs(rows: pa.RecordBatch | pa.Table, key: Sequence[str]) -> list[tuple[int, int]]:
    """Where each stretch of rows with equal values in the columns of a key begins, and where it ends; NULL is equal."""
    is_first = np.zeros(rows.num_rows, bool)
    is_first[:1] = True
    for name in key:
        column = pa.chunked_array(rows[name]).combine_chunks()
        codes = pc.fill_null(pc.dictionary_encode(column).indices, -1).to_numpy()
        is_first[1:] |= codes[1:] != codes[:-1]
    return list(pairwise([*np.flatnonzero(is_first).tolist(), rows.num_rows]))


def is_in(rows: pa.RecordBatch | pa.Table, key: Sequence[str], wanted: Collection[tuple[Any, ...]]) -> Array:
    """Whether the key of each row is a wanted one; only the first row of those that lie together is looked up."""
    is_wanted = np.zeros(rows.num_rows, bool)
    for start, stop in equal_runs(rows, key):
        is_wanted[start:stop] = tuple(rows[name][start].as_py() for name in key) in wanted
    return is_wanted


def matching(known: pa.Table, key: Sequence[str], names: Sequence[str]) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Of some rows those whose key one of some others has, by columns of both.

    Args:
        known: the others. Each has a key of its own.
        key: columns that both have.
        names: the columns of what is made; those that the others have beside the key are theirs.
    """
    places = {values: place for place, values in enumerate(tuples_of(known, key))}
    of_others = {name: known[name].combine_chunks() for name in known.column_names if name not in key}

    def match(rows: pa.RecordBatch) -> pa.RecordBatch:
        runs = equal_runs(rows, key)
        at = [places.get(tuple(rows[name][start].as_py() for name in key), ABSENT) for start, _ in runs]
        place = np.repeat(np.array(at, np.int64), np.array([stop - start for start, stop in runs], np.int64))
        # A filter copies all that it keeps.
        kept = rows.filter(pa.array(place != ABSENT)) if ABSENT in at else rows
        place = pa.array(place[place != ABSENT])
        columns = [of_others[n].take(place) if n in of_others else kept[n] for n in names]
        return pa.RecordBatch.from_arrays(columns, [*names])

    return match


def slices(data: bytes, starts: Array, stops: Array) -> pa.LargeBinaryArray:
    """Some stretches of a text, which lie apart and in order, as an Arrow column."""
    if not len(starts):
        return pa.array([], pa.large_binary())
    bounds = np.empty(2 * len(starts), np.int64)  # of each stretch, and of what is left out before the next one
    bounds[0::2], bounds[1::2] = starts, stops
    if (bounds[1:-1:2] == bounds[2::2]).all():
        return _binary_column(data, np.append(bounds[0::2], bounds[-1:]), len(starts))
    with_gaps = _binary_column(data, bounds, len(bounds) - 1)
    return with_gaps.take(pa.array(np.arange(0, len(bounds) - 1, 2)))


def _binary_column(data: bytes, bounds: Array, count: int) -> pa.LargeBinaryArray:
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
