"""What manifests of a copy prove for a judgement: that the state was copied last, and how far logs reach.

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
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.kafka.names import LOG_KINDS, STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.log.copy_order import BROKER, OrderOfCopies
from txn_analysis.log.whole_copies import WholeCopies, WholeCopy
from txn_analysis.logic import latest
from txn_analysis.text import utc

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from txn_analysis.coordinator.coverage import StateEvidence, StatePartition
    from txn_analysis.log.copy_order import Clock, CopyOrder, Entry
    from txn_analysis.tables import PartitionHealth
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

    def copied_ms(self, where: TopicPartition) -> int | None:
        """When the last byte of a log was read, by the clock of its one broker; None where no whole manifest says."""
        ended = ((clock, own[where]) for clock, own in self._ended_ms.items() if where in own)
        return next((ms for clock, ms in ended if clock.kind == BROKER and self._order.is_steady(clock)), None)

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


@dataclass(frozen=True)
class Copied:
    """What the manifests of one capture prove.

    Attributes:
        manifest_count: how many there are.
        is_state_last: they take the place of --state-copied-last.
        disproof: that the state was not copied last, in words; None where nothing says so.
        doubts: why they do not take its place, in words.
        reach_ms: by partition, up to when its log was whole.
        unproven: by partition with a segment, why it has no such moment.
        torn: the partitions of the state that were not read to their end.
        whole_folders: the partitions of the state of whose folders no file is missing.
        copied_ms: by partition, when a broker had read the last byte of its log, by that broker's clock.
    """

    manifest_count: int = 0
    is_state_last: bool = False
    disproof: str | None = None
    doubts: tuple[str, ...] = ()
    reach_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    unproven: Mapping[TopicPartition, str] = field(default_factory=dict)
    torn: frozenset[int] = frozenset()
    whole_folders: frozenset[int] = frozenset()
    copied_ms: Mapping[TopicPartition, int] = field(default_factory=dict)

    def void(self, reason: str) -> Copied:
        """They prove nothing, as the files themselves disprove the order."""
        unproven = {**self.unproven, **dict.fromkeys(self.reach_ms, reason)}
        doubts = (reason, *self.doubts)
        nothing = replace(self, is_state_last=False, reach_ms={}, whole_folders=frozenset(), copied_ms={})
        return replace(nothing, doubts=doubts, unproven=unproven)

    def plain(self) -> dict[str, object]:
        """What a report says of it: the part of the column `state_coverage` of `runs`."""
        by_reason: dict[str, int] = {}
        for reason in self.unproven.values():
            by_reason[reason] = by_reason.get(reason, 0) + 1
        own = asdict(self) | {"doubts": [*self.doubts], "reach_ms": len(self.reach_ms), "unproven": by_reason}
        own |= {"torn": sorted(self.torn), "whole_folders": sorted(self.whole_folders)}
        del own["copied_ms"]
        return {"reached_count" if name == "reach_ms" else name: value for name, value in own.items()}

    def as_read(self, state: StateEvidence) -> StateEvidence:
        """The state, with what was not read of it to the end, and with what is known to be no file's loss.

        End: a partition counts as whole only where it was read to the end. Whole folder: where no file is missing, a
        hole between two of them is the cleaner's.
        """
        if not self.torn and not self.whole_folders:
            return state
        return replace(state, partitions=[self._as_read(partition) for partition in state.partitions])

    def _as_read(self, partition: StatePartition) -> StatePartition:
        torn = [_TORN] if partition.state_partition in self.torn else []
        is_folder_whole = partition.state_partition in self.whole_folders
        return replace(partition, problems=[*partition.problems, *torn], is_folder_whole=is_folder_whole)

    def evidence(self, where: TopicPartition) -> tuple[str, ...]:
        """What they prove for one partition, in words."""
        last = "a manifest: __transaction_state was copied after every log, whole, from its leaders"
        reach_ms = self.reach_ms.get(where)
        reach = f"a manifest: the log was whole at {utc(reach_ms)}, copied from its leader"
        return (*([last] if self.is_state_last else []), *([reach] if reach_ms is not None else []))

    def missing_order(self) -> str | None:
        """Why they do not prove that the state was copied last; None where they do, or there are none."""
        if not self.manifest_count or self.is_state_last:
            return None
        return f"a manifest that proves the order: {self.disproof or next(iter(self.doubts), 'it does not')}"

    def missing_reach(self, where: TopicPartition) -> str | None:
        """Why they do not prove how far a log reaches; None where they do, or there are none."""
        reason = self.unproven.get(where)
        return None if not self.manifest_count or reason is None else f"a manifest that proves how far: {reason}"


NOTHING_COPIED = Copied()
_TORN = "a manifest says that it was not read to its end: its segments changed meanwhile"


def copied_by(
    manifests: Sequence[Manifest],
    sections: Collection[InputSection],
    state: StateEvidence,
    partitions: Mapping[TopicPartition, PartitionHealth],
    max_clock_skew_ms: int,
) -> Copied:
    """What the manifests of one capture prove.

    Args:
        manifests: of the capture.
        sections: all of the evidence.
        state: what was seen of `__transaction_state`.
        partitions: the health of every partition of the capture.
        max_clock_skew_ms: as for the audit.
    """
    if not manifests:
        return NOTHING_COPIED
    copying = Copying(manifests, sections, max_clock_skew_ms)
    order = copying.order
    doubts = [*order.doubts, *_doubts_of_state(copying, state)]
    if not (order.is_proven or doubts or order.disproof):
        doubts = ["by its times the state was not copied after every log"]
    last_moments_ms = {where: own.last_moment_ms for where, own in partitions.items()}
    logs = [where for where, own in partitions.items() if where.topic != STATE_TOPIC and own.is_in_capture]
    reached = {where: copying.reach_ms(where, last_moments_ms) for where in logs}
    no_order = order.disproof or next(iter(order.doubts), "no order is proven")
    return Copied(
        len(manifests),
        order.is_proven and not doubts,
        order.disproof,
        tuple(dict.fromkeys(doubts)),
        {where: ms for where, ms in reached.items() if ms is not None},
        {
            where: copying.why_not_whole(where) or (no_order if not order.is_proven else "no file was read before it")
            for where, ms in reached.items()
            if ms is None
        },
        frozenset(where.partition for where in copying.torn if where.topic == STATE_TOPIC),
        frozenset(w.partition for w, copy in copying.whole.items() if w.topic == STATE_TOPIC and copy.is_folder_whole),
        {where: ms for where in logs if (ms := copying.copied_ms(where)) is not None},
    )


def _doubts_of_state(copying: Copying, state: StateEvidence) -> list[str]:
    """Leader and End of all partitions of the state; an end marker's coordinator epoch is one of a leader as well.

    Whose marker it is shows of which partition that epoch is. Of a producer that nothing knows it may be of any: where
    it is above the epochs of all, all are void.
    """
    found, epochs, own = [], state.fit.sums.coordinator_epochs, list[int]()
    for partition in state.expected:
        where = TopicPartition(STATE_TOPIC, partition.state_partition)
        copy = copying.whole.get(where)
        if copy is None:
            found.append(f"{where}: {copying.why_not_whole(where)}")
            continue
        own.append(copy.leader_epoch)
        of_markers = epochs.get(partition.state_partition, ABSENT)
        if of_markers > copy.leader_epoch:
            found.append(f"{where}: an end marker knows leader epoch {of_markers} of it")
    unknown = state.fit.sums.unknown_coordinator_epoch
    if unknown is not None and own and unknown > max(own):
        found.append(f"an end marker knows leader epoch {unknown} of some partition of {STATE_TOPIC}")
    return found
