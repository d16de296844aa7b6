"""Which implementation a warehouse has: chosen once, by where it lies and what its tables are.

In a folder of this machine, with tables as we write them, Python reads and writes it. Everything else is Spark's:
object stores, and tables that another tool gave deletion vectors or column mapping.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.spark.when_needed import is_running, running
from txn_analysis.storage.local.tables import LocalTables
from txn_analysis.storage.place import folder_here, path_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from txn_analysis.spark.when_needed import Spark
    from txn_analysis.storage.stored import Stored
    from txn_analysis.storage.warehouse import Warehouse


def open_warehouse(session: Spark, root: str) -> Warehouse:
    """The warehouse at a folder or URI, to write and to read.

    Raises:
        WarehouseError: a table there is damaged, or of another format.
    """
    place = _place(root)
    folder = local_folder(session, place)
    if folder is not None and (tables := LocalTables(folder)).are_plain:
        from txn_analysis.storage.local.warehouse import LocalWarehouse  # noqa: PLC0415 who only reads needs no Spark

        return LocalWarehouse(session, tables)
    from txn_analysis.storage.on_spark.warehouse import SparkWarehouse  # noqa: PLC0415 who only reads needs no Spark

    return SparkWarehouse(session, place, folder)


def open_to_read(root: str, start: Callable[[], SparkSession]) -> Stored:
    """The warehouse at a folder or URI, for questions; Spark is started only where it must read.

    Raises:
        WarehouseError: a table there is damaged, or of another format.
    """
    folder = folder_here(root)
    if folder is not None and (tables := LocalTables(folder)).are_plain:
        return tables
    return open_warehouse(start(), root)


def _place(root: str) -> str:
    # Delta takes a relative path for the name of a table.
    return root.rstrip("/") if "://" in root else str(Path(root).absolute())


def local_folder(session: Spark, root: str) -> Path | None:
    """The folder of this machine that a warehouse is; None where it lies elsewhere."""
    if not is_running(session) and (folder := folder_here(root)):
        return folder
    from txn_analysis.spark.private_api import is_of_this_machine  # noqa: PLC0415 who only reads needs no Spark

    return path_of(root) if is_of_this_machine(running(session), root) else None
