"""How a warehouse is opened, and what is asked of a folder before: whether it can be written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.errors import WarehouseError
from txn_analysis.spark.jobs import Spark

if TYPE_CHECKING:
    from txn_analysis.warehouse.delta_tables import Warehouse

OWNER_ONLY = 0o700
LOG = "_delta_log"
"""The folder of a Delta table that makes it one."""


def open_warehouse(session: Spark, given: str) -> Warehouse:
    """The warehouse at a path or URI; a session that is yet to start is started only where Spark must read.

    Raises:
        WarehouseError: it names no place, or a table there is damaged, of another format, or not plain.
    """
    from txn_analysis.warehouse.delta_tables import Warehouse
    from txn_analysis.warehouse.roots import root_at

    return Warehouse(session, root_at(given))


def check_writable(root: Path) -> None:
    """Refuse a folder of this machine that cannot be written before anything is read.

    Raises:
        WarehouseError: a part of its path is a file or a table, or it cannot be written.
    """
    nearest = next(folder for folder in (root, *root.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        raise WarehouseError(f"{root}: {nearest} is not a folder. Give another --warehouse")
    table = next((folder for folder in (nearest, *nearest.parents) if (folder / LOG).is_dir()), None)
    if table is not None:
        raise inside_a_table(root, table)
    if not os.access(nearest, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(nearest).f_flag & os.ST_RDONLY
        what = "the file system is read-only" if is_read_only else "no permission to write here"
        raise WarehouseError(
            f"{nearest}: {what}. Earlier runs can still be read; give a --warehouse that can be written"
        )


def inside_a_table(root: object, table: object) -> WarehouseError:
    """The error of a warehouse that would lie in a Delta table."""
    remedy = "Give the folder of a warehouse as --warehouse, or a new one"
    return WarehouseError(f"{root}: {table} is a Delta table. {remedy}")


def make_private(folder: Path) -> None:
    """Make a folder for its owner alone, below parents as the umask leaves them; one that is there keeps its mode.

    Raises:
        OSError: it cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(OWNER_ONLY)
    except FileExistsError:
        return
    folder.chmod(OWNER_ONLY)  # also where a set-group-id parent, or a default access list, gave it more
