"""What a broker keeps of each producer of a partition, rebuilt in offset order from batch ranges and snapshots.

Follows Kafka's `ProducerStateManager` and `ProducerStateEntry`: an entry for each producer id, at most one open
transaction in it. Functions change one producer's entry, or what it has open, as `ProducerStateManager.update` does.
All are run plain or compiled, over rows of arrays in which NONE stands for what is not known. An end marker of a
producer id ends what it has open, whatever its epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from txn_analysis.columns.arrays import NONE, Array, numbers_named
from txn_analysis.columns.compiled import compiled
from txn_analysis.tables import BatchRangeSummary
from txn_analysis.tables.appends import PART
from txn_analysis.tables.schema import COORDINATOR_EPOCH_BASES

BASIS = {name: code for code, name in enumerate(COORDINATOR_EPOCH_BASES)}
"""How `coordinator_epoch_basis` stands in a column."""
MARKER, SNAPSHOT, NONE_SEEN, UNKNOWN = (BASIS[name] for name in ("marker", "snapshot", "none_seen", "unknown"))


OPEN_TRANSACTION = numbers_named(
    *("producer_id", "txn_start_offset", "is_txn_start_exact", "first_producer_epoch", "max_producer_epoch"),
    *("last_offset", "last_sequence", "record_count", "size_bytes", "last_timestamp_ms", "first_appended_after_ms"),
    *("first_appended_before_ms", "appended_after_ms", "appended_before_ms", "hidden_record_count", "hidden_bytes"),
    *("listed_at_offset", "snapshot_offset", "first_timestamp_ms"),
)
"""A transaction with data after its producer's last end marker; without a start nothing is open.

Fields are named as columns of `transactions`. The `hidden_...` ones count the log from its start on, whoever wrote it.
`listed_at_offset` is the offset of the newest snapshot at the start of a file that lists it as open, `snapshot_offset`
that of the snapshot its start was taken from; NONE where the log itself holds the start.
"""

PRODUCER_STATE_ENTRY = numbers_named(
    *("producer_id", "producer_epoch", "last_sequence", "last_timestamp_ms", "coordinator_epoch", "basis"),
    *("marker_offset", "any_marker_offset", "log_marker_offset", "marker_timestamp_ms", "compacted_marker_offset"),
    *("compacted_marker_timestamp_ms", "compacted_coordinator_epoch", "previous_last_timestamp_ms"),
    *("ended_coordinator_epoch", "max_ended_coordinator_epoch", "open_below_offset"),
)
"""What a broker keeps of one producer (`DescribeProducers`); without a basis nothing of it came.

