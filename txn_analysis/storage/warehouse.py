"""The tables of one warehouse, written and read: the interface that both implementations have (`storage.opening`).

A slice of a table (the rows of one ingest or of one run) is always replaced as a whole, so that doing something again
changes nothing. Rows count only once they are committed, by the write that comes last (`commits`): content rows by
`inputs`, which names the ingest of each input, and result rows by `runs`. What a killed audit left is never read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txn_analysis.errors import WarehouseError
from txn_analysis.spark.when_needed import running
from txn_analysis.storage.frames import is_at_hand
from txn_analysis.storage.row_batches import held, plain_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.spark.when_needed import Spark
    from txn_analysis.storage.match import Alike
    from txn_analysis.storage.on_spark.tasks import RowMaker
    from txn_analysis.storage.row_tasks import RowTasks
    from txn_analysis.tables import Table

    Row = dict[str, Any]

MOST_ATTEMPTS = 8


class Warehouse(ABC):
    """Delta tables under one folder, or any URI that Spark can write.

    Every method raises WarehouseError where there is no such table, where it is damaged or of another format, or where
    the storage fails it; those that write also where a row breaks a constraint of its table.
    """

    def __init__(self, session: Spark, root: str) -> None:
        self.session = session
        self._root = root

    @property
    def root(self) -> str:
        """The folder, or URI, of the tables."""
        return self._root

    @property
    def spark(self) -> SparkSession:
        """The session to work in, started by now."""
        return running(self.session)

    def path(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self._root}/{table.name}"

    def parallelism(self, input_bytes: int) -> int:
        """How many tasks run at once where so much is read."""
        return 1 if is_at_hand(input_bytes) else int(self.spark.sparkContext.defaultParallelism)

    @abstractmethod
    def create(self) -> None:
        """Create the tables that are missing, with their comments, NOT NULL columns and CHECK constraints.

        A folder for them that is not there yet is made for its owner alone; one that is there keeps its mode.
        A warehouse of another format is refused.
        """

    @abstractmethod
    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """The newest version of some tables, by name."""

    @abstractmethod
    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """Rows of a table of any size, committed or not, one batch after another; see `Stored`."""

    def held(self, table: Table, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """Rows of a table in memory, as Arrow; arguments as of `batches`."""
        return held(self.batches(table, *names, **one_of), table, names)

    def listed(self, table: Table, *names: str, **one_of: Collection[Any]) -> list[Row]:
        """Rows as plain data, where there are few; structs and maps are dictionaries. Arguments as of `batches`."""
        return plain_rows(self.batches(table, *names, **one_of))

    @abstractmethod
    def frame(self, table: Table) -> DataFrame:
        """All rows of the table as it is now, committed or not, for Spark."""

    @abstractmethod
    def replace(self, rows: Sequence[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        """Make rows in memory the whole content of one slice of a table, such as `run_id="…"`.

        Of a table without partitions the slice is those of its rows that hold these values.
        """

    def replace_rows(self, rows: Sequence[Row], table: Table, **slice_of: str) -> None:
        """Make rows as plain data the whole content of a slice; absent columns are NULL."""
        self.replace([pa.RecordBatch.from_pylist([*rows], table.arrow_schema)], table, **slice_of)

    @abstractmethod
    def replace_by(self, frame: DataFrame, rows_of: RowMaker | None, table: Table, **slice_of: str) -> None:
        """Make a frame the whole content of a slice, or what `rows_of`, run in a Spark worker, makes of its batches."""

    @abstractmethod
    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        """Make what tasks produce the whole content of a slice, in each of the tables that they fill.

        Returns:
            What they told, by name.
        """

    @abstractmethod
    def insert(self, rows: Sequence[Row], table: Table, unless: Sequence[Alike]) -> int:
        """Insert the rows that are not alike, in one of some ways, to a row of the table; say how many those were.

        Looking and inserting is one step: of two writers at once, the second sees the rows of the first.
        """


def too_busy(path: str) -> WarehouseError:
    """The error of a writer that others were faster than, every time."""
    return WarehouseError(f"{path}: other audits kept writing here at the same time. Run the same command again")
