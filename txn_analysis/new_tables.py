"""How the tables of a warehouse come into being."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from delta.tables import DeltaTable

from txn_analysis.errors import WarehouseError
from txn_analysis.storage_errors import DAMAGED
from txn_analysis.tables import INDEXED_COLUMNS
from txn_analysis.wall_clock import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from txn_analysis.tables import Table

# The least version of Delta's protocol that a writer must know.
_WRITER, _WRITER_OF_CHECKS = 2, 3
_OF_NO_FILES = {
    "tableSizeBytes": 0,
    "numFiles": 0,
    "numMetadata": 1,
    "numProtocol": 1,
    "setTransactions": [],
    "domainMetadata": [],
    "allFiles": [],
}


def create_table(spark: SparkSession, path: str, table: Table) -> None:
    """Create a Delta table with its comments, NOT NULL columns and CHECK constraints, unless another was faster."""
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(_description(table))
    builder = builder.addColumns(table.schema).partitionedBy(*table.partition_by)
    for name, value in _properties(table).items():
        builder = builder.property(name, value)
    builder.execute()


def create_table_here(folder: Path, table: Table) -> None:
    """The same table in a folder of this machine, past Spark, which takes seconds to make those of a warehouse.

    A table without rows is one commit, a text of two actions, and the checksum of its version, without which whoever
    looks at the table next has Spark count its files (Delta's PROTOCOL.md, "Actions" and "Version Checksum File").

    The caller is the only writer of the table meanwhile.

    Raises:
        WarehouseError: there are data files here, and no log of what they are.
        OSError: the disk fails it; no half of a file is left under its name.
    """
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    commit = log / f"{0:020}.json"
    if commit.exists():
        return
    if any(path != log for path in folder.iterdir()):
        raise WarehouseError(f"{folder}: {DAMAGED}")
    now, transaction = now_ms(), str(uuid4())
    defined = {"metadata": _metadata(table, now), "protocol": _protocol(table)}
    made = {"timestamp": now, "operation": "CREATE TABLE", "operationParameters": {}, "txnId": transaction}
    actions = {"commitInfo": made, "metaData": defined["metadata"], "protocol": defined["protocol"]}
    _put(commit, [{name: action} for name, action in actions.items()])
    _put(commit.with_suffix(".crc"), [{"txnId": transaction} | _OF_NO_FILES | defined])


def _metadata(table: Table, now: int) -> dict[str, Any]:
    return {
        "id": str(uuid4()),
        "description": _description(table),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema.json(),
        "partitionColumns": list(table.partition_by),
        "configuration": _properties(table),
        "createdTime": now,
    }


def _protocol(table: Table) -> dict[str, Any]:
    return {"minReaderVersion": 1, "minWriterVersion": _WRITER_OF_CHECKS if table.checks else _WRITER}


def _put(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """A file of JSON lines that is there as a whole, or not at all."""
    new = path.with_name(f".{path.name}.{uuid4()}.tmp")
    with new.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


def _description(table: Table) -> str:
    return f"One row is {table.grain}."


def _properties(table: Table) -> dict[str, str]:
    # As properties of the new table the constraints need no commits of their own; ALTER TABLE takes one for each.
    checks = {f"delta.constraints.{name}": check.sql for name, check in table.checks.items()}
    return checks | {"delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS)}
