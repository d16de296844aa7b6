"""What is known of one partition's log at its end, as a typed row of `partition_health`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from txn_analysis.columns.records import plain
from txn_analysis.log.segments import TO_THE_END, Problem
from txn_analysis.log.two_logs import TwoLogs  # noqa: TC001 records_of reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.log.checkpoints import Stated
    from txn_analysis.log.producer_entry import OpenTransaction, ProducerEntry
    from txn_analysis.log.producer_state import ProducerState
    from txn_analysis.log.snapshots import Snapshot
    from txn_analysis.log.whole_log import PartitionLog


class ProducerAtEnd(NamedTuple):
    """One producer at the end of the log, as `describe-producers` prints it."""

    producer_id: int
    producer_epoch: int | None
    coordinator_epoch: int | None
    last_sequence: int | None
    last_timestamp_ms: int | None
    txn_start_offset: int | None

    @classmethod
    def of(cls, entry: ProducerEntry) -> ProducerAtEnd:
        """What a broker keeps of it."""
        return cls(
            entry.producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch,
            entry.last_sequence,
            entry.last_timestamp_ms,
            entry.open.start_offset if entry.open else None,
        )


class ProblemFound(NamedTuple):
    """Where the evidence is not whole, and why; `offset` is None where it spoils the log to its end."""

    offset: int | None
    kind: str
    reason: str

    @classmethod
    def of(cls, problem: Problem) -> ProblemFound:
        """What is written of a problem."""
        return cls(None if problem.offset == TO_THE_END else problem.offset, problem.kind.value, problem.reason)


class ProducersBareMarker(NamedTuple):
    """An end marker with none of its producer's transactional data between it and the one before."""

    producer_id: int
    offset: int
    marker: str | None
    timestamp_ms: int | None
    producer_epoch: int | None
    coordinator_epoch: int | None


class PartitionHealth(NamedTuple):
    """One row of `partition_health` without its run and its place; the table's comments say what each column is."""

    is_in_capture: bool
    first_offset: int | None
    end_offset: int | None
    log_start_offset: int | None
    high_watermark: int | None
    last_stable_offset: int | None
    open_transaction_count: int
    hidden_record_count: int | None
    hidden_bytes: int | None
    log_bytes: int
    snapshot_offset: int | None
    first_moment_ms: int | None
    last_moment_ms: int | None
    last_credible_timestamp_ms: int | None
    first_leader_epoch: int | None
    leader_epoch: int | None
    problems: tuple[ProblemFound, ...]
    witnesses: tuple[str, ...]
    remarks: tuple[str, ...]
    producers: tuple[ProducerAtEnd, ...]
    truncated_marker_offset: int | None
    bare_markers: tuple[ProducersBareMarker, ...]
    two_logs: tuple[TwoLogs, ...]

    def row(self, **place: Any) -> dict[str, Any]:
        """The columns as plain data, with those of its place."""
        return plain(self) | place


def health_of(
    log: PartitionLog,
    state: ProducerState,
    problems: Iterable[Problem],
    base: Snapshot | None,
    stated: Stated,
    as_of_ms: int | None,
    *,
    is_in_capture: bool,
) -> PartitionHealth:
    """What is known of a partition whose log was followed to its end.

    Args:
        log: the log.
        state: of its producers, at its end.
        problems: all that were found.
        base: the snapshot with which it began, if it began with one.
        stated: what checkpoint files say of it.
        as_of_ms: timestamps after it are not credible; None if no broker's clock speaks.
        is_in_capture: the judged capture holds files of it.
    """
    entries = [entry for _, entry in sorted(state.entries.items())]
    opened = [entry.open for entry in entries if entry.open]
    oldest = min(opened, key=lambda txn: txn.start_offset, default=None)
    end = base.offset if log.end_offset is None and base is not None else log.end_offset
    stable = stated.last_stable_offset(oldest.start_offset if oldest else None, end)
    hidden_record_count, hidden_bytes = _hidden(oldest, end, stable)
    return PartitionHealth(
        is_in_capture=is_in_capture,
        first_offset=log.first_offset,
        end_offset=end,
        log_start_offset=stated.log_start_offset,
        high_watermark=stated.high_watermark,
        last_stable_offset=stable,
        open_transaction_count=len(opened),
        hidden_record_count=hidden_record_count,
        hidden_bytes=hidden_bytes,
        log_bytes=sum([p.size_bytes for p in log.pieces]),
        snapshot_offset=base.offset if base else None,
        first_moment_ms=next((p.first_moment_ms for p in log.pieces if p.first_moment_ms is not None), None),
        last_moment_ms=state.last_moment_ms,
        last_credible_timestamp_ms=_last_credible(log, as_of_ms),
        first_leader_epoch=next((p.first_leader_epoch for p in log.pieces if p.first_leader_epoch is not None), None),
        leader_epoch=max([p.leader_epoch for p in log.pieces if p.leader_epoch is not None], default=None),
        problems=tuple(map(ProblemFound.of, sorted(set(problems), key=lambda p: (p.offset, p.reason)))),
        witnesses=tuple(dict.fromkeys(log.witnesses + state.witnesses)),
        remarks=tuple(log.remarks + stated.remarks(end)),
        producers=tuple(map(ProducerAtEnd.of, entries)),
        truncated_marker_offset=log.others.truncated_marker_offset,
        bare_markers=tuple(ProducersBareMarker(e.producer_id, *marker) for e in entries for marker in e.bare_markers),
        two_logs=log.two_logs,
    )


def _hidden(
    oldest: OpenTransaction | None, end_offset: int | None, stable_offset: int | None
) -> tuple[int | None, int | None]:
    """Records and bytes from the last stable offset on.

    They are counted from where the oldest open transaction begins: of less nobody knows how much is hidden.
    """
    counted_from = oldest.start_offset if oldest else end_offset
    if stable_offset != counted_from:
        return None, None
    return (oldest.hidden_record_count, oldest.hidden_bytes) if oldest else (0, 0)


def _last_credible(log: PartitionLog, as_of_ms: int | None) -> int | None:
    """The largest timestamp of the log if it is credible, else the last one if that is; however the log was cut."""
    largest = max([p.max_timestamp_ms for p in log.pieces if p.max_timestamp_ms is not None], default=None)
    last = next((p.last_timestamp_ms for p in reversed(log.pieces) if p.last_timestamp_ms is not None), None)
    seen = [ms for ms in (largest, last) if ms is not None]
    return max([ms for ms in seen if as_of_ms is None or ms <= as_of_ms], default=None)
