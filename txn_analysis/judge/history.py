"""What the coordinator's history of one transactional id says about one open transaction.

Pure Python over the records of one id, in the order of its partition of `__transaction_state`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

PREPARED = ("PrepareCommit", "PrepareAbort")
LIVE = ("Ongoing", *PREPARED)
TOMBSTONE = "Tombstone"


@dataclass(frozen=True)
class OpenData:
    """The part of an open transaction that its history is asked about."""

    topic: str
    partition: int
    producer_id: int
    last_marker_ms: int | None
    first_producer_epoch: int | None = None


def names_producer(record: Row, producer_id: int) -> bool:
    """A record stands for its current, previous and next producer id (KIP-890's tagged fields)."""
    return producer_id in (record["producer_id"], record["previous_producer_id"], record["next_producer_id"])


def moment_ms(record: Row) -> int | None:
    """The broker's time of a record: of its append where the dump prints it, or of the update in its value."""
    known = [ms for ms in (record["recorded_ms"], record["last_update_ms"]) if ms is not None]
    return max(known, default=None)


def lists_partition(record: Row, data: OpenData) -> bool:
    """The record's transaction contains the partition and runs under the producer id of the open data."""
    is_listed = {"topic": data.topic, "partition": data.partition} in record["topic_partitions"]
    return is_listed and record["state"] in LIVE and names_producer(record, data.producer_id)


def current_transaction(history: list[Row]) -> tuple[int | None, int | None]:
    """Start time and producer epoch of the transaction that the last record belongs to.

    Text dumps print no start time: the first Ongoing batch since the last other state stands for it. A Prepare record
    may carry a raised epoch (timeout and fencing aborts, transaction version 2), so the epoch is that of the Ongoing
    records; None where compaction has removed them.
    """
    last = history[-1]
    if last["state"] not in LIVE:
        return None, None
    until = len(history) - (1 if last["state"] in PREPARED else 0)
    ongoing: list[Row] = []
    for record in reversed(history[:until]):
        if record["state"] != "Ongoing":
            break
        ongoing.insert(0, record)
    start = last["start_ms"] if last["start_ms"] is not None else (moment_ms(ongoing[0]) if ongoing else None)
    return start, (ongoing[-1]["producer_epoch"] if ongoing else None)


def history_facts(history: list[Row], data: OpenData, max_clock_skew_ms: int) -> Row:
    """The facts that the rules need of one transactional id that has, or had, the producer id of the open data.

    `recorded_after_ms` is the latest moment at which the coordinator recorded something for this producer;
    `has_prepare_since_marker` says that since the producer's last end marker in the partition (allowing for clock
    skew) a Prepare record lists the partition: the transaction may have been ended after the log was copied.
    `was_ended_after_log` says that it was: an earlier transaction than the current one, with this partition, was
    decided later than that marker by more than the skew, and its own marker is not in the log.
    """
    last = history[-1]
    is_tombstone = bool(last["is_tombstone"])
    own = [r for r in history if r["is_tombstone"] or names_producer(r, data.producer_id)]
    since = None if data.last_marker_ms is None else data.last_marker_ms - max_clock_skew_ms
    prepared = [
        r for r in own if r["state"] in PREPARED and lists_partition(r, data) and (since is None or _is_after(r, since))
    ]
    ended = [r for r in prepared if r is not last and _is_proven_after(r, data.last_marker_ms, max_clock_skew_ms)]
    start_ms, txn_epoch = current_transaction(history)
    runs_under_it = not is_tombstone and names_producer(last, data.producer_id)
    moments = [ms for r in own if (ms := moment_ms(r)) is not None]
    return {
        "transactional_id": last["transactional_id"],
        "state_partition": last["state_partition"],
        "coordinator_state": TOMBSTONE if is_tombstone else last["state"],
        "coordinator_producer_id": last["producer_id"],
        "coordinator_producer_epoch": last["producer_epoch"],
        "coordinator_start_ms": start_ms,
        "coordinator_update_ms": last["last_update_ms"],
        "coordinator_timeout_ms": last["timeout_ms"],
        "coordinator_txn_epoch": txn_epoch if runs_under_it else None,
        "is_listed": not is_tombstone and lists_partition(last, data),
        "runs_under_producer_id": runs_under_it,
        "is_producer_live": runs_under_it and last["state"] in LIVE,
        "state_epoch": last["producer_epoch"] if not is_tombstone and last["producer_id"] == data.producer_id else None,
        "recorded_after_ms": max(moments, default=None),
        "first_recorded_ms": moment_ms(history[0]),
        "has_prepare_since_marker": bool(prepared),
        "was_ended_after_log": bool(ended),
    }


def _is_after(record: Row, since_ms: int) -> bool:
    moment = moment_ms(record)
    return moment is None or moment > since_ms


def _is_proven_after(record: Row, marker_ms: int | None, max_clock_skew_ms: int) -> bool:
    moment = moment_ms(record)
    return marker_ms is None or (moment is not None and moment > marker_ms + max_clock_skew_ms)
