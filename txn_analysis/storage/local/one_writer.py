"""One writer at a time for each table on a local disk.

Delta commits by creating the next file of a table's log, which must fail if another process was faster. On a local file
system the log store of Delta in Spark first looks, then renames: two processes can both believe that they wrote the
same version, and one of them is lost. Other stores (HDFS, Azure, GCS) refuse the second one themselves and need no
lock.
"""

from __future__ import annotations

import fcntl
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

_FOLDER = ".locks"
_LOOK_AGAIN_S = 0.1
_SAY_SO_AFTER_S = 2.0

# Locks of POSIX are those of a process; threads of one process wait for each other here.
_threads: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def one_writer(root: Path, table: str) -> Iterator[None]:
    """Holds the lock of one table, for what this process writes, waiting for whoever has it.

    Raises:
        OSError: the folder of the locks cannot be made.
    """
    with _one_thread(root, table) as path, path.open("ab") as file:
        _wait_for(lambda: _is_locked(file), table)
        yield


def _is_locked(file: Any) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def one_writer_in_spark(spark: SparkSession, root: Path, table: str) -> Iterator[None]:
    """Holds the lock of one table for what Spark writes: its JVM has it.

    Whichever of the two processes is killed, the operating system frees the lock exactly when no commit can come any
    more.

    Raises:
        OSError: the folder of the locks cannot be made.
    """
    from txn_analysis.spark.private_api import lockable  # noqa: PLC0415 whoever only reads needs no Spark

    with _one_thread(root, table) as path, lockable(spark, path) as is_ours:
        _wait_for(is_ours, table)
        yield


@contextmanager
def _one_thread(root: Path, table: str) -> Iterator[Path]:
    path = root / _FOLDER / table
    with _threads[str(path)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path


def _wait_for(is_ours: Callable[[], bool], table: str) -> None:
    began = time.monotonic()
    is_said = False
    while not is_ours():
        if not is_said and time.monotonic() - began > _SAY_SO_AFTER_S:
            is_said = True
            print(f"waiting for another audit that writes {table}", file=sys.stderr, flush=True)
        time.sleep(_LOOK_AGAIN_S)
