"""Tables that another version of this program made: what they lack of today's declaration, and how they get it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from txn_analysis.errors import WarehouseError
from txn_analysis.storage.on_spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.storage.local.delta_folder import Definition
    from txn_analysis.tables import Table

_AUDIT_ANEW = "Audit the files again into a new --warehouse"
_SPACE = re.compile(r"\s+(?=(?:[^']*'[^']*')*[^']*$)")  # outside of quoted words


@dataclass(frozen=True)
class Differences:
    """How a stored table differs from its declaration.

    Attributes:
        lacks_fields: some columns, or fields inside them, are declared and not there.
        not_null: columns that may not be NULL there, and may today; those that are not declared any more among them.
        surplus: CHECK constraints that are not declared, or say something else.
        missing: declared CHECK constraints that are not there, or say something else.
    """

    lacks_fields: bool
    not_null: tuple[str, ...]
    surplus: tuple[str, ...]
    missing: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self.lacks_fields or bool(self.not_null or self.surplus or self.missing)


def differences(stored: Definition, path: str, table: Table) -> Differences:
    """How the table at `path` differs from what is declared.

    Raises:
        WarehouseError: it was made in a way that cannot be changed.
    """
    if stored.partition_by != table.partition_by:
        raise WarehouseError(f"{path}: was made by another version, in other partitions. {_AUDIT_ANEW}")
    schema = StructType.fromJson(json.loads(stored.schema))
    declared = {name: _plain(check.sql) for name, check in table.checks.items()}
    present = {name: _plain(sql) for name, sql in stored.checks.items()}
    needed = {column.name for column in table.columns if not column.nullable}
    return Differences(
        lacks_fields=merged(schema, spark_schema(table), path) != schema,
        not_null=tuple(f.name for f in schema if not f.nullable and f.name not in needed),
        surplus=tuple(name for name, sql in present.items() if declared.get(name) != sql),
        missing=tuple(name for name, sql in declared.items() if present.get(name) != sql),
    )


def bring_up_to_date(spark: SparkSession, stored: Definition, path: str, table: Table) -> None:
    """Let the table have the columns, the fields inside them and the constraints that are declared, and no others.

    Old rows have NULL in what is new; what is not declared any more stays, and may be NULL. Each step is one commit,
    and a step that another audit has taken is left out, so that a second call, and one after a kill, ends the same.

    Raises:
        WarehouseError: it cannot be changed, or old rows break a new constraint.
    """
    found, alter = differences(stored, path, table), f"ALTER TABLE delta.{_quoted(path)}"
    # A write must fill what may not be NULL, and can be checked only by what it has columns for.
    for name in found.not_null:
        spark.sql(f"{alter} ALTER COLUMN {_quoted(name)} DROP NOT NULL")
    for name in found.surplus:
        spark.sql(f"{alter} DROP CONSTRAINT IF EXISTS {_quoted(name)}")
    if found.lacks_fields:
        nothing = spark.createDataFrame([], spark_schema(table)).write.format("delta").mode("append")
        nothing.option("mergeSchema", "true").save(path)
    for name in found.missing:
        try:
            spark.sql(f"{alter} ADD CONSTRAINT {_quoted(name)} CHECK ({table.checks[name].sql})")
        except AnalysisException as error:
            _check_addition(error, f"{path}: rows that another version wrote break CHECK {name}")


def _check_addition(error: AnalysisException, what: str) -> None:
    """Raise what hindered a constraint, unless another audit was faster."""
    if error.getCondition() == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION":
        raise WarehouseError(f"{what}. {_AUDIT_ANEW}") from error
    if error.getCondition() != "DELTA_CONSTRAINT_ALREADY_EXISTS":
        raise error


def as_declared(frame: DataFrame, path: str, table: Table) -> DataFrame:
    """The frame of a stored table, with NULL in every declared column, and field inside one, that it lacks.

    Raises:
        WarehouseError: it was made with other types.
    """
    schema = merged(frame.schema, spark_schema(table), path)
    return frame if schema == frame.schema else frame.to(schema)


def merged(stored: StructType, declared: StructType, place: str) -> StructType:
    """The stored fields, at any depth, and behind them those that are declared besides, which may be NULL.

    Raises:
        WarehouseError: a field has another type than is declared.
    """
    known = {field.name: field for field in declared}
    fields = [
        StructField(f.name, _merged(f.dataType, known[f.name].dataType, f"{place}: {f.name}"), f.nullable, f.metadata)
        if f.name in known
        else f
        for f in stored
    ]
    new = [StructField(f.name, f.dataType, metadata=f.metadata) for f in declared if f.name not in stored.names]
    return StructType([*fields, *new])


def _merged(stored: DataType, declared: DataType, place: str) -> DataType:
    if isinstance(stored, StructType) and isinstance(declared, StructType):
        return merged(stored, declared, place)
    if isinstance(stored, ArrayType) and isinstance(declared, ArrayType):
        return ArrayType(_merged(stored.elementType, declared.elementType, place), stored.containsNull)
    if isinstance(stored, MapType) and isinstance(declared, MapType) and stored.keyType == declared.keyType:
        value = _merged(stored.valueType, declared.valueType, place)
        return MapType(stored.keyType, value, stored.valueContainsNull)
    if stored != declared:
        types = f"{stored.simpleString()} here, and {declared.simpleString()} in this version"
        raise WarehouseError(f"{place} is {types}. {_AUDIT_ANEW}")
    return stored


def _plain(sql: str) -> str:
    """A condition without its blanks: Delta puts one between all words of a constraint that is added later."""
    return _SPACE.sub("", sql)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
