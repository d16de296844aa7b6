"""Which files an ingest reads: paths, folders, globs, URIs and standard input, resolved before anything is opened.

Standard input is kept in a private file meanwhile, as each part of a text is read by itself. Every report and table
names it `-`, as the command does; where it was kept is in none of them.
"""

from __future__ import annotations

import glob
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from txn_analysis.errors import InputError
from txn_analysis.files import places
from txn_analysis.files.places import Place
from txn_analysis.files.store import Found, StoreError, Version, found_below, has_glob, store_of
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.spark.interrupts import delete_when_interrupted
from txn_analysis.text import size

_GLOB_CHARACTERS = frozenset("*?[")
_STATE_FOLDER = f"{STATE_TOPIC}-"
_NOTHING = "''"  # as a shell would have it


@dataclass(frozen=True, order=True)
class SourceFile:
    """One regular file, or one object, to read; `version` is an object's, as it was listed."""

    path: str
    size_bytes: int
    version: Version | None = field(default=None, compare=False)


def place_of(path: str) -> str:
    """An absolute path to the same file, as a task's worker may run in another folder; links in it stay as they are.

    A URI is its own; of `-` it is where standard input is kept.
    """
    if path == STANDARD_INPUT and _kept:
        return str(_kept[-1])
    if path.startswith(os.sep) or places.place_of(path) is not None:
        return path
    return os.path.join(os.getcwd(), path)  # noqa: PTH109 `Path` would drop what does not change where it leads


def is_there(path: str, neighbour: str) -> bool:
    """Whether a file of some name lies beside another one."""
    place = places.place_of(path)
    if place is None:
        return (Path(path).parent / neighbour).exists()
    return store_of(place).head(f"{place.key.rpartition('/')[0]}/{neighbour}".strip("/")) is not None


class _UnusableError(Exception):
    """One path that cannot be read, with the remedy."""


def find_files(paths: Sequence[str]) -> list[SourceFile]:
    """The files under `paths` (files, folders, globs, URIs of each), each once, sorted by path.

    Folders are read with all their sub-folders; files and folders whose name begins with a dot are passed over there,
    and so is what is deleted while the folder is read. The coordinator's state is listed last, with its sizes: of a log
    directory that brokers write to, it must not be older than the logs.

    Raises:
        InputError: paths that do not exist, cannot be read, or are no regular files; one line for each.
    """
    files: dict[str, SourceFile] = {}
    problems: list[str] = []
    state_folders: list[str] = []
    state_places: list[Place] = []

    def look_at(candidates: Iterable[str], given: str | None = None) -> None:
        for candidate in candidates:
            try:
                file = _regular_file(candidate)
            except _UnusableError as error:
                problems.append(f"{candidate}: {error}")
                continue
            if file is not None:
                files.setdefault(candidate, file)
            elif candidate == given:
                problems.append(f"{candidate}: it was deleted while it was looked at. Copy it again")

    for path in paths:
        with _noted(path, problems):
            if (place := places.place_of(path)) is None:
                look_at(list(_expand(path, problems, state_folders)), path)
            else:
                files |= _objects(place, state_places)
    for folder in state_folders:
        look_at(_folder_files(folder, problems, []))
    files |= _state_objects(state_places, problems)
    if problems:
        raise InputError(sorted(set(problems)))
    return sorted(files.values())


@contextmanager
def _noted(given: str, problems: list[str]) -> Iterator[None]:
    """Meanwhile what keeps one argument from being read becomes a line of `problems`."""
    try:
        yield
    except (_UnusableError, places.PlaceError, StoreError) as error:
        problems.append(f"{places.shown(given) or _NOTHING}: {error}")


def _expand(given: str, problems: list[str], state_folders: list[str]) -> Iterator[str]:
    """The files of this machine that one argument names."""
    if not given:
        raise _UnusableError("an empty path, as of a variable that is not set. Name the files or their folder")
    path = places.local_path(given)
    matches = [path] if os.path.lexists(place_of(path)) else _glob(path)
    for match in matches:
        if not Path(place_of(match)).is_dir():
            yield match
            continue
        before = len(problems), len(state_folders)
        files = list(_folder_files(match, problems, state_folders))
        yield from files
        if not files and before == (len(problems), len(state_folders)):
            problems.append(f"{match}: no files in this folder. Check the path")


def _objects(place: Place, state_folders: list[Place]) -> dict[str, SourceFile]:
    """The objects that one URI names, by their own; empty ones that stand for folders are passed over."""
    one = None if has_glob(place) else store_of(place).head(place.key) if place.key else None
    if one:
        return dict([_object(place, one)])
    folder, below = found_below(place)
    folders = {parent for each in below for parent in _parents(each.key)}
    later, now = set(), dict[str, SourceFile]()
    for each in below:
        names = each.key.removeprefix(folder).strip("/").split("/")
        if each.key in folders or any(name.startswith(".") for name in names):
            continue
        depth = next((n for n, name in enumerate(names[:-1]) if name.startswith(_STATE_FOLDER)), None)
        if depth is None:
            now |= [_object(place, each)]
        else:
            later.add("/".join([folder.strip("/"), *names[: depth + 1]]))
    if not now and not later:
        msg = "no such object, and none below it. Check the name; quote a glob so that the shell does not change it"
        raise _UnusableError(msg)
    state_folders += [place.child(key) for key in sorted(later)]
    return now


def _state_objects(state_places: Iterable[Place], problems: list[str]) -> dict[str, SourceFile]:
    files: dict[str, SourceFile] = {}
    for place in state_places:
        with _noted(place.uri, problems):
            files |= _objects(place, [])
    return files


def _object(place: Place, stored: Found) -> tuple[str, SourceFile]:
    uri = place.child(stored.key).uri
    return uri, SourceFile(uri, stored.version.size_bytes, stored.version)


