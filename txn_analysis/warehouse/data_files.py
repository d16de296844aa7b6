"""Data files of a table, written by whoever holds the rows (a Spark task, or the driver), and read a batch at a time.

Arrow writes Parquet in an eighth of the time that rows take through the JVM. As with the tasks of Delta's own writer, a
file counts once it is committed: by `delta_folder`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_, attrgetter
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from txn_analysis.columns.arrays import by_key
from txn_analysis.columns.values import Json
from txn_analysis.tables import Table
from txn_analysis.warehouse.errors import BrokenRowError
from txn_analysis.warehouse.roots import Root
from txn_analysis.warehouse.rows import row_hashes, schema_of

_ROW_GROUP_BYTES = 16 << 20  # of Arrow memory
_LONGEST_STATISTIC = 32  # characters, as in Delta's own files
_LAST_CHARACTER = "\U0010ffff"
_BATCH_ROWS = 1 << 16
_FORMAT, _DISK = ds.ParquetFileFormat(), LocalFileSystem()


@dataclass(frozen=True)
class DataFile:
    """A data file of a table.

    Attributes:
        table: name of the table.
        slice: the value of the column by which the table is partitioned; None where there is none.
        path: below the table's folder, as the operating system has it.
        modified_ms: of one that is not committed yet.
        statistics: the same; as JSON, in the form of Delta's `add.stats`.
    """

    table: str
    slice: str | None
    path: str
    size_bytes: int
    row_count: int
    modified_ms: int = 0
    statistics: str = ""


def write_data_files(
    rows: Iterable[tuple[Table, pa.RecordBatch]], root: Root, slice_of: Mapping[str, str]
) -> list[DataFile]:
    """Write rows of some tables, one file for each table that has any.

    Args:
        rows: batches of whole rows, each with its table.
        root: where the tables lie, by their names.
        slice_of: the partition that all rows belong to, by the names of its columns.

    Raises:
        BrokenRowError: a row breaks a constraint of its table.
        OSError: it cannot be written.
    """
    writers: dict[str, _Writer] = {}
    try:
        with ThreadPoolExecutor(1, "writer") as behind:  # starts no thread for less than a row group
            for table, batch in rows:
                if batch.num_rows:
                    if table.name not in writers:
                        writers[table.name] = _Writer(table, root, slice_of, behind)
                    writers[table.name].write(batch)
            return [writer.finish() for writer in writers.values()]
    except BaseException:
        for writer in writers.values():
            writer.drop()
        raise


def check_rows(table: Table, batch: pa.Table) -> None:
    """Refuse rows that a table may not have.

    Raises:
        BrokenRowError: one breaks a constraint of its table.
    """
    for name in (c.name for c in table.columns if not c.nullable):
        if batch[name].null_count:
            raise BrokenRowError(f"NOT NULL of column {name}")
    for name, check in table.checks.items():
        if not check.is_kept_by(batch):
            raise BrokenRowError(f"CHECK {name}: {check.sql}")


class _Writer:
    """One file that grows by row groups: while one is written behind its caller, batches of the next one wait.

    What goes wrong with a row group is raised with the next one, or when the file is finished.
    """

    def __init__(self, table: Table, root: Root, slice_of: Mapping[str, str], behind: Executor) -> None:
        self._table, self._behind = table, behind
        self._written: Future[None] | None = None
        self._slice = next((slice_of[column] for column in table.partition_by), None)
        # Hive's form, in which a value is escaped for the folder's name; Delta's log escapes it once more, as in a URI.
        parts = [f"{column}={quote(slice_of[column], safe='')}" for column in table.partition_by]
        self._relative = "/".join([*parts, f"part-{uuid.uuid4()}.parquet"])
        self._new = root.new_file(f"{table.name}/{self._relative}")
        self._batches, self._batch_bytes = list[pa.RecordBatch](), 0
        self._schema = pa.schema([field for field in table.arrow_schema if field.name not in table.partition_by])
        self._file = pq.ParquetWriter(
            self._new.target, self._schema, write_statistics=table.indexed, **_encodings(self._schema)
        )

    def write(self, batch: pa.RecordBatch) -> None:
        if self._batches and batch.schema != self._batches[0].schema:  # what may be NULL is not said alike by all
            self._write_behind()
        self._batches.append(batch)
        self._batch_bytes += batch.nbytes
        if self._batch_bytes >= _ROW_GROUP_BYTES:
            self._write_behind()

    def _write_behind(self) -> None:
        self._wait()
        self._written = self._behind.submit(self._write_row_group, self._batches)
        self._batches, self._batch_bytes = [], 0

    def _wait(self) -> None:
        if self._written is not None:
            self._written.result()

    def _write_row_group(self, batches: Sequence[pa.RecordBatch]) -> None:
        rows = pa.Table.from_batches(batches)
        check_rows(self._table, rows)
        self._file.write_table(rows.select(self._schema.names).cast(self._schema))

    def finish(self) -> DataFile:
        self._wait()
        if self._batches:
            self._write_row_group(self._batches)
        self._file.close()
        metadata = pq.read_metadata(self._new.target)
        statistics = json.dumps(_statistics(metadata, self._table.indexed))
        size_bytes, rows = self._new.keep(), metadata.num_rows
        now_ms = time.time_ns() // 1_000_000
        return DataFile(self._table.name, self._slice, self._relative, size_bytes, rows, now_ms, statistics)

    def drop(self) -> None:
        """Free the space of what nobody will commit; the disk may be full."""
        with suppress(Exception):
            self._file.close()
        self._new.drop()


def _statistics(metadata: Any, indexed: Collection[str]) -> dict[str, Json]:
    """What Delta skips files by: how many rows there are, and the range of the columns that are indexed.

    Of a long word the beginning bounds from below, and with the last of all characters behind it from above.
    """
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for place in range(metadata.num_columns):
        chunks = [group.column(place) for group in groups]
        name, statistics = chunks[0].path_in_schema, [chunk.statistics for chunk in chunks]
        # Of very long words Parquet keeps no range; where all are NULL there is none.
        if name in indexed and all(each and (each.has_min_max or not each.num_values) for each in statistics):
            ranges = [(each.min, each.max) for each in statistics if each.has_min_max]
            if ranges:
                least[name], most[name] = min(low for low, _ in ranges), max(high for _, high in ranges)
    for name, low in least.items():
        if isinstance(low, str):
            least[name] = low[:_LONGEST_STATISTIC]
            if len(most[name]) > _LONGEST_STATISTIC:
                most[name] = most[name][:_LONGEST_STATISTIC] + _LAST_CHARACTER
    return {"numRecords": metadata.num_rows, "minValues": least, "maxValues": most}


def read_files(
    table: Table, root: Root, files: Iterable[DataFile], names: Sequence[str], one_of: Mapping[str, Collection[Any]]
) -> Iterator[pa.RecordBatch]:
    """The rows of some data files of a table, one batch after another; wherever the files can be opened.

    Args:
        table: whose files they are.
        root: where the tables lie, by their names.
        files: those to read.
        names: the columns that are wanted, in the order of the batches; all where there are none.
        one_of: what some columns may hold; rows that do not meet all are left out.
    """
    column = next(iter(table.partition_by), None)
    in_files = pa.schema([field for field in table.arrow_schema if field.name != column])
    schema = schema_of(table, names)
    wanted = {name: pa.array([*of], in_files.field(name).type) for name, of in one_of.items() if name != column}
    columns_in_files = [name for name in schema.names if name != column]
    for slice_, its in by_key(files, attrgetter("slice")).items():
        sources = root.sources((f"{table.name}/{file.path}", file.size_bytes) for file in its)
        for batch in filter(len, batches_of(sources, in_files, columns_in_files, wanted)):
            arrays = [pa.repeat(slice_, len(batch)) if name == column else batch[name] for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def have_equal_rows(table: Table, root: Root, some: Sequence[DataFile], others: Sequence[DataFile]) -> bool:
    """Data files of a table hold the rows of others, each as often, in whatever order and files."""
    if sum(file.row_count for file in some) != sum(file.row_count for file in others):
        return False
    return _sum_of_hashes(table, root, some) == _sum_of_hashes(table, root, others)


def _sum_of_hashes(table: Table, root: Root, files: Sequence[DataFile]) -> list[int]:
    sums = np.zeros(2, np.uint64)
    for batch in read_files(table, root, files, (), {}):
        sums += row_hashes(batch.columns, len(batch)).sum(axis=1)
    return sums.tolist()


def batches_of(
    sources: Iterable[Any], schema: pa.Schema, names: Sequence[str], one_of: Mapping[str, pa.Array]
) -> Iterator[pa.RecordBatch]:
    """The rows of some files that meet a condition; row groups that cannot hold one are not read.

    One batch at a time is in memory, however large the files are: Arrow's own datasets decode a whole row group before
    they give its first rows, and the one behind it meanwhile.

    Args:
        sources: the files, as paths or open, read one after another.
        schema: what the files hold.
        names: the columns that are wanted, in any order.
        one_of: what some columns may hold; rows that do not meet all are left out.

    Raises:
        ArrowException: a file is damaged.
        OSError: it is not there, or cannot be read.
    """
    columns = [*dict.fromkeys((*names, *one_of))]
    for source in sources:
        file = pq.ParquetFile(source)
        if not _is_as_declared(file.schema_arrow, schema, columns):
            wanted, rows = _condition(one_of), _dataset_of(source)
            yield from rows.to_batches(schema, columns=[*names], filter=wanted, batch_size=_BATCH_ROWS)
            continue
        groups = [*range(file.num_row_groups)]
        if one_of and len(groups) > 1:
            groups = [group.id for group in _dataset_of(source).subset(_condition(one_of), schema).row_groups]
        is_large = file.metadata.num_rows > _BATCH_ROWS  # of fewer rows, threads cost more than they save
        for group in groups:  # a batch that went on into the next one could hold many, of few but large rows
            for batch in file.iter_batches(_BATCH_ROWS, [group], columns, use_threads=is_large):
                yield _that_meet(batch, one_of).select([*names])


def _dataset_of(source: Any) -> Any:
    return _FORMAT.make_fragment(source, None if hasattr(source, "read") else _DISK)


def _condition(one_of: Mapping[str, pa.Array]) -> pa.Expression:
    return reduce(and_, (pc.field(name).isin(values) for name, values in one_of.items()), pc.scalar(True))


def _that_meet(batch: pa.RecordBatch, one_of: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The rows that meet a condition; of a few rows, an expression takes Arrow as long as all of reading them."""
    for name, values in one_of.items():
        batch = batch.filter(pc.is_in(batch[name], values))
    return batch


def _is_as_declared(stored: pa.Schema, declared: pa.Schema, names: Sequence[str]) -> bool:
    """Whether a file's columns need no conversion; another tool may have written it."""
    return all(name in stored.names and stored.field(name).type == declared.field(name).type for name in names)


@lru_cache(maxsize=64)
def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """How columns are written: words by their place in a list, numbers by how far each is from the one before.

    Numbers repeat too seldom for a list of them; most are near the one before, or are it.
    """
    empty = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), empty)
    stored = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    leaves = {stored.column(place).path: stored.column(place).physical_type for place in range(len(stored))}
    return {
        "use_dictionary": [path for path, kind in leaves.items() if kind == "BYTE_ARRAY"],
        "column_encoding": {path: "DELTA_BINARY_PACKED" for path, kind in leaves.items() if kind.startswith("INT")},
    }
