"""How a table is declared: its grain, its columns, its key and the checks that Delta enforces.

Types are Arrow's: whoever only reads tables needs no Spark, whose import takes a second. See `storage.on_spark.types`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.tables._checks import Check


# Keys come first in every table; statistics on them are what file skipping needs.
INDEXED_COLUMNS = 6

STRING = pa.string()
BIGINT = pa.int64()
DOUBLE = pa.float64()
INT = pa.int32()
BOOLEAN = pa.bool_()
BINARY = pa.binary()
COUNTS = pa.map_(STRING, BIGINT)


def array(element: pa.DataType) -> pa.DataType:
    """An array whose elements are never NULL."""
    return pa.list_(pa.field("element", element, nullable=False))


def inner_array(element: pa.DataType) -> pa.DataType:
    """An array inside a struct of an array: there Delta knows no elements that are never NULL."""
    return pa.list_(pa.field("element", element))


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
    def committed_by(self) -> str:
        """Which of its rows count, in words; readers of the bare table must join in the same way."""
        if "run_id" in self.partition_by:
            return "A row counts only where `runs` has its `run_id`."
        if "ingest_id" in self.partition_by and any(c.name == "input_id" and c.nullable for c in self.columns):
            return (
                "A row counts only where `inputs` has its `ingest_id` and `input_id`, or `runs` has its `ingest_id` as "
                "`run_id`."
            )
        if "ingest_id" in self.partition_by:
            return "A row counts only where `inputs` has its `ingest_id` and `input_id`."
        return ""

    @property
    def names(self) -> list[str]:
        """The names of its columns, in order."""
        return [column.name for column in self.columns]

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns as Arrow types."""
        return pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns])
