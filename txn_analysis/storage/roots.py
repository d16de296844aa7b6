"""Where the tables of a warehouse lie: in a folder of this machine, or below a name in a store.

All that differs between the two is here: how a file is put, how one of two writers at once is refused, and how the
library of Delta's log finds a table. A root is handed to tasks, and has nothing open.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa

from txn_analysis.errors import WarehouseError
from txn_analysis.storage.opening import LOG, check_writable, make_private
from txn_analysis.stores.places import Place, PlaceError, delta_options, local_path, place_of, shown
from txn_analysis.stores.remote_file import RemoteFile, ahead, streamed
from txn_analysis.stores.store import Version, store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_LOCKS = ".locks"
_LOOK_AGAIN_S = 0.1
_SAY_SO_AFTER_S = 2.0
_FETCHED_AHEAD = 8
_WHOLE_BYTES = 8 << 20  # a smaller data file of a store is fetched by one request

# Names that the library of Delta's log takes as they are written; it decodes others.
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.=+/-]*")

# Locks of POSIX are those of a process; threads of one process wait for each other here.
_threads: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class NoTable(Exception):  # noqa: N818 an answer as well as an error
    """There is no Delta table in a folder."""


class NewFile(Protocol):
    """A data file that is being written, at `target` on a disk of this machine; nobody reads it before it is kept."""

    target: Path

    def keep(self) -> int:
        """Put it where it belongs; its size in bytes."""

    def drop(self) -> None:
        """Free its space; it may be there in part, or not at all."""


class Root(Protocol):
    """Where tables lie, each in a folder of its name. Errors are those of a disk, or of `stores`."""

    @property
    def place(self) -> str:
        """The path, or URI."""

    def prepare(self) -> None:
        """Make it, for its owner alone where that can be said.

        Raises:
            WarehouseError: tables cannot be made there.
        """

    def one_writer(self, table: str) -> Any:
        """A context in which nobody else of this machine writes a table, where the storage itself would not mind."""

    def log(self, table: str) -> dict[str, int]:
        """The files of a table's log, with their sizes.

        Raises:
            NoTable: there is none.
        """

    def has_files(self, table: str) -> bool:
        """Whether there is anything in the folder of a table that has no log."""

    def log_text(self, table: str, name: str) -> str:
        """A file of a table's log; FileNotFoundError where there is none."""

    def put_log(self, table: str, name: str, text: str) -> None:
        """Write a new file of a table's log as a whole; FileExistsError where another writer was faster."""

    def for_delta(self, table: str, *, is_whole: bool = False) -> Any:
        """A context with the name of a table's folder, and what else `deltalake` needs to find it.

        Of a folder that it is shown in a passing one, it sees the log alone, unless `is_whole`.
        """

    def drop(self, paths: Iterable[str]) -> None:
        """Free the space of files, by their paths from here; those that are gone are none of its business."""

    def sizes(self, paths: Collection[str]) -> dict[str, int]:
        """Of some files those that are there, by their paths from here, each with its bytes."""

    def new_file(self, path: str) -> NewFile:
        """A data file to be written, by its path from here."""

    def sources(self, files: Iterable[tuple[str, int]]) -> Iterator[Any]:
        """What Arrow opens to read some data files, by their paths and sizes in bytes, in their order."""


def root_at(given: str) -> Root:
    """The root that a path or URI names.

    Raises:
        WarehouseError: it names none.
    """
    try:
        place = place_of(given)
        if place is None:
            return DiskRoot(Path(local_path(given)).absolute())
    except PlaceError as error:
        raise WarehouseError(f"{shown(given)}: {error}") from None
    if not _PLAIN_KEY.fullmatch(place.key):
        raise WarehouseError(f"{given}: a warehouse in a store has a name of letters, digits and _ . = + - alone")
    return StoreRoot(place)


