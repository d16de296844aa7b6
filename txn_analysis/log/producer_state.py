"""What a broker keeps of each producer of a partition, rebuilt in offset order from batch ranges and snapshots.

Follows Kafka's `ProducerStateManager` and `ProducerStateEntry`: an entry for each producer id, at most one open
transaction in it, which any end marker of that producer id ends, whatever its epoch. In a batch range a producer
comes once, so that all of a range are replayed at once, column by column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, Columns, numbers_of, rows_at
from txn_analysis.log.producer_entries import BASIS, ProducerEntries, first_known, or_else

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.tables import BatchRangeSummary, ProducerAppends

_STATED_IN_MARKER = ("marker_offset", "marker_timestamp_ms", "coordinator_epoch")


@dataclass
class ProducerStateManager:
    """All entries of one partition while its log is replayed.

    Attributes:
        entries: of all producers that can come.
        is_start_known: nothing before the first batch range can matter: the log begins there, or a snapshot covers all
            that is below.
        log_start_offset: as the broker's checkpoint states it: a broker that loads its state reads nothing below, even
            if the files hold it.
        open_below_base: by producer id, the last offset of data below the base snapshot that no end marker follows
            there.
        ended: transactions that end with the lead of a batch range, as columns: by field of `OpenTransaction` what
            was open, and by field of `TransactionPart` that begins with `end_` how it ended.
        bare_markers: end markers with no data of their producer since the marker before; by field of
            `ProducersBareMarker`.
        last_gap_offset: the last offset so far that no file holds.
        last_hole_offset: the last offset so far of a batch that compaction removed from inside a file.
    """

    entries: ProducerEntries
    is_start_known: bool
    log_start_offset: int = 0
    open_below_base: dict[int, int] = field(default_factory=dict)
    ended: list[Columns] = field(default_factory=list)
    bare_markers: list[Columns] = field(default_factory=list)
    last_moment_ms: int | None = None
    last_gap_offset: int | None = None
    last_hole_offset: int | None = None
    has_batches: bool = False
    witnesses: list[str] = field(default_factory=list)
    _compacted: Columns = field(default_factory=dict)
    _first_moments: list[tuple[int, int]] = field(default_factory=list)

    @property
    def has_holes(self) -> bool:
        """Compaction removed batches."""
        return self.last_hole_offset is not None

    def load_from_snapshot(self, said: Columns, *, is_adjacent: bool) -> None:
        """Take over what a snapshot states (`Snapshot.columns`); not adjacent: batches are missing right after it."""
        columns, rows = self.entries.columns, self.entries.rows(said["producer_id"])
        self._meet(rows)
        for name in ("producer_epoch", "last_sequence", "last_timestamp_ms"):
            columns[name][rows] = said[name]
        if is_adjacent:
            self.entries.take_epochs_of_snapshot(rows, said["coordinator_epoch"])
        start = said["current_txn_start_offset"]
        before_ms = [self.first_moment_after(offset) if offset != NONE else None for offset in start.tolist()]
        self.entries.begin(
            rows,
            txn_start_offset=start,
            is_txn_start_exact=is_adjacent,
            max_producer_epoch=said["producer_epoch"],
            last_offset=said["last_offset"],
            last_sequence=said["last_sequence"],
            last_timestamp_ms=said["last_timestamp_ms"],
            first_appended_before_ms=numbers_of(before_ms),
            snapshot_offset=said["snapshot_offset"],
        )

    def apply(self, summary: BatchRangeSummary) -> None:
        """Replay the next batch range of the log."""
        appends = summary.producers
        rows = self.entries.rows(appends.own["producer_id"])
        self._bound_by_moments(summary, rows)
        self.has_batches = True
        self.last_hole_offset = first_known(summary.last_hole_offset, self.last_hole_offset)
        if len(rows):
            self._update(rows, appends)
        self.last_moment_ms = first_known(summary.last_moment_ms, self.last_moment_ms)
        if summary.first_moment_ms is not None:
            self._first_moments.append((summary.first_offset, summary.first_moment_ms))

    def first_moment_after(self, start_offset: int) -> int | None:
        """The first moment so far after an offset that no file holds: it was appended before. None without one."""
        return next((ms for first_offset, ms in self._first_moments if first_offset > start_offset), None)

    def _bound_by_moments(self, summary: BatchRangeSummary, rows: Array) -> None:
        """What earlier ranges left open was appended before any moment of this one."""
        opened = self.entries.opened
        is_open = opened["txn_start_offset"] != NONE
        if not is_open.any():
            return
        is_left = is_open.copy()
        if len(rows):
            is_left[rows[summary.producers.lead["start_offset"] != NONE]] = False
        for name, bounded in (("first_appended_before_ms", is_open), ("appended_before_ms", is_left)):
            opened[name][bounded] = or_else(opened[name][bounded], summary.first_moment_ms)
        is_counted = is_open & (opened["hidden_record_count"] != NONE) & (opened["hidden_bytes"] != NONE)
        opened["hidden_record_count"][is_counted] += summary.record_count
        opened["hidden_bytes"][is_counted] += summary.size_bytes

    def _update(self, rows: Array, appends: ProducerAppends) -> None:
        own, lead, tail = appends.own, appends.lead, appends.tail
        self._meet(rows)
        has_data = lead["start_offset"] != NONE
        was_open = self._is_open(rows)
        self._extend(rows, lead, has_data & was_open)
        self._begin(rows, lead, has_data & ~was_open)
        self._note_bare_markers(appends, is_ending=~has_data & (lead["end_offset"] != NONE) & was_open)
        self._end(rows, lead)
        has_ended = own["ended_offset"] != NONE
        if has_ended.any():
            newest = ("ended_last_timestamp_ms", "ended_coordinator_epoch", "max_ended_coordinator_epoch")
            self._add_ended(rows[has_ended], *(own[name][has_ended] for name in newest))
        self._begin(rows, tail, (tail["start_offset"] != NONE) & (tail["end_offset"] == NONE), is_exact=True)
        self._take_markers(rows, own)
        self._take_last_batch(rows, own)

    def _meet(self, rows: Array) -> None:
        """Add the entries of producers of which nothing came before."""
        new = rows[~self.entries.is_known[rows]]
        if not len(new):
            return
        self.entries.is_known[new] = True
        is_whole = self.is_start_known and self.last_gap_offset is None and not self.has_holes
        self.entries.columns["basis"][new] = BASIS["none_seen" if is_whole else "unknown"]
        if self._compacted:
            compacted = new[self._compacted["marker_offset"][new] != NONE]
            self._take_epoch_of_marker(compacted, rows_at(self._compacted, compacted))

    def _is_open(self, rows: Array) -> Array:
        is_open: Array = self.entries.opened["txn_start_offset"][rows] != NONE
        return is_open

    def _is_exact(self, rows: Array) -> Array:
        """No missing batch can have begun what begins now earlier; compaction removes nothing of what is open."""
        gap = self.last_gap_offset
        is_ended_before: Array = self.entries.columns["any_marker_offset"][rows] > (NONE if gap is None else gap)
        is_exact: Array = is_ended_before | (self.is_start_known and gap is None)
        return is_exact

    def _begin(self, rows: Array, parts: Columns, is_wanted: Array, *, is_exact: bool | None = None) -> None:
        """Transactions begin with some parts; whether at their starts is known, or what the log before them says."""
        if not is_wanted.any():
            return
        rows, part = rows[is_wanted], rows_at(parts, is_wanted)
        self.entries.begin(
            rows,
            txn_start_offset=part["start_offset"],
            is_txn_start_exact=self._is_exact(rows) if is_exact is None else is_exact,
            first_producer_epoch=part["first_epoch"],
            max_producer_epoch=np.maximum(part["max_epoch"], 0),
            record_count=part["record_count"],
            size_bytes=part["size_bytes"],
            first_appended_after_ms=or_else(part["first_after_ms"], self.last_moment_ms),
            first_appended_before_ms=part["first_before_ms"],
            hidden_record_count=part["hidden_record_count"],
            hidden_bytes=part["hidden_bytes"],
            **self._last_of(part),
        )

    def _extend(self, rows: Array, parts: Columns, is_wanted: Array) -> None:
        """Some parts add data to transactions that are open."""
        if not is_wanted.any():
            return
        rows, part = rows[is_wanted], rows_at(parts, is_wanted)
        was = rows_at(self.entries.opened, rows)
        now = self._last_of(part) | {
            "first_producer_epoch": or_else(was["first_producer_epoch"], part["first_epoch"]),
            "max_producer_epoch": np.maximum(np.maximum(was["max_producer_epoch"], part["max_epoch"]), 0),
        }
        for name in ("record_count", "size_bytes"):
            now[name] = np.where(was[name] == NONE, NONE, was[name] + part[name])
        for name, values in now.items():
            self.entries.opened[name][rows] = values

    def _last_of(self, part: Columns) -> Columns:
        """What parts say of the last data of their transactions."""
        return {
            "last_offset": part["last_offset"],
            "last_sequence": part["last_sequence"],
            "last_timestamp_ms": part["last_timestamp_ms"],
            "appended_after_ms": or_else(part["last_after_ms"], self.last_moment_ms),
            "appended_before_ms": part["last_before_ms"],
        }

    def _end(self, rows: Array, part: Columns) -> None:
        """The end markers of these parts end what is open."""
        is_ending = (part["end_offset"] != NONE) & self._is_open(rows)
        rows = rows[is_ending]
        if len(rows):
            ends = rows_at({name: values for name, values in part.items() if name.startswith("end_")}, is_ending)
            txn, epoch = rows_at(self.entries.opened, rows), ends["end_coordinator_epoch"]
            self.ended.append(txn | ends)
            self._add_ended(rows, txn["last_timestamp_ms"], epoch, epoch)
            self.entries.opened["txn_start_offset"][rows] = NONE

    def _add_ended(self, rows: Array, last_timestamp_ms: Array, epoch: Array, max_epoch: Array) -> None:
        """Add transactions that ended: what the newest one states, and the largest coordinator epoch of all of them."""
        columns = self.entries.columns
        columns["previous_last_timestamp_ms"][rows] = last_timestamp_ms
        columns["ended_coordinator_epoch"][rows] = epoch
        largest = columns["max_ended_coordinator_epoch"]
        largest[rows] = np.maximum(largest[rows], max_epoch)

    def _note_bare_markers(self, appends: ProducerAppends, *, is_ending: Array) -> None:
        """A first end marker without data before it here is no bare one if it ends what an earlier range left open."""
        row = appends.bare_row
        if len(row):
            is_first = np.append(True, row[1:] != row[:-1])
            is_bare = ~(is_first & is_ending[row])
            producer_id = appends.own["producer_id"][row[is_bare]]
            self.bare_markers.append({"producer_id": producer_id, **rows_at(appends.bare, is_bare)})

    def _take_markers(self, rows: Array, own: Columns) -> None:
        """Take what the last end markers of producers in the log itself state."""
        is_marked = own["marker_offset"] != NONE
        stated = rows_at(own, is_marked)
        stated["coordinator_epoch"] = stated["marker_coordinator_epoch"]
        self._take_epoch_of_marker(rows[is_marked], stated)
        self.entries.columns["log_marker_offset"][rows[is_marked]] = stated["marker_offset"]

    def _take_epoch_of_marker(self, rows: Array, stated: Columns) -> None:
        """Take coordinator epochs from end markers, in whichever copy of the log they are."""
        columns = self.entries.columns
        for name in _STATED_IN_MARKER:
            columns[name][rows] = stated[name]
        columns["basis"][rows] = np.where(stated["coordinator_epoch"] == NONE, BASIS["unknown"], BASIS["marker"])
        columns["any_marker_offset"][rows] = np.maximum(columns["any_marker_offset"][rows], stated["marker_offset"])

    def _take_last_batch(self, rows: Array, own: Columns) -> None:
        """Markers alone leave the last data batch cached, unless they change the epoch."""
        columns = self.entries.columns
        is_same_epoch = own["is_one_epoch"] & (own["first_batch_epoch"] == columns["producer_epoch"][rows])
        is_cached = (own["last_sequence"] == NONE) & is_same_epoch.astype(bool)
        columns["last_sequence"][rows] = np.where(is_cached, columns["last_sequence"][rows], own["last_sequence"])
        columns["producer_epoch"][rows] = own["producer_epoch"]
        columns["last_timestamp_ms"][rows] = own["last_timestamp_ms"]

    def add_compacted(self, summaries: Iterable[BatchRangeSummary]) -> None:
        """Learn of end markers that another copy holds, and that compaction has removed from this one."""
        for own in (summary.producers.own for summary in summaries if len(summary.producers)):
            is_marked = own["marker_offset"] != NONE
            stated = rows_at(own, is_marked)
            stated["coordinator_epoch"] = stated["marker_coordinator_epoch"]
            rows = self.entries.rows(stated["producer_id"])
            for name in _STATED_IN_MARKER:
                self._compacted.setdefault(name, np.full(len(self.entries.producer_ids), NONE))[rows] = stated[name]
            is_known = self.entries.is_known[rows]
            self._add_compacted_markers(rows[is_known], rows_at(stated, is_known))

    def _add_compacted_markers(self, rows: Array, stated: Columns) -> None:
        columns, opened, offset = self.entries.columns, self.entries.opened, stated["marker_offset"]
        columns["any_marker_offset"][rows] = np.maximum(columns["any_marker_offset"][rows], offset)
        is_after = rows[self._is_open(rows) & (offset < opened["txn_start_offset"][rows])]
        opened["is_txn_start_exact"][is_after] |= self._is_exact(is_after)
        is_new = (columns["basis"][rows] == BASIS["unknown"]) & (columns["marker_offset"][rows] < offset)
        self._take_epoch_of_marker(rows[is_new], rows_at(stated, is_new))

    def confirm_open(self, said: Columns, offset: int) -> None:
        """Note what a snapshot at the start of a file lists as open: nothing that is missing below has ended it."""
        start, rows = said["current_txn_start_offset"], self.entries.rows(said["producer_id"])
        is_listed = (start != NONE) & (start == self.entries.opened["txn_start_offset"][rows])
        self.entries.opened["listed_at_offset"][rows[is_listed]] = offset
