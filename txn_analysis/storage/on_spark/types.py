"""The types of declared tables as Spark has them; whoever imports this imports Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
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

from txn_analysis.tables._schema import BIGINT, BINARY, BOOLEAN, DOUBLE, INT, STRING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.tables._schema import Table

_PLAIN: dict[pa.DataType, DataType] = {
    STRING: StringType(),
    BIGINT: LongType(),
    DOUBLE: DoubleType(),
    INT: IntegerType(),
    BOOLEAN: BooleanType(),
    BINARY: BinaryType(),
}


_BY_HINT = {str: STRING, int: BIGINT, bool: BOOLEAN}


def frame_of(spark: SparkSession, rows: Iterable[Mapping[str, Any]], table: Table) -> DataFrame:
    """Rows made on the driver as a frame of the table's schema; absent columns are NULL."""
    names = table.names
    return spark.createDataFrame([tuple(row.get(n) for n in names) for row in rows], spark_schema(table))


def spark_schema(table: Table) -> StructType:
    """The columns of a table, comments included."""
    columns = table.columns
    return StructType([StructField(c.name, spark_type(c.type), c.nullable, {"comment": c.comment}) for c in columns])


def spark_struct(**fields: pa.DataType) -> StructType:
    """A struct, or the schema of a frame, of nullable fields in the order given."""
    return StructType([StructField(name, spark_type(kind)) for name, kind in fields.items()])


def spark_type(kind: pa.DataType) -> DataType:
    """A type of Arrow as Spark has it, at any depth."""
    if pa.types.is_struct(kind):
        return StructType([StructField(f.name, spark_type(f.type), f.nullable) for f in kind])
    if pa.types.is_list(kind):
        return ArrayType(spark_type(kind.value_type), kind.value_field.nullable)
    if pa.types.is_map(kind):
        return MapType(spark_type(kind.key_type), spark_type(kind.item_type), kind.item_field.nullable)
    return _PLAIN[kind]
