"""Why a rule did not fire, and what would change a verdict: one sentence each, from the row that was judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txn_analysis.judge.rules import OTHERWISE, RULES
from txn_analysis.judge.words import topic_partition, utc

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]


def _not_listed(row: Row) -> str | None:
    return None if row["is_listed"] else f"no transaction in progress at the coordinator lists {topic_partition(row)}"


def _not_prepared(row: Row) -> str:
    return _not_listed(row) or f"the coordinator has {row['coordinator_state']}, not a decision"


def _not_late(row: Row) -> str:
    if row["is_late"] is None:
        return "no clock says how long it has been idle"
    return f"it is {row['late_by_ms']} ms beyond transaction.max.timeout.ms + 300000"


def _not_stale(row: Row) -> str:
    return _not_listed(row) or (
        f"neither clocks nor epochs prove that it is older than the transaction of {utc(row['coordinator_start_ms'])}"
    )


def _not_moving(row: Row) -> str:
    return _not_listed(row) or (
        f"the decision of {utc(row['coordinator_update_ms'])} is not older than transaction.max.timeout.ms + 300000, "
        "or there is none"
    )


def _not_overdue(row: Row) -> str:
    return _not_listed(row) or (
        f"the transaction of {utc(row['coordinator_start_ms'])} is within its timeout of "
        f"{row['coordinator_timeout_ms']} ms + 300000, or is decided"
    )


def _state_reaches(row: Row) -> str:
    return f"__transaction_state reaches up to the data, which was appended by {utc(row['appended_before_ms'])}"


def _log_reaches(row: Row) -> str:
    return f"the log reaches up to {utc(row['last_moment_ms'])}, and no decision since then can have ended it"


def _is_known(row: Row) -> str:
    return f"transactional id {row['transactional_id']} has, or had, producer id {row['producer_id']}"


_WHY_NOT: dict[str, Callable[[Row], str]] = {
    "evidence_broken": lambda _: "the log is proven whole from the start of the transaction to its end",
    "stale_data_in_live_transaction": _not_stale,
    "not_late": _not_late,
    "clock_not_credible": lambda row: f"there is a credible clock: {row['lateness_basis']}",
    "marker_overdue": _not_moving,
    "marker_pending_commit": _not_prepared,
    "marker_pending_abort": _not_prepared,
    "coordinator_overdue": _not_overdue,
    "in_coordinator": _not_prepared,
    "state_older_than_log": _state_reaches,
    "log_may_end_early": _log_reaches,
    "state_incomplete": lambda _: "the part of __transaction_state that could hold the answer is complete",
    "unknown_producer": _is_known,
    "partition_not_in_transaction": lambda row: f"the coordinator's transaction lists {topic_partition(row)}",
}
_WOULD_CHANGE: dict[str, str] = {
    "not_late": "time: it is judged again when it has been idle for longer than transaction.max.timeout.ms + 300000",
    "stale_data_in_live_transaction": "an end marker after the data in this partition: its abort discards the stale "
    "records, its commit publishes them",
    "marker_overdue": "the marker in a later copy of the log, or a coordinator that moved on",
    "marker_pending_commit": "the marker in a later copy of the log",
    "marker_pending_abort": "the marker in a later copy of the log",
    "coordinator_overdue": "a later record of the coordinator that ends the transaction",
    "in_coordinator": "a later record of the coordinator, once the transaction ends or is past its timeout",
    "unknown_producer": "a record of __transaction_state with this producer id, or an end marker of it in a later copy",
    "partition_not_in_transaction": "a record of the coordinator that lists the partition in a transaction in "
    "progress, or an end marker of the producer in a later copy of the log",
}


def rule_trace(row: Row) -> list[tuple[str, str, bool, str]]:
    """Every rule up to the one that fired: its name, its verdict, whether it fired, and why or why not."""
    trace = []
    for rule in (*RULES, OTHERWISE):
        has_fired = rule.name == row["rule"]
        reason = "; ".join(row["evidence"] or row["missing_evidence"]) if has_fired else _WHY_NOT[rule.name](row)
        trace.append((rule.name, rule.verdict.value, has_fired, reason))
        if has_fired:
            return trace
    return trace


def would_change(row: Row) -> list[str]:
    """What evidence would change the verdict; what is missing, where there was no answer."""
    if row["missing_evidence"]:
        return [str(gap) for gap in row["missing_evidence"]]
    known = _WOULD_CHANGE.get(row["rule"])
    return [known] if known else []
