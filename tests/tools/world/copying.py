"""Copies with manifests: how a kit, or a collector, copies a world that goes on, and what it writes down of that.

A copier is honest: it writes what its clock shows and what the controller answers. Its clock may be set meanwhile, its
broker may be demoted and keep its files, a new leader's high watermark may be behind, the cleaner may pass between two
segments of the state, and it may be killed. A weaker reading of what it writes is fooled by each of these.
"""

import random
from dataclasses import dataclass, field, replace

from tests.tools.stories.histories import STATE_TOPIC
from tests.tools.world.described import Answer, epoch_start, fetch, last_stable_offset, producers_of
from tests.tools.world.disturbances import (
    BEHIND,
    CLEANED,
    DEMOTED,
    KILLED,
    STALE,
    STEPS,
    UNNAMED,
    Clock,
)
from tests.tools.world.evidence import TOPIC
from tests.tools.world.model import Batch, Log, StateLog, StateRow, Step, World
from tests.tools.world.steps import after
from tests.tools.world.teller import Teller
from txn_analysis.tables.inputs import CopiedFile, Manifest

Place = tuple[str, int]

_BY_MS = (400, 5_000, 3_600_000, 7_200_000)
_HOURS_MS = 2 * 3_600_000
_DEMOTING = (DEMOTED, KILLED, STALE)


