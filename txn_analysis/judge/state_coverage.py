"""How much of `__transaction_state` was seen: what the absence of a producer is worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from txn_analysis.ingest.java_hash import java_hash, state_partition
from txn_analysis.ingest.sections import STATE_TOPIC
from txn_analysis.reconstruct.segments import HOLES

if TYPE_CHECKING:
    from collections.abc import Collection

Row = dict[str, Any]

_MISPLACED = (
    "transactional ids lie in partitions that their hash does not give: "
    "mislabelled dumps, or another partition count than stated"
)
_FOREIGN = "not one producer of the logs' ended transactions occurs in __transaction_state"
MOST_MISPLACED_IDS = 3
_ID_WIDTH = 80  # an id may have 32,767 bytes, and stands in the words of every finding that it makes undecidable


@dataclass(frozen=True)
class StateSection:
    """One dumped file of one partition of `__transaction_state`, summed up; offsets are None where it is empty.

    `gap_ms` is the moment of the last record that follows a hole inside the file (compaction). `misplaced_count` counts
    records whose id belongs to another partition by Kafka's hash; `misplaced_ids` are the first few of these ids.
    `end_offset` is the offset after its last batch, which compaction may have left without a record.
    """

    state_partition: int
    file_base_offset: int
    first_offset: int | None
    last_offset: int | None
    first_ms: int | None
    gap_ms: int | None
    moment_ms: int | None
    undecodable_count: int
    misplaced_count: int
    misplaced_ids: tuple[str, ...] = ()
    end_offset: int | None = None


@dataclass
class StatePartition:
    """One partition of `__transaction_state`: up to when it speaks, and what it cannot prove.

    `is_console` says that only a console export speaks for it.
    `moment_ms` is its newest broker-clock moment; history before `gap_ms` has a hole that ends there.
    `holes` are waived by --transaction-state-complete, `problems` never.
    """

    state_partition: int
    is_seen: bool = False
    is_console: bool = False
    moment_ms: int | None = None
    gap_ms: int | None = None
    problems: list[str] = field(default_factory=list)
    holes: list[str] = field(default_factory=list)
    undecodable_count: int = 0
    misplaced_ids: tuple[str, ...] = ()

    def gaps(self, *, holes_waived: bool) -> list[str]:
        """What is missing in it, in words that name the partition."""
        reasons = self.problems + ([] if holes_waived else self.holes)
        return [f"{STATE_TOPIC}-{self.state_partition}: {reason}" for reason in reasons]

    def coverage(self, *, holes_waived: bool) -> Row:
        """What was seen of it and whether that is all, as plain data; ids are as they were found, not escaped."""
        return {
            "partition": self.state_partition,
            "is_seen": self.is_seen,
            "is_complete": self.is_seen and not self.gaps(holes_waived=holes_waived),
            "seen_to_ms": self.moment_ms,
            "undecodable": self.undecodable_count,
            "misplaced_ids": list(self.misplaced_ids),
            "problems": self.problems,
            "holes": self.holes,
        }


@dataclass(frozen=True)
class StateEvidence:
    """The coordinator's side as a whole: every partition's coverage, and why the state may not fit the logs."""

    partitions: list[StatePartition]
    expected_count: int
    misfits: list[str]

    @property
    def seen_count(self) -> int:
        """Partitions that the capture holds."""
        return sum(p.is_seen and p.state_partition < self.expected_count for p in self.partitions)

    def gaps(self, *, holes_waived: bool) -> list[str]:
        """What is missing anywhere, in words; an unknown producer needs all of it."""
        return [*self.misfits, *(gap for p in self.partitions for gap in p.gaps(holes_waived=holes_waived))]

    def coverage(self, *, holes_waived: bool) -> Row:
        """What was seen, in sum and by partition, as plain data; `problems` is whatever makes an answer doubtful."""
        return {
            "expected": self.expected_count,
            "seen": self.seen_count,
            "missing": [p.state_partition for p in self.partitions if not p.is_seen],
            "problems": self.gaps(holes_waived=holes_waived),
            "partitions": [p.coverage(holes_waived=holes_waived) for p in self.partitions if p.is_seen or p.problems],
        }

    def partition(self, number: int | None) -> StatePartition | None:
        """The partition with this number; None where nothing is known of it."""
        return next((p for p in self.partitions if p.state_partition == number), None)

    def oldest_moment_ms(self) -> int | None:
        """Up to when all partitions speak; None where one of them never does."""
        moments = [p.moment_ms for p in self.partitions if p.state_partition < self.expected_count]
        return None if None in moments else min(ms for ms in moments if ms is not None)


def state_evidence_of(
    count: int,
    sections: list[StateSection],
    console: dict[int, StateSection],
    health: list[Row],
    *,
    is_foreign: bool,
    cluster_ids: Collection[str] = (),
) -> StateEvidence:
    """The coverage of every partition, and why the state as a whole may not belong to the logs.

    Args:
        count: `transaction.state.log.num.partitions`.
        sections: the dumped files of the judged capture.
        console: as for `state_coverage`.
        health: rows of `partition_health`; they say what is wrong with the logs of the state partitions.
        is_foreign: transactions ended in the logs, and the state knows none of their producers.
        cluster_ids: every `cluster.id` that a log directory states in its `meta.properties`.
    """
    # Holes are compaction, or are counted between the files.
    problems = {
        row["partition"]: [p["reason"] for p in row["problems"] if p["kind"] not in HOLES]
        for row in health
        if row["topic"] == STATE_TOPIC
    }
    is_misplaced = any(s.misplaced_count for s in sections)
    misfits = [words for holds, words in ((is_misplaced, _MISPLACED), (is_foreign, _FOREIGN)) if holds]
    if len(cluster_ids) > 1:
        misfits.append(f"the files are of several clusters: cluster.id {' and '.join(sorted(cluster_ids))}")
    return StateEvidence(state_coverage(count, sections, problems, console), count, misfits)


def state_coverage(
    count: int, sections: list[StateSection], log_problems: dict[int, list[str]], console: dict[int, StateSection]
) -> list[StatePartition]:
    """Judge the coverage of each of the `count` partitions.

    Args:
        count: `transaction.state.log.num.partitions`.
        sections: the dumped files of the judged capture.
        log_problems: by partition, what is wrong with its batches (not holes: compaction makes them).
        console: by partition (Kafka's hash of the ids), what a console export holds; it carries no chain.
    """
    found = {p: StatePartition(p) for p in range(count)}
    ordered = sorted(sections, key=_in_file_order)
    for section in ordered:
        partition = found.setdefault(section.state_partition, StatePartition(section.state_partition))
        partition.is_seen = True
        _add_section(partition, section, count)
    for number, partition in found.items():
        _add_files(partition, [s for s in ordered if s.state_partition == number])
        partition.problems += sorted(log_problems.get(number, []))
        if number >= count:
            partition.problems.append(f"there is no partition {number} in {count}")
        if not partition.is_seen and not console:
            partition.problems.append("not in the capture")
    if console:
        _add_console(found, console)
    return [found[number] for number in sorted(found)]


def _add_section(partition: StatePartition, section: StateSection, count: int) -> None:
    partition.moment_ms = _latest(partition.moment_ms, section.moment_ms)
    partition.gap_ms = _latest(partition.gap_ms, section.gap_ms)
    _add_undecodable(partition, section)
    if section.misplaced_count:
        partition.problems.append(
            f"{section.misplaced_count} records have ids that belong to another partition"
            + _such_as(section.misplaced_ids, count)
        )
        known = {*partition.misplaced_ids, *section.misplaced_ids}
        partition.misplaced_ids = tuple(sorted(known)[:MOST_MISPLACED_IDS])


def _such_as(ids: tuple[str, ...], count: int) -> str:
    """The ids with the partition that Kafka's hash gives them."""
    shown = [name if len(name) <= _ID_WIDTH else f"{name[:_ID_WIDTH]}..." for name in ids]
    homes = [state_partition(java_hash(name), count) for name in ids]
    named = [f"'{name}' (to {home})" for name, home in zip(shown, homes, strict=True)]
    return f", such as {', '.join(named)}" if named else ""


def _add_undecodable(partition: StatePartition, section: StateSection) -> None:
    partition.undecodable_count += section.undecodable_count
    if section.undecodable_count:
        partition.problems.append(f"{section.undecodable_count} records could not be decoded")


def _in_file_order(section: StateSection) -> tuple[int, int, int, str]:
    # Copies may differ in nothing but what is wrong with them: whatever order they come in, the words are the same.
    return section.state_partition, section.file_base_offset, _end(section), repr(section)


def _add_files(partition: StatePartition, ordered: list[StateSection]) -> None:
    ends: list[tuple[int, StateSection]] = [(_end(s), s) for s in ordered]
    if ordered and ordered[0].file_base_offset != 0:
        partition.holes.append(f"does not begin with its first file, but with {ordered[0].file_base_offset}")
    if ordered and (ordered[0].first_offset or 0) > 0:
        partition.gap_ms = _latest(partition.gap_ms, ordered[0].first_ms)
    for (end, before), (_, section) in pairwise(ends):
        batches_end = max(end, before.end_offset or 0)
        if section.file_base_offset > batches_end:
            partition.holes.append(f"offsets {batches_end} to {section.file_base_offset - 1} are in no file")
        # What compaction removed after the last record that is left is a gap of the histories all the same.
        if section.first_offset is not None and section.first_offset > end:
            partition.gap_ms = _latest(partition.gap_ms, section.first_ms)


def _end(section: StateSection) -> int:
    return section.file_base_offset if section.last_offset is None else section.last_offset + 1


def _add_console(found: dict[int, StatePartition], console: dict[int, StateSection]) -> None:
    """A console export speaks for every partition, but proves none: all of it rests on the operator's word."""
    for number, partition in found.items():
        section = console.get(number)
        if not partition.is_seen:
            partition.is_console = True
            partition.holes.append("a console export does not say what it covers")
        if section is not None:
            partition.moment_ms = _latest(partition.moment_ms, section.moment_ms)
            _add_undecodable(partition, section)
        partition.is_seen = True


def _latest(*moments: int | None) -> int | None:
    return max((ms for ms in moments if ms is not None), default=None)