def _parents(key: str) -> Iterator[str]:
    while "/" in key:
        key = key.rpartition("/")[0]
        yield key


def _glob(pattern: str) -> list[str]:
    matches = sorted(glob.glob(pattern, recursive=True)) if _GLOB_CHARACTERS & set(pattern) else []  # noqa: PTH207 - `**`
    if not matches:
        msg = "no such file or folder. Check the path; quote a glob so that the shell does not change it"
        raise _UnusableError(msg)
    return matches


def _folder_files(folder: str, problems: list[str], state_folders: list[str]) -> Iterator[str]:
    """The files under a folder; those of `__transaction_state` are left for later, and named in `state_folders`."""

    def unreadable(error: OSError) -> None:
        if isinstance(error, FileNotFoundError) and error.filename != str(Path(folder)):
            return
        problems.append(f"{error.filename}: the folder cannot be read ({error.strerror}). Check its permissions")

    root = Path(folder).resolve()
    for parent, folders, names in os.walk(str(Path(folder)), onerror=unreadable):
        # A linked folder is not walked into, so it must be refused rather than passed over in silence.
        shown = sorted(name for name in folders if not name.startswith("."))
        beginning = "" if parent == os.curdir else os.path.join(parent.removeprefix("./"), "")
        linked = [name for name in shown if os.path.islink(beginning + name)]  # noqa: PTH114 as below
        later = [name for name in shown if name.startswith(_STATE_FOLDER) and name not in linked]
        state_folders += [os.path.join(parent, name) for name in later]
        folders[:] = [name for name in shown if name not in later]
        for name in sorted([*names, *linked]):
            if name.startswith("."):
                continue
            path = beginning + name
            # realpath, as Path.resolve raises where links go in a circle.
            is_link = os.path.islink(path)  # noqa: PTH114 a `Path` for each name takes as long as all else here
            if is_link and (name in linked or not Path(os.path.realpath(path)).is_relative_to(root)):
                problems.append(f"{path}: a link out of the given folder, or to a folder. Name its target instead")
            else:
                yield path


def _regular_file(path: str) -> SourceFile | None:
    """None for a file that is gone: brokers that run delete segments, and its folder could be listed a moment later."""
    try:
        status = os.stat(place_of(path))  # noqa: PTH116 - one call for kind and size
    except OSError as error:
        if not os.path.lexists(path):
            return None
        msg = f"cannot be read ({error.strerror}). Copy the file again"
        raise _UnusableError(msg) from error
    if not stat.S_ISREG(status.st_mode):
        msg = "not a regular file. Save the text to a file first, it is read more than once"
        raise _UnusableError(msg)
    if not os.access(place_of(path), os.R_OK):
        msg = "no permission to read it. Change its mode or owner"
        raise _UnusableError(msg)
    return SourceFile(path, status.st_size)


STANDARD_INPUT = "-"
_STEP_BYTES = 1 << 20
# Of the disk that keeps it so much stays free for whoever else writes there, the warehouse among them.
_LEFT_FREE_BYTES, _LEFT_FREE_PART = 256 << 20, 16

_kept: list[Path] = []  # the file that holds it, while a command runs that reads it


@contextmanager
def standard_input(paths: Sequence[str], stage: AbstractContextManager[object] | None = None) -> Iterator[None]:
    """Meanwhile the path `-` is what came through standard input, if it is among some paths; the file is private.

    Args:
        paths: all paths of a command.
        stage: lasts as long as standard input is read to its end.

    Raises:
        InputError: it is named twice, is a terminal, is empty, or there is no room for it.
    """
    if STANDARD_INPUT not in paths:
        yield
        return
    if paths.count(STANDARD_INPUT) > 1:
        raise InputError(["-: standard input is named twice, and can be read once. Name it once"])
    source = _source()
    folder = Path(tempfile.mkdtemp(prefix="txn-analysis-"))  # 0700, whatever the umask
    delete_when_interrupted(folder)
    try:
        with stage or nullcontext():
            _kept.append(_keep(source, folder))
        yield
    finally:
        _kept.clear()
        shutil.rmtree(folder, ignore_errors=True)


def _source() -> int:
    """The descriptor of standard input."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError(["-: there is no standard input: it is closed. Pipe a dump into this command"])
    if sys.stdin.isatty():
        example = "kafka-dump-log.sh --transaction-log-decoder --files FILE | txn-analysis audit segments/ -"
        raise InputError([f"-: standard input is this terminal: pipe a dump into this command, as in {example}"])
    return sys.stdin.fileno()


def _keep(source: int, folder: Path) -> Path:
    kept, kept_bytes = folder / "stdin", 0
    try:
        with kept.open("xb") as file:
            while step := os.read(source, _STEP_BYTES):
                usage = shutil.disk_usage(folder)
                left_free = min(_LEFT_FREE_BYTES, usage.total // _LEFT_FREE_PART)
                if usage.free - len(step) < left_free:
                    raise _too_large(folder, kept_bytes, f"{size(left_free)} stay free there")
                file.write(step)
                kept_bytes += len(step)
    except OSError as error:  # a quota, or whoever else fills the disk
        raise _too_large(folder, kept_bytes, error.strerror or str(error)) from error
    if not kept_bytes:
        remedy = "See what the command before the pipe says, and run it again"
        raise InputError([f"-: nothing came through standard input. {remedy}"])
    return kept


def _too_large(folder: Path, kept_bytes: int, why: str) -> InputError:
    wrong = f"{folder.parent} has no room for standard input: {size(kept_bytes)} of it were kept, and {why}"
    return InputError([f"-: {wrong}. Set TMPDIR to a folder with more room, or write it to a file and give that"])
