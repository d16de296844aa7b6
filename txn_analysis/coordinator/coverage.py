"""How much of `__transaction_state` was seen: what the absence of a producer is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from txn_analysis.columns.arrays import by_key
from txn_analysis.coordinator.chain import NO_RECORDS, LeaderEpochChange, StateChain
from txn_analysis.coordinator.fit import Fit
from txn_analysis.coordinator.partition_count import MOST_PARTITIONS, StateCount
from txn_analysis.coordinator.sections import MOST_MISPLACED_IDS, SectionSum, StateSection
from txn_analysis.kafka.names import STATE_TOPIC, java_hash, state_partition
from txn_analysis.kafka.problems import HOLES
from txn_analysis.logic import UNBOUNDED_MS, latest
from txn_analysis.settings import Settings
from txn_analysis.tables import PartitionHealth
from txn_analysis.text import count, ranges

NOT_DECODED = "dumped without --transaction-log-decoder"
OF_AN_EXPORT = "a console export does not say what it covers"
MISPLACED = "transactional ids lie in partitions that their hash does not give among {}"
_OTHER_PRODUCERS = "records may name further producer ids, in fields that were not printed or are of a newer Kafka"
_ID_WIDTH = 80  # an id may have 32,767 bytes, and stands in the words of every finding that it makes undecidable


class Hole(NamedTuple):
    """What the files of a partition leave out: in words, and the moment of the first batch behind it; None: any."""

    reason: str
    end_ms: int | None = None

    def is_since(self, since_ms: int | None) -> bool:
        """The hole can hide something that was recorded since a moment; None is from the beginning on."""
        return since_ms is None or self.end_ms is None or self.end_ms >= since_ms


@dataclass
class StatePartition:
    """One partition of `__transaction_state`: up to when it speaks, and what it cannot prove.

    `is_console` says that only a console export speaks for it. `chain` is what its records say of themselves, `decoded`
    what those say that could be decoded.
    `log_dir_end_ms` is the newest last moment of any partition of the state in the log directories that hold it: an id
    that is stuck writes nothing more into its own partition. `holes` are waived by --transaction-state-complete,
    `problems` never. `is_folder_whole`: a manifest shows that no file of it is missing, so that compaction left the
    holes where no record was deleted or lost. Of the `undecodable_count` records that could not be decoded,
    `keyless_count` may be of any id, and hide the newest record of each.
    """

    state_partition: int
    is_seen: bool = False
    is_console: bool = False
    chain: StateChain = NO_RECORDS
    decoded: StateChain = NO_RECORDS
    log_dir_end_ms: int | None = None
    problems: list[str] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    undecodable_count: int = 0
    keyless_count: int = 0
    newer_count: int = 0
    misplaced_ids: tuple[str, ...] = ()
    is_folder_whole: bool = False

    @property
    def moment_ms(self) -> int | None:
        """The last moment that it speaks of."""
        return self.chain.last_moment_ms

    def gaps(self, settings: Settings, since_ms: int | None = None) -> list[str]:
        """What is missing in it of what was recorded since a moment, in words that name the partition.

        Of the settings count the *assurances* that nothing disproves.
        """
        return [f"{STATE_TOPIC}-{self.state_partition}: {reason}" for reason in self.reasons(settings, since_ms)]

    def reasons(self, settings: Settings, since_ms: int | None = None) -> list[str]:
        """What is missing in it of what was recorded since a moment, in words without its name."""
        is_cleaners = settings.transaction_state_complete or (settings.no_records_lost and self.is_folder_whole)
        return self.problems + [h.reason for h in self.holes if not is_cleaners and h.is_since(since_ms)]

    def coverage(self, settings: Settings) -> dict[str, object]:
        """What a run tells of it, and whether that is all; ids are not escaped."""
        return {
            "partition": self.state_partition,
            "is_seen": self.is_seen,
            "is_complete": self.is_seen and not self.gaps(settings),
            "seen_to_ms": self.moment_ms,
            "undecodable": self.undecodable_count,
            "misplaced_ids": [*self.misplaced_ids],
            "problems": [*self.problems],
            "holes": [hole.reason for hole in self.holes],
            "is_folder_whole": self.is_folder_whole,
        }


@dataclass(frozen=True)
class StateEvidence:
    """The coordinator's side as a whole: every partition's coverage, and whether the state fits the logs."""

    partitions: list[StatePartition]
    count: StateCount
    fit: Fit = field(default_factory=Fit)

    @property
    def expected_count(self) -> int:
        """How many partitions there are."""
        return self.count.used

    @property
    def misplaced(self) -> str | None:
        """That ids lie in partitions that their hash does not give, in words; None where all lie well."""
        if not any(partition.misplaced_ids for partition in self.partitions):
            return None
        fits = f"of the counts up to {MOST_PARTITIONS} only {self.count.others} would fit" if self.count.others else ""
        return f"{MISPLACED.format(self.expected_count)}: {fits or 'no count of partitions fits: mislabelled dumps'}"

    @cached_property
    def seen_count(self) -> int:
        """Partitions that the capture holds."""
        return sum(p.is_seen and p.state_partition < self.expected_count for p in self.partitions)

    @cached_property
    def is_given(self) -> bool:
        """All of them were given."""
        return all(p.is_seen for p in self.expected)

    @cached_property
    def has_undecodable(self) -> bool:
        """Some record could not be decoded."""
        return any(p.undecodable_count for p in self.expected)

    @cached_property
    def earliest_end_ms(self) -> int | None:
        """Up to when all speak that were given; UNBOUNDED_MS where none was, None where one does not say."""
        ends = [p.moment_ms for p in self.expected if p.is_seen]
        return None if None in ends else min((ms for ms in ends if ms is not None), default=UNBOUNDED_MS)

    @cached_property
    def first_moment_ms(self) -> int | None:
        """The first moment of any; None where none has one."""
        moments = (p.chain.first_moment_ms for p in self.expected)
        return min((ms for ms in moments if ms is not None), default=None)

    @cached_property
    def rises(self) -> tuple[LeaderEpochChange, ...]:
        """Where the leader of any changed."""
        return tuple(rise for p in self.expected for rise in p.chain.rises)

    @cached_property
    def lone_completes_ms(self) -> tuple[int, ...]:
        """As `StateChain.lone_complete_ms`, of all that have one."""
        return tuple(p.chain.lone_complete_ms for p in self.expected if p.chain.lone_complete_ms is not None)

    @cached_property
    def dumped_gap_ends_ms(self) -> tuple[int, ...]:
        """The moments behind the newest gaps of those for which not only a console export speaks."""
        ends = (p.chain.gap_end_ms for p in self.expected if not p.is_console)
        return tuple(ms for ms in ends if ms is not None)

    @cached_property
    def exported(self) -> tuple[StatePartition, ...]:
        """Those for which only a console export speaks."""
        return tuple(p for p in self.expected if p.is_console)

    def gaps(self, settings: Settings) -> tuple[str, ...]:
        """What is missing anywhere, in words; an unknown producer needs all of it.

        What is missing in several partitions alike is one sentence.
        """
        assurances = settings.transaction_state_complete, settings.no_records_lost
        if assurances not in self._gaps:
            places: dict[str, list[int]] = {}
            for partition in self.partitions:
                newer = [_OTHER_PRODUCERS] if partition.chain.may_name_more else []
                for reason in [*partition.reasons(settings), *newer]:
                    places.setdefault(reason, []).append(partition.state_partition)
            self._gaps[assurances] = tuple(f"{self._named(numbers)}: {reason}" for reason, numbers in places.items())
        return self._gaps[assurances]

    @cached_property
    def _gaps(self) -> dict[tuple[bool, bool], tuple[str, ...]]:
        return {}

    def _named(self, numbers: list[int]) -> str:
        if len(numbers) == 1:
            return f"{STATE_TOPIC}-{numbers[0]}"
        if numbers == list(range(self.expected_count)):
            return STATE_TOPIC
        return f"{STATE_TOPIC}, {len(numbers)} partitions ({ranges(numbers)})"

    @cached_property
    def topics(self) -> frozenset[str]:
        """The topics that any transaction of the coordinator lists, as far as its records are left."""
        return frozenset().union(*(p.chain.topics for p in self.partitions))

    @cached_property
    def largest_producer_id(self) -> int | None:
        """Of all that any record names; None where none does."""
        largest = (partition.chain.largest_producer_id for partition in self.partitions)
        return max([producer_id for producer_id in largest if producer_id is not None], default=None)

    @cached_property
    def expected(self) -> list[StatePartition]:
        """The partitions that there are, given or not."""
        return [p for p in self.partitions if p.state_partition < self.expected_count]

    def coverage(self, settings: Settings) -> dict[str, Any]:
        """What a run tells of the state, in sum and by partition: the column `state_coverage` of `runs`.

        `problems` is whatever makes an answer doubtful. Partitions of which nothing is known are not among
        `partitions`, but in `missing`. `newer` counts records that have fields of a newer Kafka.
        """
        return {
            "expected": self.expected_count,
            "count": self.count.coverage(),
            "seen": self.seen_count,
            "missing": [p.state_partition for p in self.partitions if not p.is_seen],
            "problems": [*self.fit.misfits, *self.gaps(settings)],
            "partitions": [p.coverage(settings) for p in self.partitions if p.is_seen or p.problems],
            "newer": sum(p.newer_count for p in self.partitions),
        }

    def partition(self, number: int | None) -> StatePartition | None:
        """The partition with this number; None where nothing is known of it."""
        return None if number is None else self._by_number.get(number)

    @cached_property
    def _by_number(self) -> dict[int, StatePartition]:
        return {p.state_partition: p for p in self.partitions}


def state_evidence_of(
    count: StateCount,
    sections: list[StateSection],
    console: Mapping[int, SectionSum],
    chains: Mapping[int, StateChain],
    followed: Iterable[PartitionHealth],
    doubts: Mapping[int | None, Sequence[str]],
) -> StateEvidence:
    """The coverage of every partition; whether the state fits the logs is asked afterwards (`coordinator.fit`).

    Args:
        count: of the partitions that there are.
        sections: the dumped files of the judged capture.
        console: as for `state_coverage`.
        chains: by partition, what its records say of themselves, of all captures.
        followed: all partitions whose logs were followed; of the state's they say what is wrong with the log.
        doubts: by partition, None for any: what of it was not understood; each counts as an undecodable record.
    """
    views = {view.partition: view for view in followed if view.topic == STATE_TOPIC}
    problems = {n: [one.reason for one in view.problems if one.kind not in HOLES] for n, view in views.items()}
    partitions = state_coverage(count.used, sections, problems, console)
    for partition in partitions:
        if not partition.is_seen and (view := views.get(partition.state_partition)) and view.is_in_capture:
            partition.problems[-1:] = [NOT_DECODED]  # its log was followed
        not_decoded = [*doubts.get(None, ()), *(doubts.get(partition.state_partition, ()) if partition.is_seen else ())]
        partition.undecodable_count += len(not_decoded)
        partition.keyless_count += len(not_decoded)
        partition.problems += not_decoded
        partition.decoded = partition.chain = chains.get(partition.state_partition, partition.chain)
        if partition.undecodable_count:  # these may be anything, and later than everything
            partition.chain = partition.decoded._replace(gap_end_ms=UNBOUNDED_MS)
    return StateEvidence(partitions, count)


def state_coverage(
    count: int, sections: list[StateSection], log_problems: dict[int, list[str]], console: Mapping[int, SectionSum]
) -> list[StatePartition]:
    """Judge the coverage of each of the `count` partitions.

    Args:
        count: `transaction.state.log.num.partitions`.
        sections: the dumped files of the judged capture.
        log_problems: by partition, what is wrong with its batches (not holes: compaction makes them).
        console: by partition (Kafka's hash of the ids), what a console export holds; it carries no chain.
    """
    # Copies may differ in nothing but what is wrong with them: whatever order they come in, the words are the same.
    in_order = sorted(sections, key=lambda s: (s.file_base_offset, s.record_end_offset, repr(s)))
    files = by_key(in_order, attrgetter("state_partition"))
    ends_ms, partitions = _ends_of_log_dirs(sections), list[StatePartition]()
    for number in sorted({*range(count), *files}):
        ordered = files[number]
        partition = StatePartition(number, is_seen=bool(ordered or console), is_console=bool(console and not ordered))
        partition.log_dir_end_ms = latest(*(ends_ms.get(file.log_dir) for file in ordered))
        for file in ordered:
            _add_sum(partition, file.sum, count)
        _add_files(partition, ordered)
        partition.problems += sorted(log_problems.get(number, []))
        if number >= count:
            partition.problems.append(f"there is no partition {number} in {count}")
        if not partition.is_seen:
            partition.problems.append("not in the capture")
        if partition.is_console:  # it speaks for every partition, but proves none: all rests on the operator's word
            partition.holes.append(Hole(OF_AN_EXPORT))
        if console:
            _add_sum(partition, console.get(number, SectionSum()), count)
        partitions.append(partition)
    return partitions


def _ends_of_log_dirs(sections: Iterable[StateSection]) -> dict[str | None, int]:
    """Of each log directory the newest of the moments with which its partitions of the state end, by offset."""
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for section in sections:
        last_offset, last_ms = section.sum.last_offset, section.sum.last_ms
        if section.log_dir is not None and last_offset is not None and last_ms is not None:
            place, end = (section.log_dir, section.state_partition), (last_offset, last_ms)
            last[place] = max(end, last.get(place, end))
    ends_ms: dict[str | None, int] = {}
    for (log_dir, _), (_, end_ms) in last.items():
        ends_ms[log_dir] = max(end_ms, ends_ms.get(log_dir, end_ms))
    return ends_ms


def _add_sum(partition: StatePartition, of_part: SectionSum, partition_count: int) -> None:
    partition.undecodable_count += of_part.undecodable_count
    partition.keyless_count += of_part.keyless_count
    partition.newer_count += of_part.newer_count
    if of_part.undecodable_count:
        partition.problems.append(f"{count(of_part.undecodable_count, 'record')} could not be decoded")
    if of_part.misplaced_count:
        misplaced = count(of_part.misplaced_count, "record has an id that belongs", "records have ids that belong")
        examples = _such_as(of_part.misplaced_ids, partition_count)
        partition.problems.append(f"{misplaced} to another partition{examples}")
        known = {*partition.misplaced_ids, *of_part.misplaced_ids}
        partition.misplaced_ids = tuple(sorted(known)[:MOST_MISPLACED_IDS])


def _such_as(ids: tuple[str, ...], partition_count: int) -> str:
    """The ids with the partition that Kafka's hash gives them."""
    shown = [name if len(name) <= _ID_WIDTH else f"{name[:_ID_WIDTH]}..." for name in ids]
    homes = (state_partition(java_hash(name), partition_count) for name in ids)
    named = [f"'{name}' (to {home})" for name, home in zip(shown, homes, strict=True)]
    return f", such as {', '.join(named)}" if named else ""


def _add_files(partition: StatePartition, ordered: list[StateSection]) -> None:
    if ordered and ordered[0].file_base_offset != 0:
        partition.holes.append(Hole(f"does not begin with its first file, but with {ordered[0].file_base_offset}"))
    for before, section in pairwise(ordered):
        batches_end = max(before.record_end_offset, before.end_offset or 0)
        if section.file_base_offset > batches_end:
            reason = f"offsets {batches_end} to {section.file_base_offset - 1} are in no file"
            partition.holes.append(Hole(reason, section.sum.first_ms))
