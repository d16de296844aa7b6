"""`many_timeouts`: the coordinator has timed its transactions out again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.warning import AbortWarning
from txn_analysis.logic import plus

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import Abort


def when(abort: Abort) -> bool:
    """The time of the transaction was over."""
    due_ms = plus(abort.start_ms, abort.timeout_ms)
    return abort.last_update_ms is not None and due_ms is not None and abort.last_update_ms >= due_ms


MANY_TIMEOUTS = AbortWarning(
    kind="many_timeouts",
    meaning="an id's transactions are timed out again and again",
    text="{score} of its transactions were timed out by the coordinator",
    when=when,
)
