"""Which histories can be told: what was copied holds the answer, and every word of the operator is said and true.

Told from the truth and the copies, by conditions that docs/proofs.md has in words; the product is not asked.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.world.evidence import open_data
from tests.world.faults import WRONG_STATES
from tests.world.model import LAST_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.world.model import Batch, StateRow, World
    from tests.world.random_worlds import Plot

WHOLE = "evidence is whole"
COMPACTED = "the state is compacted and nothing was lost"
BUSY = "ids of version 2 have used up producer ids that nothing in the state names, and all words are true"
KINDS = (WHOLE, COMPACTED, BUSY)

_FAR_FROM_ROTATION = LAST_EPOCH // 2 + 1


def kind_of(plot: Plot, world: World) -> str | None:
    """Of which kind a history is; None where something was lost, is not said, or hides the answer."""
    is_said = plot.says_nothing_lost and not world.lost and plot.says_last and world.is_state_last
    if plot.fault is not None or not is_said or any(plot.is_shallow):
        return None
    used_up = set(_used_up(world))
    if used_up:
        return BUSY if all(_tells_its_version(world, i) for i in used_up) and _has_a_commit_of_both(world) else None
    return COMPACTED if _is_compacted(world) else WHOLE


def can_be_told(plot: Plot, world: World) -> bool:
    """That a state is not the logs' own can be told by the commits of others alone, in each log."""
    return plot.fault not in WRONG_STATES or all(any(b.word == "COMMIT" for b in log.copy or ()) for log in world.logs)


def with_older_state(world: World, places: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    """Those places of open data behind which there is a moment that something of the state is older than."""
    oldest_ms = min((row.at_ms for state in world.states for row in state.copy or ()), default=None)
    return frozenset((n, i) for n, i in places if _is_older(oldest_ms, world.logs[n].copy or (), i))


def _is_older(oldest_ms: int | None, log: tuple[Batch, ...], producer_id: int) -> bool:
    data = open_data(log, producer_id)
    before_ms = next((b.at_ms for b in log if b.word and b.offset > data[-1].offset), None)
    return oldest_ms is not None and before_ms is not None and oldest_ms < before_ms


def _copied(world: World) -> Iterator[Batch]:
    return (batch for log in world.logs for batch in log.copy or ())


def _is_compacted(world: World) -> bool:
    has_expired = any(step.kind == "expire" for step in world.steps)
    return has_expired or any((state.copy or ()) != _without_holes(state.copy or ()) for state in world.states)


def _without_holes(rows: tuple) -> tuple:  # type: ignore[type-arg]
    return tuple(row for number, row in enumerate(rows) if row.offset == number)


def _used_up(world: World) -> Iterator[int]:
    """Producer ids of version 2 with a COMMIT marker in a log, that no record of the copied state has."""
    rows = [row for state in world.states for row in state.copy or ()]
    named = {i for row in rows for i in (row.producer_id, row.previous_producer_id, row.next_producer_id)}
    of_version_2 = {txn.producer_id for txn in world.transactions if world.version_of(txn.name) > 1}
    return (b.producer_id for b in _copied(world) if b.word == "COMMIT" and b.producer_id in of_version_2 - named)


def _tells_its_version(world: World, producer_id: int) -> bool:
    """One of its COMMIT markers ends data of a lower epoch; markers at its last epochs need not."""
    newest: dict[int, int] = defaultdict(lambda: -1)
    is_seen, is_needed = False, False
    for n, log in enumerate(world.logs):
        for batch in log.copy or ():
            if batch.producer_id == producer_id and batch.word == "COMMIT":
                is_needed |= batch.epoch < _FAR_FROM_ROTATION
                is_seen |= -1 < newest[n] < batch.epoch
            if batch.producer_id == producer_id:
                newest[n] = -1 if batch.word else batch.epoch
    return is_seen or not is_needed


def _has_a_commit_of_both(world: World) -> bool:
    """A commit is in a log by its marker, and in the state by its decision and the id's next record, around it."""
    markers = [(b, n) for n, log in enumerate(world.logs) for b in log.copy or () if b.word == "COMMIT"]
    return any(
        b.producer_id == decision.producer_id
        and n in decision.partitions
        and decision.at_ms <= b.at_ms <= following.at_ms
        for decision, following in _commits(world)
        for b, n in markers
    )


def _commits(world: World) -> Iterator[tuple[StateRow, StateRow]]:
    """Each commit that the copied state has, with the next record of its id."""
    for state in world.states:
        waiting: dict[str, StateRow] = {}
        for row in state.copy or ():
            if row.name in waiting:
                yield waiting.pop(row.name), row
            if row.state == "PrepareCommit":
                waiting[row.name] = row
