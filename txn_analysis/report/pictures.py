"""What the pictures of a report show: series over time, in a bounded number of points.

The report itself says what was found; these only show how it came about. `questions.loaded_report` fills them from the
tables of one run.
"""

from __future__ import annotations

from typing import NamedTuple


class LogPoint(NamedTuple):
    """A partition's log at one moment: where it ended, and the last stable offset that it had then."""

    time_ms: int
    end_offset: int
    last_stable_offset: int


class MarkerPoint(NamedTuple):
    """End markers that lie close together: how many of one outcome, and the last of them."""

    time_ms: int
    offset: int
    outcome: str
    marker_count: int


class NightPoint(NamedTuple):
    """What one run found of one partition: how much was hidden, and its last stable offset; None is unknown."""

    as_of_ms: int | None
    hidden_record_count: int | None
    last_stable_offset: int | None


class PartitionTimeline(NamedTuple):
    """The newest part of one partition's log, from some time before its last stable offset on.

    `is_broker_time` says that the times are those of brokers' clocks; without any, they are the clients' timestamps.
    `nights` are the runs that saw it, from the oldest to the report's own.
    """

    topic: str
    partition: int
    is_broker_time: bool
    points: tuple[LogPoint, ...]
    markers: tuple[MarkerPoint, ...]
    nights: tuple[NightPoint, ...] = ()


class StateChange(NamedTuple):
    """One record of the coordinator about a transactional id; `state` is Tombstone where it removes the id."""

    time_ms: int
    state: str
    producer_id: int | None
    producer_epoch: int | None
    partition_count: int


class IdTimeline(NamedTuple):
    """The last records about one transactional id, oldest first."""

    transactional_id: str
    changes: tuple[StateChange, ...]


class RunPoint(NamedTuple):
    """What one run of the cluster found hidden; `hidden_record_count` leaves out partitions where it is unknown."""

    as_of_ms: int | None
    hidden_record_count: int
    unknown_count: int
    hanging_count: int


class EndedSlice(NamedTuple):
    """Transactions, each on one partition, whose end marker came from `from_ms` to before `to_ms`, by their outcome."""

    from_ms: int
    to_ms: int
    committed_count: int
    aborted_count: int
    unknown_outcome_count: int

    @property
    def ended_count(self) -> int:
        """All of them."""
        return self.committed_count + self.aborted_count + self.unknown_outcome_count


class Pictures(NamedTuple):
    """The series of one report, the worst partitions and ids first; runs from the oldest to the report's own.

    `ended` are the transactions that ended, by time, oldest first.
    """

    partitions: tuple[PartitionTimeline, ...] = ()
    ids: tuple[IdTimeline, ...] = ()
    runs: tuple[RunPoint, ...] = ()
    ended: tuple[EndedSlice, ...] = ()
