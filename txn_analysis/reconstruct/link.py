"""Link: the pieces, sections and snapshots of one partition become its open transactions and its health.

Pure Python over a handful of rows per partition; Spark only brings the rows together (`reconstruct.partitions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from txn_analysis.ingest.sections import LOG_KINDS, SNAPSHOT
from txn_analysis.reconstruct.partition_log import Comparisons, PartitionLog, gap, partition_log
from txn_analysis.reconstruct.producer_state import OpenTransaction, ProducerEntry, ProducerState
from txn_analysis.reconstruct.segments import TO_THE_END, Problem, ProblemKind, segments_of
from txn_analysis.reconstruct.stated import Stated

Row = dict[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """One producer snapshot file; it stands for everything below `offset`."""

    offset: int
    capture_rank: int
    rows: list[Row]


@dataclass(frozen=True)
class LinkedPartition:
    """What is known of one partition: its health, its transactions that are open or span pieces, the pieces used."""

    health: Row
    transactions: list[Row]
    used_pieces: list[Row]


def link_partition(
    sections: list[Row], pieces: list[Row], snapshot_rows: list[Row], comparisons: Comparisons, as_of_ms: int | None
) -> LinkedPartition:
    """Follow the log of one partition from its first known state to its end.

    Args:
        sections: one row per `Dumping …` section of the partition, with `capture_rank` (0 is the judged capture),
            `is_end_proven` and `input_problem`; snapshot sections and what checkpoint files state included.
        pieces: rows of `log_pieces` of those sections.
        snapshot_rows: rows of `producer_snapshots` of those sections.
        comparisons: of all pairs that `copies.pairs_to_compare` names.
        as_of_ms: moment of the capture; timestamps after it are not credible. None if no broker's clock speaks.
    """
    stated = Stated.of(sections)
    sections = [s for s in sections if s["kind"] in LOG_KINDS or s["kind"] == SNAPSHOT]
    log = partition_log(segments_of([s for s in sections if s["kind"] != SNAPSHOT], pieces), comparisons)
    snapshots = _snapshots([s for s in sections if s["kind"] == SNAPSHOT], snapshot_rows)
    base = _base_snapshot(log, snapshots)
    log = _above(log, base)
    state = _start(log, base)
    witnesses = [s for s in snapshots if s is not base and (base is None or s.offset >= base.offset)]
    problems = [*log.problems, *_follow(log, state, witnesses), *stated.problems()]
    if base is not None and log.first_offset is not None and base.offset < log.first_offset:
        problems.append(gap(base.offset, log.first_offset - 1))
    is_in_capture = any(s["capture_rank"] == 0 for s in sections)
    if not is_in_capture:
        problems.append(Problem(TO_THE_END, ProblemKind.NOT_IN_CAPTURE, "the partition is not in this capture"))
    health = _health(log, state, problems, base, stated) | {
        "is_in_capture": is_in_capture,
        "last_credible_timestamp_ms": _last_credible(log, as_of_ms),
    }
    opened = [
        _open_row(e, e.open, [*problems, *stated.doubts(e.open.start_offset)], base)
        for e in state.entries.values()
        if e.open
    ]
    used = [{n: p[n] for n in ("input_id", "section_index", "first_position")} for p in log.pieces]
    return LinkedPartition(health, opened + [_ended_row(row) for row in state.ended], used)


def _snapshots(sections: list[Row], rows: list[Row]) -> list[Snapshot]:
    by_section: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        by_section.setdefault((row["input_id"], row["section_index"]), []).append(row)
    found = [
        Snapshot(s["file_base_offset"], s["capture_rank"], by_section.get((s["input_id"], s["section_index"]), []))
        for s in sections
    ]
    return sorted(found, key=lambda s: (s.offset, -s.capture_rank))


def _base_snapshot(log: PartitionLog, snapshots: list[Snapshot]) -> Snapshot | None:
    """The newest snapshot below the first batch; one that stands right above a gap replaces what is older."""
    first = log.first_offset
    if first is None:
        return max(snapshots, key=lambda s: (s.offset, -s.capture_rank), default=None)
    exact = [s for s in snapshots if s.offset == max(log.after_gap, default=None)]
    if exact:
        return exact[-1]
    return max((s for s in snapshots if s.offset <= first), key=lambda s: (s.offset, -s.capture_rank), default=None)


def _above(log: PartitionLog, base: Snapshot | None) -> PartitionLog:
    """Leave out what a snapshot in the middle makes unnecessary: older files that do not reach up to it."""
    if base is None or log.first_offset is None or base.offset <= log.first_offset:
        return log
    kept = PartitionLog(
        [s for s in log.segments if s.first_offset >= base.offset],
        [p for p in log.pieces if p["first_offset"] >= base.offset],
    )
    kept.problems = [p for p in log.problems if p.offset >= base.offset]
    kept.after_gap = {first: last for first, last in log.after_gap.items() if last >= base.offset}
    return kept


def _start(log: PartitionLog, base: Snapshot | None) -> ProducerState:
    first = log.first_offset
    if base is not None:
        state = ProducerState(is_start_known=first is None or base.offset >= first)
        state.load_snapshot(base.rows, is_adjacent=state.is_start_known)
        if not state.is_start_known and first is not None:
            state.last_gap_offset = first - 1
        return state
    begins = (
        log.segments[0].section["file_base_offset"] == 0 and (not log.pieces or log.pieces[0]["first_position"] == 0)
        if log.segments
        else False
    )
    state = ProducerState(is_start_known=bool(begins))
    state.has_holes = bool(log.pieces) and log.pieces[0]["first_offset"] > 0 and bool(begins)
    return state


def _follow(log: PartitionLog, state: ProducerState, snapshots: list[Snapshot]) -> list[Problem]:
    """Apply every piece; at each snapshot's offset the two witnesses are compared."""
    problems: list[Problem] = []
    waiting, recalled, before = list(snapshots), list(log.compacted_away), None
    for piece in log.pieces:
        recalled = _recall(state, recalled, piece["first_offset"])
        if piece["first_offset"] in log.after_gap:
            state.last_gap_offset = log.after_gap[piece["first_offset"]]
        elif before is not None and piece["first_offset"] > before["last_offset"] + 1:
            state.has_holes = True
        problems += _compare(state, waiting, piece["first_offset"])
        state.apply(piece)
        waiting = [s for s in waiting if s.offset > piece["last_offset"]]
        before = piece
    end = log.end_offset
    if end is None:
        return problems
    _recall(state, recalled, end)
    problems += _compare(state, waiting, end)
    beyond = [s.offset for s in waiting if s.offset > end and s.capture_rank == 0]
    if beyond:
        reason = f"a snapshot stands for offsets up to {max(beyond) - 1}, the log ends at {end - 1}"
        problems.append(Problem(TO_THE_END, ProblemKind.ENDS_BEFORE_SNAPSHOT, reason))
    return problems


