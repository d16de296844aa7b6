"""What a broker keeps of each producer of a partition, rebuilt in offset order from batch ranges and snapshots.

Follows Kafka's `ProducerStateManager` and `ProducerStateEntry`: an entry for each producer id, at most one open
transaction in it. `replay` changes the entries by what a batch range appends; what else is known of the log is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, Columns, numbers_of, rows_at
from txn_analysis.log.producer_entries import BASIS, STATED_IN_MARKER, first_known, or_else
from txn_analysis.tables.appends import AppendColumns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.log.producer_entries import ProducerEntries
    from txn_analysis.tables import BatchRangeSummary


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
        bare_markers: end markers with no data of their producer since the marker before; by field of
            `ProducersBareMarker`.
        last_gap_offset: the last offset so far that no file holds.
        last_hole_offset: the last offset so far of a batch that compaction removed from inside a file.
    """

    entries: ProducerEntries
    is_start_known: bool
    log_start_offset: int = 0
    open_below_base: dict[int, int] = field(default_factory=dict)
    bare_markers: list[Columns] = field(default_factory=list)
    last_moment_ms: int | None = None
    last_gap_offset: int | None = None
    last_hole_offset: int | None = None
    has_batches: bool = False
    witnesses: list[str] = field(default_factory=list)
    _first_moments: list[tuple[int, int]] = field(default_factory=list)

    @property
    def has_holes(self) -> bool:
        """Compaction removed batches."""
        return self.last_hole_offset is not None

    @property
    def is_whole(self) -> bool:
        """Nothing that can matter is missing so far, nor was compacted."""
        return self.is_start_known and self.last_gap_offset is None and not self.has_holes

    def load_from_snapshot(self, stated: Columns, *, is_adjacent: bool) -> None:
        """Take over what a snapshot states (`Snapshot.columns`); not adjacent: batches are missing right after it."""
        columns, rows = self.entries.columns, self.entries.rows(stated["producer_id"])
        self.entries.meet(rows, self.is_whole)
        for name in ("producer_epoch", "last_sequence", "last_timestamp_ms"):
            columns[name][rows] = stated[name]
        if is_adjacent:
            self.entries.take_epochs_of_snapshot(rows, stated["coordinator_epoch"])
        start = stated["current_txn_start_offset"]
        before_ms = [self.first_moment_after(offset) if offset != NONE else None for offset in start.tolist()]
        self.entries.begin(
            rows,
            txn_start_offset=start,
            is_txn_start_exact=is_adjacent,
            max_producer_epoch=stated["producer_epoch"],
            last_offset=stated["last_offset"],
            last_sequence=stated["last_sequence"],
            last_timestamp_ms=stated["last_timestamp_ms"],
            first_appended_before_ms=numbers_of(before_ms),
            snapshot_offset=stated["snapshot_offset"],
        )

    def begin_range(self, summary: BatchRangeSummary) -> None:
        """The log goes on with a batch range, whose appends are replayed next."""
        if self.entries.is_open(self.entries.all_rows).any():
            self._bound_by_moments(summary)
        self.has_batches = True
        self.last_hole_offset = first_known(summary.last_hole_offset, self.last_hole_offset)

    def end_range(self, summary: BatchRangeSummary) -> None:
        """Its appends were replayed."""
        self.last_moment_ms = first_known(summary.last_moment_ms, self.last_moment_ms)
        if summary.first_moment_ms is not None:
            self._first_moments.append((summary.first_offset, summary.first_moment_ms))

    def first_moment_after(self, start_offset: int) -> int | None:
        """The first moment so far after an offset that no file holds: it was appended before. None without one."""
        return next((ms for first_offset, ms in self._first_moments if first_offset > start_offset), None)

    def _bound_by_moments(self, summary: BatchRangeSummary) -> None:
        """What earlier ranges left open was appended before any moment of this one."""
        opened = rows_at(self.entries.opened, self.entries.all_rows)
        is_open = opened["txn_start_offset"] != NONE
        appends, is_left = summary.producers, is_open.copy()
        if len(appends):
            has_data = appends.producer_id[appends.has_data]
            is_left[self.entries.rows(has_data) - self.entries.first_row] = False
        for name, bounded in (("first_appended_before_ms", is_open), ("appended_before_ms", is_left)):
            opened[name][bounded] = or_else(opened[name][bounded], summary.first_moment_ms)
        is_counted = is_open & (opened["hidden_record_count"] != NONE) & (opened["hidden_bytes"] != NONE)
        opened["hidden_record_count"][is_counted] += summary.record_count
        opened["hidden_bytes"][is_counted] += summary.size_bytes

    def add_compacted(self, summaries: Iterable[BatchRangeSummary]) -> None:
        """Learn of end markers that another copy holds, and that compaction has removed from this one."""
        for appends in (AppendColumns.of([s.producers]).own for s in summaries if len(s.producers)):
            is_marked = appends["marker_offset"] != NONE
            stated = rows_at(appends, is_marked)
            stated["coordinator_epoch"] = stated["marker_coordinator_epoch"]
            rows = self.entries.rows(stated["producer_id"])
            for name in STATED_IN_MARKER:
                self.entries.columns[f"compacted_{name}"][rows] = stated[name]
            is_known = self.entries.is_known[rows]
            self._add_compacted_markers(rows[is_known], rows_at(stated, is_known))

    def _add_compacted_markers(self, rows: Array, stated: Columns) -> None:
        columns, opened, offset = self.entries.columns, self.entries.opened, stated["marker_offset"]
        columns["any_marker_offset"][rows] = np.maximum(columns["any_marker_offset"][rows], offset)
        is_after = rows[self.entries.is_open(rows) & (offset < opened["txn_start_offset"][rows])]
        is_exact = self.entries.is_exact(is_after, self.last_gap_offset, self.is_start_known)
        opened["is_txn_start_exact"][is_after] |= is_exact
        is_new = (columns["basis"][rows] == BASIS["unknown"]) & (columns["marker_offset"][rows] < offset)
        self.entries.take_epochs_of_markers(rows[is_new], rows_at(stated, is_new))

    def confirm_open(self, stated: Columns, offset: int) -> None:
        """Note what a snapshot at the start of a file lists as open: nothing that is missing below has ended it."""
        start, rows = stated["current_txn_start_offset"], self.entries.rows(stated["producer_id"])
        is_listed = (start != NONE) & (start == self.entries.opened["txn_start_offset"][rows])
        self.entries.opened["listed_at_offset"][rows[is_listed]] = offset
