"""What is wrong with what is handed to the audit, or with what is said of it.

Each takes what would have been handed over, and gives what is.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from tests.tools.world.evidence import Evidence, evidence_of
from tests.tools.world.model import EMPTY, Step
from tests.tools.world.steps import after
from tests.tools.world.teller import Teller, copies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.tools.world.model import StateRow, World
    from tests.tools.world.random_worlds import Plot

# A state of so many partitions, of which half fit every id in them as well. Two hold ids: one in each half.
FAR_STATES, FAR_NUMBERS, FAR_NAMES = 100, (0, 97), ("a", "d")

_FIRST_OTHER_ID = 950_000

UNTRUE = "the state is said to be copied last, and was not"
MISSING = "a partition of the state is missing"
MISCOUNTED = "the state is said to have half as many partitions"
FOREIGN = "the state is another cluster's"
TWIN = "the state is that of a cluster that was the same until others ended their transactions"
HALF_UNSAID = "50 of 100 partitions of the state are given, and nobody says how many there are"
HALF_SAID = "50 of 100 partitions of the state are given, and are said to be all"
HEADLESS = "the first batches of a log are gone"
EXPORTED = "the state is a console export"
EARLY = "--as-of is earlier than the copy"
LEFT_BEHIND = "a log is that of a replica that was left behind"

HALVES = (HALF_UNSAID, HALF_SAID)
WRONG_COUNTS = (MISCOUNTED, *HALVES)
WRONG_STATES = (FOREIGN, TWIN, *WRONG_COUNTS)


def _untrue(given: Evidence, *_: object) -> Evidence:
    return replace(given, state_copied_last=True)


def _miscounted(given: Evidence, *_: object) -> Evidence:
    return replace(given, states=given.states[:1], stated_count=1)


def _first_half(given: Evidence, plot: Plot) -> tuple[tuple[StateRow, ...], ...]:
    """What no step names is empty in every second world; else it holds ids that began with the first of all, and ended
    their last transaction with the last.
    """
    half = given.states[: FAR_STATES // 2]
    rows = [row for state in given.states for row in state]
    if not rows or random.Random(plot.seed).random() < 0.5:
        return half
    ends = min(rows, key=_at), max(rows, key=_at)
    return tuple(state if n in FAR_NUMBERS else tuple(_of_others(n, ends)) for n, state in enumerate(half))


def _at(row: StateRow) -> int:
    return row.at_ms


def _of_others(number: int, rows: Iterable[StateRow]) -> Iterator[StateRow]:
    for offset, row in enumerate(rows):
        others = row._replace(
            offset=offset, name=chr(FAR_STATES + number), producer_id=_FIRST_OTHER_ID + number, epoch=0
        )
        nothing = others._replace(state=EMPTY, partitions=frozenset(), previous_producer_id=None, next_producer_id=None)
        yield nothing._replace(start_ms=None, update_ms=row.at_ms)


def _foreign(given: Evidence, plot: Plot, _: World) -> Evidence:
    """The state of a cluster that gives out the same producer ids, and lives as long, a little apart in time."""
    other = next(other for other in map(plot.another, count()) if other.states == len(given.states))
    states, apart_ms = evidence_of(other.world(), says_last=False, draws_together=False).states, len(plot.seed) * 7_919
    return replace(given, states=tuple(tuple(_moved(row, apart_ms) for row in rows) for rows in states))


def _moved(row: StateRow, by_ms: int) -> StateRow:
    start_ms = None if row.start_ms is None else row.start_ms + by_ms
    return row._replace(at_ms=row.at_ms + by_ms, update_ms=row.update_ms + by_ms, start_ms=start_ms)


def _twin(given: Evidence, plot: Plot, *_: object) -> Evidence:
    """The state of a copy of the cluster that went its own way: it knows the same ids by the same producer ids."""
    source, twin = random.Random(f"{plot.seed}, its twin"), plot.start()
    common = next((n for n, step in enumerate(plot.steps) if step.kind == "pass"), 0)
    for step in plot.steps[:common]:
        twin = after(twin, step) or twin
    twin = replace(twin, now_ms=twin.now_ms + source.randrange(7_000, 7_000_000))
    teller = Teller(plot.names, source, is_calm=source.random() < 0.7, is_busy=plot.version > 1)
    for _number in range(source.randrange(3)):
        twin = after(teller.some(twin, 0, 12), Step("pass")) or twin
    twin = teller.compacted(teller.some(twin, 0, 12))
    twin = teller.copied(after(twin, Step("pass")) or twin, copies(twin))
    return replace(given, states=evidence_of(twin, says_last=False, draws_together=False).states)


def _exported(given: Evidence, _: object, world: World) -> Evidence:
    """Nobody says of a state that lost records that its export is complete: nothing in an export could show it."""
    is_lost = any(step.kind == "lose_state" for step in world.steps)
    return given if is_lost else replace(given, is_console=True)


def _early(given: Evidence, *_: object) -> Evidence:
    newest = max((b.at_ms for log in given.logs for b in log), default=None)
    return replace(given, as_of_ms=None if newest is None else newest - 1_000)


FAULTY: dict[str, Callable[[Evidence, Plot, World], Evidence]] = {
    UNTRUE: _untrue,
    MISSING: lambda given, *_: replace(given, absent=frozenset({len(given.states) - 1})),
    MISCOUNTED: _miscounted,
    FOREIGN: _foreign,
    TWIN: _twin,
    HALF_UNSAID: lambda given, plot, _: replace(given, states=_first_half(given, plot), is_count_unsaid=True),
    HALF_SAID: lambda given, plot, _: replace(given, states=_first_half(given, plot)),
    HEADLESS: lambda given, *_: replace(given, logs=tuple(log[2:] if len(log) > 3 else log for log in given.logs)),
    EXPORTED: _exported,
    EARLY: _early,
    LEFT_BEHIND: lambda given, _, world: replace(
        given, logs=tuple(log.left_behind or (log.copy or ())[:-2] for log in world.logs)
    ),
}
FAULTS = tuple(FAULTY)
