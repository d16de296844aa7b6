"""`timeout_outlier`: its timeout is far above those of the other ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.warning import IdWarning
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import Known, LastRecord

_TIMES_THE_MEDIAN = 10


def when(last: LastRecord, known: Known) -> bool:
    """Far above the median, and not above the brokers' maximum, which has a warning of its own."""
    if last.timeout_ms is None or last.timeout_ms == NEVER_TIMES_OUT_MS or known.median_ms is None:
        return False
    return known.median_ms * _TIMES_THE_MEDIAN < last.timeout_ms <= known.settings.transaction_max_timeout_ms


def score(last: LastRecord, _: Known) -> int | None:
    """The timeout."""
    return last.timeout_ms


TIMEOUT_OUTLIER = IdWarning(
    kind="timeout_outlier",
    meaning="a timeout is more than 10 times the median",
    text="timeout of {score} ms, more than 10 times the median: it can hold partitions for that long",
    when=when,
    score=score,
)
