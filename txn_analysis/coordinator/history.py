"""The history of one transactional id, and what its current transaction is.

Pure Python over the records of one id, in the order of its partition of `__transaction_state`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txn_analysis.kafka.transactions import LIVE, ONGOING, PREPARED
from txn_analysis.logic import UNBOUNDED_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.coordinator.chain import StateStep
    from txn_analysis.kafka.transactions import StateRecord

History = list["StateRecord"]
"""The records of one transactional id, oldest first, each once; never empty where it is asked about."""


def in_order(records: Iterable[StateRecord]) -> History:
    """The records of one id that could be decoded, oldest first and each once: copies and captures may repeat them.

    Where another one that could not may be later than the last of them, that one is hidden: it is not the newest.
    """
    by_order: dict[tuple[Any, ...], History] = {}
    lost: History = []
    for record in records:
        if record.is_undecodable:
            lost.append(record)
            continue
        same_place = by_order.setdefault(record.order, [])
        if record not in same_place:
            same_place.append(record)
    # Copies that differ are broken evidence: none is lost, and which one comes last is never left to chance.
    alike = (by_order[order] for order in sorted(by_order))
    history = [record for same in alike for record in (same if len(same) == 1 else sorted(same, key=repr))]
    if history and any(_may_be_later(record, history[-1]) for record in lost):
        history[-1] = history[-1]._replace(is_hidden=True)
    return history


def _may_be_later(lost: StateRecord, last: StateRecord) -> bool:
    """A record that could not be decoded may be later than the last one that could.

    Its offset says so. An export has none, and does not say when a record was appended.
    """
    return lost.recorded_ms is None or lost.order > last.order


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


def written_by_ms(history: Sequence[StateRecord] | Sequence[StateStep]) -> list[int]:
    """Of each record of an id the latest moment at which it can have been written; UNBOUNDED_MS where nothing tells.

    A dump prints when its batch was appended. A console export does not, and the value of a Complete record carries the
    time of the decision: such a record was written at some time before the id's next one.
    """
    latest_ms, found = UNBOUNDED_MS, []
    for record in reversed(history):
        if record.recorded_ms is not None or not record.is_completed:
            moment_ms = record.moment_ms
            latest_ms = latest_ms if moment_ms is None else moment_ms
        found.append(latest_ms)
    return found[::-1]
