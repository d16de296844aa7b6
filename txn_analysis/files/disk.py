"""Folders of this machine as a store has them: listed, read and dropped by the same names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from txn_analysis.files.store import Found, Version

ON_DISK = ""
"""The root of a place that is a path of this machine: its key is the path without the first `/`."""


@contextmanager
def alone_in(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Whoever else changes a file of this folder by this waits; the lock leaves no file, and goes with its process."""
    import fcntl  # of POSIX alone

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # shares that lock no folder: there, of two in one moment, the last one wins
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Disk:
    """As of `Files`; nothing here is told apart by its version."""

    def listed(self, prefix: str) -> Iterator[Found]:
        """As of `Files`; without what is gone again, or renamed, since it was listed."""
        for folder, _, names in os.walk(f"/{prefix}"):
            for name in names:
                with suppress(FileNotFoundError):
                    path = os.path.join(folder, name)
                    yield Found(path[1:], Version("", os.stat(path).st_size))  # noqa: PTH116 names are keys here

    def read(self, key: str, start: int, end: int, version: Version) -> bytes:  # noqa: ARG002
        """As of `Files`."""
        with open(f"/{key}", "rb") as file:
            file.seek(start)
            return file.read(end - start)

    def drop(self, keys: Sequence[str]) -> None:
        """As of `Files`, and the folder of a slice that has no file any more."""
        for key in keys:
            with suppress(FileNotFoundError):
                os.unlink(f"/{key}")  # noqa: PTH108
            folder = key.rpartition("/")[0]
            if "=" in folder.rpartition("/")[2]:  # in Hive's form, as slices are named
                with suppress(OSError):
                    os.rmdir(f"/{folder}")  # noqa: PTH106
