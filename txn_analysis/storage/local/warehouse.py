"""A warehouse in a folder of this machine: its tables are made, written and read without Spark.

Spark is asked for what only it does: frames of large tables, and the tasks that fill them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from txn_analysis.spark.private_folders import make_private
from txn_analysis.storage.errors import mapped
from txn_analysis.storage.frames import is_at_hand
from txn_analysis.storage.on_spark.tables import table_frame
from txn_analysis.storage.on_spark.tasks import write_frame, write_in_tasks
from txn_analysis.storage.place import check_writable
from txn_analysis.storage.row_tasks import write_here
from txn_analysis.storage.warehouse import Warehouse
from txn_analysis.tables import ALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from txn_analysis.spark.when_needed import Spark
    from txn_analysis.storage.local.tables import LocalTables
    from txn_analysis.storage.match import Alike
    from txn_analysis.storage.on_spark.tasks import RowMaker
    from txn_analysis.storage.row_tasks import RowTasks
    from txn_analysis.tables import Table

    Row = dict[str, Any]


class LocalWarehouse(Warehouse):
    """Tables in a folder, all of them plain; see `LocalTables`."""

    def __init__(self, session: Spark, tables: LocalTables) -> None:
        super().__init__(session, str(tables.root))
        self._tables = tables

    def create(self) -> None:
        """As of `Warehouse`; refused before anything is made where the folder cannot be written."""
        check_writable(self._tables.root)
        make_private(self._tables.root)
        for table in ALL_TABLES:
            if not self._tables.has(table):
                self._tables.create(table)

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """As of `Warehouse`."""
        return {table.name: self._tables.version(table) for table in tables}

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """As of `Warehouse`."""
        return self._tables.batches(table, *names, **one_of)

    def frame(self, table: Table) -> DataFrame:
        """As of `Warehouse`."""
        return table_frame(self.spark, self.root, table)

    def replace(self, rows: Sequence[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        """As of `Warehouse`."""
        self._tables.replace_rows(rows, table, slice_of)

    def replace_by(self, frame: DataFrame, rows_of: RowMaker | None, table: Table, **slice_of: str) -> None:
        """As of `Warehouse`; the tasks write the files, and only their names come here."""
        rows = frame if rows_of else frame.select(*table.names)
        write = partial(write_frame, rows, rows_of or iter, table, self._tables.root, slice_of)
        self._tables.replace(table, mapped(self.path(table), write), slice_of)

    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        """As of `Warehouse`; where they read little, the tasks run in this process: no job of Spark is as fast."""
        write = write_here if is_at_hand(tasks.input_bytes) else partial(write_in_tasks, self.spark)
        found = mapped(self.root, partial(write, tasks, self._tables.root, slice_of))
        for table in tasks.tables:
            self._tables.replace(table, [file for file in found.files if file.table == table.name], slice_of)
        return found.told

    def insert(self, rows: Sequence[Row], table: Table, unless: Sequence[Alike]) -> int:
        """As of `Warehouse`."""
        return self._tables.insert(rows, table, unless)
