"""Which files an ingest reads: paths, folders and globs, resolved before anything is opened."""

from __future__ import annotations

import glob
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from txn_analysis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GLOB_CHARACTERS = frozenset("*?[")


@dataclass(frozen=True, order=True)
class SourceFile:
    """One regular file to read."""

    path: str
    size_bytes: int


class _UnusableError(Exception):
    """One path that cannot be read, with the remedy."""


class _GoneError(Exception):
    """A file that was deleted after its folder was listed."""


def find_files(paths: Sequence[str]) -> list[SourceFile]:
    """The files under `paths` (files, folders, globs, `file://` URIs), each once, sorted by path.

    Folders are read with all their sub-folders; files and folders whose name begins with a dot are passed over there,
    and so is what is deleted while the folder is read.

    Raises:
        InputError: paths that do not exist, cannot be read, or are no regular files; one line for each.
    """
    found: dict[str, SourceFile] = {}
    problems: list[str] = []
    for path in paths:
        for candidate in _expand(path, problems):
            try:
                found.setdefault(candidate, _regular_file(candidate))
            except _UnusableError as error:
                problems.append(f"{candidate}: {error}")
            except _GoneError:  # brokers that run delete segments; the folder is as if it were listed a moment later
                if candidate == path:
                    problems.append(f"{candidate}: it was deleted while it was looked at. Copy it again")
    if problems:
        raise InputError(sorted(set(problems)))
    return sorted(found.values())


def _expand(given: str, problems: list[str]) -> Iterator[str]:
    """The files that one argument names. A file system other than the local one would be listed here."""
    try:
        path = _local_path(given)
        matches = [path] if os.path.lexists(path) else _glob(path)
    except _UnusableError as error:
        problems.append(f"{given}: {error}")
        return
    for match in matches:
        if Path(match).is_dir():
            yield from _folder_files(match, problems)
        else:
            yield match


def _local_path(given: str) -> str:
    if "://" not in given and not given.startswith("file:/"):
        return given
    uri = urlsplit(given)
    if uri.scheme != "file" or uri.netloc not in {"", "localhost"}:
        msg = "only local files can be read. Copy it here first"
        raise _UnusableError(msg)
    return unquote(uri.path)


def _glob(pattern: str) -> list[str]:
    matches = sorted(glob.glob(pattern, recursive=True)) if _GLOB_CHARACTERS & set(pattern) else []  # noqa: PTH207 - `**`
    if not matches:
        msg = "no such file or folder. Check the path; quote a glob so that the shell does not change it"
        raise _UnusableError(msg)
    return matches


def _folder_files(folder: str, problems: list[str]) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        if isinstance(error, FileNotFoundError) and error.filename != folder:
            return
        problems.append(f"{error.filename}: the folder cannot be read ({error.strerror}). Check its permissions")

    root = Path(folder).resolve()
    before = len(problems)
    is_empty = True
    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        # A linked folder is not walked into, so it must be refused rather than passed over in silence.
        linked = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in sorted([*names, *linked]):
            if name.startswith("."):
                continue
            is_empty = False
            path = Path(parent) / name
            # realpath, as Path.resolve raises where links go in a circle.
            if path.is_symlink() and (name in linked or not Path(os.path.realpath(path)).is_relative_to(root)):
                problems.append(f"{path}: a link out of the given folder, or to a folder. Name its target instead")
            else:
                yield str(path)
    if is_empty and len(problems) == before:
        problems.append(f"{folder}: no files in this folder. Check the path")


def _regular_file(path: str) -> SourceFile:
    try:
        status = os.stat(path)  # noqa: PTH116 - one call for kind and size
    except OSError as error:
        if not os.path.lexists(path):
            raise _GoneError from error
        msg = f"cannot be read ({error.strerror}). Copy the file again"
        raise _UnusableError(msg) from error
    if not stat.S_ISREG(status.st_mode):
        msg = "not a regular file. Save the text to a file first, it is read more than once"
        raise _UnusableError(msg)
    if not os.access(path, os.R_OK):
        msg = "no permission to read it. Change its mode or owner"
        raise _UnusableError(msg)
    return SourceFile(path, status.st_size)
