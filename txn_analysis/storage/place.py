"""Whether tables can be made at a place: asked before Spark starts, and again by whoever makes them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlparse

from txn_analysis.errors import WarehouseError

LOG_OF_TABLE = "_delta_log"
# What lets Spark and Hadoop mean another file system by a path without a scheme.
_CONFIGURED_BY = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT")


def path_of(root: str) -> Path:
    """The folder of this machine that a warehouse is, if it is one: a path, or a `file:` URI."""
    return Path(unquote(urlparse(root).path) if "://" in root else root)


def folder_here(root: str) -> Path | None:
    """The folder of this machine that a warehouse certainly is; None where Spark must be asked what its place means."""
    if root.startswith("file://"):
        return path_of(root)
    is_plain = "://" not in root and not any(name in os.environ for name in _CONFIGURED_BY)
    return Path(root).absolute() if is_plain else None


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