`marker_offset` is that of the end marker that states the coordinator epoch, `log_marker_offset` that of the last end
marker in the log itself, `any_marker_offset` that of the last one in any copy of the log. `compacted_...` is of the
last one so far that another copy holds, and that compaction has removed from the log. `open_below_offset` is the last
offset of data below the base snapshot that no end marker follows there.
"""


class LogSoFar(NamedTuple):
    """What is known of a log up to where it was replayed.

    Attributes:
        is_start_known: nothing before its first batch range can matter.
        log_start_offset: as the broker's checkpoint states it.
        last_moment_ms: its last moment.
        last_gap_offset: the last offset that no file holds.
        last_hole_offset: the last offset of a batch that compaction removed from inside a file.
    """

    is_start_known: bool
    log_start_offset: int
    last_moment_ms: int
    last_gap_offset: int
    last_hole_offset: int


class BatchRange(NamedTuple):
    """What counts of a batch range for all that earlier ones left open."""

    first_moment_ms: int
    record_count: int
    size_bytes: int


@compiled
def or_else(value: int, otherwise: int) -> int:
    """The value, or the other one where it is not known."""
    return otherwise if value == NONE else value


@compiled
def take_epoch_of_marker(entry: Any, offset: int, timestamp_ms: int, coordinator_epoch: int) -> None:
    """Take the coordinator epoch of an end marker, in whichever copy of the log it is."""
    entry["marker_offset"] = offset
    entry["marker_timestamp_ms"] = timestamp_ms
    entry["coordinator_epoch"] = coordinator_epoch
    entry["basis"] = UNKNOWN if coordinator_epoch == NONE else MARKER
    entry["any_marker_offset"] = max(entry["any_marker_offset"], offset)


@compiled
def create_missing(entry: Any, log: LogSoFar) -> None:
    """Something of this producer came: without an end marker, there was none if the log is whole."""
    if entry["basis"] == NONE:
        is_whole = log.is_start_known and log.last_gap_offset == NONE and log.last_hole_offset == NONE
        entry["basis"] = NONE_SEEN if is_whole else UNKNOWN
        if entry["compacted_marker_offset"] != NONE:
            offset, timestamp_ms = entry["compacted_marker_offset"], entry["compacted_marker_timestamp_ms"]
            take_epoch_of_marker(entry, offset, timestamp_ms, entry["compacted_coordinator_epoch"])


@compiled
def create_all_missing(entries: Any, rows: Array, log: LogSoFar) -> None:
    """Something of these producers came."""
    for row in rows:
        create_missing(entries[row], log)


@compiled
def is_exact(entry: Any, log: LogSoFar) -> bool:
    """No missing batch can have begun earlier what begins now; compaction removes nothing of what is open."""
    is_log_complete = log.is_start_known and log.last_gap_offset == NONE
    return is_log_complete or entry["any_marker_offset"] > log.last_gap_offset


@compiled
def _bound(txn: Any, now: BatchRange) -> None:
    """What earlier ranges left open was appended before any moment of this one, and hides all that is in it."""
    txn["first_appended_before_ms"] = or_else(txn["first_appended_before_ms"], now.first_moment_ms)
    txn["appended_before_ms"] = or_else(txn["appended_before_ms"], now.first_moment_ms)
    if txn["hidden_record_count"] != NONE and txn["hidden_bytes"] != NONE:
        txn["hidden_record_count"] += now.record_count
        txn["hidden_bytes"] += now.size_bytes


@compiled
def _take_last_data(txn: Any, part: Any, log: LogSoFar) -> None:
    txn["last_offset"] = part["last_offset"]
    txn["last_sequence"] = part["last_sequence"]
    txn["last_timestamp_ms"] = part["last_timestamp_ms"]
    txn["appended_after_ms"] = or_else(part["last_after_ms"], log.last_moment_ms)
    txn["appended_before_ms"] = part["last_before_ms"]


@compiled
def _begin(txn: Any, part: Any, log: LogSoFar, is_start_exact: bool) -> None:
    """A transaction begins with this part."""
    txn["txn_start_offset"] = part["start_offset"]
    txn["is_txn_start_exact"] = is_start_exact
    txn["first_producer_epoch"] = part["first_epoch"]
    txn["max_producer_epoch"] = max(part["max_epoch"], 0)
    txn["record_count"] = part["record_count"]
    txn["size_bytes"] = part["size_bytes"]
    txn["first_appended_after_ms"] = or_else(part["first_after_ms"], log.last_moment_ms)
    txn["first_appended_before_ms"] = part["first_before_ms"]
    txn["first_timestamp_ms"] = part["first_timestamp_ms"]
    txn["hidden_record_count"] = part["hidden_record_count"]
    txn["hidden_bytes"] = part["hidden_bytes"]
    txn["listed_at_offset"] = txn["snapshot_offset"] = NONE
    _take_last_data(txn, part, log)


@compiled
def _extend(txn: Any, part: Any, log: LogSoFar) -> None:
    """This part adds data to a transaction that is open."""
    txn["first_producer_epoch"] = or_else(txn["first_producer_epoch"], part["first_epoch"])
    txn["max_producer_epoch"] = max(txn["max_producer_epoch"], part["max_epoch"], 0)
    if txn["record_count"] != NONE:
        txn["record_count"] += part["record_count"]
    if txn["size_bytes"] != NONE:
        txn["size_bytes"] += part["size_bytes"]
    _take_last_data(txn, part, log)


@compiled
def _count_ended(entry: Any, last_timestamp_ms: int, coordinator_epoch: int, max_coordinator_epoch: int) -> None:
    """Transactions of this producer ended: what the newest one states, and the largest coordinator epoch of all."""
    entry["previous_last_timestamp_ms"] = last_timestamp_ms
    entry["ended_coordinator_epoch"] = coordinator_epoch
    entry["max_ended_coordinator_epoch"] = max(entry["max_ended_coordinator_epoch"], max_coordinator_epoch)


@compiled
def _take_last_batch(entry: Any, append: Any) -> None:
    """Markers alone leave the last data batch cached, unless they change the epoch."""
    is_same_epoch = append["is_one_epoch"] == 1 and append["first_batch_epoch"] == entry["producer_epoch"]
    if append["last_sequence"] != NONE or not is_same_epoch:
        entry["last_sequence"] = append["last_sequence"]
    entry["producer_epoch"] = append["producer_epoch"]
    entry["last_timestamp_ms"] = append["last_timestamp_ms"]


@compiled
def append_range(
    entries: Any, opened: Any, appends: Any, rows: Array, log: LogSoFar, now: BatchRange, ended: Any, ends: Any
) -> int:
    """Replay one batch range, in which a producer comes once; `rows` are those of its producers.

    Returns how many transactions ended with their lead: they are the first rows of `ended`, and the leads of `ends`.
    """
    for row in range(len(opened)):
        if opened[row]["txn_start_offset"] != NONE:
            _bound(opened[row], now)
    count = 0
    for place in range(len(rows)):
        append, entry, txn = appends[place], entries[rows[place]], opened[rows[place]]
        lead, tail = append["lead"], append["tail"]
        create_missing(entry, log)
        if lead["start_offset"] != NONE:
            if txn["txn_start_offset"] != NONE:
                _extend(txn, lead, log)
            else:
                _begin(txn, lead, log, is_exact(entry, log))
        if lead["end_offset"] != NONE and txn["txn_start_offset"] != NONE:
            epoch = lead["end_coordinator_epoch"]
            _count_ended(entry, txn["last_timestamp_ms"], epoch, epoch)
            ended[count] = txn
            ends[count] = lead
            count += 1
            txn["txn_start_offset"] = NONE
        if append["ended_offset"] != NONE:
            epoch, max_epoch = append["ended_coordinator_epoch"], append["max_ended_coordinator_epoch"]
            _count_ended(entry, append["ended_last_timestamp_ms"], epoch, max_epoch)
        if tail["start_offset"] != NONE and tail["end_offset"] == NONE:
            _begin(txn, tail, log, True)
        if append["marker_offset"] != NONE:
            offset, timestamp_ms = append["marker_offset"], append["marker_timestamp_ms"]
            take_epoch_of_marker(entry, offset, timestamp_ms, append["marker_coordinator_epoch"])
            entry["log_marker_offset"] = offset
        _take_last_batch(entry, append)
    return count


@compiled
def add_compacted(entries: Any, opened: Any, appends: Any, rows: Array, log: LogSoFar) -> None:
    """Take in end markers of a batch range that another copy holds, and that compaction has removed from this log."""
    for place in range(len(rows)):
        append, entry, txn = appends[place], entries[rows[place]], opened[rows[place]]
        offset, timestamp_ms = append["marker_offset"], append["marker_timestamp_ms"]
        if offset == NONE:
            continue
        entry["compacted_marker_offset"] = offset
        entry["compacted_marker_timestamp_ms"] = timestamp_ms
        entry["compacted_coordinator_epoch"] = append["marker_coordinator_epoch"]
        if entry["basis"] == NONE:
            continue
        entry["any_marker_offset"] = max(entry["any_marker_offset"], offset)
        if offset < txn["txn_start_offset"] and is_exact(entry, log):
            txn["is_txn_start_exact"] = True
        if entry["basis"] == UNKNOWN and entry["marker_offset"] < offset:
            take_epoch_of_marker(entry, offset, timestamp_ms, append["marker_coordinator_epoch"])


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
