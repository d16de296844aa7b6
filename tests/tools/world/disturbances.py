"""What can disturb a copy while it is made, and the clock of who makes it."""

from dataclasses import dataclass

from tests.tools.world.model import World

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


@dataclass
class Clock:
    """A wall clock that may be set, beside a monotonic one that is not."""

    apart_ms: int
    began_ms: int

    def wall_ms(self, world: World) -> int:
        """What it shows."""
        return world.now_ms + self.apart_ms

    def monotonic_ms(self, world: World) -> int:
        """Since its host started."""
        return 5_000 + world.now_ms - self.began_ms
