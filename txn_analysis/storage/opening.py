"""What is asked before a warehouse is opened: how much fits into memory, and whether a folder can be written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from txn_analysis.errors import WarehouseError

if TYPE_CHECKING:
    from txn_analysis.spark.jobs import Spark
    from txn_analysis.storage.warehouse import Warehouse

MEMORY_BYTES = 1 << 30
"""Of text that a run rests on, earlier captures included: up to so much of batch lines this process ends before Spark's
tasks do, even with eight cores, as Spark takes ten seconds to start."""
_ALWAYS_BYTES = 16 << 20
_MEMORY_PER_BYTE = 5  # of text; at most 4 were measured, where every transactional id has a transaction open

_MACHINE, _CONTROL_GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")

OWNER_ONLY = 0o700
LOG = "_delta_log"
"""The folder of a Delta table that makes it one."""


def fits_in_memory(text_bytes: int) -> bool:
    """What was read of so much text is held on the driver, where no job of Spark is as fast."""
    return text_bytes <= most_in_memory_bytes()


def most_in_memory_bytes() -> int:
    """Of how much text this process holds what was read: less than `MEMORY_BYTES` where little memory is free."""
    return min(MEMORY_BYTES, max(_ALWAYS_BYTES, free_memory_bytes() // _MEMORY_PER_BYTE))


def free_memory_bytes() -> int:
    """What this process may take: what is free on the machine, or all of its container's where that is less.

    A container counts the pages of files that it has read as its own, and gives them back: what is left says little.
    """
    free = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError):
        named = dict(line.split(":", 1) for line in _MACHINE.read_text().splitlines())
        free.append(int(named["MemAvailable"].split()[0]) << 10)
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of control groups, version 2 and 1
        with suppress(OSError, ValueError):  # "max" where there is no bound
            free.append(int((_CONTROL_GROUP / name).read_text()))
    return min(free)


def open_warehouse(session: Spark, given: str) -> Warehouse:
    """The warehouse at a path or URI; a session that is yet to start is started only where Spark must read.

    Raises:
        WarehouseError: it names no place, or a table there is damaged, of another format, or not plain.
    """
    from txn_analysis.storage.roots import root_at
    from txn_analysis.storage.warehouse import Warehouse

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
        raise WarehouseError(
            f"{root}: {table} is a Delta table. Give the folder of a warehouse as --warehouse, or a new one"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        is_read_only = os.statvfs(nearest).f_flag & os.ST_RDONLY
        what = "the file system is read-only" if is_read_only else "no permission to write here"
        raise WarehouseError(
            f"{nearest}: {what}. Earlier runs can still be read; give a --warehouse that can be written"
        )


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
