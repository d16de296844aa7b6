"""`epoch_near_exhaustion`: its producer epochs are nearly used up (`TransactionMetadata.isEpochExhausted`, KIP-360)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.warning import IdWarning
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import Known, LastRecord

_EPOCHS_LEFT = 1_000


def when(last: LastRecord, _: Known) -> bool:
    """Few epochs are left."""
    return last.producer_epoch is not None and last.producer_epoch >= EXHAUSTED_EPOCH - _EPOCHS_LEFT


def score(last: LastRecord, _: Known) -> int | None:
    """The epoch."""
    return last.producer_epoch


EPOCH_NEAR_EXHAUSTION = IdWarning(
    kind="epoch_near_exhaustion",
    meaning="producer epochs are nearly used up",
    text="epoch {score}: at 32766 it gets a new producer id",
    when=when,
    score=score,
)
