"""`transaction_near_timeout`: the coordinator will soon abort it (transaction.timeout.ms)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.warning import NEAR, IdWarning
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS, ONGOING
from txn_analysis.logic import minus

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import Known, LastRecord


def when(last: LastRecord, known: Known) -> bool:
    """The transaction is running, and most of its time is over."""
    share = score(last, known)
    if share is None or last.timeout_ms == NEVER_TIMES_OUT_MS:
        return False
    return last.state == ONGOING and NEAR * 100 <= share < 100


def score(last: LastRecord, known: Known) -> int | None:
    """The share of its time that is over, in per cent."""
    over_ms = minus(known.as_of_ms, last.start_ms)
    return over_ms * 100 // last.timeout_ms if over_ms is not None and last.timeout_ms else None


TRANSACTION_NEAR_TIMEOUT = IdWarning(
    kind="transaction_near_timeout",
    meaning="most of a transaction's time is over, and nothing is decided",
    text="{score} % of its timeout is over and the coordinator has nothing decided",
    when=when,
    score=score,
)
