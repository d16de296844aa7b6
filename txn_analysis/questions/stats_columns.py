"""What `stats` adds up, as whole columns: one row is what one producer did on one topic, and rows are added up alike.

A column is a sum, the least or the most of something; what was added up can be added up again, so that memory grows
with producers and topics, not with transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.judge.endings import ADMINISTRATOR, CLIENT_ABORT, FENCING, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KEY = ("topic", "producer_id")
CAUSES = {name: f"{name}_count" for name in (CLIENT_ABORT, TIMEOUT, FENCING, ADMINISTRATOR)}
"""The causes of an abort that are counted, and the columns of their counts; the others are unexplained."""
SUMS = (
    *("committed_count", "aborted_count", *CAUSES.values(), "unknown_outcome_count"),
    *("empty_count", "empty_commit_count", "open_count", "start_unseen_count", "undated_count", "backwards_count"),
    *("sized_count", "record_count", "size_bytes", "timed_count", "duration_sum_ms"),
    *("decided_count", "marker_wait_sum_ms"),
)
LEAST = ("min_duration_ms", "min_marker_wait_ms")
MOST = ("max_record_count", "max_size_bytes", "max_duration_ms", "max_marker_wait_ms")
_HOW = {**dict.fromkeys(SUMS, "sum"), **dict.fromkeys(LEAST, "min"), **dict.fromkeys(MOST, "max")}
SCHEMA = pa.schema([("topic", pa.string()), *((name, pa.int64()) for name in ("producer_id", *_HOW))])
_MERGED_ROWS = 1 << 18


def rows_with(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """Rows of `SCHEMA` with some of its columns; the sums that are not given are 0, the others not known."""
    length = len(next(iter(columns.values())))
    zero, none = pa.repeat(pa.scalar(0, pa.int64()), length), pa.nulls(length, pa.int64())
    given = [columns.get(name, zero if name in SUMS else none) for name in SCHEMA.names]
    return pa.table([_int64(each) for each in given], schema=SCHEMA)


def _int64(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return column if pa.types.is_string(column.type) else column.cast(pa.int64())


def spread(names: Sequence[str], values: pa.Array) -> dict[str, pa.Array]:
    """The columns of one measure: how many values are known, their sum, and each of the other names its value.

    Args:
        names: of the count and of the sum, then those of the least and the most as far as there are any.
        values: one a row; NULL where it is not known.
    """
    counted, added, *others = names
    known = pc.is_valid(values)
    return {counted: known, added: pc.fill_null(values, 0), **dict.fromkeys(others, values)}


def added_up(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """The rows of each group as one; without a group one row of all, which is there even where there is no row."""
    found = rows.group_by([*by], use_threads=False).aggregate([*_HOW.items()])
    columns = [found[name] for name in by]
    columns += [
        pc.fill_null(found[f"{name}_{how}"], 0) if how == "sum" else found[f"{name}_{how}"]
        for name, how in _HOW.items()
    ]
    return pa.table(columns, names=[*by, *_HOW])


def by_producer(parts: Iterable[pa.Table]) -> pa.Table:
    """All parts, each of rows of `SCHEMA`, added up by topic and producer; few rows are held at a time."""
    held, merged_rows = [SCHEMA.empty_table()], 0
    for part in parts:
        held.append(added_up(part, KEY))
        if sum(map(len, held)) - merged_rows > max(_MERGED_ROWS, merged_rows):
            held = [added_up(pa.concat_tables(held), KEY)]
            merged_rows = len(held[0])
    return added_up(pa.concat_tables(held), KEY)
