"""Random worlds, how they are copied, and what goes wrong on the way to the audit; each of a number.

Applications mostly do their daily work; now and then something is disturbed, and sometimes what is handed to the audit
is not what it is said to be.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from tests.world.evidence import BEGAN_MS, Evidence, evidence_of
from tests.world.model import LAST_EPOCH, Log, StateLog, Step, World
from tests.world.small import DISTURBANCES
from tests.world.steps import after, steps_of, story_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.world.model import StateRow

NAMES = ("a", "b", "c")
_WEIGHTS = {"write": 6, "begin": 5, "commit": 5, "marker": 8, "complete": 8, "abort": 2, "pass": 1, "write_late": 4}
_DISTURBED = 0.12
_TRIES = 25
_OF_THE_WRONG_STATE = ("the state is said to have half as many partitions", "the state is another cluster's")
LEFT_BEHIND = "a log is that of a replica that was left behind"
FAULTS = (
    "the state is said to be copied last, and was not",
    "a partition of the state is missing",
    "the state is said to have half as many partitions",
    "the state is another cluster's",
    "the first batches of a log are gone",
    "the state is a console export",
    "--as-of is earlier than the copy",
    LEFT_BEHIND,
)


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

    def start(self) -> World:
        """Nothing has happened yet."""
        return World(
            BEGAN_MS,
            self.version,
            (Log(),) * self.partitions,
            (StateLog(),) * self.states,
            first_epoch=self.first_epoch,
            names_previous=self.names_previous,
        )

    def world(self) -> World:
        """The world after the steps; those that are not possible do not happen. All is copied in the end."""
        world = self.start()
        for step in (*self.steps, *_copies(world)):
            world = after(world, step) or world
        return world

    def evidence(self, world: World) -> Evidence:
        """What is handed to the audit."""
        given = evidence_of(world, says_last=self.says_last and world.is_state_last, draws_together=False)
        nothing_lost = self.says_nothing_lost and not world.lost
        given = replace(given, clocks_ms=self.clocks_ms, no_records_lost=nothing_lost)
        if self.fault == LEFT_BEHIND:
            return replace(given, logs=tuple(log.left_behind or (log.copy or ())[:-2] for log in world.logs))
        return given if self.fault is None else _FAULTY[self.fault](given, self.seed)

    def without(self, index: int) -> Plot:
        """The same with one step less."""
        return replace(self, steps=self.steps[:index] + self.steps[index + 1 :])

    def story(self) -> tuple[str, ...]:
        """What happened and is said, a sentence each."""
        world = self.world()
        said = (
            (self.says_last and world.is_state_last, "it is said that the state was copied last, which is true"),
            (self.says_nothing_lost and not world.lost, "it is said that no record was lost, which is true"),
        )
        true = tuple(words for holds, words in said if holds)
        return (*story_of(self.world().steps), *true, *((self.fault,) if self.fault else ()))


def _copies(world: World) -> Sequence[Step]:
    logs = [Step("copy_log", "", n) for n in range(len(world.logs))]
    return [*logs, *(Step("copy_state", "", n) for n in range(len(world.states)))]


def random_plot(seed: str, *, is_faulty: bool) -> Plot:
    """A random one; every second one has hours at its end, in which what hangs gets late."""
    source = random.Random(seed)
    version, partitions = source.choice((0, 1, 2)), source.choice((1, 1, 2))
    plot = Plot(
        seed=seed,
        partitions=partitions,
        states=source.choice((1, 2)),
        version=version,
        first_epoch=LAST_EPOCH - source.randrange(1, 4) if version == 2 and source.random() < 0.3 else 0,
        steps=(),
        fault=source.choice(FAULTS) if is_faulty else None,
        says_last=source.random() < 0.7,
        clocks_ms=tuple(source.randint(-400, 400) for _ in range(partitions)) if source.random() < 0.3 else (),
        names_previous=source.random() < 0.5,
        says_nothing_lost=source.random() < 0.5,
    )
    names = NAMES[: source.choice((1, 2, 3))]
    world, is_calm = plot.start(), source.random() < 0.4
    if plot.fault in _OF_THE_WRONG_STATE:
        # Only a log in which others of this cluster have ended transactions can tell that the state is not its own.
        world = after(world, Step("pass")) or world
    for _ in range(source.randrange(5, 35)):
        world = random_step(world, names, source, is_calm=is_calm) or world
    if source.random() < 0.8:
        world = after(world, Step("pass")) or world
    return replace(plot, steps=_copied(world, names, source, is_calm=is_calm).steps)


def _copied(world: World, names: tuple[str, ...], source: random.Random, *, is_calm: bool) -> World:
    """Everything is copied, logs first in every second world, while its producers go on."""
    copies = list(_copies(world))
    if source.random() < 0.5:
        source.shuffle(copies)
    for step in copies:
        world = after(world, step) or world
        if source.random() < 0.3:
            world = random_step(world, names, source, is_calm=is_calm) or world
    return world


def random_step(world: World, names: tuple[str, ...], source: random.Random, *, is_calm: bool = False) -> World | None:
    """The world after something that is possible; None where little is. In a calm one nothing but writes comes late."""
    is_disturbed = source.random() < _DISTURBED
    steps = [
        step
        for step in steps_of(world, names)
        if not step.kind.startswith("copy") and (step.kind in DISTURBANCES) is is_disturbed
        if not (
            is_calm and is_disturbed and step.kind not in {"write_late", "fence", "time_out", "elect", "elect_state"}
        )
    ]
    tried = source.choices(steps, [_WEIGHTS.get(step.kind, 1) for step in steps], k=_TRIES) if steps else []
    return next((new for step in tried if (new := after(world, step)) is not None), None)


def _untrue(given: Evidence, _: str) -> Evidence:
    return replace(given, state_copied_last=True)


def _incomplete(given: Evidence, _: str) -> Evidence:
    return replace(given, absent=frozenset({len(given.states) - 1}))


def _miscounted(given: Evidence, _: str) -> Evidence:
    return replace(given, states=given.states[:1], stated_count=1)


def _foreign(given: Evidence, seed: str) -> Evidence:
    """The state of a cluster that gives out the same producer ids, and lives as long, a little apart in time."""
    others = (random_plot(f"{seed}, another cluster {n}", is_faulty=False) for n in count())
    other = next(plot for plot in others if plot.states == len(given.states))
    states, apart_ms = evidence_of(other.world(), says_last=False, draws_together=False).states, len(seed) * 7_919
    return replace(given, states=tuple(tuple(_moved(row, apart_ms) for row in rows) for rows in states))


def _moved(row: StateRow, by_ms: int) -> StateRow:
    start_ms = None if row.start_ms is None else row.start_ms + by_ms
    return row._replace(at_ms=row.at_ms + by_ms, update_ms=row.update_ms + by_ms, start_ms=start_ms)


def _headless(given: Evidence, _: str) -> Evidence:
    return replace(given, logs=tuple(log[2:] if len(log) > 3 else log for log in given.logs))


def _exported(given: Evidence, _: str) -> Evidence:
    return replace(given, is_console=True)


def _early(given: Evidence, _: str) -> Evidence:
    newest = max((b.at_ms for log in given.logs for b in log), default=None)
    return replace(given, as_of_ms=None if newest is None else newest - 1_000)


_FAULTY: dict[str, Callable[[Evidence, str], Evidence]] = dict(
    zip(FAULTS, (_untrue, _incomplete, _miscounted, _foreign, _headless, _exported, _early), strict=False)
)
