"""Producer snapshots: what a broker wrote down of all producers of a partition where a segment begins.

Kafka's `ProducerStateManager` loads the newest one and follows the log from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txn_analysis.log.sections import LogSection
    from txn_analysis.log.whole_log import PartitionLog


class SnapshotEntry(NamedTuple):
    """One producer in a snapshot: a row of `producer_snapshots`, whose comments say what each column is."""

    input_id: str
    section_index: int
    topic: str
    partition: int
    snapshot_offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    current_txn_start_offset: int | None
    last_timestamp_ms: int | None
    last_sequence: int | None
    last_offset: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SnapshotEntry:
        """A row of the table."""
        return cls._make(map(row.get, cls._fields))


@dataclass(frozen=True)
class Snapshot:
    """One producer snapshot file; it stands for everything below `offset`."""

    offset: int
    capture_rank: int
    rows: list[SnapshotEntry]


def snapshots_of(sections: Iterable[LogSection], rows: Iterable[SnapshotEntry]) -> list[Snapshot]:
    """The snapshots of some sections with their rows; by offset, the newest capture's last."""
    by_section: dict[tuple[str, int], list[SnapshotEntry]] = {}
    for row in rows:
        by_section.setdefault((row.input_id, row.section_index), []).append(row)
    found = [Snapshot(s.file_base_offset, s.capture_rank, by_section.get(s.key, [])) for s in sections]
    return sorted(found, key=lambda s: (s.offset, -s.capture_rank))


def base_snapshot(log: PartitionLog, snapshots: list[Snapshot]) -> Snapshot | None:
    """The newest snapshot below the first batch; one that stands right above a gap replaces what is older."""
    if not snapshots:
        return None
    first = log.first_offset
    if first is None:
        return max(snapshots, key=lambda s: (s.offset, -s.capture_rank), default=None)
    behind_gap = max(log.after_gap, default=None)
    if behind_gap is not None:
        exact = [s for s in snapshots if log.after_gap[behind_gap] < s.offset <= behind_gap]
        if exact:
            return exact[-1]
    return max((s for s in snapshots if s.offset <= first), key=lambda s: (s.offset, -s.capture_rank), default=None)
