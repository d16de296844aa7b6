"""The first commit of a table: its schema, comments and CHECK constraints, and the format of its warehouse."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from txn_analysis.errors import WarehouseError
from txn_analysis.storage.delta_folder import OF_NO_FILES, lines_of
from txn_analysis.storage.errors import DAMAGED
from txn_analysis.tables import INDEXED_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.columns.values import Json
    from txn_analysis.storage.roots import Root
    from txn_analysis.tables import Table

FORMAT = 5
"""The format of a warehouse: raised where a column is renamed or removed, or means something else (decision 0130).

A column that is added raises nothing: it may be NULL, is NULL in rows of before, and comes to Delta's schema at the
first write."""
_FORMAT_PROPERTY = "txn-analysis.format"

# The least version of Delta's protocol that a writer must know.
_WRITER, _WRITER_OF_CHECKS = 2, 3


def create_table(root: Root, table: Table) -> None:
    """Create a table past Spark, which takes seconds to make those of a warehouse; one that is there stays as it is.

    A table without rows is one commit, a text of two actions, and the checksum of its version, without which whoever
    looks at the table next has Spark count its files (Delta's PROTOCOL.md, "Actions" and "Version Checksum File").

    The caller has seen that there is no table, and is its only writer meanwhile, or the storage refuses the second one.

    Raises:
        WarehouseError: there are data files here, and no log of what they are.
        OSError: the disk fails it; no half of a file is left under its name.
    """
    if root.has_files(table.name):
        raise WarehouseError(f"{root.place}/{table.name}: {DAMAGED}")
    from txn_analysis.storage.spark_tasks import spark_schema

    now, transaction = time.time_ns() // 1_000_000, str(uuid4())
    made: dict[str, Json] = {
        "timestamp": now,
        "operation": "CREATE TABLE",
        "operationParameters": {},
        "txnId": transaction,
    }
    metadata: Json = {
        "id": str(uuid4()),
        "description": f"One row is {table.grain}.",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": spark_schema(table).json(),
        "partitionColumns": list(table.partition_by),
        "configuration": properties(table),
        "createdTime": now,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": _WRITER_OF_CHECKS if table.checks else _WRITER}
    counted = {"txnId": transaction, "allFiles": []} | OF_NO_FILES
    actions: list[dict[str, Json]] = [{"commitInfo": made}, {"metaData": metadata}, {"protocol": protocol}]
    with suppress(FileExistsError):  # another audit was faster
        root.put_log(table.name, f"{0:020}.json", lines_of(actions))
        sums = lines_of([counted | {"metadata": metadata, "protocol": protocol}])
        root.put_log(table.name, f"{0:020}.crc", sums)


def properties(table: Table) -> dict[str, str]:
    """Delta's properties of a table, its CHECK constraints among them."""
    # As properties of the new table the constraints need no commits of their own; ALTER TABLE takes one for each.
    checks = {f"delta.constraints.{name}": check.sql for name, check in table.checks.items()}
    return checks | {"delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS), _FORMAT_PROPERTY: str(FORMAT)}


def check_format(root: str, properties: Mapping[str, str]) -> None:
    """Refuse a warehouse of another format: its rows would be read as what they are not (decision 0130).

    Args:
        root: the folder, or URI, of the warehouse.
        properties: those of one of its tables.

    Raises:
        WarehouseError: they say another format, or none.
    """
    if properties.get(_FORMAT_PROPERTY) != str(FORMAT):
        raise WarehouseError(f"{root}: made by another version of txn-analysis: audit again into a new --warehouse")
