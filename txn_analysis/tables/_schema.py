"""How a table is declared: its grain, its columns, its key and the checks that Delta enforces."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from txn_analysis.tables._checks import Check


# Keys come first in every table; statistics on them are what file skipping needs.
INDEXED_COLUMNS = 6

STRING = StringType()
BIGINT = LongType()
DOUBLE = DoubleType()
INT = IntegerType()
BOOLEAN = BooleanType()
BINARY = BinaryType()
COUNTS = MapType(STRING, BIGINT)


def array(element: DataType) -> ArrayType:
    """An array whose elements are never NULL."""
    return ArrayType(element, containsNull=False)


def struct(**fields: DataType) -> StructType:
    """A struct of nullable fields, in the order given."""
    return StructType([StructField(name, kind) for name, kind in fields.items()])


@dataclass(frozen=True)
class Col:
    """One column; `comment` says what is counted and in which unit."""

    name: str
    type: DataType
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
        if "ingest_id" in self.partition_by:
            return "A row counts only where `inputs` has its `ingest_id` and `input_id`."
        return ""

    @cached_property
    def schema(self) -> StructType:
        """The columns as a Spark schema, comments included."""
        return StructType([StructField(c.name, c.type, c.nullable, {"comment": c.comment}) for c in self.columns])

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The same columns as Arrow types, for tables that Python workers fill."""
        return to_arrow_schema(self.schema)
