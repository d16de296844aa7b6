"""The processes that run the parts: as many as the machine of CI has cores."""

import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

AT_ONCE = 2


@contextmanager
def two_processes() -> Iterator[Executor]:
    """Each runs one part at a time; what a part keeps for the next ones goes when both end."""
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ProcessPoolExecutor(AT_ONCE, spawn, initializer=_keep_in, initargs=(folder,)) as processes,
    ):
        yield processes


def _keep_in(folder: str) -> None:
    tempfile.tempdir = folder