@dataclass(frozen=True)
class DiskRoot:
    """A folder of this machine."""

    folder: Path

    @property
    def place(self) -> str:
        """As of `Root`."""
        return str(self.folder)

    def prepare(self) -> None:
        """As of `Root`."""
        check_writable(self.folder)
        make_private(self.folder)

    @contextmanager
    def one_writer(self, table: str) -> Iterator[None]:
        """As of `Root`: the lock of the table, freed by the operating system where its holder is killed.

        A commit creates the next file of a log, which must fail if another process was faster. On a disk the log store
        of Delta in Spark first looks, then renames: two could both believe that they wrote the same version.
        """
        path = self.folder / _LOCKS / table
        with _threads[str(path)]:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                _wait_for(file, table)
                yield

    def log(self, table: str) -> dict[str, int]:
        """As of `Root`."""
        try:
            with os.scandir(self._log(table)) as found:
                entries = [*found]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoTable(table) from error
        sizes = dict[str, int]()
        for entry in entries:
            with suppress(FileNotFoundError):  # another writer has given its commit the name that counts
                sizes[entry.name] = entry.stat().st_size
        return sizes

    def has_files(self, table: str) -> bool:
        """As of `Root`."""
        folder = self.folder / table
        return folder.is_dir() and any(path.name != LOG for path in folder.iterdir())

    def log_text(self, table: str, name: str) -> str:
        """As of `Root`."""
        return (self._log(table) / name).read_text(encoding="utf-8")

    def put_log(self, table: str, name: str, text: str) -> None:
        """As of `Root`; beside its place, synced, and renamed."""
        path = self._log(table) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():  # the caller is the only writer meanwhile
            raise FileExistsError(path)
        new = path.with_name(f".{path.name}.{uuid4()}.tmp")
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)

    @contextmanager
    def for_delta(self, table: str, *, is_whole: bool = False) -> Iterator[tuple[str, Mapping[str, str]]]:
        """As of `Root`: a name of the folder that the library does not take for another one.

        It decodes `%20` in a path, also in that of a URI, takes a backslash for `/`, and refuses control characters.
        The log of such a folder is shown to it in a passing one; where links lead does not matter, as it reads no data.
        """
        folder = self.folder / table
        name = str(folder)
        if unquote(name) == name and "\\" not in name and name.isprintable():
            yield name, {}
            return
        with tempfile.TemporaryDirectory(prefix="txn-analysis-") as passing:
            for shown_path in folder.iterdir() if is_whole else (folder / LOG,):
                (Path(passing) / shown_path.name).symlink_to(shown_path)
            yield passing, {}

    def sizes(self, paths: Collection[str]) -> dict[str, int]:
        """As of `Root`."""
        found = dict[str, int]()
        for path in paths:
            with suppress(FileNotFoundError):
                found[path] = (self.folder / path).stat().st_size
        return found

    def drop(self, paths: Iterable[str]) -> None:
        """As of `Root`, and of the folder of a slice that has no file any more."""
        for path in paths:
            file = self.folder / path
            file.unlink(missing_ok=True)
            if file.parent.name != LOG and file.parent.parent != self.folder:
                with suppress(OSError):
                    file.parent.rmdir()

    def new_file(self, path: str) -> NewFile:
        """As of `Root`."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return _HereFile(target)

    def sources(self, files: Iterable[tuple[str, int]]) -> Iterator[str]:
        """As of `Root`."""
        return (f"{self.folder}/{path}" for path, _ in files)

    def _log(self, table: str) -> Path:
        return self.folder / table / LOG


@dataclass
class _HereFile:
    target: Path

    def keep(self) -> int:
        return self.target.stat().st_size

    def drop(self) -> None:
        with suppress(OSError):
            self.target.unlink()


def _wait_for(file: IO[bytes], table: str) -> None:
    began = time.monotonic()
    is_said = False
    while True:
        with suppress(BlockingIOError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if not is_said and time.monotonic() - began > _SAY_SO_AFTER_S:
            is_said = True
            print(f"waiting for another audit that writes {table}", file=sys.stderr, flush=True)
        time.sleep(_LOOK_AGAIN_S)


@dataclass(frozen=True)
class StoreRoot:
    """A name in an object store or HDFS, which itself refuses the second of two that put one file of a log."""

    where: Place

    @property
    def place(self) -> str:
        """As of `Root`."""
        return self.where.uri

    def prepare(self) -> None:
        """As of `Root`; whom a store lets in, its owner says there."""
        nearest = self.where.key
        while nearest:
            if store_of(self.where).within(f"{nearest}/{LOG}")[1]:
                raise WarehouseError(
                    f"{self.place}: {self.where.child(nearest).uri} is a Delta table. Give the folder of a warehouse as"
                    " --warehouse, or a new one"
                )
            nearest = nearest.rpartition("/")[0]

    @contextmanager
    def one_writer(self, table: str) -> Iterator[None]:  # noqa: ARG002 the store refuses the second one
        """As of `Root`."""
        yield

    def log(self, table: str) -> dict[str, int]:
        """As of `Root`."""
        key = self._key(table, LOG)
        found = store_of(self.where).within(key)[1]
        if not found:
            raise NoTable(table)
        return {each.key.rpartition("/")[2]: each.version.size_bytes for each in found}

    def has_files(self, table: str) -> bool:
        """As of `Root`."""
        found = store_of(self.where).listed(self._key(table))
        return any(f"/{LOG}/" not in each.key for each in found)

    def log_text(self, table: str, name: str) -> str:
        """As of `Root`."""
        return store_of(self.where).whole(self._key(table, LOG, name)).decode()

    def put_log(self, table: str, name: str, text: str) -> None:
        """As of `Root`."""
        store_of(self.where).put(self._key(table, LOG, name), text.encode(), is_new=True)

    def sizes(self, paths: Collection[str]) -> dict[str, int]:
        """As of `Root`; by one list of each table."""
        wanted = {self._key(path): path for path in paths}
        tables = {path.partition("/")[0] for path in paths}
        listed = (each for table in tables for each in store_of(self.where).listed(self._key(table)))
        return {wanted[each.key]: each.version.size_bytes for each in listed if each.key in wanted}

    def drop(self, paths: Iterable[str]) -> None:
        """As of `Root`."""
        store_of(self.where).drop([self._key(path) for path in paths])

    @contextmanager
    def for_delta(self, table: str, *, is_whole: bool = False) -> Iterator[tuple[str, Mapping[str, str]]]:  # noqa: ARG002
        """As of `Root`."""
        yield self.where.child(self._key(table)).uri, delta_options(self.where.root)

    def new_file(self, path: str) -> NewFile:
        """As of `Root`: in a passing file of its owner alone, which is sent once it is whole."""
        handle, target = tempfile.mkstemp(prefix="txn-analysis-", suffix=".parquet")
        os.close(handle)
        return _SentFile(Path(target), self.where.child(self._key(path)))

    def sources(self, files: Iterable[tuple[str, int]]) -> Iterator[Any]:
        """As of `Root`: of small files the next ones are fetched meanwhile."""
        for _, source in ahead(lambda file: self._source(*file), files, at_once=_FETCHED_AHEAD):
            yield source()

    def _source(self, path: str, size_bytes: int) -> Any:
        file = RemoteFile(self.where.child(self._key(path)), Version("", size_bytes))  # data files are never replaced
        if size_bytes <= _WHOLE_BYTES:
            return pa.BufferReader(file.read(0, size_bytes))
        return pa.PythonFile(streamed(file), "r")

    def _key(self, *names: str) -> str:
        return "/".join(name for name in (self.where.key, *names) if name)


@dataclass
class _SentFile:
    target: Path
    to: Place

    def keep(self) -> int:
        size_bytes = self.target.stat().st_size
        with self.target.open("rb") as file:
            store_of(self.to).put(self.to.key, file if size_bytes > _WHOLE_BYTES else file.read())
        self.drop()
        return size_bytes

    def drop(self) -> None:
        with suppress(OSError):
            self.target.unlink()
