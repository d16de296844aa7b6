"""A third warehouse, in the memory of this process: tests of what is done with tables need no disk and no Spark."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from tests.tools.captures import PARAMETERS
from tests.tools.sessions import no_session
from tests.tools.table_rows import plain_rows
from txn_analysis.pipeline import steps
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings
from txn_analysis.storage.data_files import check_rows
from txn_analysis.storage.errors import no_warehouse, said_in_words
from txn_analysis.storage.rows import (
    BatchesByName,
    MatchKey,
    RowTasks,
    Size,
    rows_without_match,
    schema_of,
    tables_of,
    without,
)
from txn_analysis.storage.warehouse import Warehouse
from txn_analysis.tables import ALL_TABLES, Table

Row = dict[str, Any]


def audited(
    monkeypatch: pytest.MonkeyPatch, paths: Iterable[Path | str], warehouse: Warehouse | None = None, **said: Any
) -> AuditReport:
    """The audit of some paths, which needs no disk; by default in a warehouse of its own."""
    own = warehouse or MemoryWarehouse()
    monkeypatch.setattr("txn_analysis.pipeline.steps.open_warehouse", lambda *_: own)
    settings = Settings.model_validate({"warehouse": "memory"} | PARAMETERS | said)
    return steps.audit(no_session, [str(path) for path in paths], settings)


class MemoryWarehouse(Warehouse):
    """The rows of each table as plain data; every write is one step."""

    def __init__(self) -> None:
        self.session, self.root = no_session, "memory"
        self._rows: dict[str, list[Row]] = {}
        self._versions: dict[str, int] = {}
        self._lock = threading.RLock()

    def create(self) -> None:
        for table in ALL_TABLES:
            self._rows.setdefault(table.name, [])
            self._versions.setdefault(table.name, 0)

    def has(self, table: Table) -> bool:
        return table.name in self._rows

    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        return {table.name: self._versions[table.name] for table in tables}

    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        wanted = {name: {*values} for name, values in one_of.items()}
        rows = [row for row in self._of(table) if all(row[name] in values for name, values in wanted.items())]
        return iter([pa.RecordBatch.from_pylist(rows, schema_of(table, names))])

    def frame(self, table: Table, **one_of: Collection[Any]) -> DataFrame:  # noqa: ARG002
        raise AssertionError(f"Spark was asked for {table.name}")

    def read_in_tasks(self, table: Table, *names: str, **one_of: Collection[Any]) -> NoReturn:  # noqa: ARG002
        raise AssertionError(f"Spark was asked for {table.name}")

    def replace(self, rows: Iterable[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        given = [*rows]
        with said_in_words(self.path(table)):
            for batch in given:
                check_rows(table, batch)
        with self._lock:
            kept = [row for row in self._of(table) if not slice_of.items() <= row.items()]
            self._put(table, kept + plain_rows(given))

    def replace_by(self, frame: DataFrame, rows_of: Any, table: Table, **slice_of: str) -> None:  # noqa: ARG002
        raise AssertionError(f"Spark was asked for {table.name}")

    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        told: BatchesByName = {}
        found = [*tasks.of_tables(tasks.all_rows(), told)]
        for table in tasks.tables:
            self.replace([batch for own, batch in found if own is table], table, **slice_of)
        return tables_of(told)

    def insert(self, rows: pa.RecordBatch, table: Table, unless: Sequence[MatchKey]) -> int:
        with self._lock:
            present = pa.Table.from_pylist(self._of(table), table.arrow_schema)
            fresh = rows_without_match(rows, present, unless)
            with said_in_words(self.path(table)):
                check_rows(table, fresh)
            self._put(table, self._of(table) + plain_rows([fresh]))
            return len(fresh)

    def revise(self, table: Table, revised: Callable[[pa.Table], pa.Table]) -> None:
        with self._lock:
            rows = revised(pa.Table.from_pylist(self._of(table), table.arrow_schema))
            self._put(table, plain_rows(rows.to_batches()))

    def remove(self, table: Table, keys: pa.Table) -> None:
        with self._lock:
            self._put(table, without(pa.Table.from_pylist(self._of(table), table.arrow_schema), keys).to_pylist())

    def size(self, table: Table, keys: pa.Table) -> Size:
        held = pa.Table.from_pylist(self._of(table), table.arrow_schema)
        return Size(len(held) - len(without(held, keys)))

    def tidy(self, grace_ms: int, *, is_rehearsal: bool) -> Size:  # noqa: ARG002
        return Size()

    def _of(self, table: Table) -> list[Row]:
        if table.name not in self._rows:
            raise no_warehouse(self.root, table.name)
        return self._rows[table.name]

    def _put(self, table: Table, rows: list[Row]) -> None:
        self._rows[table.name] = rows
        self._versions[table.name] += 1
