"""One writer at a time for each table on a local disk.

Delta commits by creating the next file of a table's log, which must fail if another process was faster. On a local file
system its log store first looks, then renames: two processes can both believe that they wrote the same version, and one
of them is lost. Other stores (HDFS, Azure, GCS) refuse the second one themselves and need no lock.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

_FOLDER = ".locks"
_LOOK_AGAIN_S = 0.1
_SAY_SO_AFTER_S = 2.0

# Java's file locks are those of a process; threads of one process wait for each other here.
_threads: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def one_writer(spark: SparkSession, root: Path, table: str) -> Iterator[None]:
    """Holds the lock of one table, waiting for whoever has it.

    Spark's JVM holds it, because it is the JVM that writes: whichever of the two processes is killed, the operating
    system frees the lock exactly when no commit can come any more.

    Raises:
        OSError: the folder of the locks cannot be made.
    """
    path = root / _FOLDER / table
    with _threads[str(path)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        jvm: Any = spark._jvm
        file = jvm.java.io.RandomAccessFile(str(path), "rw")
        try:
            _wait_for(file.getChannel(), table)
            yield
        finally:
            file.close()  # frees the lock


def _wait_for(channel: Any, table: str) -> None:
    began = time.monotonic()
    is_said = False
    while channel.tryLock() is None:
        if not is_said and time.monotonic() - began > _SAY_SO_AFTER_S:
            is_said = True
            print(f"waiting for another audit that writes {table}", file=sys.stderr, flush=True)
        time.sleep(_LOOK_AGAIN_S)
