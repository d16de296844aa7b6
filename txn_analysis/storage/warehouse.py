"""The tables of one warehouse, written and read: the interface, and the writes that come last.

A slice of a table (the rows of one ingest or of one run) is always replaced as a whole, so that doing something again
changes nothing. Rows count only once they are committed, by the write that comes last: content rows by `inputs`, which
names the ingest of each input, and result rows by `runs`. What a killed audit left is never read.

Several audits may write to one warehouse at once. Whoever commits the same content or the same run second finds the
first one's rows, and leaves them as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass, replace
from operator import add, ne
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.records import batch_of, fields_of, records_of
from txn_analysis.errors import WarehouseError
from txn_analysis.spark.jobs import running
from txn_analysis.tables import INPUTS, LOG_PIECES, RUNS
from txn_analysis.tables.inputs import ReadInput, RunRecord
from txn_analysis.tables.readings import FIRST_READING, READING_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from txn_analysis.columns.records import Record
    from txn_analysis.columns.values import BatchFunction
    from txn_analysis.spark.jobs import Spark
    from txn_analysis.tables import Table

MOST_ATTEMPTS = 8


@dataclass(frozen=True)
class MatchKey:
    """When a row has nothing to add to another one: some columns are equal, NULL as well, and those of `but` differ."""

    same: tuple[str, ...]
    but: tuple[str, ...] = ()

    def is_new(self, rows: pa.RecordBatch, present: pa.Table) -> list[bool]:
        """Of each row, whether it matches none of those that are present."""
        others: defaultdict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
        for same, but in zip(_values(present, self.same), _values(present, self.but), strict=True):
            others[same].append(but)
        own = zip(_values(rows, self.same), _values(rows, self.but), strict=True)
        return [not any(all(map(ne, but, other)) for other in others[same]) for same, but in own]


def _values(rows: pa.RecordBatch | pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Of each row its values in some columns."""
    columns = [rows[name].to_pylist() for name in names]
    return [*zip(*columns, strict=True)] if columns else [()] * len(rows)


def rows_without_match(rows: pa.RecordBatch, present: pa.Table, keys: Iterable[MatchKey]) -> pa.RecordBatch:
    """The rows that match none of those that are present, by any of some keys."""
    for key in keys:
        rows = rows.filter(pa.array(key.is_new(rows, present), pa.bool_()))
    return rows


class Warehouse(ABC):
    """Delta tables under one folder, or one name in a store.

    Rows are given whether they are committed or not. Of a result table those count whose `run_id` is in `runs`, of a
    content table those whose `ingest_id` and `input_id` are in `inputs`: whoever asks names them.

    Every method raises WarehouseError where there is no such table, where it is damaged or of another format, or where
    the storage fails it; those that write also where a row breaks a constraint of its table.

    Attributes:
        root: the folder, or URI, of the tables.
        session: where Spark is needed; questions need none.
        note: what commits of slices say of themselves beside, for `notes`; empty for nothing.
    """

    note = ""

    def __init__(self, session: Spark, root: str) -> None:
        self.session = session
        self.root = root

    @property
    def spark(self) -> SparkSession:
        """The session to work in, started by now."""
        return running(self.session)

    def path(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self.root}/{table.name}"

    @abstractmethod
    def create(self) -> None:
        """Create the tables that are missing, with their comments, NOT NULL columns and CHECK constraints.

        A folder for them that is not there yet is made for its owner alone; one that is there keeps its mode.
        A warehouse of another format is refused, and a folder that cannot be written before anything is made.
        """

    @abstractmethod
    def has(self, table: Table) -> bool:
        """Whether the table is there; one that a later version declares is not, until the next audit creates it."""

    def notes(self, _table: Table) -> list[str]:
        """The notes of a table's commits, newest first, as far as its log goes back."""
        return []

    @abstractmethod
    def versions(self, tables: Sequence[Table]) -> dict[str, int]:
        """The newest version of some tables, by name."""

    @abstractmethod
    def batches(self, table: Table, *names: str, **one_of: Collection[Any]) -> Iterator[pa.RecordBatch]:
        """Rows of a table of any size, one batch after another.

        Args:
            table: of which rows are wanted.
            names: of the columns that are wanted; all where there are none.
            one_of: what some columns may hold, never NULL; only rows that meet all are wanted.
        """

    def held(self, table: Table, *names: str, **one_of: Collection[Any]) -> pa.Table:
        """Rows in memory, as Arrow; arguments as of `batches`."""
        return pa.Table.from_batches(self.batches(table, *names, **one_of), schema_of(table, names))

    def records(self, kind: type[Record], table: Table, **one_of: Collection[Any]) -> list[Record]:
        """Rows as records of a kind, which are made of the columns of its fields' names; see `batches`."""
        names = [name for name in fields_of(kind) if name in table.names]
        return records_of(kind, self.held(table, *names, **one_of))

    @abstractmethod
    def frame(self, table: Table, **one_of: Collection[Any]) -> DataFrame:
        """Rows of the table as it is now, committed or not, for Spark, whose tasks read them; see `batches`."""

    @abstractmethod
    def read_in_tasks(self, table: Table, *names: str, **one_of: Collection[Any]) -> tuple[DataFrame, BatchFunction]:
        """Rows of a table for Spark's tasks: a frame, and the function that makes the rows of its batches.

        Arguments are those of `batches`.
        """

    @abstractmethod
    def replace(self, rows: Iterable[pa.RecordBatch], table: Table, **slice_of: str) -> None:
        """Make rows, taken one batch after another, the whole content of one slice of a table, such as `run_id="…"`.

        Of a table without partitions the slice is those of its rows that hold these values.
        """

    @abstractmethod
    def replace_by(self, frame: DataFrame, rows_of: BatchFunction, table: Table, **slice_of: str) -> None:
        """Make what `rows_of`, run in Spark's workers, makes of the batches of a frame the whole content of a slice."""

    @abstractmethod
    def fill(self, tasks: RowTasks, **slice_of: str) -> dict[str, pa.Table]:
        """Make what tasks produce the whole content of a slice, in each of the tables that they fill.

        Returns:
            What they told, by name.
        """

    @abstractmethod
    def insert(self, rows: pa.RecordBatch, table: Table, unless: Sequence[MatchKey]) -> int:
        """Insert the rows that match no row of the table, by any of some keys; say how many those were.

        Looking and inserting is one step: of two writers at once, the second sees the rows of the first.
        """

    @abstractmethod
    def revise(self, table: Table, revised: Callable[[pa.Table], pa.Table]) -> None:
        """Put in the place of all rows of a table without partitions what is made of them, in one commit."""

    @abstractmethod
    def remove(self, table: Table, keys: pa.Table) -> None:
        """Take out the rows that have the values of some key, in one commit; who reads the table as it was still does.

        Args:
            table: of which rows go.
            keys: values of some of its columns, the one by which it is partitioned among them; none is NULL.
        """

    @abstractmethod
    def size(self, table: Table, keys: pa.Table) -> Size:
        """How much `remove` with these keys would take out."""

    @abstractmethod
    def tidy(self, grace_ms: int, *, is_rehearsal: bool) -> Size:
        """Make few files of many small ones, and free the space of those that nobody reads any more.

        Args:
            grace_ms: how long ago they were taken out of the table at least: who opened it before still reads them.
            is_rehearsal: nothing is done.

        Returns:
            The files that are, or would be, gone; rows are not counted.
        """


