"""Delta's own log of one table, through the JVM: how it is defined, its newest version, and commits of files that are
written already.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from txn_analysis.wall_clock import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from txn_analysis.data_files import DataFile

_OTHER_OPTIONS_OF_WRITE = 6  # of Delta's description of a write, those which do not apply to ours
_CHECK = "delta.constraints."


@dataclass(frozen=True)
class Definition:
    """How a table is defined as of now; `checks` are its CHECK constraints by name, in SQL."""

    schema: StructType
    partition_by: tuple[str, ...]
    checks: Mapping[str, str]


class DeltaLog:
    """The log of the table at `path`, brought up to date, since other processes commit as well."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self._session: Any = spark._jsparkSession
        self._jvm = jvm
        self._log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._session, path)
        self._none = jvm.scala.Option.empty()

    def version(self) -> int:
        """The newest version; 0 where nothing was written since the table was made.

        Asking by DESCRIBE HISTORY would be a Spark job for each table.
        """
        return int(self._newest().version())

    def definition(self) -> Definition:
        """How the table is defined as of now. DESCRIBE would take longer, and could not say it in one answer."""
        found = json.loads(self._newest().metadata().json())["metaData"]
        checks = {name: sql for name, sql in found["configuration"].items() if name.startswith(_CHECK)}
        return Definition(
            StructType.fromJson(json.loads(found["schemaString"])),
            tuple(found["partitionColumns"]),
            {name.removeprefix(_CHECK): sql for name, sql in checks.items()},
        )

    def _newest(self) -> Any:
        return self._log.update(False, self._none, self._none)

    def append(self, files: Iterable[DataFile]) -> None:
        """Add files, already written into the folder of a table without partitions, in one commit."""
        self._commit(self._start(), [_added(file, {}) for file in files], [], "Append")

    def replace(self, files: Iterable[DataFile], slice_of: Mapping[str, str], predicate: str, *, is_new: bool) -> None:
        """Make files the whole content of one partition, in one commit.

        Args:
            files: already written into the table's folder.
            slice_of: the partition, by the names of its columns.
            predicate: the same in SQL.
            is_new: whether it has no files yet. To find that out takes Delta seconds.
        """
        transaction = self._start()
        before = [] if is_new else self._files_of(transaction, predicate)
        added = [_added(file, slice_of) for file in files]
        if added or before:
            self._commit(transaction, added, before, "Overwrite", [*slice_of], predicate)

    def _start(self) -> Any:
        return self._log.startTransaction(self._none, self._none)

    def _commit(
        self,
        transaction: Any,
        added: list[str],
        removed: Iterable[Any],
        mode: str,
        columns: Sequence[str] = (),
        predicate: str | None = None,
    ) -> None:
        delta, some = self._jvm.org.apache.spark.sql.delta, self._jvm.scala.Option.apply
        removed_ms = now_ms()
        actions = [file.removeWithTimestamp(removed_ms, True) for file in removed]
        actions += [delta.actions.Action.fromJson(text) for text in added]
        described = getattr(delta, "DeltaOperations$Write")(
            getattr(self._jvm.org.apache.spark.sql.SaveMode, mode),
            some(self._sequence(columns)),
            some(predicate),
            *[self._none] * _OTHER_OPTIONS_OF_WRITE,
        )
        transaction.commit(self._sequence(actions), described)

    def _files_of(self, transaction: Any, predicate: str) -> Any:
        parsed = self._session.sessionState().sqlParser().parseExpression(predicate)
        found = transaction.filterFiles(self._sequence([parsed]), False)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(found)

    def _sequence(self, items: Sequence[Any]) -> Any:
        array = self._jvm.java.util.ArrayList()
        for item in items:
            array.add(item)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(array).toSeq()


def _added(file: DataFile, slice_of: Mapping[str, str]) -> str:
    added = {
        "path": file.path,
        "partitionValues": slice_of,
        "size": file.size_bytes,
        "modificationTime": file.modified_ms,
        "dataChange": True,
        "stats": file.statistics,
    }
    return json.dumps({"add": added})
