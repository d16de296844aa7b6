"""Record batches as columns: what was read of one range of a dump or of a segment, as the fold takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, equal_runs, rows_at
from txn_analysis.kafka.names import CODECS, TIMES
from txn_analysis.tables import LOG_BATCHES

_WORDS = {"timestamp_type": TIMES, "codec": CODECS}


class BatchPlace(NamedTuple):
    """Where batches were read: the ingest, the input and its section; and the partition that they are of."""

    ingest_id: str
    input_id: str
    section_index: int
    topic: str
    partition: int


@dataclass(frozen=True)
class GroupNames:
    """The groups of all offset commits in some batches; the two are parallel.

    Attributes:
        batch: which of the batches holds it.
        name: its group's name, in UTF-8.
    """

    batch: Array
    name: pa.LargeBinaryArray


@dataclass(frozen=True)
class Batches:
    """Batches of one section, in the order of its text.

    Attributes:
        place: where all of them were read.
        columns: the other columns of `log_batches` by their names, all of one length. ABSENT is NULL; of a choice of
            words it is the place among them that stands here. `is_valid` is 1 or 0, and ABSENT where the checksum was
            not looked at; `marker` holds words, and None.
        groups: whose offsets they hold, in a section of `__consumer_offsets` whose keys were all read; else None.
    """

    place: BatchPlace
    columns: Mapping[str, Array]
    groups: GroupNames | None = None

    def __len__(self) -> int:
        return len(self.columns["base_offset"])

    @property
    def section(self) -> tuple[str, int]:
        """The input, and the index of the section in it."""
        return self.place.input_id, self.place.section_index

    def rows(self) -> pa.RecordBatch:
        """The batches as rows of `log_batches`."""
        return rows_of([self])


def rows_of(parts: Sequence[Batches]) -> pa.RecordBatch:
    """Batches of some sections, at least of one, as rows of `log_batches`; small sections cost little together."""
    schema, part = LOG_BATCHES.arrow_schema, np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    return pa.RecordBatch.from_arrays([_column(parts, part, field) for field in schema], schema=schema)


def _column(parts: Sequence[Batches], part: Array, field: pa.Field) -> pa.Array:
    is_alone = len(parts) == 1  # as large sections are: nothing of theirs is copied
    if field.name in BatchPlace._fields:
        places = pa.array([getattr(each.place, field.name) for each in parts], field.type)
        return pa.repeat(places[0], len(part)) if is_alone else places.take(pa.array(part))
    columns = [each.columns[field.name] for each in parts]
    values = columns[0] if is_alone else np.concatenate(columns)
    if field.name in _WORDS:
        return pa.array(_WORDS[field.name], field.type).take(pa.array(values, mask=values == ABSENT))
    if values.dtype in (bool, object) or not field.nullable:
        return pa.array(values, field.type)
    is_absent = values == ABSENT
    known = values.astype(bool) if pa.types.is_boolean(field.type) else values
    return pa.array(known, field.type, is_absent if is_absent.any() else None)  # without a mask nothing is copied


def batches_of(rows: pa.RecordBatch) -> Iterator[Batches]:
    """The batches in some rows of `log_batches`, section by section; of columns that the rows lack nothing is known."""
    ordered = rows.sort_by([(name, "ascending") for name in ("input_id", "section_index", "text_start_bytes")])
    columns = {name: _values(name, ordered[name]) for name in ordered.schema.names if name not in BatchPlace._fields}
    for start, stop in equal_runs(ordered, ("input_id", "section_index")):
        place = BatchPlace(*(ordered[name][start].as_py() for name in BatchPlace._fields))
        yield Batches(place, rows_at(columns, slice(start, stop)))


def _values(name: str, column: pa.Array) -> Array:
    if name in _WORDS:
        column = pc.index_in(column, pa.array(_WORDS[name]))
    if not pa.types.is_string(column.type) and (column.null_count or not pa.types.is_boolean(column.type)):
        column = pc.fill_null(column.cast(pa.int64()), ABSENT)
    values: Array = column.to_numpy(zero_copy_only=False, writable=True)
    return values
