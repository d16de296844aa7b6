"""Which histories can be told: what was copied holds the answer, and every word of the operator is said and true.

Told from the truth and the copies, by conditions that docs/proofs.md has in words; the product is not asked.
"""

from collections.abc import Iterator
from itertools import pairwise

from tests.tools.world.evidence import SKEW_MS, Evidence, open_data
from tests.tools.world.faults import WRONG_COUNTS
from tests.tools.world.files import ONE_FILE
from tests.tools.world.files import WHOLE as WHOLE_FOLDERS
from tests.tools.world.model import LAST_EPOCH, Batch, StateRow, World
from tests.tools.world.random_worlds import Plot

WHOLE = "evidence is whole"
COMPACTED = "the state is compacted and nothing was lost"
BUSY = "ids of version 2 have used up producer ids that nothing in the state names, and all words are true"
EMPTIED = "files of the state have holes between them, and the kit says that their folders are whole"
KINDS = (WHOLE, COMPACTED, BUSY, EMPTIED)

_HALF_USED_UP = LAST_EPOCH // 2 + 1
_WEEK_MS, _MINUTE_MS = 7 * 86_400_000, 60_000

Places = frozenset[tuple[int, int]]
"""A partition and a producer id each."""


def kind_of(plot: Plot, world: World) -> str | None:
    """Of which kind a history is; None where something was lost, is not said, or hides the answer."""
    is_said = plot.says_nothing_lost and not world.lost and plot.says_last and world.is_state_last
    if plot.fault is not None or not is_said or any(plot.is_shallow) or not holds_the_answer(world):
        return None
    if plot.files not in {ONE_FILE, WHOLE_FOLDERS}:
        return None
    if plot.files == WHOLE_FOLDERS and has_hole_between_files(plot.evidence(world)):
        return EMPTIED
    if _used_up(world):
        return BUSY
    return COMPACTED if _is_compacted(world) else WHOLE


def has_hole_between_files(given: Evidence) -> bool:
    """Some file of the state ends before the next one begins."""
    pairs = (
        (max((row.offset + 1 for row in rows if row.offset < base), default=0), base)
        for rows, folder in zip(given.states, given.folders, strict=True)
        for base in folder.bases[1:]
    )
    return any(end < base for end, base in pairs)


def can_be_told(plot: Plot, world: World) -> bool:
    """That a state is not whole can be told by the commits of others alone, in each log."""
    return plot.fault not in WRONG_COUNTS or all(any(_is_commit(b) for b in log.copy or ()) for log in world.logs)


def holds_the_answer(world: World) -> bool:
    """The state is seen to be that of the logs, and producer ids that it does not name to be of version 2."""
    is_seen = _has_a_commit_of_both(world) or not any(_is_commit(b) for log in world.logs for b in log.copy or ())
    return is_seen and all(_tells_its_version(world, i) for i in _used_up(world))


def answered(world: World, hanging: Places) -> Places:
    """Those hangs of which the copies can speak: where the state has holes, their log goes on past the newest one, and
    past the newest record of their id.

    Of an unknown producer they can where something of the state is older than the marker behind its data (a state
    without that was made again), and where its log goes on to the last week.
    """
    rows = _rows(world)
    known = {i for row in rows for i in (row.producer_id, row.previous_producer_id, row.next_producer_id)}
    ends_ms = [b.at_ms for log in world.logs for b in log.copy or () if b.word]
    newest_ms = max((*ends_ms, *(row.at_ms for row in rows)), default=0)
    oldest_ms = min((row.at_ms for row in rows), default=newest_ms)
    hole_ms = max((row.at_ms for state in world.states for row in _behind_holes(state.copy or ())), default=0)
    return frozenset(
        (n, i)
        for n, i in hanging
        if not hole_ms or _goes_on(world.logs[n].copy or (), max(hole_ms, _newest_ms(rows, i)))
        if i in known or _is_between(world.logs[n].copy or (), i, oldest_ms, newest_ms - _WEEK_MS)
    )


def _behind_holes(rows: tuple[StateRow, ...]) -> Iterator[StateRow]:
    """The records before which the state lacks some."""
    return (row for row, before in zip(rows, (-1, *(r.offset for r in rows)), strict=False) if row.offset > before + 1)


def _newest_ms(rows: list[StateRow], producer_id: int) -> int:
    """When something was recorded last of the id that has, or had, a producer id; 0 of an unknown one."""
    names = {r.name for r in rows if producer_id in (r.producer_id, r.previous_producer_id, r.next_producer_id)}
    return max((row.at_ms for row in rows if row.name in names), default=0)


def _goes_on(log: tuple[Batch, ...], at_ms: int) -> bool:
    return max((b.at_ms for b in log if b.word), default=0) > at_ms + 2 * SKEW_MS


def _is_between(log: tuple[Batch, ...], producer_id: int, oldest_ms: int, week_ms: int) -> bool:
    newest = open_data(log, producer_id)[-1].offset
    behind_ms = [b.at_ms for b in log if b.word and b.offset > newest]
    return bool(behind_ms) and oldest_ms < behind_ms[0] and behind_ms[-1] >= week_ms


def _is_commit(batch: Batch) -> bool:
    return batch.word == "COMMIT"


def _rows(world: World) -> list[StateRow]:
    return [row for state in world.states for row in state.copy or ()]


def _is_compacted(world: World) -> bool:
    has_expired = any(step.kind == "expire" for step in world.steps)
    return has_expired or any(
        row.offset != number for state in world.states for number, row in enumerate(state.copy or ())
    )


def _used_up(world: World) -> set[int]:
    """Producer ids of version 2 with a COMMIT marker in a log, that no record of the copied state has."""
    named = {i for row in _rows(world) for i in (row.producer_id, row.previous_producer_id, row.next_producer_id)}
    of_version_2 = {txn.producer_id for txn in world.transactions if world.version_of(txn.name) > 1}
    return {b.producer_id for log in world.logs for b in log.copy or () if _is_commit(b)} & of_version_2 - named


def _tells_its_version(world: World, producer_id: int) -> bool:
    """One of its COMMIT markers ends data of a lower epoch; where all are at its last epochs, none need."""
    logs = [[b for b in log.copy or () if b.producer_id == producer_id] for log in world.logs]
    is_needed = any(_is_commit(b) and b.epoch < _HALF_USED_UP for own in logs for b in own)
    pairs = (pair for own in logs for pair in pairwise(own))
    return not is_needed or any(_is_commit(b) and not a.word and a.epoch < b.epoch for a, b in pairs)


def _has_a_commit_of_both(world: World) -> bool:
    """A commit is in a log by its marker, and in the state by its decision and the id's next record, around it."""
    markers = [(n, b) for n, log in enumerate(world.logs) for b in log.copy or () if _is_commit(b)]
    return any(
        b.producer_id == decision.producer_id and n in decision.partitions and _is_within(b.at_ms, decision, following)
        for decision, following in _commits(world)
        for n, b in markers
    )


def _is_within(at_ms: int, decision: StateRow, following: StateRow) -> bool:
    is_near = min(at_ms - decision.at_ms, following.at_ms - at_ms) <= _MINUTE_MS
    return decision.at_ms <= at_ms <= following.at_ms and is_near


def _commits(world: World) -> Iterator[tuple[StateRow, StateRow]]:
    """Each commit that the copied state has, with the next record of its id."""
    for state in world.states:
        waiting: dict[str, StateRow] = {}
        for row in state.copy or ():
            if row.name in waiting:
                yield waiting.pop(row.name), row
            if row.state == "PrepareCommit":
                waiting[row.name] = row
