"""Replay batch ranges of several partitions at once, column by column.

Follows Kafka's `ProducerStateManager`: an end marker of a producer id ends what it has open, whatever its epoch. In a
batch range a producer comes once, and each partition is here with one range, so that no entry is changed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, Columns, numbers_of, rows_at
from txn_analysis.log.producer_entries import or_else
from txn_analysis.tables.appends import AppendColumns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.log.producer_entries import EntryColumns
    from txn_analysis.log.producer_state import ProducerStateManager
    from txn_analysis.tables import BatchRangeSummary


def replay(ranges: Sequence[tuple[ProducerStateManager, BatchRangeSummary]]) -> Columns | None:
    """Replay the next batch range of the logs of some partitions, whose entries share their columns.

    Returns the transactions that end with the lead of one, None without any: by field of `OpenTransaction` what was
    open, by field of `TransactionPart` that begins with `end_` how it ended, and as `row` that of its producer's entry.
    """
    for state, summary in ranges:
        state.begin_range(summary)
    with_appends = [(state, summary) for state, summary in ranges if len(summary.producers)]
    ended = RangesAtOnce.of(with_appends).replay() if with_appends else None
    for state, summary in ranges:
        state.end_range(summary)
    return ended


@dataclass(frozen=True)
class RangesAtOnce:
    """Batch ranges that have appends, one of each partition, and what its log says before them.

    Attributes:
        states: of the partitions.
        counts: of each of them how many producers are in its range.
        entries: the columns of all of them.
        rows: of each producer the row of its entry.
        appends: of the producers, in the same order.
        last_moment_ms: of each producer, the last moment so far in its log.
        gap_offset: likewise, the last offset so far that no file holds.
        is_start_known: likewise, nothing before the log's first batch range can matter.
        is_whole: likewise, nothing is missing so far, nor was compacted.
    """

    states: list[ProducerStateManager]
    counts: list[int]
    entries: EntryColumns
    rows: Array
    appends: AppendColumns
    last_moment_ms: Array
    gap_offset: Array
    is_start_known: Array
    is_whole: Array

    @classmethod
    def of(cls, ranges: Sequence[tuple[ProducerStateManager, BatchRangeSummary]]) -> RangesAtOnce:
        """The appends of some ranges, at least one; each range has some."""
        states, appends = [state for state, _ in ranges], [summary.producers for _, summary in ranges]
        counts = [len(each) for each in appends]
        rows = [state.entries.rows(each.producer_id) for state, each in zip(states, appends, strict=True)]
        moments = numbers_of(state.last_moment_ms for state in states)
        gaps = numbers_of(state.last_gap_offset for state in states)
        is_known = np.array([state.is_start_known for state in states])
        is_whole = np.array([state.is_whole for state in states])
        of_producers = (np.repeat(values, counts) for values in (moments, gaps, is_known, is_whole))
        return cls(states, counts, states[0].entries, np.concatenate(rows), AppendColumns.of(appends), *of_producers)

    def replay(self) -> Columns | None:
        """Change the entries; returns as `replay`."""
        appends, lead, tail = self.appends.own, self.appends.lead, self.appends.tail
        self.entries.meet(self.rows, self.is_whole)
        has_data = lead["start_offset"] != NONE
        was_open = self.entries.is_open(self.rows)
        self._extend(lead, has_data & was_open)
        self._begin(lead, has_data & ~was_open)
        self._note_bare_markers(is_ending=~has_data & (lead["end_offset"] != NONE) & was_open)
        ended = self.end(lead)
        has_ended = appends["ended_offset"] != NONE
        if has_ended.any():
            newest = ("ended_last_timestamp_ms", "ended_coordinator_epoch", "max_ended_coordinator_epoch")
            self.entries.add_ended(self.rows[has_ended], *(appends[name][has_ended] for name in newest))
        self._begin(tail, (tail["start_offset"] != NONE) & (tail["end_offset"] == NONE), is_exact=True)
        self._take_markers()
        self.entries.take_last_batches(self.rows, appends)
        return ended

    def _begin(self, parts: Columns, is_wanted: Array, *, is_exact: bool | None = None) -> None:
        """Transactions begin with some parts; whether at their starts is known, or what the log before them says."""
        if not is_wanted.any():
            return
        rows, part = self.rows[is_wanted], rows_at(parts, is_wanted)
        self.entries.begin(
            rows,
            txn_start_offset=part["start_offset"],
            is_txn_start_exact=self._is_exact(is_wanted) if is_exact is None else is_exact,
            first_producer_epoch=part["first_epoch"],
            max_producer_epoch=np.maximum(part["max_epoch"], 0),
            record_count=part["record_count"],
            size_bytes=part["size_bytes"],
            first_appended_after_ms=or_else(part["first_after_ms"], self.last_moment_ms[is_wanted]),
            first_appended_before_ms=part["first_before_ms"],
            hidden_record_count=part["hidden_record_count"],
            hidden_bytes=part["hidden_bytes"],
            **self._last_of(part, is_wanted),
        )

    def _is_exact(self, is_wanted: Array) -> Array:
        return self.entries.is_exact(self.rows[is_wanted], self.gap_offset[is_wanted], self.is_start_known[is_wanted])

    def _extend(self, parts: Columns, is_wanted: Array) -> None:
        """Some parts add data to transactions that are open."""
        if not is_wanted.any():
            return
        rows, part = self.rows[is_wanted], rows_at(parts, is_wanted)
        was = rows_at(self.entries.opened, rows)
        now = self._last_of(part, is_wanted) | {
            "first_producer_epoch": or_else(was["first_producer_epoch"], part["first_epoch"]),
            "max_producer_epoch": np.maximum(np.maximum(was["max_producer_epoch"], part["max_epoch"]), 0),
        }
        for name in ("record_count", "size_bytes"):
            now[name] = np.where(was[name] == NONE, NONE, was[name] + part[name])
        for name, values in now.items():
            self.entries.opened[name][rows] = values

    def _last_of(self, part: Columns, is_wanted: Array) -> Columns:
        """What parts say of the last data of their transactions."""
        return {
            "last_offset": part["last_offset"],
            "last_sequence": part["last_sequence"],
            "last_timestamp_ms": part["last_timestamp_ms"],
            "appended_after_ms": or_else(part["last_after_ms"], self.last_moment_ms[is_wanted]),
            "appended_before_ms": part["last_before_ms"],
        }

    def end(self, part: Columns) -> Columns | None:
        """The end markers of these parts end what is open."""
        is_ending = (part["end_offset"] != NONE) & self.entries.is_open(self.rows)
        if not is_ending.any():
            return None
        rows = self.rows[is_ending]
        ends = rows_at({name: values for name, values in part.items() if name.startswith("end_")}, is_ending)
        txn, epoch = rows_at(self.entries.opened, rows), ends["end_coordinator_epoch"]
        self.entries.add_ended(rows, txn["last_timestamp_ms"], epoch, epoch)
        self.entries.opened["txn_start_offset"][rows] = NONE
        return {"row": rows, **txn, **ends}

    def _note_bare_markers(self, *, is_ending: Array) -> None:
        """A first end marker without data before it here is no bare one if it ends what an earlier range left open."""
        row = self.appends.bare_row
        if not len(row):
            return
        is_first = np.append(True, row[1:] != row[:-1])
        is_bare = ~(is_first & is_ending[row])
        markers = {"producer_id": self.appends.own["producer_id"][row[is_bare]], **rows_at(self.appends.bare, is_bare)}
        bounds = np.searchsorted(row[is_bare], np.cumsum([0, *self.counts])).tolist()
        for state, start, stop in zip(self.states, bounds, bounds[1:], strict=False):
            if start < stop:
                state.bare_markers.append(rows_at(markers, slice(start, stop)))

    def _take_markers(self) -> None:
        """Take what the last end markers of producers in the log itself state."""
        appends = self.appends.own
        is_marked = appends["marker_offset"] != NONE
        rows, stated = self.rows[is_marked], rows_at(appends, is_marked)
        stated["coordinator_epoch"] = stated["marker_coordinator_epoch"]
        self.entries.take_epochs_of_markers(rows, stated)
        self.entries.columns["log_marker_offset"][rows] = stated["marker_offset"]
