"""What a broker keeps of one producer of a partition: its epochs, its last end marker, its open transaction.

Mirrors Kafka's `ProducerStateEntry`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from txn_analysis.log.pieces import BareMarker, Fragment, ProducerEdges
    from txn_analysis.log.snapshots import SnapshotEntry


@dataclass
class OpenTransaction:
    """A transaction with data after its producer's last end marker, as far as the log has been followed.

    `named_at_offset` is that of the newest snapshot, at the start of a file, which names it as open. `known_from` is
    that of a snapshot which alone knows what it has below; None where the log holds its start.
    """

    producer_id: int
    start_offset: int
    is_start_exact: bool
    first_epoch: int | None = None
    max_epoch: int | None = None
    last_offset: int | None = None
    last_sequence: int | None = None
    record_count: int | None = None
    size_bytes: int | None = None
    last_timestamp_ms: int | None = None
    first_after_ms: int | None = None
    first_before_ms: int | None = None
    last_after_ms: int | None = None
    last_before_ms: int | None = None
    hidden_record_count: int | None = None
    hidden_bytes: int | None = None
    named_at_offset: int | None = None
    known_from: int | None = None

    def extend(self, fragment: Fragment, moment_before_ms: int | None) -> None:
        """Take in the data of a later fragment of the same transaction."""
        self.first_epoch = self.first_epoch if self.first_epoch is not None else fragment.first_epoch
        self.max_epoch = max(e for e in (self.max_epoch, fragment.max_epoch, 0) if e is not None)
        self.last_offset, self.last_sequence = fragment.last_offset, fragment.last_sequence
        self.last_timestamp_ms = fragment.last_timestamp_ms
        self.last_after_ms = first_known(fragment.last_after_ms, moment_before_ms)
        self.last_before_ms = fragment.last_before_ms
        if self.record_count is not None:
            self.record_count += fragment.record_count
        if self.size_bytes is not None:
            self.size_bytes += fragment.size_bytes


class EndedTransaction(NamedTuple):
    """A transaction and its end marker, whose `outcome` is None where a shallow dump does not print it."""

    transaction: OpenTransaction
    end_offset: int
    outcome: str | None
    timestamp_ms: int | None
    producer_epoch: int | None
    coordinator_epoch: int | None


@dataclass
class ProducerEntry:
    """One producer's state on one partition, as `describe-producers` shows it, and where its parts come from.

    `marker_offset` is that of the end marker which says the coordinator epoch, `held_marker_offset` of the last one
    that any copy of the log still holds (-1 without one), `log_marker_offset` of the last one in the log itself.
    `bare_markers` are its end markers without data before them.
    """

    producer_id: int
    producer_epoch: int | None = None
    last_sequence: int | None = None
    last_timestamp_ms: int | None = None
    coordinator_epoch: int | None = None
    coordinator_epoch_basis: str = "unknown"
    marker_offset: int | None = None
    held_marker_offset: int = -1
    log_marker_offset: int | None = None
    marker_timestamp_ms: int | None = None
    open: OpenTransaction | None = None
    previous_last_timestamp_ms: int | None = None
    ended_coordinator_epoch: int | None = None
    max_ended_coordinator_epoch: int | None = None
    bare_markers: list[BareMarker] = field(default_factory=list)

    @property
    def has_coordinator_epoch_fallen(self) -> bool:
        """The end marker of its newest ended transaction has a lower coordinator epoch than an earlier one's."""
        newest, largest = self.ended_coordinator_epoch, self.max_ended_coordinator_epoch
        return newest is not None and largest is not None and newest < largest

    def has_ended(self, last_timestamp_ms: int | None, epoch: int | None, max_epoch: int | None) -> None:
        """Take in newer transactions that ended: what the newest one says, and the largest coordinator epoch of all."""
        self.previous_last_timestamp_ms, self.ended_coordinator_epoch = last_timestamp_ms, epoch
        known = [e for e in (self.max_ended_coordinator_epoch, max_epoch) if e is not None]
        self.max_ended_coordinator_epoch = max(known, default=None)

    def take_marker(self, producer: ProducerEdges) -> None:
        """Take in the producer's last end marker of a piece."""
        self.marker_offset = producer.marker_offset
        self.marker_timestamp_ms = producer.marker_timestamp_ms
        self.coordinator_epoch = producer.marker_coordinator_epoch
        self.coordinator_epoch_basis = "unknown" if self.coordinator_epoch is None else "marker"

    def hold_marker(self, offset: int | None) -> None:
        """Some copy of the log holds an end marker of it."""
        if offset is not None:
            self.held_marker_offset = max(self.held_marker_offset, offset)

    def take_snapshot_epoch(self, row: SnapshotEntry) -> None:
        """A snapshot without a coordinator epoch has seen no marker of this producer on the partition."""
        self.coordinator_epoch = row.coordinator_epoch
        self.coordinator_epoch_basis = "none_seen" if self.coordinator_epoch is None else "snapshot"

    def take_bare_markers(self, producer: ProducerEdges, *, is_lead_end: bool) -> None:
        """Take in those of a piece; its first end marker is none where it ended what an earlier piece left open."""
        if producer.marker_offset is not None:
            self.bare_markers += producer.bare_markers[1:] if is_lead_end else producer.bare_markers


def first_known(value: int | None, otherwise: int | None) -> int | None:
    """The first of two values that is known."""
    return otherwise if value is None else value
