"""What a job says beside its answer goes to the driver's log, so that stdout is the answer and nothing else.

In client mode `spark-submit` gives Python a single pipe for stdout and stderr (`PythonRunner` of Spark's launcher), and
passes on what comes as stdout. Java's stderr is the driver's.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any


def is_submitted() -> bool:
    """`spark-submit` has started this process, and a Java for it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def stderr_on_drivers_log() -> Iterator[None]:
    """Meanwhile what is written to stderr goes to Java's, where `spark-submit` has started both."""
    if not is_submitted():
        yield
        return
    with redirect_stderr(_DriversLog()):
        yield


class _DriversLog(io.TextIOBase):
    """A text stream for `sys.stderr`; Java is asked for its own once there is something to write."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self) -> None:
        self._java: Any = None

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        from py4j.protocol import Py4JError  # noqa: PLC0415 beside Spark alone

        if self._java is None:
            from pyspark import SparkContext  # noqa: PLC0415 takes a second; --help has nothing to say here

            SparkContext._ensure_initialized()
            self._java = SparkContext._jvm
        try:
            self._java.java.lang.System.err.print(text)
        except (Py4JError, OSError):  # Java is gone: Py4J's word for it, or the socket's
            os.write(2, text.encode(errors="replace"))
        return len(text)
