"""How the tables of a warehouse come into being on a disk of this machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import uuid4

from txn_analysis.errors import WarehouseError
from txn_analysis.storage.delta_folder import OF_NO_FILES, put_lines
from txn_analysis.storage.errors import DAMAGED
from txn_analysis.storage.opening import LOG
from txn_analysis.tables import INDEXED_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from txn_analysis.columns.values import Json
    from txn_analysis.tables import Table

FORMAT = 3
"""The format of a warehouse: raised with each change of its tables, or of what reading keeps of a file."""
_FORMAT_PROPERTY = "txn-analysis.format"

# The least version of Delta's protocol that a writer must know.
_WRITER, _WRITER_OF_CHECKS = 2, 3


def create_table_here(folder: Path, table: Table) -> None:
    """Create a table in a folder of this machine, past Spark, which takes seconds to make those of a warehouse.

    A table without rows is one commit, a text of two actions, and the checksum of its version, without which whoever
    looks at the table next has Spark count its files (Delta's PROTOCOL.md, "Actions" and "Version Checksum File").

    The caller is the only writer of the table meanwhile.

    Raises:
        WarehouseError: there are data files here, and no log of what they are.
        OSError: the disk fails it; no half of a file is left under its name.
    """
    log = folder / LOG
    log.mkdir(parents=True, exist_ok=True)
    commit = log / f"{0:020}.json"
    if commit.exists():
        return
    if any(path != log for path in folder.iterdir()):
        raise WarehouseError(f"{folder}: {DAMAGED}")
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
        "description": description(table),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": spark_schema(table).json(),
        "partitionColumns": list(table.partition_by),
        "configuration": properties(table),
        "createdTime": now,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": _WRITER_OF_CHECKS if table.checks else _WRITER}
    put_lines(commit, [{"commitInfo": made}, {"metaData": metadata}, {"protocol": protocol}])
    counted = {"txnId": transaction, "allFiles": []} | OF_NO_FILES
    put_lines(commit.with_suffix(".crc"), [counted | {"metadata": metadata, "protocol": protocol}])


def description(table: Table) -> str:
    """What Delta's metadata says of a table."""
    return f"One row is {table.grain}."


def properties(table: Table) -> dict[str, str]:
    """Delta's properties of a table, its CHECK constraints among them."""
    # As properties of the new table the constraints need no commits of their own; ALTER TABLE takes one for each.
    checks = {f"delta.constraints.{name}": check.sql for name, check in table.checks.items()}
    return checks | {"delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS), _FORMAT_PROPERTY: str(FORMAT)}


def check_format(root: Path | str, properties: Mapping[str, str]) -> None:
    """Refuse a warehouse of another format: its rows would be read as what they are not (decision 0089).

    Args:
        root: the folder, or URI, of the warehouse.
        properties: those of one of its tables.

    Raises:
        WarehouseError: they say another format, or none.
    """
    if properties.get(_FORMAT_PROPERTY) != str(FORMAT):
        raise WarehouseError(f"{root}: made by another version of txn-analysis: audit again into a new --warehouse")
