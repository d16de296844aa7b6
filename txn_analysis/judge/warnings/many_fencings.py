"""`many_fencings`: new instances have taken it over again and again, in the middle of transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.endings import TAKEN_OVER_WITHIN_MS
from txn_analysis.judge.warnings.warning import AbortWarning
from txn_analysis.kafka.transactions import EMPTY
from txn_analysis.logic import minus

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import Abort


def when(abort: Abort) -> bool:
    """A new instance began right after it."""
    passed_ms = minus(abort.after_update_ms, abort.last_update_ms)
    return abort.after_state == EMPTY and passed_ms is not None and passed_ms <= TAKEN_OVER_WITHIN_MS


MANY_FENCINGS = AbortWarning(
    kind="many_fencings",
    meaning="an id is taken over again and again in the middle of transactions",
    text="{score} times a new instance took it over in the middle of a transaction",
    when=when,
)
