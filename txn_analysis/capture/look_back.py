"""What lies before the first open transaction: an earlier end marker of its producer, and any broker's clock.

With the marker the history of its transactional id begins there and not at the beginning of time, and the control
batch nearest before the data bounds when it was appended. Both are sought backwards in growing windows, for a bounded
number of bytes: the cost stays that of what is hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.capture.raw_batches import RawBatches, whole_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    Fetch = Callable[[int, int], bytes]

_FIRST_WINDOW_OFFSETS, _GROWTH = 64, 4


def look_back(fetch: Fetch, start: int, log_start: int, wanted: set[int], budget_bytes: int) -> list[RawBatches]:
    """Batches right below `start`, without a break up to it, lowest first; empty where none is worth it.

    It ends at the log start, at the budget, or once there is a control batch and one of each wanted producer.

    Args:
        fetch: the bytes from an offset on, at most so many but at least one batch.
        start: what is fetched anyway begins here.
        log_start: nothing is below.
        wanted: producers whose last end marker is sought.
        budget_bytes: of all that is fetched for it.
    """
    found: list[RawBatches] = []
    marked: set[int] = set()
    window = _FIRST_WINDOW_OFFSETS
    while start > log_start and budget_bytes > 0 and not (marked and wanted <= marked):
        first = max(log_start, start - window)
        data, cost = _up_to(fetch, first, start, budget_bytes)
        budget_bytes -= cost
        if data is None:
            break
        found = [*data, *found]
        marked |= {producer for part in data for producer in part.marked}
        start, window = first, window * _GROWTH
    return found


def _up_to(fetch: Fetch, first: int, stop: int, budget_bytes: int) -> tuple[list[RawBatches] | None, int]:
    """All batches between two offsets, and the bytes that they cost; None where they cost too much."""
    parts: list[RawBatches] = []
    cost, at = 0, first
    while at < stop:
        data = fetch(at, max(1, budget_bytes - cost))
        cost += len(data)
        whole = whole_batches(data, below=stop)
        if whole is None:
            # What is left up to the stop was compacted away, if anything lies behind.
            return (parts, cost) if whole_batches(data) is not None else (None, cost)
        parts.append(whole)
        at = whole.next_offset
        if cost >= budget_bytes and at < stop:
            return None, cost
    return parts, cost