class Size(NamedTuple):
    """How much there is: rows, files, and bytes on the disk; those of a file of which some rows stay by their share."""

    row_count: int = 0
    file_count: int = 0
    size_bytes: int = 0

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(*map(add, self, other))


def without(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows that have not the values of any key; they keep their order."""
    wanted = {*_values(keys, keys.column_names)}
    return rows.filter(pa.array([own not in wanted for own in _values(rows, keys.column_names)], pa.bool_()))


def no_warehouse(root: str, table: Table) -> WarehouseError:
    """The error of whoever asks where there is no warehouse, or a part of one is gone."""
    what = f"no warehouse here ({table.name} is missing): give the --warehouse of an audit, or audit first"
    return WarehouseError(f"{root}: {what}")


def too_busy(path: str) -> WarehouseError:
    """The error of a writer that others were faster than, every time."""
    return WarehouseError(f"{path}: other audits kept writing here at the same time. Run the same command again")


NamedRows = tuple[str, pa.RecordBatch]
BatchesByName = dict[str, list[pa.RecordBatch]]


def schema_of(table: Table, names: Sequence[str]) -> pa.Schema:
    """Some columns of a table, in the order of their names; all where none is named."""
    return pa.schema([table.arrow_schema.field(name) for name in names or table.arrow_schema.names])


@dataclass(frozen=True)
class RowTasks:
    """Work that fills tables.

    Attributes:
        work: of each task what it works on.
        tables: what they fill.
        rows_of: run where the task is: the batches of one task, of its work, each with the name of its table, or with
            another name for what the driver is told.
        is_on_spark: they are Spark's tasks; else this process does them one after another.
    """

    work: Sequence[Any]
    tables: tuple[Table, ...]
    rows_of: Callable[[Any], Iterable[NamedRows]]
    is_on_spark: bool

    def all_rows(self) -> Iterator[NamedRows]:
        """What all tasks give, one after another in this process."""
        return (named for work in self.work for named in self.rows_of(work))

    def of_tables(self, named: Iterable[NamedRows], told: BatchesByName) -> Iterator[tuple[Table, pa.RecordBatch]]:
        """The rows of the tables, each batch with its table; all others are added to `told`."""
        known = {table.name: table for table in self.tables}
        for name, rows in named:
            if name in known:
                yield known[name], rows
            else:
                told.setdefault(name, []).append(rows)


def tables_of(told: BatchesByName) -> dict[str, pa.Table]:
    """Batches by name as one table for each name."""
    return {name: pa.Table.from_batches(batches) for name, batches in told.items()}


_SAME_CONTENT = MatchKey(("input_id", "kind"))
_SAME_INPUT = MatchKey(("input_id", "cluster", "capture"))
_READ_BY_ANOTHER = replace(_SAME_CONTENT, but=("ingest_id",))
_SAME_RUN, _SAME_NUMBER = MatchKey(("run_id",)), MatchKey(("run_number",))


def held_inputs(warehouse: Warehouse, input_ids: Iterable[str]) -> list[ReadInput]:
    """Rows of `inputs` that list any of these contents, of whatever cluster and capture."""
    return inputs_of(warehouse, input_id=[*input_ids])


def inputs_of(warehouse: Warehouse, **one_of: Collection[Any]) -> list[ReadInput]:
    """Rows of `inputs`; those of an earlier reading with their `lacking_sections`, which today's reading doubts."""
    rows = warehouse.records(ReadInput, INPUTS, **one_of)
    is_old = [row.has_dumped_logs and (row.reading_version or FIRST_READING) < READING_VERSION for row in rows]
    texts = sorted({row.input_id for row, old in zip(rows, is_old, strict=True) if old})
    lacking = defaultdict[str, set[int]](set)
    names = ("input_id", "section_index", "lacking_batch_count")
    for batch in warehouse.batches(LOG_PIECES, *names, input_id=texts) if texts else ():
        for piece in batch.filter(pc.greater(batch["lacking_batch_count"], 0)).to_pylist():
            lacking[piece["input_id"]].add(piece["section_index"])
    return [
        row._replace(lacking_sections=frozenset(lacking[row.input_id])) if old and row.input_id in lacking else row
        for row, old in zip(rows, is_old, strict=True)
    ]


def commit_inputs(warehouse: Warehouse, inputs: Sequence[ReadInput], held: Sequence[ReadInput]) -> None:
    """Name inputs with the ingest that read them: from now on that ingest's rows of them count.

    An input that its capture holds already stays as it is. Where another ingest has read the same content, that one
    keeps counting, and ours never does; an earlier reading of it counts in no capture any more. `held` is what
    `held_inputs` said of them before; who commits in the meantime is seen.

    Raises:
        WarehouseError: it cannot be written, or other audits were faster every time.
    """
    newer = {row.content: row for row in inputs if any(_is_newer(row, other) for other in held)}
    if newer:
        warehouse.revise(INPUTS, lambda rows: _as_found_by(rows, newer))
        held = held_inputs(warehouse, (row.input_id for row in inputs))
    for _ in range(MOST_ATTEMPTS):
        known = {row.content: row for row in held}
        places = {(row.cluster, row.capture, row.input_id) for row in held}
        fresh = [
            row.found_as(known.get(row.content, row))
            for row in inputs
            if (row.cluster, row.capture, row.input_id) not in places
        ]
        rows = batch_of(ReadInput, fresh, INPUTS.arrow_schema)
        if not fresh or warehouse.insert(rows, INPUTS, (_SAME_INPUT, _READ_BY_ANOTHER)) == len(fresh):
            return
        held = held_inputs(warehouse, (row.input_id for row in inputs))
    raise too_busy(warehouse.path(INPUTS))


def _is_newer(row: ReadInput, other: ReadInput) -> bool:
    return row.content == other.content and row.is_newer_than(other)


def _as_found_by(rows: pa.Table, newer: Mapping[tuple[str, str | None], ReadInput]) -> pa.Table:
    """Rows of `inputs`, those of some contents as a newer reading found them."""
    found = records_of(ReadInput, rows)
    revised = [_revised(row, newer.get(row.content, row)) for row in found]
    return pa.Table.from_batches([batch_of(ReadInput, revised, INPUTS.arrow_schema)])


def _revised(row: ReadInput, newer: ReadInput) -> ReadInput:
    if not newer.is_newer_than(row):
        return row
    is_same_place = (row.cluster, row.capture) == (newer.cluster, newer.capture)
    return newer if is_same_place else row.found_as(newer)


def commit_run(warehouse: Warehouse, run: RunRecord) -> None:
    """Write the record of a run, after all its other rows: from now on they count.

    A run that was completed before keeps its number; a new one gets the next, which no other run has.

    Raises:
        WarehouseError: it cannot be written, or other audits were faster every time.
    """
    for _ in range(MOST_ATTEMPTS):
        runs = {known.run_id: known for known in warehouse.records(RunRecord, RUNS)}
        before = runs.get(run.run_id)
        number = max((known.run_number for known in runs.values()), default=0) + 1
        own = run._replace(run_number=number if before is None else before.run_number)
        row = batch_of(RunRecord, [own], RUNS.arrow_schema)
        if before is not None:
            # The same run again has read the same rows, at versions that may be newer.
            is_same = before == own._replace(table_versions=before.table_versions)
            return None if is_same else warehouse.replace([row], RUNS, run_id=run.run_id)
        if warehouse.insert(row, RUNS, (_SAME_RUN, _SAME_NUMBER)):
            return None
    raise too_busy(warehouse.path(RUNS))
