"""What a broker keeps of each producer of a partition (`DescribeProducers`), as columns: one row is one producer.

A partition can have as many producers as transactions, so that replaying a log changes columns. What is asked of a few
of them sees a row as an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, Columns, place_in
from txn_analysis.tables.schema import COORDINATOR_EPOCH_BASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


T = TypeVar("T")

BASIS = {name: code for code, name in enumerate(COORDINATOR_EPOCH_BASES)}
"""How `coordinator_epoch_basis` stands in a column."""
STATED_IN_MARKER = ("marker_offset", "marker_timestamp_ms", "coordinator_epoch")
"""What an entry takes of an end marker."""
_NOBODY = np.zeros(0, np.int64)


class Row:
    """One row of columns, which changes with them."""

    def __init__(self, columns: Columns, row: int) -> None:
        self.columns, self.row = columns, row

    @classmethod
    def names(cls) -> list[str]:
        """The columns."""
        return [name for name, of_class in vars(cls).items() if isinstance(of_class, Cell)]


class Cell(Generic[T]):
    """A number of a row, or a truth; None where NONE stands in the column."""

    def __init__(self, kind: Callable[[int], T] | None = None) -> None:
        self._kind = kind

    def __set_name__(self, _: type[Row], name: str) -> None:
        self.name = name

    def __get__(self, of: Row, _: Any = None) -> T:
        value = int(of.columns[self.name][of.row])
        if self._kind is not None:
            return self._kind(value)
        return cast("T", None if value == NONE else value)

    def __set__(self, of: Row, value: T) -> None:
        of.columns[self.name][of.row] = NONE if value is None else value


class OpenTransaction(Row):
    """A transaction with data after its producer's last end marker, as far as the log has been replayed.

    Fields are named as columns of `transactions`; the `hidden_...` ones count the log from its start on, whoever wrote
    it. `listed_at_offset` is the offset of the newest snapshot at the start of a file that lists it as open,
    `snapshot_offset` that of the snapshot its start was taken from; None where the log itself holds the start.
    """

    producer_id = Cell[int]()
    txn_start_offset = Cell[int]()
    is_txn_start_exact = Cell(bool)
    first_producer_epoch = Cell["int | None"]()
    max_producer_epoch = Cell["int | None"]()
    last_offset = Cell["int | None"]()
    last_sequence = Cell["int | None"]()
    record_count = Cell["int | None"]()
    size_bytes = Cell["int | None"]()
    last_timestamp_ms = Cell["int | None"]()
    first_appended_after_ms = Cell["int | None"]()
    first_appended_before_ms = Cell["int | None"]()
    appended_after_ms = Cell["int | None"]()
    appended_before_ms = Cell["int | None"]()
    hidden_record_count = Cell["int | None"]()
    hidden_bytes = Cell["int | None"]()
    listed_at_offset = Cell["int | None"]()
    snapshot_offset = Cell["int | None"]()


class ProducerStateEntry(Row):
    """What a broker keeps of one producer on one partition, and where it was taken from.

    `marker_offset` is that of the end marker that states the coordinator epoch, `log_marker_offset` that of the last
    end marker in the log itself, `any_marker_offset` that of the last one in any copy of the log. `compacted_...` is of
    the last one so far that another copy holds, and that compaction has removed from the log.
    """

    producer_id = Cell[int]()
    producer_epoch = Cell["int | None"]()
    last_sequence = Cell["int | None"]()
    last_timestamp_ms = Cell["int | None"]()
    coordinator_epoch = Cell["int | None"]()
    basis = Cell[int]()
    marker_offset = Cell["int | None"]()
    any_marker_offset = Cell["int | None"]()
    log_marker_offset = Cell["int | None"]()
    marker_timestamp_ms = Cell["int | None"]()
    compacted_marker_offset = Cell["int | None"]()
    compacted_marker_timestamp_ms = Cell["int | None"]()
    compacted_coordinator_epoch = Cell["int | None"]()
    previous_last_timestamp_ms = Cell["int | None"]()
    ended_coordinator_epoch = Cell["int | None"]()
    max_ended_coordinator_epoch = Cell["int | None"]()

    def __init__(self, columns: Columns, row: int, opened: Columns) -> None:
        super().__init__(columns, row)
        self._opened = opened

    @property
    def open(self) -> OpenTransaction | None:
        """What it has open."""
        is_open = self._opened["txn_start_offset"][self.row] != NONE
        return OpenTransaction(self._opened, self.row) if is_open else None

    def end(self) -> None:
        """It has nothing open any more."""
        self._opened["txn_start_offset"][self.row] = NONE


_OF_ENTRY, _OF_OPEN = ProducerStateEntry.names(), OpenTransaction.names()


@dataclass(frozen=True)
class EntryColumns:
    """The entries of several partitions, those of each one side by side.

    Attributes:
        is_known: of each of them whether anything of it came.
        columns: by name of a field of `ProducerStateEntry`.
        opened: by name of a field of `OpenTransaction`; without a start nothing is open.
    """

    is_known: Array
    columns: Columns
    opened: Columns

    @classmethod
    def of(cls, producer_ids: Array) -> EntryColumns:
        """Entries of which nothing came."""
        count = len(producer_ids)
        rows = iter(np.full((len(_OF_ENTRY) + len(_OF_OPEN), count), NONE))
        columns, opened = (dict(zip(names, rows, strict=False)) for names in (_OF_ENTRY, _OF_OPEN))
        columns["producer_id"] = opened["producer_id"] = producer_ids
        return cls(np.zeros(count, bool), columns, opened)

    def is_open(self, rows: Array | slice) -> Array:
        """Whether each of some producers has a transaction open."""
        is_open: Array = self.opened["txn_start_offset"][rows] != NONE
        return is_open

    def meet(self, rows: Array, is_whole: Array | bool) -> None:
        """Add the entries of producers of which nothing came before; whole is a log of which nothing is missing."""
        is_new, columns = ~self.is_known[rows], self.columns
        new = rows[is_new]
        self.is_known[new] = True
        basis = np.where(is_whole, BASIS["none_seen"], BASIS["unknown"])
        columns["basis"][new] = np.broadcast_to(basis, len(rows))[is_new]
        compacted = new[columns["compacted_marker_offset"][new] != NONE]
        if len(compacted):
            stated = {name: columns[f"compacted_{name}"][compacted] for name in STATED_IN_MARKER}
            self.take_epochs_of_markers(compacted, stated)

    def is_exact(self, rows: Array, gap_offset: Array | int | None, is_start_known: Array | bool) -> Array:
        """No missing batch can have begun what begins now earlier; compaction removes nothing of what is open.

        Args:
            rows: of the producers.
            gap_offset: the last offset so far that no file holds; NONE or None without one.
            is_start_known: nothing before the first batch range can matter.
        """
        gap = NONE if gap_offset is None else gap_offset
        is_exact: Array = (self.columns["any_marker_offset"][rows] > gap) | (is_start_known & np.equal(gap, NONE))
        return is_exact

    def begin(self, rows: Array, **known: Any) -> None:
        """Transactions begin; NONE stands in the columns that are not given."""
        for name, values in self.opened.items():
            if name != "producer_id":
                values[rows] = known.get(name, NONE)

    def take_epochs_of_snapshot(self, rows: Array, epochs: Array) -> None:
        """Take coordinator epochs of a snapshot; without one, no end marker of the producer was on the partition."""
        self.columns["coordinator_epoch"][rows] = epochs
        self.columns["basis"][rows] = np.where(epochs == NONE, BASIS["none_seen"], BASIS["snapshot"])

    def take_epochs_of_markers(self, rows: Array, stated: Columns) -> None:
        """Take coordinator epochs from end markers, in whichever copy of the log they are."""
        columns = self.columns
        for name in STATED_IN_MARKER:
            columns[name][rows] = stated[name]
        columns["basis"][rows] = np.where(stated["coordinator_epoch"] == NONE, BASIS["unknown"], BASIS["marker"])
        columns["any_marker_offset"][rows] = np.maximum(columns["any_marker_offset"][rows], stated["marker_offset"])

    def take_last_batches(self, rows: Array, appends: Columns) -> None:
        """Markers alone leave the last data batch cached, unless they change the epoch."""
        columns = self.columns
        is_same_epoch = appends["is_one_epoch"] & (appends["first_batch_epoch"] == columns["producer_epoch"][rows])
        is_cached = (appends["last_sequence"] == NONE) & is_same_epoch.astype(bool)
        columns["last_sequence"][rows] = np.where(is_cached, columns["last_sequence"][rows], appends["last_sequence"])
        columns["producer_epoch"][rows] = appends["producer_epoch"]
        columns["last_timestamp_ms"][rows] = appends["last_timestamp_ms"]

    def add_ended(self, rows: Array, last_timestamp_ms: Array, epoch: Array, max_epoch: Array) -> None:
        """Add transactions that ended: what the newest one states, and the largest coordinator epoch of all of them."""
        columns = self.columns
        columns["previous_last_timestamp_ms"][rows] = last_timestamp_ms
        columns["ended_coordinator_epoch"][rows] = epoch
        largest = columns["max_ended_coordinator_epoch"]
        largest[rows] = np.maximum(largest[rows], max_epoch)


@dataclass(frozen=True)
class ProducerEntries(EntryColumns):
    """All entries of one partition.

    Attributes:
        producer_ids: all that can come, in order.
        first_row: that of the first of them in the columns.
    """

    producer_ids: Array
    first_row: int

    @classmethod
    def of_partitions(cls, producer_ids: Iterable[Sequence[Array]]) -> list[ProducerEntries]:
        """Those of several partitions, in columns that they share; a producer may be named twice."""
        ids_of = [np.unique(np.concatenate([_NOBODY, *named])) for named in producer_ids]
        shared = EntryColumns.of(np.concatenate([_NOBODY, *ids_of]))
        first_rows = [0, *accumulate(map(len, ids_of))]
        return [
            cls(shared.is_known, shared.columns, shared.opened, ids, first_row)
            for ids, first_row in zip(ids_of, first_rows, strict=False)
        ]

    def rows(self, producer_ids: Array) -> Array:
        """The rows of producers that can come."""
        return np.searchsorted(self.producer_ids, producer_ids) + self.first_row

    @property
    def all_rows(self) -> slice:
        """The rows of all that can come."""
        return slice(self.first_row, self.first_row + len(self.producer_ids))

    def get(self, producer_id: int) -> ProducerStateEntry | None:
        """The entry of a producer; None where nothing of it came."""
        (place,) = place_in(self.producer_ids, np.array([producer_id])).tolist()
        row = self.first_row + place
        return self._entry(row) if place != NONE and self.is_known[row] else None

    def known_rows(self) -> Array:
        """The rows of all producers of which anything came."""
        return np.flatnonzero(self.is_known[self.all_rows]) + self.first_row

    def open_rows(self) -> Array:
        """The rows of all producers that have a transaction open."""
        return np.flatnonzero(self.is_open(self.all_rows)) + self.first_row

    def with_open(self, but: Array | None = None) -> Iterator[tuple[ProducerStateEntry, OpenTransaction]]:
        """The entries of those, with what they have open; without some producers."""
        rows = self.open_rows()
        if but is not None:
            rows = rows[~np.isin(self.columns["producer_id"][rows], but)]
        for row in rows.tolist():
            yield self._entry(row), OpenTransaction(self.opened, row)

    def oldest_open(self) -> OpenTransaction | None:
        """Of what is open what began first."""
        rows = self.open_rows()
        starts = self.opened["txn_start_offset"][rows]
        return OpenTransaction(self.opened, int(rows[starts.argmin()])) if len(rows) else None

    def _entry(self, row: int) -> ProducerStateEntry:
        return ProducerStateEntry(self.columns, row, self.opened)


def or_else(values: Array, otherwise: Array | int | None) -> Array:
    """The values, and something else where they are not known."""
    return np.where(values == NONE, NONE if otherwise is None else otherwise, values)


def first_known(value: int | None, otherwise: int | None) -> int | None:
    """The value, or the other one where it is None."""
    return otherwise if value is None else value
