"""What speaks for a cause, and what against it, in words: one sentence a fact, from the row that was judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txn_analysis.judge.words import topic_partition, utc

Row = dict[str, Any]
Words = Callable[[Row], list[str | None]]


def _marker(row: Row) -> str | None:
    at = utc(row["last_marker_ms"])
    return None if at is None else f"the producer's last end marker here is of {at}"


def _written(row: Row) -> str | None:
    after, before = utc(row["appended_after_ms"]), utc(row["appended_before_ms"])
    if before is None:
        return None if after is None else f"by the brokers' clocks the last write came after {after}"
    return f"by the brokers' clocks the last write came by {before}" + ("" if after is None else f", after {after}")


def _state(row: Row) -> str:
    return f"the coordinator has {row['coordinator_state']} since {utc(row['coordinator_update_ms'])}"


def _never_listed(row: Row) -> str | None:
    if row["listed_since_ms"] is not None:
        return None
    since = "" if row["last_marker_ms"] is None else " since that marker"
    return f"no record of the transactional id lists {topic_partition(row)}{since}"


def _stale(row: Row) -> list[str | None]:
    if row["is_older_by_clock"]:
        first, began = utc(row["first_appended_before_ms"]), utc(row["coordinator_start_ms"])
        return [
            _marker(row),
            f"its first batch was appended by {first}; the transaction that lists it began at {began}",
        ]
    if row["is_older_by_epoch"]:
        ours, theirs = row["max_producer_epoch"], row["coordinator_txn_epoch"]
        return [_marker(row), f"its batches have at most epoch {ours}; the transaction that lists it runs at {theirs}"]
    made, before = utc(row["last_timestamp_ms"]), utc(row["previous_last_timestamp_ms"])
    return [_marker(row), f"by its client's clock ({made}) it is not newer than the transaction before it ({before})"]


def _epoch_back(row: Row) -> list[str | None]:
    seen, current = row["coordinator_epoch"], row["state_leader_epoch"]
    fallen = "an end marker here has a lower coordinator epoch than one before it"
    fenced = f"the last end marker here has coordinator epoch {seen}, the coordinator itself runs at {current}"
    is_fenced = seen is not None and current is not None and seen > current
    return [fallen if row["has_coordinator_epoch_fallen"] else None, fenced if is_fenced else None]


def _marker_missing(row: Row) -> list[str | None]:
    if row["is_listed"]:
        return [_state(row), f"that decision lists {topic_partition(row)}, and its marker is not in the log"]
    if row["prepared_ms"] is None:
        return [
            f"its transaction of {utc(row['listed_since_ms'])} lists {topic_partition(row)}",
            "how that ended is in no record",
        ]
    decided = f"{row['prepared_state']} of {utc(row['prepared_ms'])} lists {topic_partition(row)}"
    done = None if row["completed_ms"] is None else f"it counts as completed since {utc(row['completed_ms'])}"
    return [decided, done, "its marker is not in the log", _written(row)]


def _overdue(row: Row) -> list[str | None]:
    began, timeout_ms = utc(row["coordinator_start_ms"]), row["coordinator_timeout_ms"]
    return [f"its transaction began at {began} with a timeout of {timeout_ms} ms, and nothing ended it"]


def _in_progress(row: Row) -> list[str | None]:
    return [f"the coordinator's transaction since {utc(row['coordinator_start_ms'])} lists {topic_partition(row)}"]


def _late_write(row: Row) -> list[str | None]:
    ended = None if row["ended_ms"] is None else f"it carried out {row['ended_state']} of {utc(row['ended_ms'])}"
    fenced = None if row["new_epoch_ms"] is None else f"epoch {row['new_epoch']} began at {utc(row['new_epoch_ms'])}"
    return [_marker(row), ended, _written(row), _never_listed(row), fenced]


def _late_end(row: Row) -> list[str | None]:
    again_ms = row["ended_again_after_ms"]
    return [
        _marker(row),
        f"{row['ended_state']} came {again_ms} ms after an equal decision, as a repeated EndTxn does",
        f"by its client's clock the producer went on writing until {utc(row['last_timestamp_ms'])}",
        _never_listed(row),
    ]


def _old_epoch(row: Row) -> list[str | None]:
    ours = f"its first batch has epoch {row['first_producer_epoch']}"
    taken = f"an instance took the transactional id over with epoch {row['new_epoch']} at {utc(row['new_epoch_ms'])}"
    more = f"batches up to epoch {row['max_producer_epoch']} joined it: an epoch change ends nothing in a partition"
    is_mixed = row["max_producer_epoch"] is not None and row["max_producer_epoch"] != row["first_producer_epoch"]
    return [ours, taken, more if is_mixed else None, _never_listed(row)]


def _rotated(row: Row) -> list[str | None]:
    old, new, at = row["producer_id"], row["rotated_to"], utc(row["rotated_ms"])
    return [
        f"the transactional id left producer id {old} for {new} at {at}",
        f"its last epoch under {old} was {row['last_own_epoch']}",
    ]


def _expired(row: Row) -> list[str | None]:
    if row["transactional_id"] is None:
        return [f"no transactional id has producer id {row['producer_id']} in any record that is left"]
    gone = None if row["tombstone_ms"] is None else f"the transactional id was removed at {utc(row['tombstone_ms'])}"
    new = None if row["rotated_to"] is None else f"it came back under producer id {row['rotated_to']}"
    return [gone, new, _written(row)]


def _unannounced(row: Row) -> list[str | None]:
    known, began = utc(row["first_own_ms"]), utc(row["began_since_ms"])
    return [
        None if known is None else f"the transactional id has producer id {row['producer_id']} since {known}",
        None if began is None else f"its transaction of {began} does not list {topic_partition(row)}",
        _marker(row),
        _never_listed(row),
        _written(row),
    ]


def _never_known(row: Row) -> list[str | None]:
    return [
        f"no transactional id has, or had, producer id {row['producer_id']}",
        _written(row),
        "an id that wrote so lately could not have expired yet",
    ]


EVIDENCE_FOR: dict[str, Words] = {
    "late_write_joined_next_transaction": _stale,
    "coordinator_epoch_went_back": _epoch_back,
    "marker_missing": _marker_missing,
    "coordinator_overdue": _overdue,
    "transaction_in_progress": _in_progress,
    "late_end_txn": _late_end,
    "late_write_after_marker": _late_write,
    "old_epoch_left_open": _old_epoch,
    "producer_id_rotated": _rotated,
    "transactional_id_expired": _expired,
    "write_before_partition_added": _unannounced,
    "producer_id_never_known": _never_known,
    "unexplained": lambda _: [],
}
_DOUBTS = {
    "late_write_joined_next_transaction": "the brokers' clocks do not prove it: a client whose timestamps stand still, "
    "or come from its input, looks the same",
    "coordinator_epoch_went_back": "that a marker was refused is written in no file; the coordinator's broker logs it",
    "marker_missing": "compaction or retention may have removed that marker, and the data may have come after it",
    "late_end_txn": "a client that writes without a transaction looks the same",
    "late_write_after_marker": "what a client did after the marker without telling the coordinator is in no record",
    "producer_id_rotated": "the records do not link the two producer ids",
    "transactional_id_expired": "it may have hung for another cause before the transactional id expired",
    "producer_id_never_known": "an id that had expired before, and was compacted away, leaves no record",
    "unexplained": "the facts fit none of the known causes",
}


def evidence_against(name: str, row: Row) -> list[str | None]:
    """What keeps the cause from being certain, and what is missing."""
    if row["confidence"] == "certain":
        return []
    rests_on_history = row["transactional_id"] is not None and not row["is_listed"]
    return [
        _DOUBTS.get(name),
        "records of the transactional id may be gone" if rests_on_history and row["has_history_gap"] else None,
        "two decisions lie so close that clocks cannot tell which marker is whose"
        if row["is_order_doubtful"]
        else None,
        "the state is not proven to reach up to the data" if row["is_state_behind"] or row["is_unbounded"] else None,
        *(f"missing: {gap}" for gap in row["missing_evidence"]),
    ]
