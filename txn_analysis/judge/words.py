"""What a verdict rests on, and what it misses, in words: one sentence a fact, from the row that was judged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]
Words = Callable[[Row], list[str | None]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(ms: int | None) -> str | None:
    """ISO 8601 in UTC to the millisecond; None stays None, and the bare number where no calendar reaches."""
    if ms is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms since 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def topic_partition(row: Row) -> str:
    """Kafka's own spelling, such as `orders-3`."""
    return f"{row['topic']}-{row['partition']}"


def _idle(row: Row) -> str | None:
    basis = {"last_timestamp": "its last timestamp", "broker_clock": "the brokers' clocks"}.get(row["lateness_basis"])
    late_by_ms = row["late_by_ms"]
    if basis is None:
        return None
    side = f"{late_by_ms} ms beyond" if late_by_ms > 0 else f"{-late_by_ms} ms within"
    return f"by {basis} it is {side} transaction.max.timeout.ms + 300000"


def _state(row: Row) -> str | None:
    state = row["coordinator_state"]
    if state is None:
        return None
    if state == "Tombstone":
        return "coordinator: the transactional id was removed (tombstone)"
    producer = f"producer id {row['coordinator_producer_id']}, epoch {row['coordinator_producer_epoch']}"
    return f"coordinator: {state} under {producer}"


def _listed(row: Row) -> str:
    return f"the coordinator's transaction lists {topic_partition(row)}"


def _stale(row: Row) -> list[str | None]:
    clock = epoch = None
    if row["is_older_by_clock"]:
        first, began = utc(row["first_appended_before_ms"]), utc(row["coordinator_start_ms"])
        clock = f"its first batch was appended by {first}, before that transaction began at {began}"
    if row["is_older_by_epoch"]:
        ours, theirs = row["max_producer_epoch"], row["coordinator_txn_epoch"]
        epoch = f"its batches have at most epoch {ours}, that transaction runs at {theirs}"
    return [_state(row), _listed(row), clock, epoch, "the next commit would publish it"]


def _overdue(row: Row) -> str:
    began = utc(row["coordinator_start_ms"])
    return f"that transaction began at {began} with a timeout of {row['coordinator_timeout_ms']} ms"


def _bounds(row: Row) -> str | None:
    before = utc(row["appended_before_ms"])
    return None if before is None else f"the data was appended by {before}"


def _coverage(row: Row) -> str:
    return f"__transaction_state: {row['state_partitions_seen']} of {row['state_partitions_expected']} partitions seen"


def _end_of_log(row: Row) -> str:
    last = "" if row["last_offset"] is None else f" after offset {row['last_offset']}"
    return f"no end marker of the producer{last}; the log was followed to offset {row['log_end_offset'] - 1}"


def _not_listed(row: Row) -> str:
    if row["runs_under_producer_id"]:
        return f"its current transaction does not contain {topic_partition(row)}"
    return f"nothing runs under producer id {row['producer_id']} any more"


EVIDENCE: dict[str, Words] = {
    "evidence_broken": lambda row: [f"open from offset {row['txn_start_offset']} as far as the files show"],
    "stale_data_in_live_transaction": _stale,
    "not_late": lambda row: [_idle(row)],
    "clock_not_credible": lambda row: [f"last timestamp {row['last_timestamp_ms']}"],
    "marker_overdue": lambda row: [_state(row), _listed(row), f"unchanged since {utc(row['coordinator_update_ms'])}"],
    "marker_pending_commit": lambda row: [_state(row), _listed(row)],
    "marker_pending_abort": lambda row: [_state(row), _listed(row)],
    "coordinator_overdue": lambda row: [_state(row), _listed(row), _overdue(row)],
    "in_coordinator": lambda row: [_state(row), _listed(row)],
    "state_older_than_log": lambda row: [_state(row), _bounds(row)],
    "log_may_end_early": lambda row: [
        _state(row),
        None
        if row["recorded_after_ms"] is None
        else f"the coordinator recorded something at {utc(row['recorded_after_ms'])}",
        None
        if row["last_moment_ms"] is None
        else f"the partition's last broker-clock moment is {utc(row['last_moment_ms'])}",
    ],
    "state_incomplete": lambda row: [_state(row), _coverage(row)],
    "unknown_producer": lambda row: [
        f"no transactional id has, or had, producer id {row['producer_id']}",
        _coverage(row),
        _end_of_log(row),
        _idle(row),
    ],
    "partition_not_in_transaction": lambda row: [
        _state(row),
        _not_listed(row),
        _coverage(row),
        _end_of_log(row),
        _idle(row),
    ],
    "no_rule": lambda row: [_state(row)],
}


def _for_newer_state(row: Row) -> list[str | None]:
    return [
        "an end marker after the data in this partition, or --state-copied-last" if row["is_unbounded"] else None,
        "__transaction_state up to a later moment, or --state-copied-last" if row["is_state_behind"] else None,
        f"state records of epoch {row['max_producer_epoch']}" if row["is_epoch_ahead"] else None,
    ]


MISSING: dict[str, Words] = {
    "evidence_broken": lambda row: list(row["evidence_gaps"]),
    "clock_not_credible": lambda _: ["a credible timestamp, or an end marker after the data in this partition"],
    "state_older_than_log": _for_newer_state,
    "log_may_end_early": lambda _: ["this partition's log up to a later moment"],
    "state_incomplete": lambda row: list(row["state_gaps"]),
    "no_rule": lambda _: ["a rule for this state of the coordinator"],
}


def evidence(row: Row) -> list[str]:
    """The facts that the row's rule used."""
    return [fact for fact in EVIDENCE[row["rule"]](row) if fact is not None]


def missing_evidence(row: Row) -> list[str]:
    """What would be needed for an answer; empty where there is one."""
    words = MISSING.get(row["rule"])
    return [fact for fact in words(row) if fact is not None] if words else []
