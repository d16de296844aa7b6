"""Rows that one table takes over from another of the same columns: as whole files, where all rows of a file are wanted.

What a scan has written once need not be written again for every run that rests on it. A file that is taken over is a
second name of the same bytes; each table can remove its own.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from txn_analysis.columns.equal_runs import is_in
from txn_analysis.storage.local.data_files import described_file, new_file_path, write_data_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from txn_analysis.columns.arrays import Array
    from txn_analysis.storage.local.data_files import DataFile
    from txn_analysis.tables import Table


@dataclass(frozen=True)
class Wanted:
    """Which rows of a table another table takes over.

    Attributes:
        table: whose rows.
        key: the columns that say which; rows that have one key lie together in a file.
        keys: their values, by the slice of the table.
        files: where the table is on a local disk, the files of its slices, as `Warehouse.files_of` lists them.
    """

    table: Table
    key: tuple[str, ...]
    keys: Mapping[str, Collection[tuple[Any, ...]]]
    files: Sequence[tuple[str, str]] = ()


def take_file(
    file: Path,
    key: Sequence[str],
    wanted: Collection[tuple[Any, ...]],
    table: Table,
    root: Path,
    slice_of: Mapping[str, str],
) -> list[DataFile]:
    """Make the wanted rows of one data file rows of `table`; see `write_data_files`."""
    is_wanted = is_in(pq.read_table(file, columns=list(key), partitioning=None), key, wanted)
    if is_wanted.all():
        return [_linked(file, table, root, slice_of)]
    rows = _wanted_rows(file, is_wanted, table, slice_of)
    return write_data_files(((table, batch) for batch in rows), root, slice_of)


def _wanted_rows(file: Path, is_wanted: Array, table: Table, slice_of: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    at = 0
    for rows in pq.ParquetFile(file).iter_batches():
        own = rows.filter(pa.array(is_wanted[at : at + rows.num_rows]))
        at += rows.num_rows
        columns = {name: pa.repeat(value, own.num_rows) for name, value in slice_of.items()}
        for field in (field for field in table.arrow_schema if field.name not in columns):
            # An earlier version may have written the file, without columns that are declared today.
            is_there = field.name in own.schema.names
            columns[field.name] = own[field.name] if is_there else pa.nulls(own.num_rows, field.type)
        yield pa.RecordBatch.from_pydict(columns)


def _linked(file: Path, table: Table, root: Path, slice_of: Mapping[str, str]) -> DataFile:
    path = new_file_path(table, slice_of)
    (root / table.name / path).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, root / table.name / path)
    except OSError:  # some file systems know no second names
        shutil.copyfile(file, root / table.name / path)
    return described_file(table, root, path)
