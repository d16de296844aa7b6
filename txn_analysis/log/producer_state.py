"""What a broker keeps of each producer of a partition, rebuilt in offset order from batch ranges and snapshots.

Follows Kafka's `ProducerStateManager` and `ProducerStateEntry`: an entry for each producer id, at most one open
transaction in it. `replay` changes them by what a batch range appends; what else is known of the log is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from txn_analysis.columns.arrays import NONE, Array
from txn_analysis.log.replay import (
    NONE_SEEN,
    OPEN_TRANSACTION,
    PRODUCER_STATE_ENTRY,
    SNAPSHOT,
    BatchRange,
    LogSoFar,
    add_compacted,
    append_range,
    create_all_missing,
)
from txn_analysis.tables.appends import PART

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.tables import BatchRangeSummary

_PYTHON_US = 30  # for each producer of a batch range
_PYTHON_US_OF_OPEN = 0.2  # for each other one


@dataclass
class ProducerStateManager:
    """All entries of one partition while its log is replayed. NONE stands for what is not known.

    Attributes:
        producer_ids: of all producers that can come, in order.
        most_ended: how many transactions can end with a lead: at most as many as there are appends.
        log_start_offset: as the broker's checkpoint states it: a broker that loads its state reads nothing below, even
            if the files hold it.
        is_start_known: nothing before the first batch range can matter: the log begins there, or a snapshot covers all
            that is below.
        last_moment_ms: the last moment so far.
        last_gap_offset: the last offset so far that no file holds.
        last_hole_offset: the last offset so far of a batch that compaction removed from inside a file.
        has_batches: a batch range was replayed.
        witnesses: snapshots that agree with the log.
        entries: by field of PRODUCER_STATE_ENTRY; one row is one producer.
        opened: by field of OPEN_TRANSACTION; one row is one producer.
        ended: transactions that ended with the lead of a batch range; `ended_count` of its rows are in use.
        ends: those leads, as `tables.appends`.
    """

    producer_ids: Array
    most_ended: int = 0
    log_start_offset: int = 0
    is_start_known: bool = False
    last_moment_ms: int = NONE
    last_gap_offset: int = NONE
    last_hole_offset: int = NONE
    has_batches: bool = False
    witnesses: list[str] = field(default_factory=list)
    entries: Array = field(init=False)
    opened: Array = field(init=False)
    ended: Array = field(init=False)
    ends: Array = field(init=False)
    ended_count: int = 0
    _moments: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.producer_ids)
        self.entries, self.opened = np.full(count, NONE, PRODUCER_STATE_ENTRY), np.full(count, NONE, OPEN_TRANSACTION)
        self.entries["producer_id"] = self.opened["producer_id"] = self.producer_ids
        self.ended, self.ends = np.empty(self.most_ended, OPEN_TRANSACTION), np.empty(self.most_ended, PART)

    @property
    def log(self) -> LogSoFar:
        """What is known of the log so far."""
        return LogSoFar(
            self.is_start_known,
            self.log_start_offset,
            self.last_moment_ms,
            self.last_gap_offset,
            self.last_hole_offset,
        )

    def rows(self, producer_ids: Array) -> Array:
        """The rows of producers that can come."""
        return np.searchsorted(self.producer_ids, producer_ids)

    def open_rows(self) -> Array:
        """The rows of all producers that have a transaction open."""
        return np.flatnonzero(self.opened["txn_start_offset"] != NONE)

    def load_from_snapshot(self, stated: Array, *, is_adjacent: bool) -> None:
        """Take over what a snapshot states (`STATED`); not adjacent: batches are missing right after it."""
        entries, rows = self.entries, self.rows(stated["producer_id"])
        create_all_missing.for_work(len(rows) * _PYTHON_US_OF_OPEN)(entries, rows, self.log)
        for name in ("producer_epoch", "last_sequence", "last_timestamp_ms"):
            entries[name][rows] = stated[name]
        if is_adjacent:  # without a coordinator epoch, no end marker of the producer was on the partition
            epoch = stated["coordinator_epoch"]
            entries["coordinator_epoch"][rows] = epoch
            entries["basis"][rows] = np.where(epoch == NONE, NONE_SEEN, SNAPSHOT)
        txns = np.full(len(rows), NONE, OPEN_TRANSACTION)
        for name in ("producer_id", "last_offset", "last_sequence", "last_timestamp_ms", "snapshot_offset"):
            txns[name] = stated[name]
        txns["txn_start_offset"] = stated["current_txn_start_offset"]
        txns["is_txn_start_exact"] = is_adjacent
        txns["max_producer_epoch"] = stated["producer_epoch"]
        txns["first_appended_before_ms"] = self.first_moments_after(stated["current_txn_start_offset"])
        self.opened[rows] = txns

    def append(self, summary: BatchRangeSummary) -> None:
        """Replay the next batch range of the log."""
        self.has_batches = True
        if summary.last_hole_offset is not None:
            self.last_hole_offset = summary.last_hole_offset
        first_moment_ms = NONE if summary.first_moment_ms is None else summary.first_moment_ms
        now = BatchRange(first_moment_ms, summary.record_count, summary.size_bytes)
        appends = summary.producers.rows
        run = append_range.for_work(len(appends) * _PYTHON_US + len(self.opened) * _PYTHON_US_OF_OPEN)
        rows = self.rows(summary.producers.producer_id)
        free = slice(self.ended_count, None)
        self.ended_count += run(
            self.entries, self.opened, appends, rows, self.log, now, self.ended[free], self.ends[free]
        )
        if summary.last_moment_ms is not None:
            self.last_moment_ms = summary.last_moment_ms
        if summary.first_moment_ms is not None:
            self._moments.append((summary.first_offset, summary.first_moment_ms))

    def first_moments_after(self, start_offset: Array) -> Array:
        """The first moment so far after each offset, whose batch no file holds: it was appended before."""
        first_offset, ms = np.array([*self._moments, (NONE, NONE)], np.int64).T
        place = np.searchsorted(first_offset[:-1], start_offset, side="right")
        return np.where(start_offset == NONE, NONE, ms[place])

    def add_compacted(self, summaries: Iterable[BatchRangeSummary]) -> None:
        """Take in end markers that another copy holds, and that compaction has removed from this one."""
        for producers in (summary.producers for summary in summaries):
            run = add_compacted.for_work(len(producers) * _PYTHON_US)
            run(self.entries, self.opened, producers.rows, self.rows(producers.producer_id), self.log)

    def confirm_open(self, stated: Array, offset: int) -> None:
        """Note what a snapshot at the start of a file lists as open: nothing that is missing below has ended it."""
        start, rows = stated["current_txn_start_offset"], self.rows(stated["producer_id"])
        is_listed = (start != NONE) & (start == self.opened["txn_start_offset"][rows])
        self.opened["listed_at_offset"][rows[is_listed]] = offset
