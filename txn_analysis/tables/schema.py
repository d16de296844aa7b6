"""How a table is declared: its grain, its columns, its key, and what must hold for every row.

Types are Arrow's: whoever only reads tables needs no Spark, whose import takes a second. See `warehouse.spark_tasks`.
Checks are SQL for Delta, and conditions on Arrow rows for files that we write ourselves. Rows that are evidence of
audits have the number of their audit as well, so that thousands are judged as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import equal_runs, rows_of_columns
from txn_analysis.columns.records import fields_of

COORDINATOR_EPOCH_BASES = ("marker", "snapshot", "none_seen", "unknown")
_KEYS, _ASKED_BY = 6, ("producer_id", "transactional_id")

STRING = pa.string()
BIGINT = pa.int64()
INT = pa.int32()
BOOLEAN = pa.bool_()


def struct(**fields: pa.DataType) -> pa.DataType:
    """A struct of nullable fields, in the order given."""
    return pa.struct(list(fields.items()))


@dataclass(frozen=True)
class Col:
    """One column; `comment` says what is counted and in which unit."""

    name: str
    type: pa.DataType
    comment: str
    nullable: bool = True


def columns_of(kind: Any) -> tuple[Col, ...]:
    """The columns that a kind of records declares: each of its fields that has a comment."""
    return tuple(
        Col(name, field.type, field.comment, field.is_nullable)
        for name, field in fields_of(kind).items()
        if field.comment is not None
    )


class CountsBy(StrEnum):
    """Which rows of a table count, in words."""

    ITSELF = ""
    RUN = "A row counts only where `runs` has its `run_id`."
    INPUT = "A row counts only where `inputs` has its `ingest_id` and `input_id`."
    INPUT_OR_RUN = (
        "A row counts only where `inputs` has its `ingest_id` and `input_id`, or `runs` has its `ingest_id` as "
        "`run_id`."
    )


@dataclass(frozen=True)
class Table:
    """One Delta table of the warehouse.

    `partition_by` names the columns a whole write replaces at once; `checks` are Delta CHECK constraints by name.
    """

    name: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[Col, ...]
    partition_by: tuple[str, ...] = ()
    checks: Mapping[str, Check] = field(default_factory=dict)

    @property
    def counts_by(self) -> CountsBy:
        """Which of its rows count; readers of the bare table must join in the same way."""
        if "run_id" in self.partition_by:
            return CountsBy.RUN
        if "ingest_id" not in self.partition_by:
            return CountsBy.ITSELF
        is_of_runs_too = any(c.name == "input_id" and c.nullable for c in self.columns)
        return CountsBy.INPUT_OR_RUN if is_of_runs_too else CountsBy.INPUT

    @property
    def names(self) -> list[str]:
        """The names of its columns, in order."""
        return [column.name for column in self.columns]

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns as Arrow types."""
        return pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns])

    @cached_property
    def indexed(self) -> list[str]:
        """The columns by whose range files are skipped: keys, which come first, and those that questions ask by."""
        stored = [column for column in self.columns if column.name not in self.partition_by]
        return [
            c.name
            for n, c in enumerate(stored)
            if (n < _KEYS or c.name in _ASKED_BY) and c.type in {STRING, BIGINT, INT}
        ]


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


AUDIT = pa.field("audit", pa.int32())
"""The first column of every row."""
ONLY = 0
"""The number of the audit of a command."""


def given_schema(table: Table, *names: str) -> pa.Schema:
    """Of rows of a content table the number of their audit and some columns, those that only evidence has included."""
    known = {field.name: field.with_nullable(True) for field in table.arrow_schema}
    return pa.schema([AUDIT, *(known.get(name, pa.field(name, pa.int64())) for name in names)])


def by_audit(rows: pa.Table) -> dict[int, pa.Table]:
    """The rows of each audit, in their order."""
    numbers = rows["audit"].unique().to_pylist()
    if len(numbers) < 2:
        return dict.fromkeys(numbers, rows)
    ordered = rows.sort_by("audit")
    bounds = equal_runs(ordered, ("audit",))
    return {ordered["audit"][start].as_py(): ordered.slice(start, stop - start) for start, stop in bounds}


def with_audit(schema: pa.Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Rows of a schema, made of rows of the one audit of a command, which have its other columns."""

    def made(rows: pa.RecordBatch) -> pa.RecordBatch:
        number = pa.repeat(pa.scalar(ONLY, AUDIT.type), len(rows))
        return pa.RecordBatch.from_arrays([number, *(rows[name] for name in schema.names[1:])], schema=schema)

    return made


def rows_of_run(table: Table, run_id: str) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Rows of a table that a run writes, from rows with its other columns; NULL where they lack one.

    Tasks could not take the run along.
    """
    schema, (of_run,) = table.arrow_schema, table.partition_by

    def made(rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        return rows_of_columns(columns | {of_run: pa.repeat(run_id, len(rows))}, len(rows), schema)

    return made
