"""A Spark session that is there, or one that is started once something needs it: little work needs none."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    Spark = SparkSession | Callable[[], SparkSession]


def running(spark: Spark) -> SparkSession:
    """The session, started by now."""
    return spark() if callable(spark) else spark


@contextmanager
def started_once(session: Callable[[], AbstractContextManager[SparkSession]]) -> Iterator[Callable[[], SparkSession]]:
    """A way to start a session, once, from whichever thread; it ends with the context."""
    with ExitStack() as started:
        lock = threading.Lock()
        sessions: list[SparkSession] = []

        def start() -> SparkSession:
            with lock:
                if not sessions:
                    sessions.append(started.enter_context(session()))
            return sessions[0]

        yield start
