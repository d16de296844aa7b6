"""`about_to_expire`: the coordinator will forget it within a day (transactional.id.expiration.ms)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.records import COMPLETED
from txn_analysis.judge.warnings.warning import IdWarning

if TYPE_CHECKING:
    from pyspark.sql import Column

    from txn_analysis.judge.warnings.warning import Known

_EXPIRES_WITHIN_MS = 86_400_000


def when(known: Known) -> Column:
    """Nothing is in progress, and it was last used long ago."""
    is_idle = F.col("state").isin("Empty", *COMPLETED)
    return is_idle & (score(known) > known.settings.transactional_id_expiration_ms - _EXPIRES_WITHIN_MS)


def score(known: Known) -> Column:
    """For how long it was not used."""
    return known.as_of - F.col("last_update_ms")


ABOUT_TO_EXPIRE = IdWarning(
    kind="about_to_expire",
    meaning="an id will be forgotten within a day",
    text="not used for {score} ms: the coordinator will forget it within a day, and fail its next use",
    when=when,
    score=score,
)
