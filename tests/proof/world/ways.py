"""The ways to a wrong abort, and the true hangs that are found: random histories, judged and carried out.

A plan is wrong where it holds an acknowledged commit, or a transaction that is live at its coordinator; or where
somebody who carries it out as it says, while producers go on, destroys one. Each way is told in as few steps as
will do.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.tools.stories.answer import Answer, answer_of, answers_of
from tests.tools.world.evidence import LATE_MS, Evidence, Truth, open_data, truth_of
from tests.tools.world.executor import Fences, destroyed_by, is_due
from tests.tools.world.kinds import answered, can_be_told, kind_of
from tests.tools.world.model import Step, World
from tests.tools.world.random_worlds import Plot, random_plot
from tests.tools.world.shrink import shrunk, told
from tests.tools.world.steps import DISTURBANCES, after, story_of
from tests.tools.world.teller import Teller

AT_ONCE = 250
_STEPS_BEFORE_EXECUTION = 8
_EXECUTIONS = 3
_MOST_SHRUNK = 6

Way = tuple[str, ...]
CARRIED_OUT: Way = ("the plan is carried out while producers go on",)


@dataclass
class Report:
    """What so many random histories come to.

    `hanging_of` and `found_of` count the true hangs of the kinds of histories that can be told (`kinds`), and `missed`
    by its kind and rule every one of those that is not planned. Of open transactions that are said to be
    written while they were copied, none may be older (`misdated`). `ways` are the wrong plans by what disturbs their
    history, each with its shortest story. `fences` are carried out at the copy and at each later moment.
    """

    histories: int = 0
    planned: int = 0
    wrong: int = 0
    destroyed: int = 0
    hanging: int = 0
    found: int = 0
    misdated: int = 0
    hanging_of: Counter[str] = field(default_factory=Counter)
    found_of: Counter[str] = field(default_factory=Counter)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter)
    ways: Counter[Way] = field(default_factory=Counter)
    stories: dict[Way, str] = field(default_factory=dict)
    fences: Fences = field(default_factory=Fences)


def report_of(count: int, seed: int, *, first: int = 0) -> Report:
    """Judge so many random histories, and carry out their plans."""
    report = Report()
    for begin in range(first, first + count, AT_ONCE):
        numbers = range(begin, min(begin + AT_ONCE, first + count))
        plots = [random_plot(f"{seed}/{number}", is_faulty=number % 2 == 1) for number in numbers]
        worlds = [plot.world() for plot in plots]
        given = [plot.evidence(world) for plot, world in zip(plots, worlds, strict=True)]
        answers = answers_of([evidence.history() for evidence in given])
        for plot, world, evidence, answer in zip(plots, worlds, given, answers, strict=True):
            _note(report, plot, world, truth_of(world, answer, evidence.logs), answer)
    return report


def _note(report: Report, plot: Plot, world: World, truth: Truth, answer: Answer) -> None:
    report.histories += 1
    report.planned += len(answer.plan)
    report.hanging += len(truth.hanging)
    report.found += len(truth.found)
    _note_dates(report, world, answer)
    kind = kind_of(plot, world)
    if kind is not None:
        hanging = answered(world, truth.hanging)
        report.missed.update((kind, rule) for rule in rules_of(answer, hanging - truth.found))
        report.hanging_of[kind] += len(hanging)
        report.found_of[kind] += len(hanging & truth.found)
    if truth.wrong and can_be_told(plot, world):
        report.wrong += 1
        _tell(report, plot)
    elif answer.plan and (moment := when_it_destroys(plot, world, answer)) is not None:
        report.destroyed += 1
        report.ways[CARRIED_OUT] += 1
        if CARRIED_OUT not in report.stories:
            story = told(shrunk(plot, destroys))
            report.stories[CARRIED_OUT] = f"{story}     the plan is carried out after {moment}\n"
    if answer.plan:
        _carry_out_fences(report.fences, plot, world, answer)


def _carry_out_fences(fences: Fences, plot: Plot, world: World, answer: Answer) -> None:
    """As printed, at the copy and at every later moment; then each hang is repaired two hours after it."""
    fences.type_all(world, answer.plan)
    for later in afterwards(plot, world):
        fences.type_all(later, answer.plan)
    source, later = random.Random(f"{plot.seed}, its owners"), after(world, Step("pass")) or world
    for record in answer.plan:
        if is_due(later, record):
            fences.repair(later, record, source)


def _note_dates(report: Report, world: World, answer: Answer) -> None:
    """Nothing that is said to be written while it was copied is older than that."""
    logs = [log.copy or () for log in world.logs]
    began = (open_data(logs[f.partition], f.producer_id) for f in answer.findings if f.is_recent)
    ages_ms = [world.now_ms - batches[0].at_ms for batches in began]
    report.misdated += sum(age_ms >= LATE_MS for age_ms in ages_ms)


def _tell(report: Report, plot: Plot) -> None:
    """The way that it took is that of its shrunk story; of a way that is known well, no more stories are shrunk."""
    way = _way_of(plot)
    if report.ways[way] < _MOST_SHRUNK:
        short = shrunk(plot, is_wrong)
        way, story = _way_of(short), told(short)
        report.stories[way] = min(report.stories.get(way, story), story, key=len)
    report.ways[way] += 1


def _way_of(plot: Plot) -> Way:
    kinds = sorted({step.kind for step in plot.world().steps} & DISTURBANCES)
    rotated = (
        ["the producer id rotates"] if any(r.previous_producer_id for s in plot.world().states for r in s.rows) else []
    )
    return (*kinds, *rotated, *([plot.fault] if plot.fault else []))


def told_at_random(count: int, seed: int) -> Iterator[Evidence]:
    """What was copied of so many random histories."""
    for number in range(count):
        plot = random_plot(f"{seed}/{number}", is_faulty=number % 2 == 1)
        yield plot.evidence(plot.world())


def is_wrong(plot: Plot) -> bool:
    """Its plan holds an acknowledged commit, or a live transaction, and what was copied could tell."""
    world = plot.world()
    evidence = plot.evidence(world)
    return can_be_told(plot, world) and bool(truth_of(world, answer_of(evidence.history()), evidence.logs).wrong)


def rules_of(answer: Answer, places: frozenset[tuple[int, int]]) -> list[str]:
    """By which rules some places, of a partition and a producer id, were judged; `not open` where nothing is."""
    rule = {(f.partition, f.producer_id): f.rule for f in answer.findings}
    return [rule.get(place, "not open") for place in places]


def destroys(plot: Plot) -> bool:
    """Its plan is right when it is made, and destroys something when it is carried out later."""
    world = plot.world()
    answer = answer_of(plot.evidence(world).history())
    return bool(answer.plan) and not is_wrong(plot) and when_it_destroys(plot, world, answer) is not None


def when_it_destroys(plot: Plot, world: World, answer: Answer) -> str | None:
    """What went before the moment at which carrying out the plan destroys something; None where it never does."""
    known = len(world.steps)
    destroyed = (later for later in afterwards(plot, world) if destroyed_by(later, answer.plan))
    return next((", ".join(story_of(later.steps[known:])) for later in destroyed), None)


def afterwards(plot: Plot, world: World) -> Iterator[World]:
    """What may become of a world after its copy, step by step, several times."""
    for number in range(_EXECUTIONS):
        source, later = random.Random(f"{plot.seed}, afterwards {number}"), world
        for _ in range(_STEPS_BEFORE_EXECUTION):
            later = Teller(plot.names, source).step(later) or later
            yield later
