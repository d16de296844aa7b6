"""Folders of this machine as a store has them: listed and dropped by the same names."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from txn_analysis.stores.store import Found, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ON_DISK = ""
"""The root of a place that is a path of this machine: its key is the path without the first `/`."""


class Disk:
    """As of `Files`; nothing here is told apart by its version."""

    def listed(self, prefix: str) -> Iterator[Found]:
        """As of `Files`."""
        folders, files = self.within(prefix)
        yield from files
        for folder in folders:
            yield from self.listed(folder)

    def within(self, prefix: str) -> tuple[list[str], list[Found]]:
        """As of `Files`; without what is gone again, or renamed, since it was listed."""
        try:
            with os.scandir(f"/{prefix}") as found:
                entries = [*found]
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        files = []
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file():
                    files.append(Found(f"{prefix}/{entry.name}", Version("", entry.stat().st_size)))
        return [f"{prefix}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)], files

    def drop(self, keys: Sequence[str]) -> None:
        """As of `Files`, and the folder of a slice that has no file any more."""
        for key in keys:
            with suppress(FileNotFoundError):
                os.unlink(f"/{key}")  # noqa: PTH108 names are keys here
            folder = key.rpartition("/")[0]
            if "=" in folder.rpartition("/")[2]:  # in Hive's form, as slices are named
                with suppress(OSError):
                    os.rmdir(f"/{folder}")  # noqa: PTH106 the same
