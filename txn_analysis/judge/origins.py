"""Where open data can have come from: what one transactional id's history says of the time before and after it.

Pure Python over the records of one id, in the order of its partition of `__transaction_state`. The causes
(`judge.causes`) are read from these facts; no verdict is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from txn_analysis.judge.history import LIVE, PREPARED, lists_partition, moment_ms, names_producer

if TYPE_CHECKING:
    from txn_analysis.judge.history import OpenData

Row = dict[str, Any]

NO_RECORD = -1
_AFTER_ALL = 2**63
_NOTHING: Row = dict.fromkeys(
    (
        "ended_state",
        "ended_ms",
        "ended_again_after_ms",
        "listed_since_ms",
        "prepared_state",
        "prepared_ms",
        "completed_ms",
        "began_since_ms",
        "new_epoch",
        "new_epoch_ms",
        "rotated_to",
        "rotated_ms",
        "last_own_epoch",
        "tombstone_ms",
        "first_own_ms",
    )
)
ORIGIN_FACTS = (*_NOTHING, "is_rotation_recorded", "is_order_doubtful")


def origin_facts(history: list[Row], data: OpenData, max_clock_skew_ms: int) -> Row:
    """What happened to the id around the open data; moments in epoch milliseconds, None where it did not happen.

    * `ended_…`: the decision that the producer's last end marker in the partition carried out;
      `ended_again_after_ms` is how soon after an equal decision it came.
    * `listed_since_ms`: the last record after it that lists the partition in a transaction.
    * `prepared_…`, `completed_ms`: the last decision after it that lists the partition.
    * `began_since_ms`: the first transaction after it, which does not list the partition.
    * `new_epoch…`: the first record with which an instance took the id over after the data's first epoch.
    * `rotated_…`: the first record of another producer id, and the last epoch under the old one.
    """
    marked, is_doubtful = marker_record(decisions(history, data), data.last_marker_ms, max_clock_skew_ms)
    since = _since(history, data, marked)
    own = [r for r in history if not r["is_tombstone"] and names_producer(r, data.producer_id)]
    return (
        _NOTHING
        | _ended(history, marked)
        | _decided(since, data)
        | _began(since, data)
        | _taken_over(since, data)
        | _rotated(history, data)
        | {
            "tombstone_ms": next((moment_ms(r) for r in reversed(history) if r["is_tombstone"]), None),
            "first_own_ms": moment_ms(own[0]) if own else None,
            "is_order_doubtful": is_doubtful,
        }
    )


def decisions(history: list[Row], data: OpenData) -> list[tuple[int, int]]:
    """The decisions that list the partition of the data, by time: their moment and their place in the history."""
    return sorted(
        (at_ms, i)
        for i, r in enumerate(history)
        if r["state"] in PREPARED and lists_partition(r, data) and (at_ms := moment_ms(r)) is not None
    )


def marker_record(decided: list[tuple[int, int]], marker_ms: int | None, max_clock_skew_ms: int) -> tuple[int, bool]:
    """The place of the decision behind an end marker, and whether it could be another one; see `decisions`.

    By time it is the nearest one, as far as clocks may differ, or else the last one before the marker; `NO_RECORD`
    where there is none, as after compaction.
    """
    if marker_ms is None:
        return NO_RECORD, False
    first = bisect_left(decided, (marker_ms - max_clock_skew_ms, NO_RECORD))
    after = bisect_right(decided, (marker_ms + max_clock_skew_ms, _AFTER_ALL))
    if first < after:
        nearest = min(decided[first:after], key=lambda d: (abs(d[0] - marker_ms), -d[1]))
        return nearest[1], after - first > 1
    return (decided[first - 1][1] if first else NO_RECORD), False


def _since(history: list[Row], data: OpenData, marked: int) -> list[Row]:
    if marked != NO_RECORD or data.last_marker_ms is None:
        return history[marked + 1 :]
    return [r for r in history if (at_ms := moment_ms(r)) is None or at_ms > data.last_marker_ms]


def _ended(history: list[Row], marked: int) -> Row:
    if marked == NO_RECORD:
        return {}
    decision = history[marked]
    equal = [r for r in history[:marked] if r["state"] == decision["state"]]
    at_ms, before_ms = moment_ms(decision), moment_ms(equal[-1]) if equal else None
    again_ms = None if at_ms is None or before_ms is None else at_ms - before_ms
    return {"ended_state": decision["state"], "ended_ms": at_ms, "ended_again_after_ms": again_ms}


def _decided(since: list[Row], data: OpenData) -> Row:
    listed = [(i, r) for i, r in enumerate(since) if lists_partition(r, data)]
    if not listed:
        return {}
    listed_since = {"listed_since_ms": moment_ms(listed[-1][1])}
    decided = [(i, r) for i, r in listed if r["state"] in PREPARED]
    if not decided:
        return listed_since
    index, record = decided[-1]
    completed = (r for r in since[index + 1 :] if str(r["state"]).startswith("Complete"))
    done = next(completed, None)
    return listed_since | {
        "prepared_state": record["state"],
        "prepared_ms": moment_ms(record),
        "completed_ms": None if done is None else moment_ms(done),
    }


def _began(since: list[Row], data: OpenData) -> Row:
    others = (
        r for r in since if r["state"] in LIVE and names_producer(r, data.producer_id) and not lists_partition(r, data)
    )
    record = next(others, None)
    return {} if record is None else {"began_since_ms": _start_ms(record)}


def _start_ms(record: Row) -> int | None:
    return record["start_ms"] if record["start_ms"] is not None else moment_ms(record)


def _taken_over(since: list[Row], data: OpenData) -> Row:
    first_epoch = data.first_producer_epoch
    if first_epoch is None:
        return {}
    # InitProducerId alone writes an Empty record; with transaction version 2 every transaction raises the epoch.
    taken = (
        r
        for r in since
        if r["state"] == "Empty" and r["producer_id"] == data.producer_id and r["producer_epoch"] > first_epoch
    )
    record = next(taken, None)
    return {} if record is None else {"new_epoch": record["producer_epoch"], "new_epoch_ms": moment_ms(record)}


def _rotated(history: list[Row], data: OpenData) -> Row:
    own = [i for i, r in enumerate(history) if r["producer_id"] == data.producer_id]
    if not own:
        return {"is_rotation_recorded": False}
    old = history[own[-1]]
    later = next((r for r in history[own[-1] + 1 :] if r["producer_id"] is not None), None)
    if later is None:
        return {"is_rotation_recorded": False, "last_own_epoch": old["producer_epoch"]}
    is_linked = later["previous_producer_id"] == data.producer_id or old["next_producer_id"] == later["producer_id"]
    return {
        "rotated_to": later["producer_id"],
        "rotated_ms": moment_ms(later),
        "last_own_epoch": old["producer_epoch"],
        "is_rotation_recorded": is_linked,
    }
