"""`open_transaction_near_bound`: an open transaction will soon be late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.warning import NEAR, EarlyWarning

if TYPE_CHECKING:
    from txn_analysis.judge.facts import Lateness
    from txn_analysis.settings import Settings


def is_near(lateness: Lateness, settings: Settings) -> bool:
    """Not late yet, and more than three quarters of the way there."""
    late_by_ms = lateness.late_by_ms
    return late_by_ms is not None and lateness.is_late is False and late_by_ms > -(1 - NEAR) * settings.late_after_ms


OPEN_TRANSACTION_NEAR_BOUND = EarlyWarning(
    kind="open_transaction_near_bound",
    meaning="an open transaction will soon be late",
    text="open from offset {start}, late in {score} ms",
)
