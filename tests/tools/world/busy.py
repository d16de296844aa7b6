"""What an id does in many steps at once: it runs until its producer id is used up, or leaves data to its next instance.

Each is told by the steps of `coordinators`, so that what is true of them is true here.
"""

from collections.abc import Callable
from dataclasses import replace

from tests.tools.world import coordinators
from tests.tools.world.brokers import compacted
from tests.tools.world.model import ELSEWHERE, EMPTY, EPOCHS, EPOCHS_MS, LAST_EPOCH, ONGOING, Step, World, changed

_STEP_MS = 1_000
_TOLD_AT_AN_END = 2  # of Kafka's epochs, so many of the first and of the last are told one by one
_RECORDS = 3  # of one transaction on one partition: Ongoing, Prepare, Complete

_DONE: dict[str, Callable[[World, Step], World | None]] = {
    "begin": coordinators.begin,
    "write": coordinators.write,
    "write_late": coordinators.write_late,
    "fence": coordinators.fence,
    "commit": coordinators.decide,
    "marker": coordinators.marker,
    "complete": coordinators.complete,
}


def use_up(world: World, step: Step) -> World | None:
    """An id of version 2 runs until it has another producer id; only the first and the last write to the partition.

    Where all of Kafka's epochs are used, what lies between leaves a hole: the cleaner has passed.
    """
    row = world.last(step.name)
    if world.version_of(step.name) < 2 or (row is not None and (row.state in {None, ONGOING} or row.is_deciding)):
        return None
    used_up, told = None if row is None else row.producer_id, 0
    while True:
        row = world.last(step.name)
        if row is not None and used_up not in {None, row.producer_id}:
            return world
        if row is not None and told == _TOLD_AT_AN_END and world.epochs == EPOCHS:
            world = _without_what_lies_between(world, step.name)
            row = world.last(step.name)
        is_here = told == 0 or (row is not None and world.next_epoch(step.name, row.epoch) == LAST_EPOCH)
        following = _committed(world, step.name, step.partition if is_here and step.partition >= 0 else ELSEWHERE)
        if following is None:
            return None
        world, told = following, told + 1
        used_up = world.transactions[-1].producer_id if used_up is None else used_up


def _committed(world: World, name: str, partition: int) -> World | None:
    is_here = partition != ELSEWHERE
    return _after(
        world,
        Step("begin", name, partition),
        *((Step("write", name, partition),) if is_here else ()),
        Step("commit", name),
        *((Step("marker", name, partition),) if is_here else ()),
        Step("complete", name),
    )


def _without_what_lies_between(world: World, name: str) -> World:
    """Thousands of transactions on, with the last ones of the producer id still ahead."""
    number = world.holder(name)
    state, row = world.states[number], world.last(name)
    assert row is not None
    passed = max(0, LAST_EPOCH - _TOLD_AT_AN_END + 1 - row.epoch)
    if not passed:
        return world
    now_ms, epoch = world.now_ms + EPOCHS_MS, row.epoch + passed
    newest = row._replace(epoch=epoch, at_ms=now_ms, update_ms=now_ms, start_ms=now_ms)
    rows = tuple(other for other in state.rows if other.name != name)
    state = replace(state, rows=compacted(rows), next_offset=state.next_offset + _RECORDS * passed - 1)
    world = replace(world.with_state(number, state), now_ms=now_ms + _STEP_MS)
    return replace(world.appended(newest), clients=changed(world.clients, name, (row.producer_id, epoch)))


def restart(world: World, step: Step) -> World | None:
    """A client of version 1 writes late; its next instance lists the partition, and commits: a COMMIT marker with an
    epoch above that of the data that it ends, as version 2 writes them all.
    """
    row = world.last(step.name)
    if world.version_of(step.name) > 1 or row is None or row.state in {None, ONGOING, EMPTY} or row.is_deciding:
        return None
    kinds = ("write_late", "fence", "begin", "commit", "marker", "complete")
    return _after(world, *(Step(kind, step.name, step.partition) for kind in kinds))


def _after(world: World, *steps: Step) -> World | None:
    for step in steps:
        following = _DONE[step.kind](world, step)
        if following is None:
            return None
        world = replace(following, now_ms=following.now_ms + _STEP_MS)
    return world
