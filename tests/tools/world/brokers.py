"""What brokers, time and those who copy do: each step takes a world and gives the one that follows, or None.

The cleaner keeps the last record of each id where it was (`LogCleaner`); a new coordinator reads what is left.
"""

from dataclasses import replace

from tests.tools.world.coordinators import TIMEOUT_MS
from tests.tools.world.model import ONGOING, Batch, StateRow, Step, World

PASS_MS = 2 * 3_600_000
BEATS, FIRST_BEAT_ID = "AB", 900_000
_FIRST_FAR_LETTER = 192


def elect(world: World, step: Step) -> World | None:
    """A replica that has everything is the leader from now on."""
    log = world.logs[step.partition]
    return world.with_log(step.partition, replace(log, leader_epoch=log.leader_epoch + 1))


def lose(world: World, step: Step) -> World | None:
    """A replica without the last batch is; the old leader keeps its log."""
    log = world.logs[step.partition]
    if not log.batches:
        return None
    *kept, gone = log.batches
    shorter = replace(
        log,
        batches=tuple(kept),
        next_offset=gone.offset,
        leader_epoch=log.leader_epoch + 1,
        left_behind=log.batches,
    )
    return replace(world.with_log(step.partition, shorter), lost=True)


def elect_state(world: World, step: Step) -> World | None:
    """A new coordinator that has every record."""
    state = world.states[step.partition]
    return _reloaded(world.with_state(step.partition, replace(state, leader_epoch=state.leader_epoch + 1)))


def lose_state(world: World, step: Step) -> World | None:
    """A new coordinator without the last record."""
    state = world.states[step.partition]
    if not state.rows:
        return None
    *kept, gone = state.rows
    shorter = replace(state, rows=tuple(kept), next_offset=gone.offset, leader_epoch=state.leader_epoch + 1)
    return _reloaded(replace(world.with_state(step.partition, shorter), lost=True))


def _reloaded(world: World) -> World:
    """A new coordinator knows what the records say: it owes every marker of what is decided and not complete."""
    owed = {}
    for name, _ in world.clients:
        row = world.last(name)
        if row is not None and row.is_deciding:
            owed[name] = world.copied(row.partitions)
    return replace(world, owed=tuple(sorted(owed.items())))


def compact(world: World, step: Step) -> World | None:
    """The last record of each id stays where it was, and the last record of all; tombstones are gone in time."""
    state = world.states[step.partition]
    kept = compacted(state.rows)
    return None if kept == state.rows else world.with_state(step.partition, replace(state, rows=kept))


def compacted(rows: tuple[StateRow, ...]) -> tuple[StateRow, ...]:
    """What the cleaner leaves of some records."""
    last = {row.name: row for row in rows}
    return tuple(row for row in rows if last[row.name] is row and (row.state is not None or row is rows[-1]))


def pass_time(world: World, _: Step) -> World | None:
    """Other ids, one of each partition of the state, commit in every partition: all brokers' clocks speak."""
    world = replace(world, now_ms=world.now_ms + PASS_MS)
    every = frozenset(range(len(world.logs)))
    for number in range(len(world.states)):
        world = _beat(world, number, every)
    return world


def _beat(world: World, number: int, every: frozenset[int]) -> World:
    name = _beating(world, number)
    times = (world.now_ms, world.now_ms, world.now_ms)
    row = StateRow(0, name, ONGOING, -ord(name), None, None, 0, every, *times, TIMEOUT_MS, 0)
    row = row._replace(producer_id=FIRST_BEAT_ID + number)
    for state in (ONGOING, "PrepareCommit"):
        world = world.appended(row._replace(state=state))
    coordinator_epoch = world.states[number].leader_epoch
    for n in every:
        log = world.logs[n]
        place = (log.next_offset, row.producer_id, 0, world.now_ms, world.now_ms)
        marker = Batch(*place, "COMMIT", coordinator_epoch, log.leader_epoch)
        world = world.with_log(n, log.extended(marker))
    return world.appended(row._replace(state="CompleteCommit", partitions=frozenset()))


def _beating(world: World, number: int) -> str:
    """An id of one letter that a partition of the state holds, and that no other step names."""
    if not world.state_numbers:
        return next(letter for letter in BEATS if world.holder(letter) == number)
    return chr(_FIRST_FAR_LETTER + (world.state_numbers[number] - _FIRST_FAR_LETTER) % world.state_count)


def copy_log(world: World, step: Step) -> World | None:
    """Somebody copies the log as it is now."""
    log = world.logs[step.partition]
    return None if log.copy is not None else world.with_log(step.partition, replace(log, copy=log.batches))


def copy_state(world: World, step: Step) -> World | None:
    """Somebody copies this partition of the state; all of it is copied last if all logs were before its first one."""
    state = world.states[step.partition]
    if state.copy is not None:
        return None
    is_first = all(other.copy is None for other in world.states)
    is_last = all(log.copy is not None for log in world.logs) and (is_first or world.is_state_last)
    world = world.with_state(step.partition, replace(state, copy=state.rows))
    return replace(world, is_state_last=is_last)
