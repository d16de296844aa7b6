"""What must hold for every row of a table: in SQL for Delta, and on Arrow rows for files that we write ourselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class Check:
    """One condition on the columns of a row; `holds` gives a boolean for each row. As in Delta, NULL means broken."""

    sql: str
    holds: Callable[[pa.RecordBatch], pa.Array]

    def __and__(self, other: Check) -> Check:
        """Both conditions."""
        return Check(f"{self.sql} AND {other.sql}", lambda rows: pc.and_(self.holds(rows), other.holds(rows)))

    def is_kept_by(self, rows: pa.RecordBatch) -> bool:
        """Whether all of these rows keep it."""
        return pc.all(self.holds(rows), skip_nulls=False, min_count=0).as_py() is True


def _as_in(rows: pa.RecordBatch, column: str, value: object) -> pa.Scalar:
    """A value of a column's type; where Arrow must find the type itself, it looks for modules each time."""
    return pa.scalar(value, rows.schema.field(column).type)


def one_of(column: str, values: Iterable[str]) -> Check:
    """A column holds one of some plain words, or is NULL."""
    words = tuple(values)
    known = pa.array(words, pa.string())
    sql = f"coalesce({column} IN (" + ", ".join(f"'{word}'" for word in words) + "), true)"
    return Check(sql, lambda rows: pc.or_(pc.is_null(rows[column]), pc.is_in(rows[column], known)))


def not_negative(*columns: str) -> Check:
    """No column holds a number below 0."""
    return reduce(and_, map(_not_negative, columns))


def _not_negative(column: str) -> Check:
    return Check(
        f"coalesce({column}, 0) >= 0",
        lambda rows: pc.greater_equal(pc.fill_null(rows[column], 0), _as_in(rows, column, 0)),
    )


def in_order(first: str, last: str) -> Check:
    """Two offsets are in order, as far as both are known."""
    return Check(
        f"coalesce({first} <= {last}, true)",
        lambda rows: pc.fill_null(pc.less_equal(rows[first], rows[last]), fill_value=True),
    )


def earlier(first: str, last: str) -> Check:
    """The first of two times is the smaller one."""
    return Check(f"{first} < {last}", lambda rows: pc.less(rows[first], rows[last]))


def always(column: str, value: bool | int) -> Check:
    """A column holds the same in every row."""
    return Check(f"{column} = {str(value).lower()}", lambda rows: pc.equal(rows[column], _as_in(rows, column, value)))


def at_least(column: str, minimum: int) -> Check:
    """A column holds no smaller number."""
    return Check(f"{column} >= {minimum}", lambda rows: pc.greater_equal(rows[column], _as_in(rows, column, minimum)))


def adds_up(first: str, second: str, total: str) -> Check:
    """One column is the sum of two others."""
    return Check(f"{first} + {second} = {total}", lambda rows: pc.equal(pc.add(rows[first], rows[second]), rows[total]))


def null_only_if(empty: str, column: str, word: str) -> Check:
    """A column is NULL where another holds one word, and nowhere else."""
    return Check(
        f"({column} = '{word}') = ({empty} IS NULL)",
        lambda rows: pc.equal(pc.equal(rows[column], _as_in(rows, column, word)), pc.is_null(rows[empty])),
    )
