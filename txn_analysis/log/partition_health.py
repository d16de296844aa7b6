"""What is known of one partition at the end of its log, from its batches, snapshots and checkpoint files.

A running broker writes the high watermark every 5 s and the log start offset every 60 s (`ReplicaManager`,
`LogManager`), so a copied checkpoint is older than the log beside it, or newer, as the files are copied one after
another. Checkpoints therefore say where consumers are, and prove no fault. Batches above the high watermark and below
the log start offset stay in the log: an end marker among them ended its transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from txn_analysis.columns.arrays import NONE, Columns, by_key, known, known_of, lists, nullable, of_types
from txn_analysis.kafka.names import (
    BINARY_GRAMMARS,
    CLEAN_SHUTDOWN,
    END_MARKERS,
    HIGH_WATERMARK,
    LEADER_EPOCH,
    LOG_KINDS,
    LOG_START,
    TOPIC_ID,
)
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.log.partition_log import PartitionLog
from txn_analysis.log.producer_state import ProducerStateManager
from txn_analysis.log.snapshots import Snapshot
from txn_analysis.tables import PartitionHealth, Problem, ProducersBareMarker, ProducerState
from txn_analysis.tables.inputs import InputSection

_NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True)
class CheckpointFiles:
    """What the judged capture's checkpoint files state of one partition; None where none states it.

    Attributes:
        log_start_offset: the largest log start offset that any of them states.
        first_file_offset: where the first file of the partition's folder begins, of several folders the one that goes
            back furthest: the log starts there or later. None where a part of the log is a dump, as files may have been
            left out then.
        high_watermark: the largest one that any of them states.
        is_final: consumers stop at the high watermark: every broker that states it was shut down cleanly, and all of
            the log was copied from such brokers.
        epoch_start_offset: where the newest leader epoch begins.
        topic_ids: those of all captures.
    """

    log_start_offset: int | None = None
    first_file_offset: int | None = None
    high_watermark: int | None = None
    is_final: bool = False
    epoch_start_offset: int | None = None
    topic_ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, sections: list[InputSection]) -> CheckpointFiles:
        """What the sections of one partition state; those of its logs are among them."""
        by_kind = by_key([s for s in sections if s.capture_rank == 0], attrgetter("kind"))
        marks, logs = by_kind[HIGH_WATERMARK], [s for kind in LOG_KINDS for s in by_kind[kind]]
        is_final = bool(marks) and all(s.stated == CLEAN_SHUTDOWN for s in marks)
        is_all_copied = all(s.grammar in BINARY_GRAMMARS for s in logs)
        # All three offsets only grow, whichever broker states them.
        log_start, mark, epoch_start = (
            max([s.file_base_offset for s in by_kind[kind]], default=None)
            for kind in (LOG_START, HIGH_WATERMARK, LEADER_EPOCH)
        )
        return cls(
            log_start,
            min((s.file_base_offset for s in logs), default=None) if is_all_copied else None,
            mark,
            is_final and is_all_copied,
            epoch_start,
            frozenset([s.stated for s in sections if s.kind == TOPIC_ID and s.stated is not None]),
        )

    def last_stable_offset(self, stable: int | None) -> int | None:
        """Where `read_committed` consumers stop (`UnifiedLog.fetchLastStableOffsetMetadata`); None for an empty log.

        `stable` is the smallest open start, or the end of the log where nothing is open. At most the high watermark,
        where that is final; never below the log start, which a checkpoint states only where the first file begins
        before it.
        """
        if stable is None:
            return None
        if self.high_watermark is not None and self.is_final:
            stable = min(stable, self.high_watermark)
        return max(stable, self.log_start_offset or 0, self.first_file_offset or 0)

    def remarks(self, end_offset: int | None) -> list[str]:
        """How the files differ from the log that ends at `end_offset`."""
        if end_offset is None:
            return []
        remarks = []
        mark, epoch_start = self.high_watermark, self.epoch_start_offset
        if mark is not None and mark > end_offset:
            remarks.append(
                f"the high watermark stood at {mark}, this copy ends at {end_offset}: it was made earlier, or cut"
            )
        if mark is not None and mark < end_offset and self.is_final:
            remarks.append(f"offsets {mark} to {end_offset - 1} are above the high watermark: they were not committed")
        if epoch_start is not None and epoch_start > end_offset:
            remarks.append(
                f"a leader epoch began at {epoch_start}, this copy ends at {end_offset}: it was made earlier, or cut"
            )
        return remarks

    def problems(self) -> list[Problem]:
        """Files of a topic that was deleted, and of the one that was created again under its name, are no one log."""
        if len(self.topic_ids) < 2:
            return []
        ids = " and ".join(sorted(self.topic_ids))
        reason = f"the files are of several topics of this name: topic ids {ids}"
        return [Problem(None, ProblemKind.SEVERAL_TOPIC_IDS, reason)]


def health_of(
    partition: TopicPartition,
    log: PartitionLog,
    state: ProducerStateManager,
    problems: Iterable[Problem],
    base: Snapshot | None,
    checkpoints: CheckpointFiles,
    as_of_ms: int | None,
    *,
    is_in_capture: bool,
) -> PartitionHealth:
    """What is known of a partition whose log was replayed to its end; without its producers.

    Args:
        partition: which one.
        log: the log.
        state: of its producers, at its end.
        problems: all that were found.
        base: the snapshot from which it was replayed; None where it was replayed from its first batch.
        checkpoints: what checkpoint files state of it.
        as_of_ms: timestamps after it are not credible; None if the capture has no moment.
        is_in_capture: the judged capture holds files of it.
    """
    opened = state.opened[state.open_rows()]
    oldest = opened[opened["txn_start_offset"].argmin()] if len(opened) else None
    end = base.offset if log.end_offset is None and base is not None else log.end_offset
    start = end if oldest is None else int(oldest["txn_start_offset"])
    stable = checkpoints.last_stable_offset(start)
    hidden_record_count, hidden_bytes = (None, None) if stable != start else _hidden(oldest)
    ranges = log.summaries
    return PartitionHealth(
        topic=partition.topic,
        partition=partition.partition,
        is_in_capture=is_in_capture,
        first_offset=log.first_offset,
        end_offset=end,
        log_start_offset=checkpoints.log_start_offset,
        high_watermark=checkpoints.high_watermark,
        last_stable_offset=stable,
        open_transaction_count=len(opened),
        hidden_record_count=hidden_record_count,
        hidden_bytes=hidden_bytes,
        log_bytes=sum([s.size_bytes for s in ranges]),
        snapshot_offset=base.offset if base else None,
        first_moment_ms=next((s.first_moment_ms for s in ranges if s.first_moment_ms is not None), None),
        last_moment_ms=known(state.last_moment_ms),
        last_credible_timestamp_ms=_last_credible(log, as_of_ms),
        first_leader_epoch=next((s.first_leader_epoch for s in ranges if s.first_leader_epoch is not None), None),
        leader_epoch=max([s.leader_epoch for s in ranges if s.leader_epoch is not None], default=None),
        problems=tuple(sorted(set(problems), key=lambda p: (p.offset is None, p.offset or 0, p.reason))),
        witnesses=tuple(dict.fromkeys(log.witnesses + state.witnesses)),
        remarks=tuple(log.remarks + checkpoints.remarks(end)),
        truncated_marker_offset=log.others.truncated_marker_offset,
        bare_markers=_bare_markers(log, state),
        linked_pieces=(),
        two_logs=log.two_logs,
    )


def producers_at_end(state: ProducerStateManager) -> Columns:
    """What a broker keeps of each producer, in their order: by field of `ProducerState`, one row is one producer."""
    rows = np.flatnonzero(state.entries["basis"] != NONE)
    entries, start = state.entries[rows], state.opened["txn_start_offset"][rows]
    return {name: entries[name] for name in ProducerState._fields[:-1]} | {"txn_start_offset": start}


def with_producers(health: pa.RecordBatch, producers: Sequence[Columns]) -> pa.RecordBatch:
    """Rows of partitions, with the producers of each of them as of `producers_at_end`."""
    place = health.schema.get_field_index("producers")
    of_list = health.schema.types[place]
    columns = {name: np.concatenate([_NOBODY, *(each[name] for each in producers)]) for name in ProducerState._fields}
    states = pa.StructArray.from_arrays(
        of_types(map(nullable, columns.values()), of_list.value_type), fields=list(of_list.value_type)
    )
    partition = np.repeat(np.arange(len(producers)), [len(each["producer_id"]) for each in producers])
    return health.set_column(place, health.schema.field(place), lists(states, partition, len(producers)).cast(of_list))


def _bare_markers(log: PartitionLog, state: ProducerStateManager) -> tuple[ProducersBareMarker, ...]:
    """Those of each producer, in their order; one that ended what an earlier batch range left open is none."""
    parts = [s.producers.bare_markers for s in log.summaries if len(s.producers.bare_markers)]
    if not parts:
        return ()
    markers = np.concatenate(parts)
    markers = markers[~np.isin(markers["offset"], state.ends["end_offset"][: state.ended_count])]
    markers = markers[np.argsort(markers["producer_id"], kind="stable")]
    columns: dict[str, list[Any]] = {name: known_of(markers[name]) for name in ProducersBareMarker._fields}
    columns["marker"] = [None if code is None else END_MARKERS[code] for code in columns["marker"]]
    return tuple(map(ProducersBareMarker._make, zip(*columns.values(), strict=True)))


def _hidden(oldest: Any) -> tuple[int | None, int | None]:
    """Records and bytes from the start of the oldest open transaction on, if any; they count from no other offset."""
    return (0, 0) if oldest is None else (known(int(oldest["hidden_record_count"])), known(int(oldest["hidden_bytes"])))


def _last_credible(log: PartitionLog, as_of_ms: int | None) -> int | None:
    """The largest timestamp of the log if it is credible, else the last one if that is, else None."""
    largest = max([s.max_timestamp_ms for s in log.summaries if s.max_timestamp_ms is not None], default=None)
    last = next((s.last_timestamp_ms for s in reversed(log.summaries) if s.last_timestamp_ms is not None), None)
    seen = [ms for ms in (largest, last) if ms is not None]
    return max([ms for ms in seen if as_of_ms is None or ms <= as_of_ms], default=None)
