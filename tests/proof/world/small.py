"""Every small history: all that up to N steps can lead to, each way of telling it once.

Two histories count as one where all that was written and all that is true is the same, but for times that only tell the
order; so steps that do not depend on each other count in one order.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from tests.tools.stories.answer import Answer, answers_of
from tests.tools.world.evidence import (
    BEGAN_MS,
    Evidence,
    Truth,
    at_other_times,
    drawn_together,
    evidence_of,
    open_data,
    row_at_other_times,
    truth_of,
)
from tests.tools.world.kinds import answered, holds_the_answer
from tests.tools.world.model import EPOCHS, LAST_EPOCH, Log, StateLog, Step, World
from tests.tools.world.steps import DISTURBANCES, after, steps_of

AT_ONCE = 250


@dataclass(frozen=True)
class Size:
    """How small: so many steps after a beginning, with no more than so many disturbances among them.

    `version` is the clients' transaction version; `first_epoch` the epoch at which their producer ids begin, `epochs`
    how many a producer id has, and `names_previous` says that the record with which an id rotates names the one before.
    """

    steps: int
    names: tuple[str, ...] = ("a",)
    partitions: int = 1
    states: int = 1
    version: int = 1
    first_epoch: int = 0
    epochs: int = EPOCHS
    names_previous: bool = True
    beginning: tuple[Step, ...] = ()
    most_disturbances: int = 2

    def start(self) -> World:
        """The world in which the beginning has happened, and nothing else."""
        logs, states = (Log(),) * self.partitions, (StateLog(),) * self.states
        world: World | None = World(
            BEGAN_MS,
            self.version,
            logs,
            states,
            first_epoch=self.first_epoch,
            epochs=self.epochs,
            names_previous=self.names_previous,
        )
        for step in self.beginning:
            assert world is not None
            world = after(world, step)
        assert world is not None, "the beginning cannot happen"
        return replace(world, steps=())


@dataclass
class Report:
    """What the histories of some sizes come to.

    `judged` counts those with open data, each with and without the assurances that are true. `said` ones are those
    whose logs were copied first, in which nothing was lost, and where both is said, if what was copied holds the answer
    (`kinds`); without hangs in a log in which no broker's clock speaks, as nothing proves then how far it was copied.
    `ways` has, of each set of disturbances with which a wrong abort is planned, how many histories there are, and the
    shortest one.
    """

    histories: int = 0
    judged: int = 0
    wrong: int = 0
    hanging: int = 0
    found: int = 0
    hanging_said: int = 0
    found_said: int = 0
    ways: dict[frozenset[str], tuple[int, tuple[Step, ...]]] = field(default_factory=dict)

    def note(self, world: World, evidence: Evidence, truth: Truth) -> None:
        """Take in one more judged history."""
        if evidence.state_copied_last and evidence.no_records_lost and holds_the_answer(world):
            timed = {n for n, log in enumerate(evidence.logs) if any(batch.word for batch in log)}
            answered_here = {(n, i) for n, i in answered(world, truth.hanging) if n in timed}
            self.hanging_said += len(answered_here)
            self.found_said += len(answered_here & truth.found)
        self.judged += 1
        self.hanging += len(truth.hanging)
        self.found += len(truth.found)
        if truth.wrong:
            self.wrong += 1
            way = frozenset(step.kind for step in world.steps) & DISTURBANCES
            number, shortest = self.ways.get(way, (0, world.steps))
            self.ways[way] = number + 1, min(shortest, world.steps, key=len)


def worlds(size: Size) -> Iterator[World]:
    """Every world in which all was copied after at most so many steps."""
    yield from _following(size.start(), size, size.steps, size.most_disturbances, {})


def _following(
    world: World, size: Size, steps_left: int, disturbances_left: int, seen: dict[int, tuple[int, int]]
) -> Iterator[World]:
    """Deeper first; a world that was reached before with as much ahead of it is not gone on from again."""
    copies_left = _copies_left(world)
    for step in steps_of(world, size.names):
        is_disturbance = step.kind in DISTURBANCES
        if is_disturbance and not disturbances_left:
            continue
        is_copy = step.kind.startswith("copy")
        if not is_copy and copies_left >= steps_left:
            continue  # nothing would be copied in the end
        new = after(world, step)
        if new is None:
            continue
        left = (steps_left - 1, disturbances_left - is_disturbance)
        key = _key(new)
        before = seen.get(key)
        if before is not None and before[0] >= left[0] and before[1] >= left[1]:
            continue
        seen[key] = left
        if not _is_copied(new):
            yield from _following(new, size, *left, seen)
        elif before is None:
            yield new


def _is_copied(world: World) -> bool:
    return _copies_left(world) == 0


def _copies_left(world: World) -> int:
    return sum(log.copy is None for log in world.logs) + sum(state.copy is None for state in world.states)


def _key(world: World) -> int:
    """The same for worlds that differ by their times alone."""
    logs, states = world.logs, world.states
    near = drawn_together([log.batches for log in logs], [state.rows for state in states])
    known = tuple(
        (log.leader_epoch, _copied(log.batches, log.copy), tuple([at_other_times(b, near) for b in log.batches]))
        for log in logs
    )
    told = tuple(
        (state.leader_epoch, _copied(state.rows, state.copy), tuple([row_at_other_times(r, near) for r in state.rows]))
        for state in states
    )
    return hash((known, told, world.transactions, world.current, world.clients, world.owed, world.is_state_last))


def _copied(whole: tuple[object, ...], copy: tuple[object, ...] | None) -> object:
    """What was copied, in few words where it is a beginning of what is there."""
    return copy if copy is None or whole[: len(copy)] != copy else len(copy)


def _has_open_data(world: World) -> bool:
    """Without any there is nothing that an audit could speak of."""
    return any(
        log.copy is not None and open_data(log.copy, producer_id)
        for log in world.logs
        for producer_id in {b.producer_id for b in log.copy or ()}
    )


def judged(found: Iterable[World]) -> Iterator[tuple[World, Evidence, Truth]]:
    """Each world with its copies and the truth of the answer about them; copies that are alike are judged once.

    Each is judged as texts without a word of the operator, and with every assurance that is true, `cluster.id` among
    them: all that texts lack then makes answers weaker, never firmer.
    """
    known: dict[Evidence, Answer] = {}
    while chunk := list(islice(found, AT_ONCE)):
        told = [(world, evidence) for world in chunk for evidence in _with_and_without_a_word(world)]
        fresh = list(dict.fromkeys(evidence for _, evidence in told if evidence not in known))
        known |= zip(fresh, answers_of([evidence.history() for evidence in fresh]), strict=True)
        for world, evidence in told:
            yield world, evidence, truth_of(world, known[evidence])


def told_of(*sizes: Size) -> Iterator[Evidence]:
    """What was copied of every history of some sizes that has open data; what is alike once."""
    known = set[Evidence]()
    for size in sizes:
        for world in filter(_has_open_data, worlds(size)):
            for evidence in _with_and_without_a_word(world):
                if evidence not in known:
                    known.add(evidence)
                    yield evidence


def _with_and_without_a_word(world: World) -> Iterator[Evidence]:
    silent = evidence_of(world, says_last=False)
    yield silent
    if world.is_state_last or not world.lost:
        said = replace(silent, state_copied_last=world.is_state_last, no_records_lost=not world.lost)
        yield replace(said, cluster_id="one cluster")


def report_of(*sizes: Size) -> Report:
    """Judge every history of some sizes."""
    report = Report()
    for size in sizes:
        for world, evidence, truth in judged(filter(_has_open_data, _counted(worlds(size), report))):
            report.note(world, evidence, truth)
    return report


def _counted(found: Iterable[World], report: Report) -> Iterator[World]:
    for world in found:
        report.histories += 1
        yield world


OPEN = (Step("begin", "a", 0), Step("write", "a", 0))
"""An id has written in its transaction."""

USED_UP = (Step("busy", "a", 0), Step("busy", "a", 0))
"""An id has used up two producer ids."""

COMPACT, STRAY, PASS = Step("compact", "", 0), Step("stray", "", 0), Step("pass")


def sizes(steps: int) -> tuple[Size, ...]:
    """The worlds of which every history of so many steps is judged; those of two ids or partitions have one step less.

    From nothing and from an open transaction on, with both transaction versions; where the next decision uses up the
    epochs of a producer id; and where an id has used up two, with and without compaction, and with data that hangs.
    """
    busy = Size(steps, version=2, epochs=2, names_previous=False)
    return (
        Size(steps),
        Size(steps, beginning=OPEN),
        Size(steps, beginning=OPEN, version=2),
        Size(steps, beginning=OPEN, version=2, first_epoch=LAST_EPOCH, names_previous=False),
        replace(busy, beginning=(*USED_UP, *OPEN), steps=steps - 1),
        replace(busy, beginning=(*USED_UP, COMPACT, *OPEN)),
        replace(busy, beginning=(*USED_UP, COMPACT, STRAY, PASS), steps=steps - 1),
        replace(busy, beginning=(*USED_UP, COMPACT, PASS, STRAY, PASS), steps=steps - 1, epochs=EPOCHS),
        Size(steps - 1, beginning=OPEN, names=("a", "b")),
        Size(steps - 1, beginning=OPEN, partitions=2),
    )
