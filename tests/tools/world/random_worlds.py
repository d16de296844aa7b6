"""Random worlds, how they are copied, and what goes wrong on the way to the audit; each of a number.

Applications mostly do their daily work; now and then something is disturbed, and sometimes what is handed to the audit
is not what it is said to be.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.tools.world.evidence import BEGAN_MS, Evidence, evidence_of
from tests.tools.world.faults import (
    FAR_NAMES,
    FAR_NUMBERS,
    FAR_STATES,
    FAULTS,
    FAULTY,
    HALVES,
    TWIN,
    UNTRUE,
    WRONG_STATES,
)
from tests.tools.world.files import ONE_FILE, in_files, kind_of_files
from tests.tools.world.ids import FLINK, SHAPES, shape_of
from tests.tools.world.model import EPOCHS, LAST_EPOCH, Log, StateLog, Step, World
from tests.tools.world.steps import after, story_of
from tests.tools.world.teller import Teller, copies

NAMES = ("a", "b", "c")
EVENT_TIME_MS = 7_200_000


@dataclass(frozen=True)
class Plot:
    """What makes a world: how it begins, the steps that happen, and what is wrong with what is handed over."""

    seed: str
    partitions: int
    states: int
    version: int
    first_epoch: int
    steps: tuple[Step, ...]
    fault: str | None
    says_last: bool
    clocks_ms: tuple[int, ...] = ()
    names_previous: bool = True
    says_nothing_lost: bool = False
    epochs: int = EPOCHS
    old: frozenset[str] = frozenset()
    is_shallow: tuple[bool, ...] = ()
    files: str = ONE_FILE
    event_time_ms: int = 0
    is_copy_dated: bool = False
    cluster_id: str | None = None
    turn: int | None = None
    two_phase: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The ids that there may be."""
        return FAR_NAMES if self.states == FAR_STATES else NAMES

    def start(self) -> World:
        """Nothing has happened yet."""
        is_far = self.states == FAR_STATES
        return World(
            BEGAN_MS,
            self.version,
            (Log(),) * self.partitions,
            (StateLog(),) * (len(FAR_NUMBERS) if is_far else self.states),
            state_numbers=FAR_NUMBERS if is_far else (),
            state_count=FAR_STATES if is_far else 0,
            first_epoch=self.first_epoch,
            epochs=self.epochs,
            old=self.old,
            two_phase=self.two_phase,
            names_previous=self.names_previous,
            event_time_ms=self.event_time_ms,
        )

    def world(self) -> World:
        """The world after the steps; those that are not possible do not happen. All is copied in the end."""
        world = self.start()
        for step in (*self.steps, *copies(world)):
            world = after(world, step) or world
        return world

    def evidence(self, world: World) -> Evidence:
        """What is handed to the audit."""
        given = evidence_of(world, says_last=self.says_last and world.is_state_last, draws_together=False)
        nothing_lost = self.says_nothing_lost and not world.lost
        given = replace(given, clocks_ms=self.clocks_ms, no_records_lost=nothing_lost, is_shallow=self.is_shallow)
        given = replace(given, cluster_id=self.cluster_id, turn=self.turn)
        if self.fault is not None:
            return FAULTY[self.fault](given, self, world)
        states, folders = in_files(given.states, self.files, self.seed)
        as_of_ms = world.now_ms if self.is_copy_dated else None
        return replace(given, states=states, folders=folders, as_of_ms=as_of_ms)

    def another(self, number: int) -> Plot:
        """That of another cluster."""
        return random_plot(f"{self.seed}, another cluster {number}", is_faulty=False)

    def without(self, index: int) -> Plot:
        """The same with one step less."""
        return replace(self, steps=self.steps[:index] + self.steps[index + 1 :])

    def story(self) -> tuple[str, ...]:
        """What happened and is said, a sentence each."""
        world = self.world()
        said = (
            (self.version > 1 and self.epochs != EPOCHS, f"a producer id has {self.epochs} epochs"),
            (bool(self.old), f"{', '.join(sorted(self.old))} speak version 1"),
            (any(self.is_shallow), f"shallow dumps: {', '.join(str(n) for n, it in enumerate(self.is_shallow) if it)}"),
            (bool(self.two_phase), f"{', '.join(sorted(self.two_phase))} commit in two phases, and never time out"),
            (self.cluster_id is not None, "all files are of folders of one cluster.id"),
            (self.says_last and world.is_state_last, "it is said that the state was copied last, which is true"),
            (self.says_nothing_lost and not world.lost, "it is said that no record was lost, which is true"),
            (self.fault is None and self.files != ONE_FILE, self.files),
            (self.event_time_ms > 0, "clients date what they write two hours back"),
            (self.fault is None and self.is_copy_dated, "it is said when the files were copied"),
        )
        true = tuple(words for holds, words in said if holds)
        return (*story_of(world.steps), *true, *((self.fault,) if self.fault else ()))


