"""What was copied, as the contract's definitions see it: moments, histories of ids, gaps, end markers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.tools.stories.stories import holder
from tests.tools.world.evidence import Evidence
from tests.tools.world.files import Folder
from tests.tools.world.ids import id_of
from tests.tools.world.model import Batch, StateRow

NEVER_MS = 10**18
WEEK_MS = 604_800_000
MOST_PARTITIONS = 1_000_000
DEFAULT_PARTITIONS = 50
UNPRINTED = "of unknown kind"


class Entry(NamedTuple):
    """A record of the coordinator: `at_ms` is its own time, `by_ms` the latest at which it can have been written."""

    row: StateRow
    at_ms: int
    by_ms: int
    home: int

    @property
    def word(self) -> str:
        """Its state."""
        return self.row.state or "Tombstone"


History = list[Entry]


class Rise(NamedTuple):
    """The leader epoch of a partition of the state rises between two records, with or without a hole there."""

    after_ms: int
    by_ms: int
    is_at_hole: bool


@dataclass
class Part:
    """A partition of the state: its last and first moment, the end of its newest gap, where its leader changed.

    `said_ms` is the last moment by offset that is not later than `--as-of`.
    """

    last_ms: int | None = None
    said_ms: int | None = None
    first_ms: int | None = None
    gap_ms: int | None = None
    hole_ms: int | None = None
    is_without_first_file: bool = False
    is_folder_whole: bool = False
    rises: list[Rise] = field(default_factory=list)
    top_epoch: int = -1


class Marker(NamedTuple):
    """An end marker; its word is UNPRINTED where the dump does not print the kind.

    `data_epoch` is the highest one of what its producer wrote between it and the marker before, if anything.
    """

    offset: int
    word: str
    at_ms: int
    epoch: int
    coordinator_epoch: int
    data_epoch: int | None

    @property
    def is_of_unknown_kind(self) -> bool:
        """It is in a shallow dump."""
        return self.word == UNPRINTED

    def may_be(self, word: str) -> bool:
        """It is of a kind, or may be."""
        return self.is_of_unknown_kind or self.word == word

    def repeats(self, before: Marker) -> bool:
        """It is, or may be, one with the marker before."""
        is_alike = self.may_be(before.word) or before.is_of_unknown_kind
        return is_alike and self.epoch == before.epoch and self.data_epoch is None


class Copies:
    """Everything that was handed over."""

    def __init__(self, given: Evidence, skew_ms: int) -> None:
        self.given, self.skew = given, skew_ms
        self.count, self.has_larger_count = given.stated_count or len(given.states), False
        if given.is_count_unsaid:
            self._derive_count()
        clocks = given.clocks_ms or (0,) * len(given.logs)
        is_shallow = given.is_shallow or (False,) * len(given.logs)
        self.logs = [
            [_printed(b, clocks[n], is_shallow=is_shallow[n]) for b in log] for n, log in enumerate(given.logs)
        ]
        self.ids: dict[str, History] = {}
        self.parts: dict[int, Part] = {}
        for n, rows in enumerate(given.states):
            if n not in given.absent:
                self._read_export(rows) if given.is_console else self._read_dump(n, rows)
        moments = [b.at_ms for log in self.logs for b in log if b.word]
        moments += [e.at_ms for own in self.ids.values() for e in own]
        newest = self.newest = max(moments, default=None)
        self.as_of = newest if given.as_of_ms is None else given.as_of_ms
        self.reach = max((ms for ms in (newest, self.as_of) if ms is not None), default=0)
        producers = ((n, b.producer_id) for n, log in enumerate(self.logs) for b in log)
        self.markers = {place: self._markers(*place) for place in producers}

    def _derive_count(self) -> None:
        """The one number of partitions that fits every id in a dump, else 50; and whether a larger one fits as well."""
        self.count = DEFAULT_PARTITIONS
        if self.given.is_console:
            return
        seen = {
            (id_of(r.name, self.given.turn), n)
            for n, rows in enumerate(self.given.states)
            if n not in self.given.absent
            for r in rows
        }
        step = math.gcd(*(holder(name, 2**31) - n for name, n in seen))
        least = max((n for _, n in seen), default=0) + 1
        most = min(step, MOST_PARTITIONS) if step else MOST_PARTITIONS
        fitting = range(least, most + 1) if not step else [c for c in range(least, most + 1) if step % c == 0]
        self.count = fitting[0] if len(fitting) == 1 else DEFAULT_PARTITIONS
        self.has_larger_count = bool(fitting) and fitting[-1] > self.count

    def _read_dump(self, n: int, rows: tuple[StateRow, ...]) -> None:
        part, end = Part(), 0
        for before, r in zip((None, *rows), rows, strict=False):
            self.ids.setdefault(r.name, []).append(Entry(r, r.at_ms, r.at_ms, n))
            if r.offset > end:
                part.gap_ms = max(part.gap_ms or 0, r.at_ms)
            if before is not None and r.leader_epoch > before.leader_epoch:
                part.rises.append(Rise(before.at_ms, r.at_ms, is_at_hole=r.offset > end))
            part.top_epoch = max(part.top_epoch, r.leader_epoch)
            part.first_ms = min(part.first_ms or NEVER_MS, r.at_ms)
            part.last_ms, end = r.at_ms, r.offset + 1
            part.said_ms = r.at_ms if self._is_said(r.at_ms) else part.said_ms
        if self.given.folders:
            self._read_files(part, self.given.folders[n], rows)
        self.parts[n] = part

    def _read_files(self, part: Part, folder: Folder, rows: tuple[StateRow, ...]) -> None:
        """Holes between two files, each with the moment behind it, and whether no file is missing.

        Whole folder: the manifest says so, and the first file is named 0.
        """
        end = folder.bases[0]
        part.is_without_first_file = end != 0
        part.is_folder_whole = folder.is_whole is True and end == 0
        for base, upper in zip(folder.bases, (*folder.bases[1:], NEVER_MS), strict=True):
            own = [r for r in rows if base <= r.offset < upper]
            if base > end:
                part.hole_ms = max(part.hole_ms or 0, own[0].at_ms if own else NEVER_MS)
            end = max(end, own[-1].offset + 1 if own else base)

    def _read_export(self, rows: tuple[StateRow, ...]) -> None:
        """A Complete record has the time of its decision; it was written before the id's next record."""
        for n in range(self.count):
            self.parts.setdefault(n, Part())
        later: dict[str, int] = {}
        for r in reversed(rows):
            home, at_ms = holder(r.name, self.count), 0 if r.state is None else r.update_ms
            if r.state is not None and not r.state.startswith("Complete"):
                later[r.name] = at_ms
            self.ids.setdefault(r.name, []).insert(0, Entry(r, at_ms, later.get(r.name, NEVER_MS), home))
            part = self.parts[home]
            if r.state is not None:
                part.last_ms, part.first_ms = max(part.last_ms or 0, at_ms), min(part.first_ms or NEVER_MS, at_ms)
                part.said_ms = max(part.said_ms or 0, at_ms) if self._is_said(at_ms) else part.said_ms

    def _is_said(self, ms: int) -> bool:
        """It is not later than the operator says that the copy is."""
        return self.given.as_of_ms is None or ms <= self.given.as_of_ms

    def _markers(self, n: int, producer_id: int) -> list[Marker]:
        found, data_epoch = [], None
        for b in (b for b in self.logs[n] if b.producer_id == producer_id):
            if b.word:
                found.append(Marker(b.offset, b.word, b.at_ms, b.epoch, b.coordinator_epoch, data_epoch))
            data_epoch = None if b.word else max(b.epoch, data_epoch or 0)
        return found

    @property
    def is_whole(self) -> bool:
        """Every partition of the state was given, and no more of them can be."""
        return set(self.parts) >= set(range(self.count)) and not self.has_larger_count

    @property
    def is_compacted(self) -> bool:
        """Something of the state may be gone."""
        return self.given.is_console or any(part.gap_ms is not None for part in self.parts.values())

    @property
    def top_epoch(self) -> int:
        """The highest leader epoch of all partitions of the state."""
        return max((part.top_epoch for part in self.parts.values()), default=-1)

    def known(self, producer_id: int) -> list[History]:
        """The histories of the ids that have, or had, a producer id."""

        def names(r: StateRow) -> bool:
            return r.state is not None and producer_id in (r.producer_id, r.previous_producer_id, r.next_producer_id)

        return [own for own in self.ids.values() if any(names(e.row) for e in own)]

    def gap_of(self, own: History) -> int | None:
        """When the newest gap of an id's history ends."""
        if not self.given.is_console:
            part = self.parts.get(own[0].home)
            return None if part is None else part.gap_ms
        r = own[0].row
        is_new = r.state == "Empty" and r.epoch == 0 and r.previous_producer_id is None
        return None if is_new else own[0].by_ms

    def gaps_of_ids(self) -> list[int]:
        """When the newest gap of each history ends that has one."""
        return [ms for own in self.ids.values() if (ms := self.gap_of(own)) is not None]


def _printed(b: Batch, clock_ms: int, *, is_shallow: bool) -> Batch:
    """A batch as its dump prints it: a shallow one prints neither the kind nor the coordinator epoch of a marker."""
    if b.word is None:
        return b
    ended = b._replace(at_ms=b.at_ms + clock_ms)
    return ended._replace(word=UNPRINTED, coordinator_epoch=-1) if is_shallow else ended


def lists(own: History, n: int, producer_id: int) -> bool:
    """The newest record has the producer id as its current one, and contains the partition."""
    r = own[-1].row
    return r.producer_id == producer_id and n in r.partitions


def open_data(log: list[Batch], producer_id: int) -> list[Batch]:
    """The data of a producer after its last end marker."""
    found: list[Batch] = []
    for b in (b for b in log if b.producer_id == producer_id):
        found = [] if b.word else [*found, b]
    return found
