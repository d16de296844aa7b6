"""What is fetched of which partitions: from where on, how far back, and which batches of it are whole.

What hides behind an open transaction begins at the last stable offset (`UnifiedLog.lastStableOffset`), where
`read_committed` consumers stop. Below it nothing is open. What lies right before the first open transaction is looked
at for two things: an earlier end marker of its producer, and any broker's clock. With the marker the history of its
transactional id begins there and not at the beginning of time, and the control batch nearest before the data bounds
when it was appended. Both are sought backwards in growing windows, for a bounded number of bytes: the cost stays that
of what is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from txn_analysis.capture.answers import ProducerAnswer
from txn_analysis.kafka.batch_headers import CONTROL, Headers, HeaderWalk, Held
from txn_analysis.kafka.transactions import TopicPartition

Fetch = Callable[[int, int], bytes]


class Ends(NamedTuple):
    """Both ends of a partition as ListOffsets gives them, the last stable offset first asked."""

    last_stable_offset: int
    high_watermark: int

    @property
    def is_behind(self) -> bool:
        """Something is hidden from `read_committed` consumers."""
        return self.last_stable_offset < self.high_watermark


def behind(ends: Mapping[TopicPartition, Ends]) -> list[TopicPartition]:
    """The partitions whose last stable offset lags, in the order of their names."""
    return sorted(place for place, of_place in ends.items() if of_place.is_behind)


def fetch_from(producers: Iterable[ProducerAnswer], last_stable_offset: int, log_start_offset: int) -> int:
    """The offset at or below which nothing begins that is open: the lowest open start, or the last stable offset.

    A start below the log start was deleted with its segments, and cannot be fetched.
    """
    starts = [p.current_txn_start_offset for p in producers if p.current_txn_start_offset is not None]
    return max(min([*starts, last_stable_offset]), log_start_offset)


def wanted_markers(producers: Sequence[ProducerAnswer]) -> set[int]:
    """The producers with something open that have an earlier end marker on the partition."""
    return {
        p.producer_id for p in producers if p.current_txn_start_offset is not None and p.coordinator_epoch is not None
    }


@dataclass(frozen=True)
class RawBatches:
    """Whole batches that follow each other.

    Attributes:
        data: their bytes.
        first_offset: base offset of the first one.
        next_offset: the offset after the last one.
        marked: the producers that have control batches among them.
    """

    data: bytes
    first_offset: int
    next_offset: int
    marked: frozenset[int]


def whole_batches(data: bytes, below: int | None = None) -> RawBatches | None:
    """The whole batches at the front of some bytes; None without one.

    Args:
        data: as fetched: the last batch may be cut.
        below: batches that reach this offset are left out, and all behind them.
    """
    blocks = list(_blocks(data))
    if not blocks:
        return None
    headers = Headers.joined(blocks)
    count = len(headers) if below is None else int((headers.last_offset < below).sum())
    if not count:
        return None
    headers = headers.part(0, count)
    is_control = ~headers.is_legacy & (headers.number("attributes") & CONTROL > 0)
    return RawBatches(
        data=data[: int(headers.position[-1] + headers.size[-1])],
        first_offset=int(headers.base_offset[0]),
        next_offset=int(headers.last_offset[-1]) + 1,
        marked=frozenset(headers.number("producer_id")[is_control].tolist()),
    )


def _blocks(data: bytes) -> Iterator[Headers]:
    return HeaderWalk(Held(data), 0, len(data)).blocks()


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
    batches: list[RawBatches] = []
    marked: set[int] = set()
    window = _FIRST_WINDOW_OFFSETS
    while start > log_start and budget_bytes > 0 and not (marked and wanted <= marked):
        first = max(log_start, start - window)
        data, cost = _up_to(fetch, first, start, budget_bytes)
        budget_bytes -= cost
        if data is None:
            break
        batches = [*data, *batches]
        marked |= {producer for part in data for producer in part.marked}
        start, window = first, window * _GROWTH
    return batches


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