def _recall(state: ProducerState, recalled: list[tuple[int, list[Row]]], offset: int) -> list[tuple[int, list[Row]]]:
    """Take in what other copies hold below `offset`, and this one lost to compaction; returns what is left."""
    for until, pieces in recalled:
        if until <= offset:
            state.recall(pieces)
    return [(until, pieces) for until, pieces in recalled if until > offset]


def _compare(state: ProducerState, waiting: list[Snapshot], offset: int) -> list[Problem]:
    met = [s for s in waiting if s.offset == offset]
    reasons = [reason for s in met for reason in state.witness(s.rows, s.offset)]
    return [Problem(TO_THE_END, ProblemKind.SNAPSHOT_DISAGREES, reason) for reason in reasons]


def _open_row(entry: ProducerEntry, txn: OpenTransaction, problems: list[Problem], base: Snapshot | None) -> Row:
    proven_from = max(txn.start_offset, base.offset) if base is not None else txn.start_offset
    return _transaction_row(txn) | {
        "outcome": "open",
        "producer_epoch": entry.producer_epoch,
        "coordinator_epoch": entry.coordinator_epoch,
        "coordinator_epoch_basis": entry.coordinator_epoch_basis,
        "last_marker_ms": entry.marker_timestamp_ms,
        "previous_last_timestamp_ms": entry.previous_last_timestamp_ms,
        "has_coordinator_epoch_fallen": entry.has_coordinator_epoch_fallen,
        "evidence_gaps": sorted({p.reason for p in problems if p.offset >= proven_from}),
    }


