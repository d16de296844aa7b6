"""What the checkpoint files of log directories say of one partition, and what may be concluded from it.

A broker that runs writes the high watermark every 5 s and the log start every 60 s (`ReplicaManager`, `LogManager`): a
copy of them is older than the log beside it, or, as they are read after one another, newer. So they say where consumers
stand, and accuse nobody. Batches above the high watermark and below the log start stay in the log: an end marker among
them ended its transaction, and without it that transaction would look as if nobody had ended it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.kafka.sections import (
    BINARY_GRAMMARS,
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK,
    LEADER_EPOCH,
    LOG_KINDS,
    LOG_START,
    TOPIC_ID,
    ProblemKind,
)
from txn_analysis.log.segments import TO_THE_END, Problem

if TYPE_CHECKING:
    from txn_analysis.log.sections import LogSection


@dataclass(frozen=True)
class Stated:
    """The newest statements of the judged capture; None where there is none.

    `is_final` says that the high watermark is where consumers stand: every broker that states it was shut down cleanly,
    and all of the log was copied off such brokers. `first_file_offset` is where the first file of a partition's folder
    begins, the folder's that goes back furthest: the log starts there or later. None where a part of the log is a dump,
    as files may have been left out then. `topic_ids` are of all captures.
    """

    log_start_offset: int | None = None
    first_file_offset: int | None = None
    high_watermark: int | None = None
    is_final: bool = False
    epoch_start_offset: int | None = None
    topic_ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, sections: list[LogSection]) -> Stated:
        """What the sections of one partition say; those of its logs are among them."""
        said: defaultdict[str, list[LogSection]] = defaultdict(list)
        for section in sections:
            if section.capture_rank == 0:
                said[section.kind].append(section)
        marks, logs = said[HIGH_WATERMARK], [s for kind in LOG_KINDS for s in said[kind]]
        is_final = bool(marks) and all(s.stated == CLEAN_SHUTDOWN for s in marks)
        is_all_copied = all(s.grammar in BINARY_GRAMMARS for s in logs)
        return cls(
            _newest(said[LOG_START]),
            min((s.file_base_offset for s in logs), default=None) if is_all_copied else None,
            _newest(marks),
            is_final and is_all_copied,
            _newest(said[LEADER_EPOCH]),
            frozenset([s.stated for s in sections if s.kind == TOPIC_ID and s.stated is not None]),
        )

    def last_stable_offset(self, open_start: int | None, end_offset: int | None) -> int | None:
        """Where `read_committed` consumers stop (`UnifiedLog.fetchLastStableOffsetMetadata`).

        The smallest open start, or the end of the log where nothing is open; at most the high watermark, where that is
        final; never below the log start, which a checkpoint states only where the first file begins before it.
        """
        stable = end_offset if open_start is None else open_start
        if stable is None:
            return None
        if self.high_watermark is not None and self.is_final:
            stable = min(stable, self.high_watermark)
        return max(stable, self.log_start_offset or 0, self.first_file_offset or 0)

    def remarks(self, end_offset: int | None) -> list[str]:
        """How the statements differ from the log that ends at `end_offset`."""
        if end_offset is None:
            return []
        found = []
        mark, began = self.high_watermark, self.epoch_start_offset
        if mark is not None and mark > end_offset:
            found.append(f"the high watermark stood at {mark}, this copy ends at {end_offset}: it was made earlier")
        if mark is not None and mark < end_offset and self.is_final:
            found.append(f"offsets {mark} to {end_offset - 1} are above the high watermark: they were not committed")
        if began is not None and began > end_offset:
            found.append(f"a leader epoch began at {began}, this copy ends at {end_offset}: it was made earlier")
        return found

    def problems(self) -> list[Problem]:
        """Files of a topic that was deleted, and of the one that was created again under its name, are no one log."""
        if len(self.topic_ids) < 2:
            return []
        ids = " and ".join(sorted(self.topic_ids))
        reason = f"the files are of several topics of this name: topic ids {ids}"
        return [Problem(TO_THE_END, ProblemKind.SEVERAL_TOPIC_IDS, reason)]


def _newest(sections: list[LogSection]) -> int | None:
    """The largest offset: all three only grow, whichever broker states them."""
    return max([s.file_base_offset for s in sections], default=None)
