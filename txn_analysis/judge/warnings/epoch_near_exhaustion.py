"""`epoch_near_exhaustion`: its producer epochs are nearly used up (`TransactionMetadata.isEpochExhausted`, KIP-360)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.judge.records import EXHAUSTED_EPOCH
from txn_analysis.judge.warnings.warning import IdWarning

if TYPE_CHECKING:
    from pyspark.sql import Column

    from txn_analysis.judge.warnings.warning import Known

_EPOCHS_LEFT = 1_000


def when(_: Known) -> Column:
    """Few epochs are left."""
    return F.col("producer_epoch") >= EXHAUSTED_EPOCH - _EPOCHS_LEFT


def score(_: Known) -> Column:
    """The epoch."""
    return F.col("producer_epoch").cast("bigint")


EPOCH_NEAR_EXHAUSTION = IdWarning(
    kind="epoch_near_exhaustion",
    meaning="producer epochs are nearly used up",
    text="epoch {score}: at 32766 it gets a new producer id",
    when=when,
    score=score,
)
