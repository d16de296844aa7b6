"""The history of one transactional id, and what its current transaction is.

Pure Python over the records of one id, in the order of its partition of `__transaction_state`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from txn_analysis.judge.records import LIVE, ONGOING, PREPARED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.judge.records import StateRecord

History = list["StateRecord"]
"""The records of one transactional id, oldest first, each once; never empty where it is asked about."""


def by_id(records: Iterable[StateRecord]) -> dict[str, History]:
    """The records of each transactional id, in whatever order they came."""
    found: defaultdict[str, History] = defaultdict(list)
    for record in records:
        found[record.transactional_id].append(record)
    return dict(found)


def in_order(records: Iterable[StateRecord]) -> History:
    """The records of one id, oldest first and each once: several captures and copies may hold the same one."""
    by_order: dict[tuple[Any, ...], History] = {}
    for record in records:
        same_place = by_order.setdefault(record.order, [])
        if record not in same_place:
            same_place.append(record)
    # Copies that differ are broken evidence: none is lost, and which one comes last is never left to chance.
    return [record for order in sorted(by_order) for record in sorted(by_order[order], key=repr)]


def ongoing_before(history: Sequence[StateRecord], index: int) -> Sequence[StateRecord]:
    """The Ongoing records right before a place of the history, oldest first: one transaction that grew."""
    first = index
    while first > 0 and history[first - 1].state == ONGOING:
        first -= 1
    return history[first:index]


def current_transaction(history: Sequence[StateRecord]) -> tuple[int | None, int | None]:
    """Start time and producer epoch of the transaction that the last record belongs to.

    Text dumps print no start time: the first Ongoing batch since the last other state stands for it. A Prepare record
    may carry a raised epoch (timeout and fencing aborts, transaction version 2), so the epoch is that of the Ongoing
    records; None where compaction has removed them.
    """
    last = history[-1]
    if last.state not in LIVE:
        return None, None
    ongoing = ongoing_before(history, len(history) - (1 if last.state in PREPARED else 0))
    start_ms = last.start_ms if last.start_ms is not None else (ongoing[0].moment_ms if ongoing else None)
    return start_ms, (ongoing[-1].producer_epoch if ongoing else None)