def _ended_row(ended: Row) -> Row:
    return _transaction_row(ended["transaction"]) | {
        "outcome": ended["end_marker"] or "ended",
        "end_offset": ended["end_offset"],
        "end_timestamp_ms": ended["end_timestamp_ms"],
        "end_producer_epoch": ended["end_epoch"],
        "coordinator_epoch": ended["end_coordinator_epoch"],
        "coordinator_epoch_basis": "unknown" if ended["end_coordinator_epoch"] is None else "marker",
    }


def _transaction_row(txn: OpenTransaction) -> Row:
    return {
        "producer_id": txn.producer_id,
        "txn_start_offset": txn.start_offset,
        "is_txn_start_exact": txn.is_start_exact,
        "first_producer_epoch": txn.first_epoch,
        "max_producer_epoch": txn.max_epoch,
        "last_offset": txn.last_offset,
        "last_sequence": txn.last_sequence,
        "record_count": txn.record_count,
        "size_bytes": txn.size_bytes,
        "last_timestamp_ms": txn.last_timestamp_ms,
        "first_appended_before_ms": txn.first_before_ms,
        "appended_after_ms": txn.last_after_ms,
        "appended_before_ms": txn.last_before_ms,
    }


def _health(
    log: PartitionLog, state: ProducerState, problems: list[Problem], base: Snapshot | None, stated: Stated
) -> Row:
    opened = sorted((e.open for e in state.entries.values() if e.open), key=lambda txn: txn.start_offset)
    oldest = opened[0] if opened else None
    end = log.end_offset if log.end_offset is not None else (base.offset if base else None)
    from_offset = oldest.start_offset if oldest else end
    stable = stated.last_stable_offset(oldest.start_offset if oldest else None, end)
    hidden = (oldest.hidden_record_count, oldest.hidden_bytes) if oldest else (0, 0)
    return {
        "first_offset": log.first_offset,
        "end_offset": end,
        "log_start_offset": stated.log_start_offset,
        "high_watermark": stated.high_watermark,
        "last_stable_offset": stable,
        "open_transaction_count": len(opened),
        # Counted from where the oldest open transaction begins: of less nobody knows how much is hidden.
        "hidden_record_count": hidden[0] if stable == from_offset else None,
        "hidden_bytes": hidden[1] if stable == from_offset else None,
        "log_bytes": sum(p["size_bytes"] for p in log.pieces),
        "snapshot_offset": base.offset if base else None,
        "last_moment_ms": state.last_moment_ms,
        "first_moment_ms": next(iter(_known(log.pieces, "first_moment_ms")), None),
        "first_leader_epoch": min(_known(log.pieces, "first_leader_epoch"), default=None),
        "leader_epoch": max(_known(log.pieces, "leader_epoch"), default=None),
        "problems": [_problem_row(p) for p in sorted(set(problems), key=lambda p: (p.offset, p.reason))],
        "witnesses": list(dict.fromkeys(log.witnesses + state.witnesses)),
        "remarks": log.remarks + stated.remarks(end),
        "producers": [_producer_row(entry) for _, entry in sorted(state.entries.items())],
    }


def _known(pieces: list[Row], name: str) -> list[int]:
    return [p[name] for p in pieces if p[name] is not None]


def _last_credible(log: PartitionLog, as_of_ms: int | None) -> int | None:
    """The largest timestamp of the log if it is credible, else the last one if that is; however the log was cut."""
    seen = [max(_known(log.pieces, "max_timestamp_ms"), default=None), *_known(log.pieces, "last_timestamp_ms")[-1:]]
    return max((ms for ms in seen if ms is not None and (as_of_ms is None or ms <= as_of_ms)), default=None)


def _problem_row(problem: Problem) -> Row:
    offset = None if problem.offset == TO_THE_END else problem.offset
    return {"offset": offset, "kind": problem.kind.value, "reason": problem.reason}


def _producer_row(entry: ProducerEntry) -> Row:
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "coordinator_epoch": entry.coordinator_epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp_ms": entry.last_timestamp_ms,
        "txn_start_offset": entry.open.start_offset if entry.open else None,
    }
