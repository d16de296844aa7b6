"""What manifests show of a copy: in which order its files were read, and how far whole logs reach.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from txn_analysis.columns.arrays import by_key
from txn_analysis.judge.copy_order import BROKER, Clock, Entry, OrderOfCopies, clock_of
from txn_analysis.kafka.names import LEADER_EPOCH, LOG_KINDS, TOPIC_ID
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.logic import latest
from txn_analysis.tables.inputs import CopiedFile, InputSection, Manifest


class WholeCopy(NamedTuple):
    """A copy of a partition from its leader that was read to its end.

    Attributes:
        clock: whose times these are.
        leader_epoch: at which the broker led.
        began_ms: when the first byte of any of its segments was read.
        is_folder_whole: no file of its folder is missing, and its first one is named 0: the cleaner never takes that
            name away, so that no record was deleted.
    """

    clock: Clock
    leader_epoch: int
    began_ms: int | None
    is_folder_whole: bool = False


@dataclass(frozen=True)
class ManifestProof(OrderOfCopies):
    """What the manifests of one capture say of its copying: Order, and with it Leader, End and Reach."""

    @cached_property
    def whole(self) -> dict[TopicPartition, WholeCopy]:
        """Leader and End: the partitions that some manifest shows to be whole, and their leader's."""
        return {where: copy for where, copy in self.judged.items() if isinstance(copy, WholeCopy)}

    def why_not_whole(self, where: TopicPartition) -> str | None:
        """Why no manifest shows that a partition is whole, and its leader's; None where one does."""
        copy = self.judged.get(where, "no manifest names its files")
        return None if isinstance(copy, WholeCopy) else copy

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
        for section in self.of_capture:
            if section.kind in LOG_KINDS:
                where = TopicPartition(section.topic, section.partition)
                of_clock[where] += self.entries.get(section.input_id) or [None]
        ended_ms: defaultdict[Clock, dict[TopicPartition, int]] = defaultdict(dict)
        for where, entries in of_clock.items():
            ended = [e.file.ended_ms for e in entries if e is not None and e.file.ended_ms is not None]
            clocks = {e.clock for e in entries if e is not None}
            if len(ended) == len(entries) and len(clocks) == 1:
                ended_ms[clocks.pop()][where] = max(ended)
        return dict(ended_ms)

    def copied_ms(self, where: TopicPartition) -> int | None:
        """When the last byte of a log was read, by the clock of its one broker; None where no whole manifest says."""
        ended = ((clock, times_ms[where]) for clock, times_ms in self._ended_ms.items() if where in times_ms)
        return next((ms for clock, ms in ended if clock.kind == BROKER and self.is_steady(clock)), None)

    @cached_property
    def torn(self) -> set[TopicPartition]:
        """The partitions of which a manifest says that reading did not go on to the end, and none shows the whole.

        What was read of such a one may lack a segment in its middle: one was rolled, and the cleaner passed.
        """
        unfinished = {
            where
            for manifest in self.manifests
            for where, files in _by_partition(manifest).items()
            if any(file.is_end_confirmed is False and self._segments_in(file) for file in files)
        }
        return unfinished - self.whole.keys()

    # What each manifest says of a partition.

    @cached_property
    def judged(self) -> dict[TopicPartition, WholeCopy | str]:
        """By partition of which a manifest has a segment, what some manifest shows, or why none does."""
        claims: dict[TopicPartition, list[WholeCopy | str]] = defaultdict(list)
        for number, manifest in enumerate(self.manifests):
            for where, files in _by_partition(manifest).items():
                claim = self._claim(manifest, clock_of(manifest, number), where, files)
                if claim is not None:
                    claims[where].append(claim)
        return {
            where: max((claim for claim in made if isinstance(claim, WholeCopy)), key=_is_folder, default=made[0])
            for where, made in claims.items()
        }

    def _claim(
        self, manifest: Manifest, clock: Clock, where: TopicPartition, files: Sequence[CopiedFile]
    ) -> WholeCopy | str | None:
        """What one manifest shows of one partition, or why it shows nothing; None where it has no segment of it."""
        segments = [(file, sections) for file in files if (sections := self._segments_in(file))]
        if not segments:
            return None
        if (why := next(self._why_unclear(manifest, where, files, segments), None)) is not None:
            return why
        epoch = self._leaders_epoch(manifest, [file for file, _ in segments])
        if epoch is None:
            return "the manifest does not confirm its leader"
        void = self._void(where, epoch, {file.topic_id for file in files})
        if (why := void or self._unended(where, epoch, segments)) is not None:
            return why
        began = [file.began_ms for file, _ in segments]
        known = [ms for ms in began if ms is not None]
        is_folder = all(file.is_folder_whole for file, _ in segments) and begins_at_zero(segments)
        return WholeCopy(clock, epoch, min(known) if len(known) == len(began) else None, is_folder)

    def _why_unclear(
        self,
        manifest: Manifest,
        where: TopicPartition,
        files: Sequence[CopiedFile],
        segments: Sequence[tuple[CopiedFile, list[InputSection]]],
    ) -> Iterator[str]:
        """Why it is not known which files one manifest has of a partition."""
        if not manifest.is_complete:
            yield "the copy was cut short (is_complete: false)"
        if not all(file.is_given for file in files):
            yield "not all of the files that the manifest names were given"
        if any(TopicPartition(s.topic, s.partition) != where for _, sections in segments for s in sections):
            yield "a file is not of the partition that the manifest says"
        if where in self._misnamed[id(manifest)]:
            yield "the manifest does not say of each of its files which partition it is of"

    def _leaders_epoch(self, manifest: Manifest, files: Sequence[CopiedFile]) -> int | None:
        """Leader: an entry counts only where leader and epoch were asked before the file's first byte and after its
        last, and did not change; and the files are that leader's own. A collector names no broker: it reads from the
        leader.
        """
        stated = {(file.leader_id, file.leader_epoch, file.is_leader_confirmed) for file in files}
        leader_id, epoch, is_confirmed = next(iter(stated))
        if len(stated) > 1 or not is_confirmed or leader_id is None or epoch is None:
            return None
        is_own = manifest.broker_id == leader_id or (manifest.clock != BROKER and manifest.broker_id is None)
        return epoch if is_own else None

    def _void(self, where: TopicPartition, epoch: int, topic_ids: set[str | None]) -> str | None:
        """A leader's entry is void where another file, entry or `leader-epoch-checkpoint` shows a higher epoch of that
        partition, or another topic id.
        """
        known = topic_ids | self._topic_ids.get(where.topic, set())
        if len(known - {None}) > 1:
            return "the files are of several topics of its name"
        highest = self._highest_epochs.get(where, epoch)
        return f"something in the capture knows leader epoch {highest} of it" if highest > epoch else None

    def _unended(
        self, where: TopicPartition, epoch: int, segments: Sequence[tuple[CopiedFile, list[InputSection]]]
    ) -> str | None:
        """End: reading went on to the end as asked after its last byte, and that end is at or above the start of
        `leader_epoch`, which a batch of that epoch shows as well.
        """
        if not all(file.is_end_confirmed for file, _ in segments):
            return "the manifest does not confirm that its end was read"
        of_it = [section for _, sections in segments for section in sections]
        end = max(s.file_base_offset if s.end_offset is None else s.end_offset for s in of_it)
        asked = latest(*(file.end_offset for file, _ in segments))
        if asked is not None and end < asked:
            return f"its files end at offset {end}, and the manifest says {asked}"
        if any(s.leader_epoch == epoch for s in of_it):
            return None
        of_epoch = (s for s in self._by_kind.get(LEADER_EPOCH, ()) if s.stated == str(epoch))
        begins = max((s.file_base_offset for s in of_epoch if (s.topic, s.partition) == where), default=None)
        if begins is None:
            return f"nothing says where leader epoch {epoch} begins"
        return None if min(end, end if asked is None else asked) >= begins else f"its leader epoch begins at {begins}"

    # What was read.

    @cached_property
    def _by_kind(self) -> dict[str, list[InputSection]]:
        return by_key(self.of_capture, attrgetter("kind"))

    @cached_property
    def _by_input(self) -> dict[str, list[InputSection]]:
        return by_key(self.of_capture, attrgetter("input_id"))

    def _segments_in(self, file: CopiedFile) -> list[InputSection]:
        return [s for s in self._by_input.get(file.input_id or "", ()) if s.kind in LOG_KINDS]

    @cached_property
    def _misnamed(self) -> dict[int, set[TopicPartition]]:
        """By manifest the partitions of which it has segments in files that it calls another's, or nobody's."""
        return {
            id(manifest): {
                TopicPartition(s.topic, s.partition)
                for file in manifest.files
                for s in self._segments_in(file)
                if (s.topic, s.partition) != (file.topic, file.partition)
            }
            for manifest in self.manifests
        }

    @cached_property
    def _topic_ids(self) -> dict[str, set[str | None]]:
        """By topic, every id that a file or an entry of the capture has."""
        topic_ids: defaultdict[str, set[str | None]] = defaultdict(set)
        for section in self._by_kind.get(TOPIC_ID, ()):
            topic_ids[section.topic].add(section.stated)
        for manifest in self.manifests:
            for file in manifest.files:
                if file.topic is not None:
                    topic_ids[file.topic].add(file.topic_id)
        return dict(topic_ids)

    @cached_property
    def _highest_epochs(self) -> dict[TopicPartition, int]:
        """The highest leader epoch of each partition that anything shows; earlier captures of another topic do not."""
        others = self._first_other_ranks
        highest: dict[TopicPartition, int] = {}

        def saw(where: TopicPartition, epoch: int | None) -> None:
            if epoch is not None:
                highest[where] = max(epoch, highest.get(where, epoch))

        for s in self.sections:
            if s.capture_rank < others.get(s.topic, s.capture_rank + 1):
                where = TopicPartition(s.topic, s.partition)
                saw(where, s.leader_epoch)
                saw(where, int(s.stated) if s.kind == LEADER_EPOCH and s.stated is not None else None)
        for manifest in self.manifests:
            for file in manifest.files:
                if file.topic is not None and file.partition is not None:
                    saw(TopicPartition(file.topic, file.partition), file.leader_epoch)
        return highest

    @cached_property
    def _first_other_ranks(self) -> dict[str, int]:
        """By topic, the rank of the newest earlier capture that holds another topic of its name."""
        topic_ids = {topic: ids - {None} for topic, ids in self._topic_ids.items()}
        ranks: dict[str, int] = {}
        for s in self.sections:
            if s.kind == TOPIC_ID and s.capture_rank and topic_ids.get(s.topic) and s.stated not in topic_ids[s.topic]:
                ranks[s.topic] = min(s.capture_rank, ranks.get(s.topic, s.capture_rank))
        return ranks


_is_folder = attrgetter("is_folder_whole")


def begins_at_zero(segments: Iterable[tuple[CopiedFile, list[InputSection]]]) -> bool:
    """The first of the segments is named 0, so that no record of the partition was deleted."""
    return min(section.file_base_offset for _, sections in segments for section in sections) == 0


def _by_partition(manifest: Manifest) -> dict[TopicPartition, list[CopiedFile]]:
    files: defaultdict[TopicPartition, list[CopiedFile]] = defaultdict(list)
    for file in manifest.files:
        if file.topic is not None and file.partition is not None:
            files[TopicPartition(file.topic, file.partition)].append(file)
    return dict(files)
