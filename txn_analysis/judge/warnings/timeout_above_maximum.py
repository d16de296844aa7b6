"""`timeout_above_maximum`: its timeout is above transaction.max.timeout.ms, as set before that was lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.warning import IdWarning
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import Known, LastRecord


def when(last: LastRecord, known: Known) -> bool:
    """Above the brokers' maximum."""
    if last.timeout_ms is None or last.timeout_ms == NEVER_TIMES_OUT_MS:
        return False
    return last.timeout_ms > known.settings.transaction_max_timeout_ms


def score(last: LastRecord, _: Known) -> int | None:
    """The timeout."""
    return last.timeout_ms


TIMEOUT_ABOVE_MAXIMUM = IdWarning(
    kind="timeout_above_maximum",
    meaning="a timeout is above transaction.max.timeout.ms",
    text="timeout of {score} ms, above transaction.max.timeout.ms: a hang is seen that much later",
    when=when,
    score=score,
)
