"""Copies with manifests: how a kit, or a collector, copies a world that goes on, and what it writes down of that.

A copier is honest: it writes what its clock shows and what the controller answers. Its clock may be set meanwhile, its
broker may be demoted and keep its files, a new leader's high watermark may be behind, the cleaner may pass between two
segments of the state, and it may be killed. A weaker reading of what it writes is fooled by each of these.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.core.histories import STATE_TOPIC
from tests.world.evidence import TOPIC, Evidence, evidence_of
from tests.world.model import Step
from tests.world.random_worlds import random_plot
from tests.world.steps import after
from tests.world.teller import Teller
from txn_analysis.tables.inputs import CopiedFile, Manifest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.world.model import Batch, Log, StateLog, StateRow, World
    from tests.world.random_worlds import Plot

Place = tuple[str, int]

CALM = "nothing is disturbed"
STEPS = "the clock is set"
KILLED = "the kit is killed"
STATE_FIRST = "the state is copied first"
DEMOTED = "a leader is demoted, and its files go on"
BEHIND = "a new leader's high watermark is behind"
CLEANED = "the cleaner passes while the state is read"
UNNAMED = "a file is in no manifest"
SEVERAL = "each broker has its own kit"
STALE = "a broker that was demoted answers for the controller, and a checkpoint knows better"
KINDS = (CALM, STEPS, KILLED, STATE_FIRST, DEMOTED, BEHIND, CLEANED, UNNAMED, SEVERAL, STALE)

_BY_MS = (400, 5_000, 3_600_000, 7_200_000)
_HOURS_MS = 2 * 3_600_000
_PAUSES_MS = (0, 1_000, 2_000, 60_000)
_DEMOTING = (DEMOTED, KILLED, STALE)


@dataclass
class _Clock:
    """A wall clock that may be set, beside a monotonic one that is not."""

    apart_ms: int
    began_ms: int

    def wall_ms(self, world: World) -> int:
        return world.now_ms + self.apart_ms

    def monotonic_ms(self, world: World) -> int:
        return 5_000 + world.now_ms - self.began_ms


@dataclass
class Copier:
    """One copy of a world that goes on; `world` is how it is by now.

    Attributes:
        kind: what disturbs it.
        is_collector: it reads over the network, to the high watermark; else from the leaders' disks.
    """

    world: World
    teller: Teller
    kind: str
    is_collector: bool
    clocks: list[_Clock]
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
        asked = self.world.logs[number].leader_epoch
        frozen = None
        if self.kind in _DEMOTING and self.source.random() < 0.7:
            frozen = self.world.logs[number].batches
            self._demoted("elect", number)
            self._knows_better((TOPIC, number), self.world.logs[number])
        if self.kind == BEHIND and self.source.random() < 0.7:
            self._behind(number)
            return
        began = self._times(number)
        self.happens()
        batches = self.world.logs[number].batches
        if frozen is not None and self.source.random() < 0.7:
            batches = frozen  # it fetches nothing from the new leader
        self.sets_clock()
        self.happens()
        self.logs[number] = batches
        self._note((TOPIC, number), number, began, asked)

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
        began = self._times(number)
        self.happens(0.3)
        self.logs[number] = tuple(b for b in before.batches if b.offset < mark)
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
        began = self._times(len(self.world.logs) + number)
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

    def _times(self, number: int) -> tuple[int, int, int]:
        clock = self._clock(number)
        return clock.wall_ms(self.world), clock.monotonic_ms(self.world), number

    def _clock(self, number: int) -> _Clock:
        return self.clocks[number % len(self.clocks)]

    def _note(
        self,
        place: Place,
        number: int,
        began: tuple[int, int, int],
        asked: int,
        *,
        asked_end: int | None = None,
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
            of_epoch = [row.offset for row in rows if row.leader_epoch == epoch]
            self.epoch_starts[place] = (epoch, min(of_epoch, default=log.next_offset))
        first = copy[0].offset if copy else None
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
            first_offset=first,
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


def told(seed: str, kind: str | None = None) -> tuple[Plot, Copier, Evidence]:
    """A random world, its copy, and what is handed to the audit; nobody gives a word but in the wrong order."""
    plot = random_plot(f"{seed}, copied", is_faulty=False)
    source = random.Random(f"{seed}, the copier")
    world = plot.start()
    for step in plot.steps:
        world = world if step.kind.startswith("copy") else after(world, step) or world
    kind = kind or source.choice(KINDS)
    is_collector = kind == BEHIND or source.random() < 0.4
    number = 2 if kind == SEVERAL else 1
    most_ms = 4 * 3_600_000 if is_collector else 400 if plot.clocks_ms else 0
    clocks = [_Clock(source.randint(-most_ms, most_ms), world.now_ms) for _ in range(number)]
    is_calm = source.random() < 0.5
    copier = Copier(world, Teller(plot.names, source, is_calm=is_calm), kind, is_collector, clocks)
    copier.has_begun()
    _copy(copier)
    return plot, copier, _evidence(plot, copier)


def _copy(copier: Copier) -> None:
    logs = [("log", n) for n in range(len(copier.world.logs))]
    states = [("state", n) for n in range(len(copier.world.states))]
    order: Sequence[tuple[str, int]] = [*states, *logs] if copier.kind == STATE_FIRST else [*logs, *states]
    if copier.kind == UNNAMED:  # the last log, which nobody names, is copied when all else has been
        order = [*logs[:-1], *states, logs[-1]]
    for place, (what, number) in enumerate(order):
        if place and what != order[place - 1][0]:
            copier.happens()
            copier.waits(copier.source.choice(_PAUSES_MS))
        if place:  # a clock that is wrong from the first byte on is a broker's that is beyond what clocks may differ
            copier.sets_clock()
        if what == "log":
            copier.copies_log(number)
        else:
            copier.copies_state(number)
    if copier.kind != KILLED:
        copier.asked_again()


def _evidence(plot: Plot, copier: Copier) -> Evidence:
    world = copier.world
    copied = replace(
        world,
        logs=tuple(replace(log, copy=copier.logs[n]) for n, log in enumerate(world.logs)),
        states=tuple(replace(state, copy=copier.states[n]) for n, state in enumerate(world.states)),
    )
    copier.world = copied
    is_steady = copier.kind == STATE_FIRST
    given = evidence_of(copied, says_last=is_steady and copier.source.random() < 0.7, draws_together=False)
    manifests = copier.manifests()
    if copier.kind == UNNAMED:
        manifests = (manifests[0]._replace(files=manifests[0].files[:-1]),)
    return replace(
        given,
        clocks_ms=plot.clocks_ms,
        no_records_lost=copier.source.random() < 0.7 and not world.lost,
        as_of_ms=world.now_ms if copier.source.random() < 0.6 else None,
        is_shallow=plot.is_shallow,
        manifests=manifests,
        epoch_starts=tuple(copier.epoch_starts.items()),
    )
