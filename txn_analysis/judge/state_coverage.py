"""How much of `__transaction_state` was seen: what the absence of a producer is worth."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class StateSection:
    """One dumped file of one partition of `__transaction_state`, summed up; offsets are None where it is empty.

    `gap_ms` is the moment of the last record that follows a hole inside the file (compaction).
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

    def as_row(self) -> Row:
        """The fields as a plain row."""
        return asdict(self)


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
        gaps = list(self.misfits)
        for p in self.partitions:
            reasons = p.problems + ([] if holes_waived else p.holes)
            gaps += [f"__transaction_state-{p.state_partition}: {reason}" for reason in reasons]
        return gaps

    def oldest_moment_ms(self) -> int | None:
        """Up to when all partitions speak; None where one of them never does."""
        moments = [p.moment_ms for p in self.partitions if p.state_partition < self.expected_count]
        return None if None in moments else min(ms for ms in moments if ms is not None)


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
    for section in sorted(sections, key=lambda s: (s.state_partition, s.file_base_offset)):
        partition = found.setdefault(section.state_partition, StatePartition(section.state_partition))
        partition.is_seen = True
        _add_section(partition, section)
    for number, partition in found.items():
        files = [s for s in sections if s.state_partition == number]
        _add_files(partition, files)
        partition.problems += sorted(log_problems.get(number, []))
        if number >= count:
            partition.problems.append(f"there is no partition {number} in {count}")
        if not partition.is_seen and not console:
            partition.problems.append("not in the capture")
    if console:
        _add_console(found, console)
    return [found[number] for number in sorted(found)]


def _add_section(partition: StatePartition, section: StateSection) -> None:
    partition.moment_ms = _latest(partition.moment_ms, section.moment_ms)
    partition.gap_ms = _latest(partition.gap_ms, section.gap_ms)
    if section.undecodable_count:
        partition.problems.append(f"{section.undecodable_count} records could not be decoded")
    if section.misplaced_count:
        partition.problems.append(f"{section.misplaced_count} records have ids that belong to another partition")


def _add_files(partition: StatePartition, files: list[StateSection]) -> None:
    ordered = sorted(files, key=lambda s: (s.file_base_offset, s.last_offset or -1))
    ends: list[tuple[int, StateSection]] = [(_end(s), s) for s in ordered]
    if ordered and ordered[0].file_base_offset != 0:
        partition.holes.append(f"does not begin with its first file, but with {ordered[0].file_base_offset}")
    if ordered and (ordered[0].first_offset or 0) > 0:
        partition.gap_ms = _latest(partition.gap_ms, ordered[0].first_ms)
    for (end, _), (_, section) in pairwise(ends):
        if section.file_base_offset > end:
            partition.holes.append(f"offsets {end} to {section.file_base_offset - 1} are in no file")
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
            if section.undecodable_count:
                partition.problems.append(f"{section.undecodable_count} records could not be decoded")
        partition.is_seen = True


def _latest(*moments: int | None) -> int | None:
    return max((ms for ms in moments if ms is not None), default=None)
