"""What was copied, as the contract's definitions see it: moments, histories of ids, gaps, end markers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.core.stories import holder

if TYPE_CHECKING:
    from tests.world.evidence import Evidence
    from tests.world.model import Batch, StateRow

NEVER_MS = 10**18
WEEK_MS = 604_800_000
LIVE = {"Ongoing", "PrepareCommit", "PrepareAbort"}


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


@dataclass
class Part:
    """A partition of the state: its last and first moment, the end of its newest gap, where its leader changed."""

    last_ms: int | None = None
    first_ms: int | None = None
    gap_ms: int | None = None
    rises: list[tuple[int, int]] = field(default_factory=list)
    top_epoch: int = -1


class Marker(NamedTuple):
    """An end marker; `has_data` where its producer wrote between it and the one before."""

    offset: int
    word: str
    at_ms: int
    epoch: int
    coordinator_epoch: int
    has_data: bool

    def repeats(self, before: Marker) -> bool:
        """It is one with the marker before."""
        return (self.word, self.epoch) == (before.word, before.epoch) and not self.has_data


class Copies:
    """Everything that was handed over."""

    def __init__(self, given: Evidence, skew_ms: int) -> None:
        self.given, self.skew = given, skew_ms
        self.count = given.stated_count or len(given.states)
        clocks = given.clocks_ms or (0,) * len(given.logs)
        self.logs = [
            [b._replace(at_ms=b.at_ms + clocks[n]) if b.word else b for b in log] for n, log in enumerate(given.logs)
        ]
        self.ids: dict[str, History] = {}
        self.parts: dict[int, Part] = {}
        for n, rows in enumerate(given.states):
            if n not in given.absent:
                self._read_export(rows) if given.is_console else self._read_dump(n, rows)
        moments = [b.at_ms for log in self.logs for b in log if b.word]
        moments += [e.at_ms for own in self.ids.values() for e in own]
        newest = max(moments, default=None)
        self.as_of = newest if given.as_of_ms is None else given.as_of_ms
        self.reach = max((ms for ms in (newest, self.as_of) if ms is not None), default=0)
        producers = ((n, b.producer_id) for n, log in enumerate(self.logs) for b in log)
        self.markers = {place: self._markers(*place) for place in producers}

    def _read_dump(self, n: int, rows: tuple[StateRow, ...]) -> None:
        part, end = Part(), 0
        for before, r in zip((None, *rows), rows, strict=False):
            self.ids.setdefault(r.name, []).append(Entry(r, r.at_ms, r.at_ms, n))
            if r.offset > end:
                part.gap_ms = max(part.gap_ms or 0, r.at_ms)
            if before is not None and r.leader_epoch > before.leader_epoch:
                part.rises.append((before.at_ms, r.at_ms))
            part.top_epoch = max(part.top_epoch, r.leader_epoch)
            part.first_ms = min(part.first_ms or NEVER_MS, r.at_ms)
            part.last_ms, end = r.at_ms, r.offset + 1
        self.parts[n] = part

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

    def _markers(self, n: int, producer_id: int) -> list[Marker]:
        found, has_data = [], False
        for b in (b for b in self.logs[n] if b.producer_id == producer_id):
            if b.word:
                found.append(Marker(b.offset, b.word, b.at_ms, b.epoch, b.coordinator_epoch, has_data))
            has_data = not b.word
        return found

    @property
    def is_whole(self) -> bool:
        """Every partition of the state was given."""
        return set(self.parts) == set(range(self.count))

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


def lists(own: History, n: int, producer_id: int) -> bool:
    """The newest record has the producer id as its current one, and contains the partition."""
    r = own[-1].row
    return r.state in LIVE and r.producer_id == producer_id and n in r.partitions


def open_data(log: list[Batch], producer_id: int) -> list[Batch]:
    """The data of a producer after its last end marker."""
    found: list[Batch] = []
    for b in (b for b in log if b.producer_id == producer_id):
        found = [] if b.word else [*found, b]
    return found
