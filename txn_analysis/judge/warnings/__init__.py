"""The early warnings, in the order in which reports print them. One file is one kind.

A new kind is a file, and a line in the tuple of what it is about: open transactions, last records of ids, or aborts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.warnings.about_to_expire import ABOUT_TO_EXPIRE
from txn_analysis.judge.warnings.epoch_near_exhaustion import EPOCH_NEAR_EXHAUSTION
from txn_analysis.judge.warnings.many_fencings import MANY_FENCINGS
from txn_analysis.judge.warnings.many_timeouts import MANY_TIMEOUTS
from txn_analysis.judge.warnings.never_times_out import NEVER_TIMES_OUT
from txn_analysis.judge.warnings.open_transaction_near_bound import OPEN_TRANSACTION_NEAR_BOUND
from txn_analysis.judge.warnings.timeout_above_maximum import TIMEOUT_ABOVE_MAXIMUM
from txn_analysis.judge.warnings.timeout_outlier import TIMEOUT_OUTLIER
from txn_analysis.judge.warnings.transaction_near_timeout import TRANSACTION_NEAR_TIMEOUT

if TYPE_CHECKING:
    from txn_analysis.judge.warnings.warning import AbortWarning, EarlyWarning, IdWarning

OF_LAST_RECORDS: tuple[IdWarning, ...] = (
    TRANSACTION_NEAR_TIMEOUT,
    TIMEOUT_ABOVE_MAXIMUM,
    TIMEOUT_OUTLIER,
    NEVER_TIMES_OUT,
    EPOCH_NEAR_EXHAUSTION,
    ABOUT_TO_EXPIRE,
)
OF_ABORTS: tuple[AbortWarning, ...] = (MANY_TIMEOUTS, MANY_FENCINGS)
"""Of one abort the first that holds counts."""

WARNINGS: tuple[EarlyWarning, ...] = (OPEN_TRANSACTION_NEAR_BOUND, *OF_LAST_RECORDS, *OF_ABORTS)
