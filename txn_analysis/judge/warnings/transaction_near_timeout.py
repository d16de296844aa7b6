"""`transaction_near_timeout`: the coordinator will soon abort it (transaction.timeout.ms)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.records import NEVER_TIMES_OUT_MS, ONGOING
from txn_analysis.judge.warnings.warning import NEAR, IdWarning

if TYPE_CHECKING:
    from pyspark.sql import Column

    from txn_analysis.judge.warnings.warning import Known


def when(known: Known) -> Column:
    """It is running, and most of its time is over."""
    share = score(known)
    is_timed = F.col("timeout_ms") != NEVER_TIMES_OUT_MS
    return (F.col("state") == ONGOING) & is_timed & (share >= int(NEAR * 100)) & (share < 100)


def score(known: Known) -> Column:
    """The share of its time that is over, in per cent."""
    return F.floor((known.as_of - F.col("start_ms")) * 100 / F.col("timeout_ms"))


TRANSACTION_NEAR_TIMEOUT = IdWarning(
    kind="transaction_near_timeout",
    meaning="most of a transaction's time is over, and nothing is decided",
    text="{score} % of its timeout is over and the coordinator has nothing decided",
    when=when,
    score=score,
)
