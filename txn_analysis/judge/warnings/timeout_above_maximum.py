"""`timeout_above_maximum`: its timeout is above transaction.max.timeout.ms, as set before that was lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.records import NEVER_TIMES_OUT_MS
from txn_analysis.judge.warnings.warning import IdWarning

if TYPE_CHECKING:
    from pyspark.sql import Column

    from txn_analysis.judge.warnings.warning import Known


def when(known: Known) -> Column:
    """Above the brokers' maximum."""
    timeout_ms = F.col("timeout_ms")
    return (timeout_ms != NEVER_TIMES_OUT_MS) & (timeout_ms > known.settings.transaction_max_timeout_ms)


def score(_: Known) -> Column:
    """The timeout."""
    return F.col("timeout_ms")


TIMEOUT_ABOVE_MAXIMUM = IdWarning(
    kind="timeout_above_maximum",
    meaning="a timeout is above transaction.max.timeout.ms",
    text="timeout of {score} ms, above transaction.max.timeout.ms: a hang is seen that much later",
    when=when,
    score=score,
)
