"""Delta's log of one table, read and written by `deltalake`, which needs no Java.

Only lists of files come from the library, and commits of files that are written already; Python reads and writes the
data. What its version 1.6 takes for granted is looked at here: that no commit of a log is missing at its start or is
empty, that a checksum agrees, and that a folder's name means the same to it as to the operating system.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties

from txn_analysis.errors import WarehouseError
from txn_analysis.storage.errors import DAMAGED
from txn_analysis.storage.roots import NoTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from txn_analysis.columns.values import Json
    from txn_analysis.storage.data_files import DataFile
    from txn_analysis.storage.roots import Root
    from txn_analysis.tables import Table

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")
_OF_VERSION = re.compile(r"(\d{20})\.")
_LONG_LOG = 10  # commits, as many as Delta in Spark has between two checkpoints
_HOUR_MS = 3_600_000
# A night adds one small file to each of the tables that are only inserted into; a question opens all of them.
MOST_FILES, _SMALL_BYTES = 32, 16 << 20
_NOTE = "txn-analysis.run"  # in `commitInfo`
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
    row_count: int


class DeltaFolder:
    """A table below a root as it is now; whoever commits to it opens it anew.

    Raises:
        NoTable: there is none.
        WarehouseError: its log is damaged.
        DeltaError: it is damaged in a way that the library sees; `storage_errors` has the words.
    """

    def __init__(self, root: Root, name: str) -> None:
        self._root, self._name = root, name
        log = root.log(name)
        newest = self._newest(log)
        with root.for_delta(name) as (place, options):
            try:
                self._table = DeltaTable(place, storage_options={**options})
                self._added = pa.table(self._table.get_add_actions(flatten=True))
            except TableNotFoundError as error:
                raise NoTable(name) from error
        if self.version < newest:
            raise self._damaged()
        self._check_sum(log)

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
        return self._newest(self._root.log(self._name)) == self.version

    @property
    def is_mapped(self) -> bool:
        """Another tool may have given columns other names than those in the data files."""
        return self.properties.get("delta.columnMapping.mode", "none") != "none"

    @cached_property
    def has_deleted_rows(self) -> bool:
        """Another tool has deleted rows beside the data files; that it may do so is no matter."""
        is_possible = "deletionVectors" in (self._table.protocol().reader_features or ())
        return is_possible and any(vectors.num_rows for vectors in self._table.deletion_vectors())

    @property
    def writer_features(self) -> list[str]:
        """The features of Delta, by its names, that a writer of the table must know."""
        return sorted(self._table.protocol().writer_features or ())

    @property
    def properties(self) -> Mapping[str, str]:
        """Delta's properties of it, its CHECK constraints among them."""
        return dict(self._table.metadata().configuration)

    @cached_property
    def files(self) -> tuple[StoredFile, ...]:
        """All of its data files."""
        columns = self._table.metadata().partition_columns
        paths, sizes, rows = (self._added.column(name).to_pylist() for name in ("path", "size_bytes", "num_records"))
        slices = self._added.column(f"partition.{columns[0]}").to_pylist() if columns else [None] * len(paths)
        return tuple(
            StoredFile(slice_, unquote(path), size, count or 0)
            for slice_, path, size, count in zip(slices, paths, sizes, rows, strict=True)
        )

    def files_of(self, table: Table, one_of: Mapping[str, Collection[Any]]) -> list[StoredFile]:
        """The data files that may hold rows whose columns have one of some values."""
        column = next(iter(table.partition_by), None)
        wanted = None if column is None else one_of.get(column)
        return [file for file in self.files if wanted is None or file.slice in wanted]

    def append(self, files: Iterable[DataFile]) -> None:
        """Add files, already written into the folder of a table without partitions, in one commit.

        Raises:
            CommitFailedError: another writer committed since this was opened; so it is of `replace`.
        """
        self._commit("append", self.files, [(file, {}) for file in files], [])

    def is_small_in(self, most_files: int) -> bool:
        """It has so many files or more, which are better one, and few enough bytes for that."""
        return len(self.files) >= most_files and sum(file.size_bytes for file in self.files) <= _SMALL_BYTES

    def replace(self, files: Iterable[DataFile], slice_of: Mapping[str, str], note: str = "") -> None:
        """Make files, already written, the whole content of one partition, in one commit; of all where there is none.

        Args:
            files: of the table.
            slice_of: the partition, by the names of its columns.
            note: what the commit says of itself beside, for `notes`.
        """
        own = [*files]
        kept = [file for file in self.files if slice_of and file.slice not in slice_of.values()]
        if own or len(kept) < len(self.files):
            filters = [(column, "=", value) for column, value in slice_of.items()]
            self._commit("overwrite", kept, [(file, slice_of) for file in own], filters, note)

    def notes(self) -> list[str]:
        """The notes of the log's commits, newest first."""
        with self._to_write() as delta:
            return [commit[_NOTE] for commit in delta.history() if _NOTE in commit]

    def cut(self, files: Mapping[str, DataFile | None]) -> None:
        """Leave of some slices what one file, already written, holds of each, or nothing; in one commit.

        Args:
            files: by the value of the column by which the table is partitioned.
        """
        (column,) = self._table.metadata().partition_columns
        kept = [file for file in self.files if file.slice not in files]
        if len(kept) < len(self.files):
            own = [(file, {column: value}) for value, file in files.items() if file is not None]
            self._commit("overwrite", kept, own, [(column, "in", sorted(files))])

    def grow(self, table: Table) -> bool:
        """Add what the table declares and Delta's schema lacks, columns and fields of structs, in one commit.

        In the rows that are there it is NULL. A column that only another tool knows stays.

        Returns:
            Whether anything was added: this is not the newest version any more then.

        Raises:
            CommitFailedError: another writer committed since this was opened.
        """
        stored = {field["name"]: field for field in json.loads(self._table.schema().to_json())["fields"]}
        declared = json.loads(Schema.from_arrow(table.arrow_schema).to_json())["fields"]
        added = [
            _grown(field, stored.get(field["name"]), column.comment)
            for field, column in zip(declared, table.columns, strict=True)
            if field["name"] not in stored or _lacks(stored[field["name"]]["type"], field["type"])
        ]
        if not added:
            return False
        version, files = self.version + 1, self.files
        fields = Schema.from_json(json.dumps({"type": "struct", "fields": added})).fields
        with self._to_write() as delta:
            delta.alter.add_columns(fields, commit_properties=CommitProperties(max_commit_retries=0))
        text = self._root.log_text(self._name, f"{version:020}.json")
        (metadata,) = (action["metaData"] for action in map(json.loads, text.splitlines()) if "metaData" in action)
        counted = {"numFiles": len(files), "tableSizeBytes": sum(file.size_bytes for file in files)}
        self._put_sum(version, counted, metadata)
        return True

    def stale_files(self, grace_ms: int, orphan_grace_ms: int) -> set[str]:
        """Data files that no version has any more, below the table's folder as the operating system has them.

        Args:
            grace_ms: what was taken out so long ago; whole hours count, rounded up.
            orphan_grace_ms: of files that no commit ever named: how old they are at least.
        """
        with self._root.for_delta(self._name, is_whole=True) as (place, options):
            table = DeltaTable(place, storage_options={**options})
            taken = table.vacuum(-(-grace_ms // _HOUR_MS), enforce_retention_duration=False)
            orphans = table.vacuum(-(-orphan_grace_ms // _HOUR_MS), enforce_retention_duration=False, full=True)
        return {unquote(path) for path in (*taken, *orphans)}

    def sum_up(self) -> list[str]:
        """Sum up a long log in a checkpoint; the files of it that nobody reads who opens the table, by name.

        What came before the checkpoint before the last one is read by nobody: also who listed the log a moment ago has
        found that one.
        """
        log = self._root.log(self._name)
        made = sorted({int(found[1]) for name in log if (found := _CHECKPOINT.fullmatch(name))})
        if self.version - max(made, default=0) >= _LONG_LOG:
            with self._root.for_delta(self._name) as (place, options):
                DeltaTable(place, storage_options={**options}).create_checkpoint()
        before = made[-2] if len(made) > 1 else 0
        return [name for name in log if (found := _OF_VERSION.match(name)) and int(found[1]) < before]

    def _commit(
        self,
        mode: Literal["append", "overwrite"],
        kept: Sequence[StoredFile],
        files: Sequence[tuple[DataFile, Mapping[str, str]]],
        filters: Sequence[tuple[str, str, Any]],
        note: str = "",
    ) -> None:
        version = self.version
        sizes = [*(file.size_bytes for file in kept), *(file.size_bytes for file, _ in files)]
        added = [AddAction(f.path, f.size_bytes, {**own}, f.modified_ms, True, f.statistics) for f, own in files]
        with self._to_write() as delta:
            delta.create_write_transaction(
                [*added],
                mode,
                self._table.schema(),
                list(dict.fromkeys(column for column, *_ in filters)),
                [*filters] or None,
                commit_properties=CommitProperties(
                    custom_metadata={_NOTE: note} if note else None, max_commit_retries=0
                ),
            )
        self._put_sum(version + 1, {"numFiles": len(sizes), "tableSizeBytes": sum(sizes)})

    @contextmanager
    def _to_write(self) -> Iterator[DeltaTable]:
        """The library's table; it asks the folder that it was opened in, which may have been a passing one."""
        with self._root.for_delta(self._name) as (place, _):
            yield self._table if place == f"{self._root.place}/{self._name}" else DeltaTable(place)

    def _newest(self, log: Mapping[str, int]) -> int:
        """The newest version in a log that has every commit since its last checkpoint, or since the first.

        Raises:
            NoTable: it has none at all.
            WarehouseError: commits are missing or empty.
        """
        commits = {int(found[1]): size for name, size in log.items() if (found := _COMMIT.fullmatch(name))}
        checkpoints = {int(found[1]) for name in log if (found := _CHECKPOINT.fullmatch(name))}
        if not commits and not checkpoints:
            raise NoTable(self._name)
        newest, since = max(commits.keys() | checkpoints), max(checkpoints, default=-1) + 1
        if not all(commits.get(version) for version in range(since, newest + 1)):
            raise self._damaged()
        return newest

    def _damaged(self) -> WarehouseError:
        return WarehouseError(f"{self._root.place}/{self._name}: {DAMAGED}")

    def _check_sum(self, log: Mapping[str, int]) -> None:
        """Refuse a version whose files are not those that its checksum counts: a commit may have lost its last lines.

        Delta's PROTOCOL.md, "Version Checksum File"; a version may have none.
        """
        known = self._sum_of(self.version) if f"{self.version:020}.crc" in log else None
        sizes = self._added.column("size_bytes").to_pylist()
        if known and (known["numFiles"], known["tableSizeBytes"]) != (len(sizes), sum(sizes)):
            raise self._damaged()

    def _put_sum(self, version: int, counted: dict[str, int], metadata: Json = None) -> None:
        """The checksum of a new version, without which Spark counts a table's files when it looks at it first.

        Args:
            version: the new one.
            counted: its files.
            metadata: what the version says anew of the table; None where it says nothing.
        """
        known = self._sum_of(version - 1) or self._defined(version - 1)
        if known:
            lasting = {name: known[name] for name in _LASTING if name in known}
            lasting |= {} if metadata is None else {"metadata": metadata}
            with suppress(FileExistsError):
                text = lines_of([{"txnId": str(uuid4())} | counted | lasting])
                self._root.put_log(self._name, f"{version:020}.crc", text)

    def _defined(self, version: int) -> dict[str, Json]:
        """What lasts as of a version that has no checksum, as on a disk that was full: from the commits.

        In the log's own words: Spark takes a table for damaged whose checksum has them in another order. Empty where
        some commits are in a checkpoint alone, or say what only the library of their writer counts.
        """
        try:
            texts = [self._root.log_text(self._name, f"{n:020}.json") for n in range(version + 1)]
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
            known: dict[str, Json] = json.loads(self._root.log_text(self._name, f"{version:020}.crc"))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return known


def _lacks(stored: Any, declared: Any) -> bool:
    """Whether a type of Delta's, as its JSON, lacks a field that is declared, at any depth."""
    if not isinstance(stored, dict) or not isinstance(declared, dict):
        return False
    if declared["type"] != "struct":
        inner = ("elementType", "keyType", "valueType")
        return any(_lacks(stored.get(name), declared[name]) for name in inner if name in declared)
    known = {field["name"]: field["type"] for field in stored["fields"]}
    return any(
        field["name"] not in known or _lacks(known[field["name"]], field["type"]) for field in declared["fields"]
    )


def _grown(declared: dict[str, Any], stored: dict[str, Any] | None, comment: str) -> dict[str, Any]:
    """A field as it is added; one that is there keeps all that is said of it beside its type."""
    if stored is None:
        return declared | {"metadata": {"comment": comment}}
    return {**stored, "type": declared["type"]}


def lines_of(actions: Iterable[Mapping[str, Json]]) -> str:
    """A text of JSON, one object a line."""
    return "".join(f"{json.dumps(action)}\n" for action in actions)
