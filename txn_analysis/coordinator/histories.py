"""The histories of transactional ids as rows: the records of each in order, and the producer ids that it had."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, codes_of, numbers
from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.state_columns import InOrder, in_order
from txn_analysis.coordinator.state_records import STATES
from txn_analysis.kafka.transactions import NAMED, SAID, StateRecord
from txn_analysis.tables.given import AUDIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.columns.arrays import Array
    from txn_analysis.coordinator.history import History

_RECORD = pa.struct([*(STATES.field(name) for name in SAID), ("is_hidden", pa.bool_())])
HISTORIES = pa.schema([AUDIT, ("producer_ids", pa.list_(pa.int64())), ("history", pa.list_(_RECORD))])
"""One row is one transactional id: the producer ids that it has, or had, and its records, oldest first; never none."""
OF_PRODUCER = pa.schema([AUDIT, ("producer_id", pa.int64()), HISTORIES.field("history")])
"""One row is the history of an id that has, or had, a producer id."""


def histories_of(states: pa.Table, audit: Array, dumped_rank: Array) -> pa.Table:
    """Rows of `HISTORIES`.

    Args:
        states: rows of `STATES`: all records of each id.
        audit: of each row the number of its audit.
        dumped_rank: of each row, see `Placing.dumped_rank`.
    """
    ids = codes_of(states["transactional_id"])
    group = np.where(ids == ABSENT, ABSENT, audit * (ids.max(initial=0) + 1) + ids)
    ordered = in_order(states, group, dumped_rank, SAID)
    rows = states.select([*SAID, "held_by"]).take(pa.array(ordered.row)).combine_chunks()
    of_audit = pa.array(audit[ordered.row[ordered.first]], AUDIT.type)
    return pa.table([of_audit, _producers(rows, ordered), _records(rows, ordered)], schema=HISTORIES)


def _records(rows: pa.Table, ordered: InOrder) -> pa.ListArray:
    """The history of each id."""
    stops = np.append(ordered.first[1:], len(ordered.row))[: len(ordered.first)]
    is_hidden = np.zeros(len(ordered.row), bool)
    is_hidden[stops - 1] = ordered.is_hidden
    columns = {name: _whole(rows[name]) for name in SAID}
    columns |= {"state_partition": _whole(rows["held_by"]), "is_hidden": pa.array(is_hidden)}
    columns["topic_partitions"] = _never_null(columns["topic_partitions"])
    arrays = [columns[field.name].cast(field.type) for field in _RECORD]
    return pa.ListArray.from_arrays(
        pa.array(np.append(0, stops), pa.int32()), pa.StructArray.from_arrays(arrays, fields=[*_RECORD])
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _never_null(lists: pa.ListArray) -> pa.ListArray:
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), lists.flatten())


def _producers(rows: pa.Table, ordered: InOrder) -> pa.ListArray:
    """Of each id the producer ids that it has, or had, in order."""
    named = np.concatenate([numbers(rows[name], ABSENT) for name in NAMED])
    number = np.tile(ordered.id_of, len(NAMED))[named != ABSENT]
    named = named[named != ABSENT]
    order = np.lexsort((named, number))
    number, named = number[order], named[order]
    is_first = np.append(True, (np.diff(number) != 0) | (np.diff(named) != 0))[: len(named)]
    stops = np.searchsorted(number[is_first], np.arange(len(ordered.first) + 1))
    return pa.ListArray.from_arrays(pa.array(stops, pa.int32()), pa.array(named[is_first], pa.int64()))


def by_producer_id(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `OF_PRODUCER` from rows of `HISTORIES`: each history for each of its producer ids."""
    for rows in batches:
        number = pc.list_parent_indices(rows["producer_ids"])
        columns = [rows["audit"].take(number), rows["producer_ids"].flatten(), rows["history"].take(number)]
        yield pa.RecordBatch.from_arrays(columns, schema=OF_PRODUCER)


def histories_in(lists: pa.ListArray | pa.ChunkedArray) -> list[History]:
    """Such histories as records."""
    if isinstance(lists, pa.ChunkedArray):
        return [history for chunk in lists.chunks for history in histories_in(chunk)]
    records = iter(records_of(StateRecord, lists.flatten()))
    return [[*islice(records, length)] for length in pc.list_value_length(lists).to_pylist()]
