"""What happens next in a world, at random: daily work, now and then a disturbance, and now and then much at once."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.tools.world.model import Step, World
from tests.tools.world.steps import DISTURBANCES, after, steps_of

_WEIGHTS = {"write": 6, "begin": 5, "commit": 5, "marker": 8, "complete": 8, "abort": 2, "pass": 1, "write_late": 4}
_WEIGHTS |= {"restart": 3, "stray": 3}
_DISTURBED = 0.12
_VERSION_2, _WRITTEN = 2, 0.9
_TRIES = 25
_CALM = frozenset({"write_late", "restart", "stray", "fence", "time_out", "elect", "elect_state"})


def copies(world: World) -> Sequence[Step]:
    """Everything is copied, the logs first."""
    logs = [Step("copy_log", "", n) for n in range(len(world.logs))]
    return [*logs, *(Step("copy_state", "", n) for n in range(len(world.states)))]


@dataclass(frozen=True)
class Teller:
    """Tells what happens next in a world, with these ids.

    In a calm one nothing is lost, but writes come late; in a busy one ids use up their producer ids.
    """

    names: tuple[str, ...]
    source: random.Random
    is_calm: bool = False
    is_busy: bool = False

    def some(self, world: World, least: int, most: int) -> World:
        """The world after so many steps."""
        for _ in range(self.source.randrange(least, most)):
            world = self.step(world) or world
        return world

    def step(self, world: World) -> World | None:
        """The world after something that is possible; None where little is."""
        is_disturbed = self.source.random() < _DISTURBED
        steps = [
            step
            for step in [*steps_of(world, self.names), *self._rare(world)]
            if not step.kind.startswith("copy") and (step.kind in DISTURBANCES) is is_disturbed
            if not (self.is_calm and is_disturbed and step.kind not in _CALM)
        ]
        weights = [_WEIGHTS.get(step.kind, 1) for step in steps]
        tried = self.source.choices(steps, weights, k=_TRIES) if steps else []
        done = next(((step, new) for step in tried if (new := after(world, step)) is not None), None)
        return None if done is None else self._written(*done)

    def _written(self, step: Step, world: World) -> World:
        """With version 2 a partition is added by the first write to it, which seldom fails after that."""
        is_added = step.kind == "begin" and world.version_of(step.name) >= _VERSION_2
        if not is_added or self.source.random() >= _WRITTEN:
            return world
        return after(world, step._replace(kind="write")) or world

    def busy(self, world: World, least: int) -> World:
        """An id has used up so many producer ids at least."""
        for _ in range(self.source.randrange(least, 4)):
            world = after(world, Step("busy", self.names[0], self._somewhere(world))) or world
            world = self.some(world, 0, 3)
        return world

    def compacted(self, world: World) -> World:
        """The cleaner passed over some of the state."""
        for number in range(len(world.states)):
            if self.source.random() < 0.8:
                world = after(world, Step("compact", "", number)) or world
        return world

    def hanging(self, world: World) -> World:
        """Something is written that nobody will end."""
        kinds = ("stray", "write_late", "restart") if self.source.random() < 0.5 else ("write_late", "stray")
        for kind in kinds:
            new = after(world, Step(kind, self.source.choice(self.names), self.source.randrange(len(world.logs))))
            if new is not None:
                return new
        return world

    def copied(self, world: World, order: Sequence[Step]) -> World:
        """Everything is copied in some order, while its producers go on."""
        for step in order:
            world = after(world, step) or world
            if self.source.random() < 0.3:
                world = self.step(world) or world
        return world

    def _rare(self, world: World) -> list[Step]:
        """What small histories do not have."""
        numbers = range(len(world.logs))
        known = [name for name, _ in world.clients]
        steps = [Step("restart", name, n) for name in known for n in numbers]
        steps += [Step("busy", name, n) for name in known for n in (-1, *numbers)] if self.is_busy else []
        return [*steps, *(Step("stray", "", n) for n in numbers)]

    def _somewhere(self, world: World) -> int:
        return self.source.randrange(-1, len(world.logs))
