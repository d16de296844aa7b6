"""What can happen next in a world, one step at a time, and how it is told."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tests.tools.world import brokers, busy, coordinators
from tests.tools.world.model import Step, World

STEP_MS = 1_000

# What seldom happens; everything else is an application's daily work.
DISTURBANCES = frozenset(
    {
        "fence",
        "time_out",
        "marker_again",
        "skip",
        "expire",
        "compact",
        "elect",
        "lose",
        "elect_state",
        "lose_state",
        "administrator",
        "write_late",
        "restart",
        "stray",
    }
)

_TOLD = {
    "begin": "{name} adds the partition to its transaction",
    "write": "{name} writes in its transaction",
    "write_late": "{name} writes outside of any transaction that lists it",
    "commit": "{name} commits: the coordinator writes PrepareCommit and acknowledges",
    "abort": "{name} aborts: the coordinator writes PrepareAbort",
    "fence": "a new instance of {name} takes over",
    "time_out": "the coordinator aborts the transaction of {name}, whose time is over",
    "marker": "the coordinator writes the marker of {name}",
    "marker_again": "a new coordinator writes the marker of {name} again",
    "skip": "the coordinator takes the partition of {name} for deleted, and writes no marker",
    "complete": "the coordinator writes the Complete record of {name}",
    "busy": "{name} runs transactions until its producer id is used up, most of them elsewhere",
    "restart": "{name} writes late, and a new instance of it commits without a word",
    "stray": "somebody writes under a producer id that nobody gave out",
    "expire": "eight days pass, and {name} expires",
    "compact": "the state is compacted",
    "elect": "a clean election",
    "lose": "an unclean election loses the last batch",
    "elect_state": "a clean election of the state",
    "lose_state": "an unclean election loses the last record of the state",
    "administrator": "an administrator aborts what hangs of {name}",
    "pass": "two hours pass; others end their transactions everywhere",
    "copy_log": "the log is copied",
    "copy_state": "the state is copied",
}

_STEPS: dict[str, Callable[[World, Step], World | None]] = {
    "begin": coordinators.begin,
    "write": coordinators.write,
    "write_late": coordinators.write_late,
    "commit": coordinators.decide,
    "abort": coordinators.decide,
    "fence": coordinators.fence,
    "time_out": coordinators.time_out,
    "marker": coordinators.marker,
    "marker_again": coordinators.marker_again,
    "skip": coordinators.skip,
    "complete": coordinators.complete,
    "busy": busy.use_up,
    "restart": busy.restart,
    "stray": coordinators.stray,
    "expire": coordinators.expire,
    "compact": brokers.compact,
    "elect": brokers.elect,
    "lose": brokers.lose,
    "elect_state": brokers.elect_state,
    "lose_state": brokers.lose_state,
    "administrator": coordinators.administrator,
    "pass": brokers.pass_time,
    "copy_log": brokers.copy_log,
    "copy_state": brokers.copy_state,
}


def story_of(steps: Iterable[Step]) -> tuple[str, ...]:
    """What happened, a sentence a step."""
    return tuple(
        _TOLD[step.kind].format(name=step.name) + (f" ({step.partition})" if step.partition >= 0 else "")
        for step in steps
    )


def after(world: World, step: Step) -> World | None:
    """The world after a step; None where the step is not possible, or changes nothing."""
    following = _STEPS[step.kind](world, step)
    if following is None:
        return None
    return replace(following, now_ms=following.now_ms + STEP_MS, steps=(*world.steps, step))


def steps_of(world: World, names: tuple[str, ...]) -> Iterator[Step]:
    """Every step that could be tried, in a fixed order. A second id begins only after the first one."""
    known = len(world.clients)
    numbers = range(len(world.logs))
    for name in names[: known + 1]:
        yield from (
            Step(kind, name, n)
            for kind in ("begin", "write", "write_late", "marker", "marker_again", "skip", "administrator")
            for n in numbers
        )
        yield from (Step(kind, name) for kind in ("commit", "abort", "fence", "time_out", "complete", "expire"))
    yield from (Step(kind, "", n) for kind in ("elect", "lose", "copy_log") for n in numbers)
    states = range(len(world.states))
    yield from (Step(kind, "", n) for kind in ("compact", "elect_state", "lose_state", "copy_state") for n in states)
    yield Step("pass")
