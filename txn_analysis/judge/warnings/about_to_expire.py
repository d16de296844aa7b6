"""`about_to_expire`: the coordinator will forget it within a day (transactional.id.expiration.ms)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.warning import IdWarning
from txn_analysis.kafka.transactions import COMPLETED, EMPTY
from txn_analysis.logic import minus

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import Known, LastRecord

_EXPIRES_WITHIN_MS = 86_400_000


def when(last: LastRecord, known: Known) -> bool:
    """Nothing is in progress, and it was last used long ago."""
    unused_ms = score(last, known)
    if unused_ms is None or last.state not in {EMPTY, *COMPLETED}:
        return False
    return unused_ms > known.settings.transactional_id_expiration_ms - _EXPIRES_WITHIN_MS


def score(last: LastRecord, known: Known) -> int | None:
    """For how long it was not used."""
    return minus(known.as_of_ms, last.last_update_ms)


ABOUT_TO_EXPIRE = IdWarning(
    kind="about_to_expire",
    meaning="an id will be forgotten within a day",
    text="not used for {score} ms: the coordinator will forget it within a day, and fail its next use",
    when=when,
    score=score,
)
