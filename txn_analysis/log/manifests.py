"""Manifests of a copy: in which order files were read, which partitions are whole and their leader's, how far they go.

Four things, each of which something else would fool:

Order -- by times of one clock, which did not fall and kept step with a clock that is never set. A list of files in
    the right order says nothing of a copy whose clock was set meanwhile.
Leader -- a broker that was demoted keeps its files, and they may go on: it must have led before and after, at one
    epoch, and nothing in the capture may know a higher one.
End -- a file that was read to its end is not a log that was: a segment was rolled, the cleaner passed, or a new
    leader's high watermark was still behind. What was new must have been read until nothing was.
Reach -- with all three the log held nothing more when its first byte was read. When its last one was read, it may
    have.

What a manifest does not say proves nothing. Entries of a copy that was cut short prove nothing either; they count
against what others say.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from txn_analysis.kafka.names import LOG_KINDS
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.log.copy_order import BROKER, OrderOfCopies
from txn_analysis.log.whole_copies import WholeCopies, WholeCopy
from txn_analysis.logic import latest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from txn_analysis.log.copy_order import Clock, CopyOrder, Entry
    from txn_analysis.tables.inputs import InputSection, Manifest


@dataclass(frozen=True)
class Copying:
    """What the manifests of one capture say of its copying.

    Attributes:
        manifests: all of them.
        sections: all of the evidence.
        max_clock_skew_ms: by how much a clock may step, and two brokers' clocks may differ.
    """

    manifests: Sequence[Manifest]
    sections: Collection[InputSection]
    max_clock_skew_ms: int

    @cached_property
    def order(self) -> CopyOrder:
        """Whether the state was copied after every log."""
        return self._order.order

    @cached_property
    def _order(self) -> OrderOfCopies:
        return OrderOfCopies(self.manifests, self.sections, self.max_clock_skew_ms)

    @cached_property
    def whole(self) -> dict[TopicPartition, WholeCopy]:
        """Leader and End: the partitions that some manifest shows to be whole, and their leader's."""
        return {where: found for where, found in self._judged.items() if isinstance(found, WholeCopy)}

    def why_not_whole(self, where: TopicPartition) -> str | None:
        """Why no manifest shows that a partition is whole, and its leader's; None where one does."""
        found = self._judged.get(where, "no manifest names its files")
        return None if isinstance(found, WholeCopy) else found

    def reach_ms(self, where: TopicPartition, last_moments_ms: Mapping[TopicPartition, int | None]) -> int | None:
        """Reach: with Order, Leader and End, by a broker's own clock, the log was whole at `began_ms`. By a collector's
        clock it is the last moment, by offset, of the files that were read before it. None where nothing is proven.

        Args:
            where: a partition.
            last_moments_ms: the last moment of each partition, by offset.
        """
        copy = self.whole.get(where)
        if copy is None or copy.began_ms is None or not self.order.is_proven:
            return None
        if copy.clock.kind == BROKER:
            return copy.began_ms
        before_ms = copy.began_ms - self.max_clock_skew_ms
        read = (p for p, ended_ms in self._ended_ms.get(copy.clock, {}).items() if ended_ms < before_ms)
        return latest(*(last_moments_ms.get(p) for p in read))

    @cached_property
    def _ended_ms(self) -> dict[Clock, dict[TopicPartition, int]]:
        """By clock, when the last byte of each partition was read of which the capture has no other copy."""
        of_clock: defaultdict[TopicPartition, list[Entry | None]] = defaultdict(list)
        for section in self.sections:
            if section.kind in LOG_KINDS and not section.capture_rank:
                where = TopicPartition(section.topic, section.partition)
                of_clock[where] += self._order.entries.get(section.input_id) or [None]
        found: defaultdict[Clock, dict[TopicPartition, int]] = defaultdict(dict)
        for where, entries in of_clock.items():
            ended = [e.file.ended_ms for e in entries if e is not None and e.file.ended_ms is not None]
            clocks = {e.clock for e in entries if e is not None}
            if len(ended) == len(entries) and len(clocks) == 1:
                found[clocks.pop()][where] = max(ended)
        return dict(found)

    @property
    def torn(self) -> set[TopicPartition]:
        """The partitions that a manifest says were not read to their end."""
        return self._copies.torn

    @property
    def _judged(self) -> dict[TopicPartition, WholeCopy | str]:
        return self._copies.judged

    @cached_property
    def _copies(self) -> WholeCopies:
        return WholeCopies(self.manifests, self.sections)
