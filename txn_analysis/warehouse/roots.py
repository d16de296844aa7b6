"""Where the tables of a warehouse lie: in a folder of this machine, or below a name in a store.

A root is handed to tasks, and has nothing open. On a disk as in a store, of two that put one commit of a log the second
one is refused by the storage itself.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from txn_analysis.errors import WarehouseError
from txn_analysis.files.disk import ON_DISK, Disk
from txn_analysis.files.places import Place, PlaceError, delta_options, local_path, place_of, shown
from txn_analysis.files.remote_file import RemoteFile, ahead, streamed
from txn_analysis.files.store import Files, Piece, Version, store_of
from txn_analysis.warehouse.opening import LOG, check_writable, inside_a_table, make_private

_FETCHED_AHEAD = 8
_WHOLE_BYTES = 8 << 20  # a smaller data file of a store is fetched by one request

# Names that the library of Delta's log takes as they are written; it decodes others.
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.=+/-]*")


class NoTable(Exception):  # noqa: N818 an answer as well as an error
    """There is no Delta table in a folder."""


def root_at(given: str) -> Root:
    """The root that a path or URI names.

    Raises:
        WarehouseError: it names none, or has a name that the library of Delta's log takes for another one.
    """
    try:
        place = place_of(given)
        if place is None:
            return disk_root(Path(local_path(given)))
    except PlaceError as error:
        raise WarehouseError(f"{shown(given)}: {error}") from None
    if not _PLAIN_KEY.fullmatch(place.key):
        raise WarehouseError(f"{given}: a warehouse in a store has a name of letters, digits and _ . = + - alone")
    return Root(place)


def disk_root(folder: Path) -> Root:
    """The root of tables in a folder of this machine.

    Raises:
        WarehouseError: its name is one of those that the library decodes, splits or refuses.
    """
    name = os.path.abspath(folder)  # noqa: PTH100 the same, and of a path that came as bytes
    if unquote(name) != name or "\\" in name or not name.isprintable():
        raise WarehouseError(
            f"{ascii(name)[1:-1]}: the name of a warehouse has no backslash, no control character, and no % before two"
            " digits. Move it to another name"
        )
    return Root(Place(ON_DISK, name.strip("/")))


@dataclass(frozen=True)
class Root:
    """Where tables lie, each in a folder of its name. Errors are those of a disk, or of `files`."""

    where: Place

    @property
    def place(self) -> str:
        """The path, or URI."""
        return self.where.uri

    @property
    def _is_on_disk(self) -> bool:
        return self.where.root == ON_DISK

    @property
    def _files(self) -> Files:
        return Disk() if self._is_on_disk else store_of(self.where)

    def prepare(self) -> None:
        """Make it, for its owner alone where that can be said; whom a store lets in, its owner says there.

        Raises:
            WarehouseError: tables cannot be made there.
        """
        if self._is_on_disk:
            check_writable(Path(self.place))
            make_private(Path(self.place))
            return
        nearest = self.where.key
        while nearest:
            if next(self._files.listed(f"{nearest}/{LOG}"), None):
                raise inside_a_table(self.place, self.where.child(nearest).uri)
            nearest = nearest.rpartition("/")[0]

    def log(self, table: str) -> dict[str, int]:
        """The files of a table's log, with their sizes.

        Raises:
            NoTable: there is none.
        """
        folder = self._key(table, LOG)
        sizes = {each.key[len(folder) + 1 :]: each.version.size_bytes for each in self._files.listed(folder)}
        if not sizes:
            raise NoTable(table)
        return sizes

    def has_files(self, table: str) -> bool:
        """Whether there is anything in the folder of a table that has no log."""
        return any(f"/{LOG}/" not in each.key for each in self._files.listed(self._key(table)))

    def for_delta(self, table: str) -> tuple[str, dict[str, str]]:
        """The name of a table's folder, and what else `deltalake` needs to find it."""
        return f"{self.place}/{table}", {} if self._is_on_disk else delta_options(self.where.root)

    def text(self, path: str, size_bytes: int) -> str:
        """A small file, by its path from here and its size in bytes."""
        return bytes(self._read(path, size_bytes)).decode()

    def sizes(self, paths: Collection[str]) -> dict[str, int]:
        """Of some files those that are there, by their paths from here, each with its bytes."""
        wanted = {self._key(path): path for path in paths}
        tables = {path.partition("/")[0] for path in paths}
        listed = (each for table in tables for each in self._files.listed(self._key(table)))
        return {wanted[each.key]: each.version.size_bytes for each in listed if each.key in wanted}

    def drop(self, paths: Iterable[str]) -> None:
        """Free the space of files, by their paths from here; those that are gone are none of its business."""
        self._files.drop([self._key(path) for path in paths])

    def new_file(self, path: str) -> NewFile:
        """A data file to be written, by its path from here."""
        to = self.where.child(self._key(path))
        if self._is_on_disk:
            target = Path(to.uri)
            target.parent.mkdir(parents=True, exist_ok=True)
            return NewFile(target, None)
        handle, name = tempfile.mkstemp(prefix="txn-analysis-", suffix=".parquet")
        os.close(handle)
        return NewFile(Path(name), to)

    def sources(self, files: Iterable[tuple[str, int]]) -> Iterator[Any]:
        """What Arrow opens to read some data files, by their paths and sizes in bytes, in their order.

        Of small files in a store the next ones are fetched meanwhile.
        """
        if self._is_on_disk:
            yield from (f"{self.place}/{path}" for path, _ in files)
            return
        for _, source in ahead(lambda file: self._source(*file), files, at_once=_FETCHED_AHEAD):
            yield source()

    def _source(self, path: str, size_bytes: int) -> Any:
        if size_bytes <= _WHOLE_BYTES:
            return pa.BufferReader(self._read(path, size_bytes))
        place = self.where.child(self._key(path))
        return pa.PythonFile(streamed(RemoteFile(place, Version("", size_bytes))), "r")

    def _read(self, path: str, size_bytes: int) -> Piece:
        # None of a table is ever replaced: any version will do.
        return self._files.read(self._key(path), 0, size_bytes, Version("", size_bytes))

    def _key(self, *names: str) -> str:
        return "/".join(name for name in (self.where.key, *names) if name)


@dataclass
class NewFile:
    """A data file that is being written on a disk of this machine; nobody reads it before it is kept.

    Attributes:
        target: where it is written; of a store in a passing file of its owner alone.
        to: where it is sent once it is whole; None where it is there already.
    """

    target: Path
    to: Place | None

    def keep(self) -> int:
        """Put it where it belongs; its size in bytes."""
        size_bytes = self.target.stat().st_size
        if self.to is not None:
            with self.target.open("rb") as file:
                store_of(self.to).put(self.to.key, file if size_bytes > _WHOLE_BYTES else file.read())
            self.drop()
        return size_bytes

    def drop(self) -> None:
        """Free its space; it may be there in part, or not at all."""
        with suppress(OSError):
            self.target.unlink()