@dataclass
class Copier:
    """One copy of a world that goes on; `world` is how it is by now.

    Attributes:
        kind: what disturbs it.
        is_collector: it reads over the network, to the high watermark; else from the leaders' disks.
        is_loaded: in each log something is written when it is copied, and committed at once.
        copied_at_ms: by the true time, when a log had been copied.
        asks_producers: it asks for them, and fetches what is stuck from the lowest open start on.
        is_whole: then it fetches every log, from its start on.
        whole_logs: what the logs held, and up to where they were fetched.
    """

    world: World
    teller: Teller
    kind: str
    is_collector: bool
    clocks: list[Clock]
    is_loaded: bool = False
    copied_at_ms: dict[int, int] = field(default_factory=dict)
    asks_producers: bool = False
    is_whole: bool = False
    described: dict[int, Answer] = field(default_factory=dict)
    whole_logs: dict[int, tuple[tuple[Batch, ...], int]] = field(default_factory=dict)
    logs: dict[int, tuple[Batch, ...]] = field(default_factory=dict)
    states: dict[int, tuple[StateRow, ...]] = field(default_factory=dict)
    files: list[tuple[int, CopiedFile]] = field(default_factory=list)
    epoch_starts: dict[Place, tuple[int, int]] = field(default_factory=dict)

    @property
    def source(self) -> random.Random:
        """Of everything that is left to chance."""
        return self.teller.source

    def happens(self, chance: float = 0.5) -> None:
        """Applications, coordinators and time go on."""
        if self.source.random() < chance:
            what = self.source.choice((self._daily, self._ends, self._ends, self._begins))
            what()

    def _daily(self) -> None:
        for _ in range(self.source.randrange(1, 4)):
            self.world = self.teller.step(self.world) or self.world

    def _begins(self) -> None:
        """A transaction begins, which will be late when it is copied."""
        name, number = self.source.choice(self.teller.names), self.source.randrange(len(self.world.logs))
        for kind in ("begin", "write"):
            self.done(kind, number, name)
        self.is_late()

    def _skips(self) -> None:
        """A commit is acknowledged whose marker is never written."""
        name, number = self.source.choice(self.teller.names), self.source.randrange(len(self.world.logs))
        for kind in ("begin", "write", "commit", "skip", "complete"):
            self.done(kind, number if kind in {"begin", "write", "skip"} else -1, name)

    def has_begun(self) -> None:
        """Mostly something is open, and late, before the first byte is read."""
        for _ in range(self.source.choice((0, 1, 1, 2))):
            self._begins()
        if self.source.random() < 0.5:
            self.done("pass")
        if self.source.random() < 0.25:
            self._skips()
            self.waits(_HOURS_MS)

    def is_late(self) -> None:
        """Hours pass, in which others end their transactions or nothing at all is written."""
        if self.source.random() < 0.5:
            self.done("pass")
        else:
            self.waits(_HOURS_MS)

    def _ends(self) -> None:
        """What is open is committed, ended everywhere, and mostly compacted; nothing is left of it but its marker."""
        for name, _ in self.world.current:
            self.done("commit", name=name)
            for number in range(len(self.world.logs)):
                self.done("marker", number, name)
            self.done("complete", name=name)
        if self.source.random() < 0.7:
            for number in range(len(self.world.states)):
                self.done("compact", number)

    def done(self, kind: str, number: int = -1, name: str = "") -> None:
        """One thing happens, if it can."""
        self.world = after(self.world, Step(kind, name, number)) or self.world

    def waits(self, ms: int) -> None:
        """So much time passes."""
        self.world = replace(self.world, now_ms=self.world.now_ms + ms)

    def sets_clock(self) -> None:
        """Somebody sets the clock, where that is what goes wrong."""
        if self.kind == STEPS and self.source.random() < 0.4:
            self.clocks[0].apart_ms += self.source.choice((-1, 1)) * self.source.choice(_BY_MS)

    # One file.

    def copies_log(self, number: int) -> None:
        """Read one partition's log, of the broker that led it when the controller was asked."""
        name = self.names_under_load(number)
        for kind in ("begin", "write") if self.is_loaded else ():
            self.done(kind, number, name)
        self._copies_log(number)
        self.copied_at_ms[number] = self.world.now_ms
        if self.is_loaded:
            self.done("commit", name=name)
            self.done("marker", number, name)
            self.done("complete", name=name)

    def names_under_load(self, number: int) -> str:
        """Whose transaction it is."""
        return self.teller.names[number % len(self.teller.names)]

    def _copies_log(self, number: int) -> None:
        if self.kind == BEHIND and self.source.random() < 0.7:
            self._behind(number)
            return
        if self.asks_producers:
            self._fetches(number)
            return
        asked = self.world.logs[number].leader_epoch
        frozen = self._cut_off(number)
        began = self.times(number)
        self.happens()
        batches = self.world.logs[number].batches
        if frozen is not None and self.source.random() < 0.7:
            batches = frozen.batches  # it fetches nothing from the new leader
        self.sets_clock()
        self.happens()
        self.logs[number] = batches
        self._note((TOPIC, number), number, began, asked)

    def _cut_off(self, number: int) -> Log | None:
        """Somebody else leads from now on; the log of the one who did."""
        if self.kind not in _DEMOTING or self.source.random() >= 0.7:
            return None
        before = self.world.logs[number]
        self._demoted("elect", number)
        self._knows_better((TOPIC, number), self.world.logs[number])
        return before

    def _fetches(self, number: int) -> None:
        """From the leader, or from one that does not know that it is none any more."""

        def demote() -> Log | None:
            before = self._cut_off(number)
            return before if self.source.random() < 0.7 else None

        found = fetch(self, number, is_whole=self.is_whole, demote=demote)
        place = (TOPIC, number)
        self.logs[number], self.described[number] = found.batches, found.answer
        self.whole_logs[number] = (found.whole, found.end_offset)
        self.epoch_starts.setdefault(place, found.epoch)
        first = found.answer.first_offset
        self._note(place, number, found.began, found.epoch[0], asked_end=found.end_offset, first=first)

    def is_stuck(self, number: int) -> bool:
        """Its last stable offset lags, so that it is fetched."""
        log = self.world.logs[number]
        return last_stable_offset(log, log.next_offset) < log.next_offset

    def _demoted(self, kind: str, number: int) -> None:
        """The leader changes once, or comes back after another one; the new one goes on."""
        for _ in range(self.source.choice((1, 2))):
            self.done(kind, number)
            self.happens(0.8)

    def _knows_better(self, place: Place, log: Log | StateLog) -> None:
        """What a broker that follows the new leader writes down, whatever it answers."""
        if self.kind == STALE:
            self.epoch_starts[place] = (log.leader_epoch, log.next_offset)

    def _state_place(self, number: int) -> Place:
        return STATE_TOPIC, self.world.state_numbers[number] if self.world.state_numbers else number

    def _behind(self, number: int) -> None:
        """A new leader was elected, and gives what lies below its old high watermark for all that there is.

        Before KIP-207 it answers so when it is asked for its end as well.
        """
        before = self.world.logs[number]
        self.done("elect", number)
        start = before.next_offset
        mark = self.source.randrange(max(0, start - 4), start) if start else 0
        began = self.times(number)
        self.happens(0.3)
        self.logs[number] = tuple(b for b in before.batches if b.offset < mark)
        if self.asks_producers:  # all that it has written counts, whatever its high watermark is
            producers = producers_of(self.world.logs[number], lambda: False)
            first = self.logs[number][0].offset if self.logs[number] else 0
            self.described[number] = Answer(first, mark, producers)
            self.whole_logs[number] = (self.world.logs[number].batches, mark)
        place = (TOPIC, number)
        epoch = self.world.logs[number].leader_epoch
        if not self.is_collector or self.source.random() < 0.3:
            self.epoch_starts[place] = (before.leader_epoch + 1, start)
        self._note(place, number, began, epoch, asked_end=mark if self.is_collector else None, is_known=True)

    def copies_state(self, number: int) -> None:
        """Read one partition of the state in two segments; the folder is listed again, and read again if it changed."""
        asked = self.world.states[number].leader_epoch
        frozen = None
        if self.kind in _DEMOTING and self.source.random() < 0.7:
            frozen = self.world.states[number].rows
            self._demoted("elect_state", number)
            self._knows_better(self._state_place(number), self.world.states[number])
        began = self.times(len(self.world.logs) + number)
        rows, is_confirmed = self._read_state(number)
        if frozen is not None and self.source.random() < 0.7:
            rows, is_confirmed = frozen, True
        self.states[number] = rows
        self._note(self._state_place(number), number, began, asked, is_confirmed=is_confirmed)

    def _read_state(self, number: int) -> tuple[tuple[StateRow, ...], bool]:
        for _ in range(self.source.choice((1, 1, 2))):  # it gives up sooner or later, and says so
            rows = self.world.states[number].rows
            middle = rows[self.source.randrange(len(rows))].offset if rows else 0
            older = tuple(row for row in rows if row.offset < middle)
            self.happens(0.2 if self.kind == CLEANED else 0.6)
            if self.kind == CLEANED and self.source.random() < 0.8:
                self.happens(0.2)
                self.done("compact", number)
            newer = tuple(row for row in self.world.states[number].rows if row.offset >= middle)
            if self.kind == CLEANED and self.source.random() < 0.6:
                # The active segment was rolled, and the cleaner put what it held into the first one.
                gone = self.source.randrange(len(newer)) if newer else 0
                newer = newer[gone:] if self.world.states[number].rows != rows else newer
            self.sets_clock()
            read = (*older, *newer)
            now = self.world.states[number].rows
            if now[: len(read)] == read:
                return read, True
        return read, self.kind == KILLED  # which did not come to list the folder again

    def times(self, number: int) -> tuple[int, int, int]:
        """By its clock, and the number of whose clock that is."""
        clock = self._clock(number)
        return clock.wall_ms(self.world), clock.monotonic_ms(self.world), number

    def _clock(self, number: int) -> Clock:
        return self.clocks[number % len(self.clocks)]

    def _note(
        self,
        place: Place,
        number: int,
        began: tuple[int, int, int],
        asked: int,
        *,
        asked_end: int | None = None,
        first: int | None = None,
        is_known: bool = False,
        is_confirmed: bool = True,
    ) -> None:
        """Write down what was read, and from whom; the leader is asked once more at the end (`asked_again`)."""
        began_ms, monotonic_ms, clock_number = began
        log = self.world.states[number] if place[0] == STATE_TOPIC else self.world.logs[number]
        copy = self.states[number] if place[0] == STATE_TOPIC else self.logs[number]
        if place not in self.epoch_starts and not self.is_collector and self.source.random() < 0.8:
            epoch = log.leader_epoch if self.source.random() < 0.5 or is_known else asked
            rows = self.world.states[number].rows if place[0] == STATE_TOPIC else self.world.logs[number].batches
            self.epoch_starts[place] = (epoch, epoch_start(rows, epoch, log.next_offset))
        file = CopiedFile(
            input_id=f"{place[0]}-{place[1]}",
            path=f"{place[0]}-{place[1]}/0.log",
            is_given=True,
            sequence=len(self.files),
            topic=place[0],
            partition=place[1],
            leader_id=None if self.kind == UNNAMED and self.source.random() < 0.3 else 1,
            leader_epoch=asked,
            is_leader_confirmed=True,
            is_end_confirmed=is_confirmed,
            began_ms=began_ms,
            ended_ms=self._clock(clock_number).wall_ms(self.world),
            began_monotonic_ms=monotonic_ms,
            first_offset=copy[0].offset if copy else first,
            end_offset=asked_end,
        )
        self.files.append((clock_number % len(self.clocks), file))

    def asked_again(self) -> None:
        """The controller is asked after the last byte: what it answers must be what it answered before."""
        confirmed = []
        for number, file in self.files:
            assert file.topic is not None
            assert file.partition is not None
            logs = self.world.states if file.topic == STATE_TOPIC else self.world.logs
            place = file.partition
            if file.topic == STATE_TOPIC and self.world.state_numbers:
                place = self.world.state_numbers.index(place)
            is_same = self.kind == STALE or logs[place].leader_epoch == file.leader_epoch
            confirmed.append((number, file._replace(is_leader_confirmed=is_same)))
        self.files = confirmed

    def manifests(self) -> tuple[Manifest, ...]:
        """What was written down; a kit that was killed had not asked again whether it was still so."""
        kind = "collector" if self.is_collector else "broker"
        found = []
        for number in range(len(self.clocks)):
            files = tuple(
                file._replace(leader_id=file.leader_id and number + 1) for n, file in self.files if n == number
            )
            broker_id = None if self.is_collector else number + 1
            found.append(Manifest(f"{number}.json", kind, None, broker_id, self.kind != KILLED, files))
        return tuple(found)
