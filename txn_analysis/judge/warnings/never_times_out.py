"""`never_times_out`: a two-phase commit, which only its owner may end (KIP-939)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.records import NEVER_TIMES_OUT_MS
from txn_analysis.judge.warnings.warning import IdWarning

if TYPE_CHECKING:
    from pyspark.sql import Column

    from txn_analysis.judge.warnings.warning import Known


def when(_: Known) -> Column:
    """It has the timeout that is none."""
    return F.col("timeout_ms") == NEVER_TIMES_OUT_MS


def score(_: Known) -> Column:
    """The timeout; all have the same."""
    return F.col("timeout_ms")


NEVER_TIMES_OUT = IdWarning(
    kind="never_times_out",
    meaning="a transaction never times out",
    text="it never times out: a two-phase commit, which only its owner may end",
    when=when,
    score=score,
)
