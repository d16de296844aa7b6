"""`timeout_outlier`: its timeout is far above those of the other ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.records import NEVER_TIMES_OUT_MS
from txn_analysis.judge.warnings.warning import IdWarning

if TYPE_CHECKING:
    from pyspark.sql import Column

    from txn_analysis.judge.warnings.warning import Known

_TIMES_THE_MEDIAN = 10


def when(known: Known) -> Column:
    """Far above the median, and not above the brokers' maximum, which has a warning of its own."""
    timeout_ms = F.col("timeout_ms")
    is_timed = timeout_ms != NEVER_TIMES_OUT_MS
    is_allowed = timeout_ms <= known.settings.transaction_max_timeout_ms
    return is_timed & is_allowed & (timeout_ms > F.col("median_ms") * _TIMES_THE_MEDIAN)


def score(_: Known) -> Column:
    """The timeout."""
    return F.col("timeout_ms")


TIMEOUT_OUTLIER = IdWarning(
    kind="timeout_outlier",
    meaning="a timeout is more than 10 times the median",
    text="timeout of {score} ms, more than 10 times the median: it can hold partitions for that long",
    when=when,
    score=score,
)
