"""Files of one partition's name that are of two logs: they share no batch from the first offset that both have.

Brokers of two clusters number their partitions alike, and so does a topic that was deleted and made again. Copies of
one log can contradict each other too (an unclean election), but behind offsets at which they agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.kafka.sections import LOG_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.log.copies import Part
    from txn_analysis.log.sections import LogSection


class TwoLogs(NamedTuple):
    """Two such files, by their paths, and the rank of the capture that each is of."""

    path: str
    capture_rank: int
    other_path: str
    other_capture_rank: int

    @classmethod
    def of(cls, a: LogSection, b: LogSection) -> TwoLogs:
        """The one of the newer capture first, else by path."""
        first, second = sorted((a, b), key=lambda section: (section.capture_rank, section.shown_path))
        return cls(first.shown_path, first.capture_rank, second.shown_path, second.capture_rank)


def differ_from_the_start(a: Part, b: Part, conflict_offset: int, shared_from: int) -> bool:
    """Whether two copies contradict each other at once where they meet.

    Args:
        a: of the offsets in question.
        b: of the same offsets.
        conflict_offset: where they contradict each other first, among these.
        shared_from: the first offset of the partition that any two files cover.
    """
    begins = max(part.segment.first_offset for part in (a, b))
    return conflict_offset <= max(begins, shared_from)


def of_another_topic(sections: Iterable[LogSection], first_other_rank: int) -> tuple[TwoLogs, ...]:
    """A file of the judged partition beside one of a capture that holds another partition of its name."""
    logs = sorted((s for s in sections if s.kind in LOG_KINDS), key=lambda s: (s.capture_rank, s.shown_path))
    own = [section for section in logs if section.capture_rank < first_other_rank]
    others = [section for section in logs if section.capture_rank >= first_other_rank]
    return (TwoLogs.of(own[0], others[0]),) if own and others else ()
