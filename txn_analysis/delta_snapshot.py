"""What Delta's log says that a table is made of, by Delta's own kernel in Java, which needs no Spark for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession


class DeltaSnapshot:
    """The table at `path`, a folder of this machine, as it is now.

    Raises:
        Py4JJavaError: there is no table, or it is damaged; `storage_errors` has the words.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._kernel = jvm.io.delta.kernel
        self._engine = self._kernel.defaults.engine.DefaultEngine.create(conf)
        table = self._kernel.Table.forPath(self._engine, path)
        self._folder = f"{table.getPath(self._engine)}/"  # as the kernel writes it
        self._snapshot = table.getLatestSnapshot(self._engine)

    @property
    def is_plain(self) -> bool:
        """The data files have the table's rows as they are: none deleted beside them, no column by another name.

        So it is with every table that we write.
        """
        return int(self._snapshot.getProtocol().getMinReaderVersion()) == 1

    def files(self, column: str | None = None, slices: Sequence[str] = ()) -> list[tuple[str | None, str]]:
        """Where the data files of some slices lie, below the table's folder, each behind its slice.

        Without a column those of the whole table.

        Args:
            column: the one by which the table is partitioned.
            slices: what it holds in the files that are wanted.
        """
        if column and not slices:
            return []
        builder = self._snapshot.getScanBuilder()
        scan = (builder.withFilter(self._is_one_of(column, slices)) if column else builder).build()
        described, found = self._kernel.internal.InternalScanFileUtils, []
        batches = scan.getScanFiles(self._engine)
        try:
            for row in (row for batch in _all(batches) for row in _rows(batch)):
                slice_ = described.getPartitionValues(row)[column] if column else None
                found.append((slice_, described.getAddFileStatus(row).getPath().removeprefix(self._folder)))
        finally:
            batches.close()
        return found

    def _is_one_of(self, column: str, values: Sequence[str]) -> Any:
        """Halves of halves, since the kernel knows no IN, and the depth of a condition is limited."""
        expressions, middle = self._kernel.expressions, len(values) // 2
        if middle:
            return expressions.Or(self._is_one_of(column, values[:middle]), self._is_one_of(column, values[middle:]))
        return expressions.Predicate("=", expressions.Column(column), expressions.Literal.ofString(values[0]))


def _all(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()


def _rows(batch: Any) -> Iterator[Any]:
    rows = batch.getRows()
    try:
        yield from _all(rows)
    finally:
        rows.close()
