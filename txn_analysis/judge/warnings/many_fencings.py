"""`many_fencings`: new instances have taken it over again and again, in the middle of transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.endings import TAKEN_OVER_WITHIN_MS
from txn_analysis.judge.warnings.warning import AbortWarning

if TYPE_CHECKING:
    from pyspark.sql import Column


def when() -> Column:
    """A new instance began right after it."""
    passed_ms = F.col("after.last_update_ms") - F.col("last_update_ms")
    return (F.col("after.state") == "Empty") & (passed_ms <= TAKEN_OVER_WITHIN_MS)


MANY_FENCINGS = AbortWarning(
    kind="many_fencings",
    meaning="an id is taken over again and again in the middle of transactions",
    text="{score} times a new instance took it over in the middle of a transaction",
    when=when,
)
