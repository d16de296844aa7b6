"""Which partitions are fetched, and from where on; pure.

What hides behind an open transaction begins at the last stable offset (`UnifiedLog.lastStableOffset`), where
`read_committed` consumers stop. Below it nothing is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from txn_analysis.capture.answers import ProducerAnswer
    from txn_analysis.kafka.transactions import TopicPartition


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
