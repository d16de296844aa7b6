"""Rows of Parquet files some at a time: as little memory as a batch takes, however large the files are.

Arrow's own datasets decode a whole row group before they give its first rows, and the one behind it meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pyarrow as pa

_BATCH_ROWS = 1 << 16


def batches_of(
    paths: Sequence[str], schema: pa.Schema, names: Sequence[str], wanted: pa.Expression, asked: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of some files that meet a condition; row groups that cannot hold one are not read.

    Args:
        paths: the files, read one after another.
        schema: what the files hold.
        names: the columns that are wanted, in any order.
        wanted: the condition.
        asked: the columns that it is about.

    Raises:
        ArrowException: a file is damaged.
        OSError: it is not there, or cannot be read.
    """
    for fragment in ds.dataset([*paths], schema).get_fragments(wanted):
        chosen = fragment.subset(wanted)
        columns = [*dict.fromkeys((*names, *asked))]
        if not _is_as_declared(fragment.physical_schema, schema, columns):
            yield from chosen.to_batches(schema, columns=[*names], filter=wanted, batch_size=_BATCH_ROWS)
            continue
        groups = [group.id for group in chosen.row_groups]
        file = pq.ParquetFile(fragment.path, metadata=fragment.metadata)
        for batch in file.iter_batches(_BATCH_ROWS, groups, columns):
            yield (batch.filter(wanted) if asked else batch).select([*names])


def _is_as_declared(stored: pa.Schema, declared: pa.Schema, names: Sequence[str]) -> bool:
    """Whether a file's columns need no conversion; another tool may have written it."""
    return all(name in stored.names and stored.field(name).type == declared.field(name).type for name in names)
