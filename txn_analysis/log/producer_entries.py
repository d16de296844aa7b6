"""What a broker keeps of each producer of a partition (`DescribeProducers`), as columns: one row is one producer.

A partition can have as many producers as transactions, so that replaying a log changes columns. What is asked of a few
of them sees a row as an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, Columns, place_in
from txn_analysis.tables.schema import COORDINATOR_EPOCH_BASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


T = TypeVar("T")

BASIS = {name: code for code, name in enumerate(COORDINATOR_EPOCH_BASES)}
"""How `coordinator_epoch_basis` stands in a column."""


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
    end marker in the log itself, `any_marker_offset` that of the last one in any copy of the log.
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


class ProducerEntries:
    """All entries of one partition.

    Attributes:
        producer_ids: all that can come, in order.
        is_known: of each of them whether anything of it came.
        columns: by name of a field of `ProducerStateEntry`.
        opened: by name of a field of `OpenTransaction`; without a start nothing is open.
    """

    def __init__(self, producer_ids: Sequence[Array]) -> None:
        """Producers may be named twice."""
        self.producer_ids = np.unique(np.concatenate(producer_ids)) if producer_ids else np.zeros(0, np.int64)
        count = len(self.producer_ids)
        self.is_known = np.zeros(count, bool)
        columns = iter(np.full((len(_OF_ENTRY) + len(_OF_OPEN), count), NONE))
        self.columns, self.opened = (dict(zip(names, columns, strict=False)) for names in (_OF_ENTRY, _OF_OPEN))
        self.columns["producer_id"] = self.opened["producer_id"] = self.producer_ids

    def rows(self, producer_ids: Array) -> Array:
        """The rows of producers that can come."""
        return np.searchsorted(self.producer_ids, producer_ids)

    def get(self, producer_id: int) -> ProducerStateEntry | None:
        """The entry of a producer; None where nothing of it came."""
        (row,) = place_in(self.producer_ids, np.array([producer_id])).tolist()
        return self._entry(row) if row != NONE and self.is_known[row] else None

    def known_rows(self) -> Array:
        """The rows of all producers of which anything came."""
        return np.flatnonzero(self.is_known)

    def open_rows(self) -> Array:
        """The rows of all producers that have a transaction open."""
        return np.flatnonzero(self.opened["txn_start_offset"] != NONE)

    def with_open(self, but: Array | None = None) -> Iterator[tuple[ProducerStateEntry, OpenTransaction]]:
        """The entries of those, with what they have open; without some producers."""
        rows = self.open_rows()
        if but is not None:
            rows = rows[~np.isin(self.producer_ids[rows], but)]
        for row in rows.tolist():
            yield self._entry(row), OpenTransaction(self.opened, row)

    def oldest_open(self) -> OpenTransaction | None:
        """Of what is open what began first."""
        rows = self.open_rows()
        starts = self.opened["txn_start_offset"][rows]
        return OpenTransaction(self.opened, int(rows[starts.argmin()])) if len(rows) else None

    def begin(self, rows: Array, **said: Any) -> None:
        """Transactions begin; what is not said of them is not known."""
        for name, values in self.opened.items():
            if name != "producer_id":
                values[rows] = said.get(name, NONE)

    def take_epochs_of_snapshot(self, rows: Array, epochs: Array) -> None:
        """Take coordinator epochs of a snapshot; without one, no end marker of the producer was on the partition."""
        self.columns["coordinator_epoch"][rows] = epochs
        self.columns["basis"][rows] = np.where(epochs == NONE, BASIS["none_seen"], BASIS["snapshot"])

    def _entry(self, row: int) -> ProducerStateEntry:
        return ProducerStateEntry(self.columns, row, self.opened)


def or_else(values: Array, otherwise: Array | int | None) -> Array:
    """The values, and something else where they are not known."""
    return np.where(values == NONE, NONE if otherwise is None else otherwise, values)


def first_known(value: int | None, otherwise: int | None) -> int | None:
    """The value, or the other one where it is None."""
    return otherwise if value is None else value
