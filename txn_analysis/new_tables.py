"""How the tables of a warehouse come into being."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from delta.tables import DeltaTable

from txn_analysis.errors import WarehouseError
from txn_analysis.tables import INDEXED_COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from txn_analysis.tables import Table


def check_writable(root: Path) -> None:
    """Refuse a folder that cannot be written before anything is read.

    Raises:
        WarehouseError: it is none, or cannot be written.
    """
    nearest = next(folder for folder in (root, *root.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        raise WarehouseError(f"{root}: {nearest} is not a folder. Give another --warehouse")
    if not os.access(nearest, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(nearest).f_flag & os.ST_RDONLY
        what = "the file system is read-only" if is_read_only else "no permission to write here"
        raise WarehouseError(
            f"{nearest}: {what}. Earlier runs can still be read; give a --warehouse that can be written"
        )


def create_table(spark: SparkSession, path: str, table: Table) -> None:
    """Create a Delta table with its comments, NOT NULL columns and CHECK constraints, unless another was faster."""
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(f"One row is {table.grain}.")
    builder = builder.addColumns(table.schema).partitionedBy(*table.partition_by)
    # As properties of the new table the constraints need no commits of their own; ALTER TABLE takes one for each.
    for name, check in table.checks.items():
        builder = builder.property(f"delta.constraints.{name}", check.sql)
    builder.property("delta.dataSkippingNumIndexedCols", str(INDEXED_COLUMNS)).execute()
