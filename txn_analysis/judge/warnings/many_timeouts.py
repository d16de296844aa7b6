"""`many_timeouts`: the coordinator has timed its transactions out again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.warnings.warning import AbortWarning

if TYPE_CHECKING:
    from pyspark.sql import Column


def when() -> Column:
    """The time of the transaction was over."""
    due_ms = F.col("start_ms") + F.col("timeout_ms")
    return F.coalesce(F.col("last_update_ms") >= due_ms, F.lit(False))


MANY_TIMEOUTS = AbortWarning(
    kind="many_timeouts",
    meaning="an id's transactions are timed out again and again",
    text="{score} of its transactions were timed out by the coordinator",
    when=when,
)
