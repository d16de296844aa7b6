"""`never_times_out`: a two-phase commit, which only its owner may end (KIP-939)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.warning import IdWarning
from txn_analysis.kafka.transactions import NEVER_TIMES_OUT_MS, TWO_PHASE_COMMIT

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import Known, LastRecord


def when(last: LastRecord, _: Known) -> bool:
    """The id has the timeout that is none."""
    return last.timeout_ms == NEVER_TIMES_OUT_MS


def score(last: LastRecord, _: Known) -> int | None:
    """The timeout; all have the same."""
    return last.timeout_ms


NEVER_TIMES_OUT = IdWarning(
    kind="never_times_out",
    meaning="a transaction never times out",
    text=TWO_PHASE_COMMIT,
    when=when,
    score=score,
)
