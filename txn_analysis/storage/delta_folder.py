"""Delta's log of one table in a folder of this machine, read and written by `deltalake`, which needs no Java.

Only lists of files come from the library, and commits of files that are written already; Python reads and writes the
data. What its version 1.6 takes for granted is looked at here: that no commit of a log is missing at its start or is
empty, that a checksum agrees, and that a folder's name means the same to it as to the operating system (decision 0073).
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties

from txn_analysis.errors import WarehouseError
from txn_analysis.storage.errors import DAMAGED
from txn_analysis.storage.opening import LOG

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from txn_analysis.columns.values import Json
    from txn_analysis.storage.data_files import DataFile
    from txn_analysis.tables import Table

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")
# Of a checksum: what holds for every version of a table that is defined alike.
_LASTING = ("metadata", "protocol", "numMetadata", "numProtocol", "setTransactions", "domainMetadata")


OF_NO_FILES: dict[str, Json] = {
    "tableSizeBytes": 0,
    "numFiles": 0,
    "numMetadata": 1,
    "numProtocol": 1,
    "setTransactions": [],
    "domainMetadata": [],
}
"""What the checksum of a table without files counts."""


class NoTable(Exception):  # noqa: N818 an answer as well as an error
    """There is no Delta table in a folder."""


@dataclass(frozen=True)
class StoredFile:
    """A data file of a table.

    Attributes:
        slice: the value of the column by which the table is partitioned; None where there is none.
        path: below the table's folder, as the operating system has it.
    """

    slice: str | None
    path: str
    size_bytes: int


class DeltaFolder:
    """The table in `folder` as it is now; whoever commits to it opens it anew.

    Raises:
        NoTable: there is none.
        WarehouseError: its log is damaged.
        DeltaError: it is damaged in a way that the library sees; `storage_errors` has the words.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / LOG
        newest = _newest_version(self._log)
        with _plainly_named(folder) as place:
            try:
                self._table = DeltaTable(place)
                self._added = pa.table(self._table.get_add_actions(flatten=True))
            except TableNotFoundError as error:
                raise NoTable(folder) from error
        if self.version < newest:
            raise WarehouseError(f"{folder}: {DAMAGED}")
        self._check_sum()

    @property
    def version(self) -> int:
        """Of its newest commit; 0 where nothing was written since the table was made."""
        return self._table.version()

    def is_newest(self) -> bool:
        """Whether nothing was committed since.

        Raises:
            NoTable: it is gone.
            WarehouseError: its log is damaged now.
        """
        return _newest_version(self._log) == self.version

    @property
    def is_plain(self) -> bool:
        """The data files have the table's rows as they are: none deleted beside them, no column by another name.

        So it is with every table that we write.
        """
        return self._table.protocol().min_reader_version == 1

    @property
    def properties(self) -> Mapping[str, str]:
        """Delta's properties of it, its CHECK constraints among them."""
        return dict(self._table.metadata().configuration)

    @cached_property
    def files(self) -> tuple[StoredFile, ...]:
        """All of its data files."""
        columns = self._table.metadata().partition_columns
        paths, sizes = (self._added.column(name).to_pylist() for name in ("path", "size_bytes"))
        slices = self._added.column(f"partition.{columns[0]}").to_pylist() if columns else [None] * len(paths)
        return tuple(
            StoredFile(slice_, unquote(path), size) for slice_, path, size in zip(slices, paths, sizes, strict=True)
        )

    def files_of(self, table: Table, one_of: Mapping[str, Collection[Any]]) -> list[StoredFile]:
        """The data files that may hold rows whose columns have one of some values."""
        column = next(iter(table.partition_by), None)
        wanted = None if column is None else one_of.get(column)
        return [file for file in self.files if wanted is None or file.slice in wanted]

    def append(self, files: Iterable[DataFile]) -> None:
        """Add files, already written into the folder of a table without partitions, in one commit."""
        self._commit("append", self.files, [*files], {})

    def replace(self, files: Iterable[DataFile], slice_of: Mapping[str, str]) -> None:
        """Make files, already written, the whole content of one partition, in one commit; of all where there is none.

        Args:
            files: of the table.
            slice_of: the partition, by the names of its columns.
        """
        own = [*files]
        kept = [file for file in self.files if slice_of and file.slice not in slice_of.values()]
        if own or len(kept) < len(self.files):
            self._commit("overwrite", kept, own, slice_of)

    def _commit(
        self, mode: str, kept: Sequence[StoredFile], files: Sequence[DataFile], slice_of: Mapping[str, str]
    ) -> None:
        version = self.version
        sizes = [*(file.size_bytes for file in kept), *(file.size_bytes for file in files)]
        added = [AddAction(f.path, f.size_bytes, dict(slice_of), f.modified_ms, True, f.statistics) for f in files]
        with _plainly_named(self._folder) as place:
            # The library asks the folder that it was opened in, which may have been a passing one.
            table = self._table if place == str(self._folder) else DeltaTable(place)
            table.create_write_transaction(
                [*added],
                mode,
                self._table.schema(),
                [*slice_of],
                [(column, "=", value) for column, value in slice_of.items()] or None,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        self._put_sum(version + 1, {"numFiles": len(sizes), "tableSizeBytes": sum(sizes)})

    def _check_sum(self) -> None:
        """Refuse a version whose files are not those that its checksum counts: a commit may have lost its last lines.

        Delta's PROTOCOL.md, "Version Checksum File"; a version may have none.
        """
        known = self._sum_of(self.version)
        sizes = self._added.column("size_bytes").to_pylist()
        if known and (known["numFiles"], known["tableSizeBytes"]) != (len(sizes), sum(sizes)):
            raise WarehouseError(f"{self._folder}: {DAMAGED}")

    def _put_sum(self, version: int, counted: dict[str, int]) -> None:
        """The checksum of a new version, without which Spark counts a table's files when it looks at it first."""
        known = self._sum_of(version - 1) or self._defined(version - 1)
        if known:
            lasting = {name: known[name] for name in _LASTING if name in known}
            put_lines(self._log / f"{version:020}.crc", [{"txnId": str(uuid4())} | counted | lasting])

    def _defined(self, version: int) -> dict[str, Json]:
        """What lasts as of a version that has no checksum, as on a disk that was full: from the commits.

        In the log's own words: Spark takes a table for damaged whose checksum has them in another order. Empty where
        some commits are in a checkpoint alone, or say what only the library of their writer counts.
        """
        try:
            texts = [(self._log / f"{n:020}.json").read_text("utf-8") for n in range(version + 1)]
        except FileNotFoundError:
            return {}
        said = {
            name: action for text in texts for line in text.splitlines() for name, action in json.loads(line).items()
        }
        if said.keys() & {"txn", "domainMetadata"}:
            return {}
        return OF_NO_FILES | {"metadata": said["metaData"], "protocol": said["protocol"]}

    def _sum_of(self, version: int) -> dict[str, Json]:
        try:
            text = (self._log / f"{version:020}.crc").read_text(encoding="utf-8")
            known: dict[str, Json] = json.loads(text)
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return known


def put_lines(path: Path, lines: Iterable[Mapping[str, Json]]) -> None:
    """A file of JSON lines that is there as a whole, or not at all.

    Raises:
        OSError: the disk fails it.
    """
    new = path.with_name(f".{path.name}.{uuid4()}.tmp")
    with new.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


def _newest_version(log: Path) -> int:
    """The newest version in a log that has every commit since its last checkpoint, or since the first.

    Raises:
        NoTable: there is no log.
        WarehouseError: commits are missing or empty.
    """
    try:
        entries = [*os.scandir(log)]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoTable(log.parent) from error
    commits = {int(found[1]): entry for entry in entries if (found := _COMMIT.fullmatch(entry.name))}
    checkpoints = {int(found[1]) for entry in entries if (found := _CHECKPOINT.fullmatch(entry.name))}
    if not commits and not checkpoints:
        raise NoTable(log.parent)
    newest, since = max(commits.keys() | checkpoints), max(checkpoints, default=-1) + 1
    if any(version not in commits or not commits[version].stat().st_size for version in range(since, newest + 1)):
        raise WarehouseError(f"{log.parent}: {DAMAGED}")
    return newest


@contextmanager
def _plainly_named(folder: Path) -> Iterator[str]:
    """A name of the folder that the library does not take for another one.

    It decodes `%20` in a path, also in that of a URI, takes a backslash for `/`, and refuses control characters. The
    log of such a folder is shown to it in a passing one; where links lead does not matter, as it reads no data.
    """
    name = str(folder)
    if unquote(name) == name and "\\" not in name and name.isprintable():
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="txn-analysis-") as passing:
        (Path(passing) / LOG).symlink_to(folder / LOG)
        yield passing
