"""Where the rows of a warehouse can be asked for: what every question needs of it, and nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import pyarrow as pa

    from txn_analysis.tables import Table

Row = dict[str, Any]


class Stored(Protocol):
    """The tables of one warehouse, read: `LocalTables` without Spark, a `Warehouse` with it; with equal rows.

    Rows are given whether they are committed or not. Of a result table those count whose `run_id` is in `runs`, of a
    content table those whose `ingest_id` and `input_id` are in `inputs`: whoever asks names them.
    """

    @property
    def root(self) -> Path | str:
        """The folder, or URI, of the tables."""

    def listed(self, table: Table, *names: str, **one_of: Collection[Any]) -> list[Row]:
        """Rows as plain data, where there are few; structs and maps are dictionaries.

        Args:
            table: of which rows are wanted.
            names: of the columns that are wanted; all where there are none.
            one_of: what some columns may hold, never NULL; only rows that meet all are wanted.

        Raises:
            WarehouseError: there is no such warehouse, or it is damaged.
        """

    def held(self, table: Table, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """Rows in memory, as Arrow; arguments as of `listed`."""

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """Rows one batch after another, for tables of any size; arguments as of `listed`."""
