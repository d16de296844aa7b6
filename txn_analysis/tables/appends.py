"""What producers appended in one batch range: the records that declare the column `producers` of `log_pieces`.

There can be as many as batches, so that nothing makes records of them: `ProducerAppends` has them as rows of an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import NONE, Array, names_in, numbers, numbers_named
from txn_analysis.columns.records import Int32
from txn_analysis.kafka.names import END_MARKERS


class BareMarker(NamedTuple):
    """An end marker with none of its producer's transactional data since the marker before."""

    offset: int
    marker: str | None
    timestamp_ms: int | None
    producer_epoch: Int32 | None
    coordinator_epoch: Int32 | None


class TransactionPart(NamedTuple):
    """What one producer wrote in a batch range up to its end marker, or to the end of the range.

    `start_offset` and all that is said of data is None where it wrote no data, `end_...` where no end marker follows.
    `first_after_ms` to `last_before_ms` are the moments around its first and its last batch; `hidden_...` count the
    range from its start on, whoever wrote it.
    """

    start_offset: int | None
    first_epoch: Int32 | None
    max_epoch: Int32 | None
    last_offset: int | None
    last_sequence: Int32 | None
    record_count: int
    size_bytes: int
    last_timestamp_ms: int | None
    first_after_ms: int | None
    first_before_ms: int | None
    last_after_ms: int | None
    last_before_ms: int | None
    hidden_record_count: int
    hidden_bytes: int
    end_offset: int | None
    end_marker: str | None
    end_timestamp_ms: int | None
    end_epoch: Int32 | None
    end_coordinator_epoch: Int32 | None
    first_timestamp_ms: int | None = None


class ProducerAppendInfo(NamedTuple):
    """What the appends of one producer in a batch range do to its state, as Kafka's class of this name.

    `lead` is the part before its first end marker there, which may continue what an earlier range left open. `tail` is
    the part after its last one, which may go on in a later range; None where it is `lead` as well. `marker_...` is of
    its last end marker; `ended_...` of the newest transaction that is whole inside, `max_ended_...` of all of them.
    `last_commit_offset` is that of its last end marker that is, or may be, a COMMIT.
    """

    producer_id: int
    lead: TransactionPart
    tail: TransactionPart | None
    first_batch_epoch: Int32 | None
    is_one_epoch: bool
    producer_epoch: Int32 | None
    last_sequence: Int32 | None
    last_timestamp_ms: int | None
    marker_offset: int | None
    marker_timestamp_ms: int | None
    marker_coordinator_epoch: Int32 | None
    ended_offset: int | None
    ended_last_timestamp_ms: int | None
    ended_coordinator_epoch: Int32 | None
    max_ended_coordinator_epoch: Int32 | None
    bare_markers: tuple[BareMarker, ...] = ()
    last_commit_offset: int | None = None


PART = numbers_named(*TransactionPart._fields)
_PARTS: dict[str, Any] = {"lead": PART, "tail": PART}
_APPEND = np.dtype([(n, _PARTS.get(n, np.int64)) for n in ProducerAppendInfo._fields if n != "bare_markers"])
_BARE_MARKER = numbers_named("producer_id", *BareMarker._fields)


@dataclass(frozen=True)
class ProducerAppends:
    """The appends of producers in one batch range. NONE stands for NULL, and for a marker its place in `END_MARKERS`.

    Attributes:
        rows: one row is one producer, which comes once: by field of `ProducerAppendInfo`, `lead` and `tail` in it by
            field of `TransactionPart`; NONE all over a tail that is the lead as well.
        bare_markers: one row is one end marker without data: by field of `ProducersBareMarker`.
    """

    rows: Array
    bare_markers: Array

    RECORD: ClassVar[type[ProducerAppendInfo]] = ProducerAppendInfo

    def __len__(self) -> int:
        """How many producers there are."""
        return len(self.rows)

    @property
    def producer_id(self) -> Array:
        """Who they are."""
        producer_id: Array = self.rows["producer_id"]
        return producer_id

    @classmethod
    def of_lists(cls, lists: pa.ListArray) -> list[ProducerAppends]:
        """Those of each batch range, from the column `producers` of its row."""
        appends = lists.flatten()
        rows = np.empty(len(appends), _APPEND)
        columns = _fill(rows, appends)
        for name in ("lead", "tail"):
            _fill(rows[name], columns[name])
        of_producer = columns["bare_markers"]
        bare, producer = of_producer.flatten(), numbers(pc.list_parent_indices(of_producer), NONE)
        markers = np.empty(len(bare), _BARE_MARKER)
        markers["producer_id"] = rows["producer_id"][producer]
        _fill(markers, bare)
        bounds = np.append(0, np.cumsum(numbers(pc.list_value_length(lists), 0)))
        bare_bounds = np.searchsorted(producer, bounds).tolist()
        places = zip(pairwise(bounds.tolist()), pairwise(bare_bounds), strict=True)
        return [cls(rows[slice(*place)], markers[slice(*of_bare)]) for place, of_bare in places]


def _fill(rows: Array, structs: pa.StructArray) -> dict[str, pa.Array]:
    """Fill rows with what structs hold, NONE where a struct is NULL. Returns the fields of the structs."""
    columns = dict(zip([field.name for field in structs.type], structs.flatten(), strict=True))
    for name, column in columns.items():
        if name in names_in(rows.dtype) and not pa.types.is_nested(column.type):
            rows[name] = numbers(pc.index_in(column, _MARKERS) if pa.types.is_string(column.type) else column, NONE)
    return columns


_MARKERS = pa.array(END_MARKERS)
NO_APPENDS = ProducerAppends(np.empty(0, _APPEND), np.empty(0, _BARE_MARKER))
