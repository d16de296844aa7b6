"""Answers to DescribeProducers beside a log that was fetched: what the leader kept of all producers at one moment.

All batches below `answered_from` were in the log at that moment. Of what lies below the first offset that was fetched
the answer says three things for certain. A transaction that it lists as open from below that offset was open there. No
other one that was open there is still open without an end marker among the batches that were fetched. The coordinator
epoch is that of the producer's last end marker, where the fetched batches hold none. Epochs, times and sequences are
those of the moment of the answer, not of that offset; the batches that are replayed upon them say them again. What the
answer proves and what not: docs/decisions/0097.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.kafka.names import DESCRIBED, ProblemKind
from txn_analysis.log.snapshots import Snapshot
from txn_analysis.tables import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.log.producer_state import ProducerStateManager
    from txn_analysis.tables import SnapshotEntry
    from txn_analysis.tables.inputs import InputSection


@dataclass(frozen=True)
class DescribedProducers:
    """One answer.

    Attributes:
        first_offset: the first one that was fetched.
        answered_from: the high watermark before it was asked for.
        capture_rank: of the capture that it is in; 0 is the one that is judged.
        rows: as answered.
    """

    first_offset: int
    answered_from: int
    capture_rank: int
    rows: list[SnapshotEntry]

    def as_snapshot(self) -> Snapshot:
        """What it says of all that lies below the first offset that was fetched."""
        rows = [row._replace(current_txn_start_offset=self._open_below(row)) for row in self.rows]
        return Snapshot(self.first_offset, self.capture_rank, rows)

    def _open_below(self, row: SnapshotEntry) -> int | None:
        start = row.current_txn_start_offset
        return start if start is not None and start < self.first_offset else None

    def problems(self, state: ProducerStateManager, end_offset: int | None) -> list[Problem]:
        """Where the replayed log says otherwise than the broker did.

        Args:
            state: at the end of the log.
            end_offset: of the log; None for an empty one.
        """
        reasons = self._differences(state, 0 if end_offset is None else end_offset)
        return [
            Problem(None, ProblemKind.SNAPSHOT_DISAGREES, f"described producers at {self.answered_from}, {reason}")
            for reason in reasons
        ]

    def _differences(self, state: ProducerStateManager, end_offset: int) -> Iterator[str]:
        answered = {row.producer_id: row.current_txn_start_offset for row in self.rows}
        for entry in state.entries.values():
            txn = entry.open
            # What began behind the answer is in none; what began before, and has no end marker, was open then.
            if txn is None or txn.txn_start_offset >= self.answered_from:
                continue
            start = answered.get(entry.producer_id)
            is_earlier = start is not None and start < txn.txn_start_offset and not txn.is_txn_start_exact
            if start != txn.txn_start_offset and not is_earlier:
                yield _differs(entry.producer_id, start, txn.txn_start_offset)
        for producer_id, start in answered.items():
            if start is None or start >= end_offset:
                continue
            known = state.entries.get(producer_id)
            is_open = known is not None and known.open is not None and known.open.txn_start_offset <= start
            if not is_open and (known is None or (known.log_marker_offset or -1) < start):
                yield _differs(producer_id, start, None)


def _differs(producer_id: int, in_answer: int | None, in_log: int | None) -> str:
    return f"producer {producer_id}: open start is {in_answer} there and {in_log} in the log"


def described_of(sections: Iterable[InputSection], rows: Iterable[SnapshotEntry]) -> list[DescribedProducers]:
    """The answers of some sections with their rows."""
    by_section: dict[tuple[str, int], list[SnapshotEntry]] = {}
    for row in rows:
        by_section.setdefault((row.input_id, row.section_index), []).append(row)
    return [
        DescribedProducers(s.file_base_offset, int(s.stated), s.capture_rank, by_section.get(s.key, []))
        for s in sections
        if s.kind == DESCRIBED and s.stated is not None
    ]
