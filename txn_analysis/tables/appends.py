"""What producers appended in one batch range: the records that declare the column `producers` of `log_pieces`.

There can be as many as batches, so that nothing makes records of them: `AppendColumns` has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import NONE, Array, Columns, numbers, rows_at, spans
from txn_analysis.columns.records import Int32
from txn_analysis.kafka.names import END_MARKERS

if TYPE_CHECKING:
    from collections.abc import Sequence


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


@dataclass(frozen=True)
class AppendColumns:
    """The appends of batch ranges, as columns. One row is one producer in one range; in a range it comes once.

    NONE stands for NULL, and for a marker its place in `END_MARKERS`.

    Attributes:
        own: by field of `ProducerAppendInfo`, but for those that hold records.
        lead: by field of `TransactionPart`.
        tail: likewise; NONE all over where the lead is the tail as well.
        bare: by field of `BareMarker`; one row is one end marker without data.
        bare_row: of each of those the row of its producer; ascending.
    """

    own: Columns
    lead: Columns
    tail: Columns
    bare: Columns
    bare_row: Array

    @classmethod
    def of(cls, ranges: Sequence[ProducerAppends]) -> AppendColumns:
        """The appends of some batch ranges that have any, one range after another."""
        read_together = (list(own) for _, own in groupby(ranges, key=lambda each: id(each.columns)))
        parts = [own[0].columns._of(own) for own in read_together]
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(len(part.own["producer_id"]) for part in parts)])
        own, lead, tail, bare = (
            {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
            for columns in zip(*((part.own, part.lead, part.tail, part.bare) for part in parts), strict=True)
        )
        row = np.concatenate([part.bare_row + count for part, count in zip(parts, before[:-1], strict=True)])
        return cls(own, lead, tail, bare, row)

    def _of(self, ranges: Sequence[ProducerAppends]) -> AppendColumns:
        starts, stops = (np.array([getattr(each, name) for each in ranges]) for name in ("start", "stop"))
        begins = np.cumsum(stops - starts) - (stops - starts)
        of_bare = np.searchsorted(self.bare_row, starts), np.searchsorted(self.bare_row, stops)
        rows, bare = spans(starts, stops), spans(*of_bare)
        own, lead, tail = (rows_at(part, rows) for part in (self.own, self.lead, self.tail))
        moved = np.repeat(begins - starts, of_bare[1] - of_bare[0])
        return AppendColumns(own, lead, tail, rows_at(self.bare, bare), self.bare_row[bare] + moved)


@dataclass(frozen=True)
class ProducerAppends:
    """The appends of the producers of one batch range: some rows of the columns of all ranges that were read with it.

    Attributes:
        columns: of all those ranges.
        start: the first row of this one.
        stop: the row after its last one.
    """

    columns: AppendColumns
    start: int
    stop: int

    RECORD: ClassVar[type[ProducerAppendInfo]] = ProducerAppendInfo

    def __len__(self) -> int:
        """How many producers there are."""
        return self.stop - self.start

    @property
    def producer_id(self) -> Array:
        """Who they are."""
        return self.columns.own["producer_id"][self.start : self.stop]

    @property
    def has_data(self) -> Array:
        """Whether each of them wrote data before its first end marker in the range, if any."""
        found: Array = self.columns.lead["start_offset"][self.start : self.stop] != NONE
        return found

    @classmethod
    def of_lists(cls, lists: pa.ListArray) -> list[ProducerAppends]:
        """Those of each batch range, from the column `producers` of its row."""
        found = _fields_of(lists.flatten())
        lead, tail, markers = (found.pop(name) for name in ("lead", "tail", "bare_markers"))
        parts = (found, _fields_of(lead), _fields_of(tail), _fields_of(markers.flatten()))
        own, lead, tail, bare = ({name: _numbers(column) for name, column in part.items()} for part in parts)
        columns = AppendColumns(own, lead, tail, bare, numbers(pc.list_parent_indices(markers), NONE))
        bounds = np.append(0, np.cumsum(numbers(pc.list_value_length(lists), 0))).tolist()
        return [cls(columns, start, stop) for start, stop in pairwise(bounds)]


def _fields_of(structs: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of structs, NULL where a struct is."""
    return dict(zip([field.name for field in structs.type], structs.flatten(), strict=True))


def _numbers(column: pa.Array) -> Array:
    return numbers(pc.index_in(column, _MARKERS) if pa.types.is_string(column.type) else column, NONE)


_MARKERS = pa.array(END_MARKERS)
NO_APPENDS = ProducerAppends(AppendColumns({"producer_id": np.zeros(0, np.int64)}, {}, {}, {}, np.zeros(0)), 0, 0)
