"""Delta's log of one table, read and written by `deltalake`, which needs no Java.

Only lists of files come from the library, and commits of files that are written already; Python reads and writes the
data. What its version 1.6 takes for granted is looked at here: that no commit of a log is missing at its start or is
empty, and that the newest has all of its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties

from txn_analysis.errors import WarehouseError
from txn_analysis.tables import Table
from txn_analysis.warehouse.data_files import DataFile, read_files
from txn_analysis.warehouse.errors import DAMAGED, storage_errors_in_words
from txn_analysis.warehouse.new_table import fields_of
from txn_analysis.warehouse.opening import LOG
from txn_analysis.warehouse.roots import NoTable, Root
from txn_analysis.warehouse.rows import schema_of

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")
_LONG_LOG = 10  # commits, as many as Delta in Spark has between two checkpoints
_HOUR_MS = 3_600_000
# A night adds one small file to each of the tables that are only inserted into; a question opens all of them.
MOST_FILES, _SMALL_BYTES = 32, 16 << 20
_NOTE, _CONTENT = "txn-analysis.run", "txn-analysis.content"  # in `commitInfo`, the first line of a commit


class DeltaFolder:
    """A table below a root as it is now; whoever commits to it opens it anew.

    Attributes:
        table: as it is declared.
        delta_table: as the library has it.
        path: where it lies.

    Raises:
        NoTable: there is none.
        WarehouseError: its log is damaged.
        DeltaError: it is damaged in a way that the library sees; `errors` has the words.
    """

    def __init__(self, root: Root, table: Table) -> None:
        self._root, self.table, self.path = root, table, f"{root.place}/{table.name}"
        log = root.log(table.name)
        newest = self._newest(log)
        try:
            self.delta_table = self._opened()
            self._added = pa.table(self.delta_table.get_add_actions(flatten=True))
        except TableNotFoundError as error:
            raise NoTable(table.name) from error
        content = _content_of(self._added["size_bytes"].to_pylist())
        if self.version < newest or self._commit_info(log, self.version).get(_CONTENT, content) != content:
            raise self._damaged()

    def _commit_info(self, log: Mapping[str, int], version: int) -> dict[str, Any]:
        """What a commit says of itself in its first line; nothing where it is not listed any more."""
        name = f"{version:020}.json"
        text = self._root.text(f"{self.table.name}/{LOG}/{name}", log[name]) if name in log else "{}"
        info: dict[str, Any] = json.loads(text.partition("\n")[0]).get("commitInfo", {})
        return info

    def _opened(self) -> DeltaTable:
        place, options = self._root.for_delta(self.table.name)
        return DeltaTable(place, storage_options=options)

    @property
    def version(self) -> int:
        """Of its newest commit; 0 where nothing was written since the table was made."""
        return self.delta_table.version()

    def is_newest(self) -> bool:
        """Whether nothing was committed since.

        Raises:
            NoTable: it is gone.
            WarehouseError: its log is damaged now.
        """
        return self._newest(self._root.log(self.table.name)) == self.version

    @cached_property
    def has_deleted_rows(self) -> bool:
        """Another tool has deleted rows beside the data files; that it may do so is no matter."""
        is_possible = "deletionVectors" in (self.delta_table.protocol().reader_features or ())
        return is_possible and any(vectors.num_rows for vectors in self.delta_table.deletion_vectors())

    @property
    def properties(self) -> Mapping[str, str]:
        """Delta's properties of it, its CHECK constraints among them."""
        return dict(self.delta_table.metadata().configuration)

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        """All of its data files."""
        columns = self.delta_table.metadata().partition_columns
        paths, sizes, rows = (self._added.column(name).to_pylist() for name in ("path", "size_bytes", "num_records"))
        slices = self._added.column(f"partition.{columns[0]}").to_pylist() if columns else [None] * len(paths)
        return tuple(
            DataFile(self.table.name, slice_, unquote(path), size, count or 0)
            for slice_, path, size, count in zip(slices, paths, sizes, rows, strict=True)
        )

    def files_of(self, one_of: Mapping[str, Collection[Any]]) -> list[DataFile]:
        """The data files that may hold rows whose columns have one of some values."""
        column = next(iter(self.table.partition_by), None)
        wanted = None if column is None else one_of.get(column)
        return [file for file in self.files if wanted is None or file.slice in wanted]

    def batches(self, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """As of `Warehouse`."""
        with storage_errors_in_words(self.path):
            yield from read_files(self.table, self._root, self.files_of(one_of), names, one_of)

    def rows(self, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """As of `Warehouse`."""
        return pa.Table.from_batches(self.batches(*names, **one_of), schema_of(self.table, names))

    def is_small_in(self, most_files: int) -> bool:
        """It has so many files or more, which are better one, and few enough bytes for that."""
        return len(self.files) >= most_files and sum(file.size_bytes for file in self.files) <= _SMALL_BYTES

    def replace(self, files: Sequence[DataFile], slices: Sequence[str] | None = None, note: str = "") -> None:
        """Make files, already written, the whole content of some partitions, in one commit.

        Args:
            files: of the table.
            slices: the values of the column by which it is partitioned; None for the whole table. Where there are none
                the files are added to those of the table.
            note: what the commit says of itself beside, for `notes`.

        Raises:
            CommitFailedError: another writer committed since this was opened.
        """
        kept = [file for file in self.files if slices is not None and file.slice not in slices]
        if not files and len(kept) == len(self.files):
            return
        columns = self.delta_table.metadata().partition_columns
        info = {_CONTENT: _content_of([file.size_bytes for file in (*kept, *files)])} | ({_NOTE: note} if note else {})
        self.delta_table.create_write_transaction(
            [
                AddAction(f.path, f.size_bytes, dict.fromkeys(columns, f.slice), f.modified_ms, True, f.statistics)
                for f in files
            ],
            "overwrite" if slices or slices is None else "append",
            self.delta_table.schema(),
            columns if slices else [],
            [(column, "in", [*slices]) for column in columns] if slices else None,
            commit_properties=CommitProperties(custom_metadata=info, max_commit_retries=0),
        )

    def notes(self) -> Iterator[str]:
        """The notes of the log's commits, newest first; no commit is read before it is asked for."""
        log = self._root.log(self.table.name)
        infos = (self._commit_info(log, version) for version in range(self.version, -1, -1))
        return (each[_NOTE] for each in infos if _NOTE in each)

    def grow(self) -> bool:
        """Add what the table is declared with and Delta's schema lacks, columns and fields of structs, in one commit.

        In the rows that are there it is NULL. A column that only another tool knows stays.

        Returns:
            Whether anything was added: this is not the newest version any more then.

        Raises:
            CommitFailedError: another writer committed since this was opened.
        """
        stored = {field["name"]: field for field in json.loads(self.delta_table.schema().to_json())["fields"]}
        added = [
            {**stored.get(field["name"], field), "type": field["type"]}  # what is there keeps all that is said of it
            for field in fields_of(self.table)
            if field["name"] not in stored or _lacks(stored[field["name"]]["type"], field["type"])
        ]
        if not added:
            return False
        fields = Schema.from_json(json.dumps({"type": "struct", "fields": added})).fields
        self.delta_table.alter.add_columns(fields, commit_properties=CommitProperties(max_commit_retries=0))
        return True

    def stale_files(self, grace_ms: int, orphan_grace_ms: int) -> set[str]:
        """Data files that no version has any more, below the table's folder as the operating system has them.

        Args:
            grace_ms: what was taken out so long ago; whole hours count, rounded up.
            orphan_grace_ms: of files that no commit ever named: how old they are at least.
        """
        table = self._opened()
        unreferenced = table.vacuum(-(-grace_ms // _HOUR_MS), enforce_retention_duration=False)
        orphans = table.vacuum(-(-orphan_grace_ms // _HOUR_MS), enforce_retention_duration=False, full=True)
        return {unquote(path) for path in (*unreferenced, *orphans)}

    def sum_up(self) -> None:
        """Sum up a long log in a checkpoint, and free what is before one and older than Delta keeps logs: 30 days."""
        log = self._root.log(self.table.name)
        checkpoints = [int(checkpoint[1]) for name in log if (checkpoint := _CHECKPOINT.fullmatch(name))]
        table = self._opened()
        if self.version - max(checkpoints, default=0) >= _LONG_LOG:
            table.create_checkpoint()
        table.cleanup_metadata()

    def _newest(self, log: Mapping[str, int]) -> int:
        """The newest version in a log that has every commit since its last checkpoint, or since the first.

        Raises:
            NoTable: it has none at all.
            WarehouseError: commits are missing or empty.
        """
        commits = {int(commit[1]): size for name, size in log.items() if (commit := _COMMIT.fullmatch(name))}
        checkpoints = {int(checkpoint[1]) for name in log if (checkpoint := _CHECKPOINT.fullmatch(name))}
        if not commits and not checkpoints:
            raise NoTable(self.table.name)
        newest, since = max(commits.keys() | checkpoints), max(checkpoints, default=-1) + 1
        if not all(commits.get(version) for version in range(since, newest + 1)):
            raise self._damaged()
        return newest

    def _damaged(self) -> WarehouseError:
        return WarehouseError(f"{self.path}: {DAMAGED}")


def _content_of(sizes_bytes: Sequence[int]) -> str:
    """What a commit says of all files behind it: it may lose its last lines, and be read as a whole one."""
    return f"{len(sizes_bytes)} files, {sum(sizes_bytes)} bytes"


def _lacks(stored: Any, declared: Any) -> bool:
    """Whether a type of Delta's, as its JSON, lacks a field that is declared, at any depth."""
    if not isinstance(stored, dict) or not isinstance(declared, dict):
        return False
    if declared["type"] != "struct":
        inner = ("elementType", "keyType", "valueType")
        return any(_lacks(stored.get(name), declared[name]) for name in inner if name in declared)
    types = {field["name"]: field["type"] for field in stored["fields"]}
    return any(
        field["name"] not in types or _lacks(types[field["name"]], field["type"]) for field in declared["fields"]
    )
