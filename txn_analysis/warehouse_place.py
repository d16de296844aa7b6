"""Whether tables can be made at a place: asked before Spark starts, and again by whoever makes them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from txn_analysis.errors import WarehouseError

if TYPE_CHECKING:
    from pathlib import Path

LOG_OF_TABLE = "_delta_log"


def check_writable(root: Path) -> None:
    """Refuse a folder of this machine that cannot be written before anything is read.

    Raises:
        WarehouseError: a part of its path is a file or a table, or it cannot be written.
    """
    nearest = next(folder for folder in (root, *root.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        raise WarehouseError(f"{root}: {nearest} is not a folder. Give another --warehouse")
    table = next((folder for folder in (nearest, *nearest.parents) if (folder / LOG_OF_TABLE).is_dir()), None)
    if table is not None:
        raise WarehouseError(
            f"{root}: {table} is a Delta table. Give the folder of a warehouse as --warehouse, or a new one"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(nearest).f_flag & os.ST_RDONLY
        what = "the file system is read-only" if is_read_only else "no permission to write here"
        raise WarehouseError(
            f"{nearest}: {what}. Earlier runs can still be read; give a --warehouse that can be written"
        )