def random_plot(seed: str, *, is_faulty: bool) -> Plot:
    """A random one; most have hours at their end, in which what hangs gets late.

    Of those without a fault two of five are *told*: nothing is lost, the logs are copied first, all words are said
    and true, and mostly something hangs. In a busy one ids use up their producer ids. Half of those with the state of
    their cluster have a `cluster.id` that says so.
    """
    source = random.Random(seed)
    fault = source.choice(FAULTS) if is_faulty else None
    is_told = fault is None and source.random() < 0.4
    version = 2 if is_told and source.random() < 0.5 else source.choice((0, 1, 2, 2))
    is_busy = version == 2 and source.random() < (0.8 if is_told else 0.6)
    partitions = source.choice((1, 1, 2))
    states = FAR_STATES if fault in HALVES else source.choice((1, 2))
    names = FAR_NAMES if states == FAR_STATES else NAMES[: source.choice((1, 2, 3))]
    plot = Plot(
        seed=seed,
        partitions=partitions,
        states=states,
        version=version,
        first_epoch=LAST_EPOCH - source.randrange(3) if version == 2 and source.random() < 0.2 else 0,
        steps=(),
        fault=fault,
        says_last=is_told or source.random() < 0.7,
        clocks_ms=tuple(source.randint(-400, 400) for _ in range(partitions)) if source.random() < 0.3 else (),
        names_previous=source.random() < 0.5,
        says_nothing_lost=is_told or source.random() < 0.5,
        epochs=source.choice((2, 4, 8, EPOCHS)) if is_busy else EPOCHS,
        old=frozenset(name for name in names[1:] if source.random() < 0.5) if version == 2 else frozenset(),
        is_shallow=() if is_told or source.random() < 0.6 else tuple(source.random() < 0.7 for _ in range(partitions)),
    )
    of_clients = random.Random(f"{seed}, the clients' clock")
    plot = replace(
        plot,
        files=kind_of_files(seed),
        event_time_ms=of_clients.choice((0, 0, 0, EVENT_TIME_MS)),
        is_copy_dated=of_clients.random() < 0.5,
    )
    has_id = fault not in WRONG_STATES and random.Random(f"{seed}, its cluster.id").random() < 0.5
    plot = replace(plot, cluster_id="one cluster" if has_id else None)
    teller = Teller(names, source, is_calm=is_told or source.random() < 0.4, is_busy=is_busy)
    plot = replace(plot, steps=_told(plot.start(), fault, teller, is_told=is_told).steps)
    of_owners = random.Random(f"{seed}, who names the ids")
    turn = of_owners.randrange(len(SHAPES))
    flinks = (name for name in names if shape_of(name, turn) == FLINK)
    return replace(plot, turn=turn, two_phase=frozenset(name for name in flinks if of_owners.random() < 0.5))


def _told(world: World, fault: str | None, teller: Teller, *, is_told: bool) -> World:
    source = teller.source
    if fault == TWIN:
        world = teller.some(world, 2, 15)
    if fault in WRONG_STATES:
        # Only a log in which others of this cluster have ended transactions can tell that the state is not its own.
        world = after(world, Step("pass")) or world
    world = teller.some(world, 0, 8) if teller.is_busy else world
    world = teller.busy(world, 2 if is_told else 1) if teller.is_busy else world
    world = teller.some(world, 5, 30)
    if is_told:
        world = teller.compacted(world) if source.random() < (0.9 if teller.is_busy else 0.5) else world
        world = teller.hanging(world) if source.random() < 0.7 else world
        world = teller.some(world, 0, 3)
    if is_told or source.random() < 0.8:
        world = after(world, Step("pass")) or world
    order = list(copies(world))
    if fault == UNTRUE and source.random() < 0.5:
        order.reverse()
        world = teller.some(teller.copied(world, order[: len(world.states)]), 2, 12)
        world = after(world, Step("pass")) or world
    elif not is_told and source.random() < 0.5:
        source.shuffle(order)
    return teller.copied(world, order)
