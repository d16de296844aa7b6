"""The judge and the contract's letter, told twice by independent programs, say the same of random histories."""

import random
from dataclasses import replace

import pytest

from tests.tools.stories.answer import Answer, answers_of
from tests.tools.world.evidence import SKEW_MS, TOPIC, Evidence, truth_of
from tests.tools.world.ids import letter_of
from tests.tools.world.letter.rules import recent_of, rules_of
from tests.tools.world.random_worlds import Plot, random_plot

HISTORIES = 250


def rules_of_the_judge(given: list[Evidence]) -> list[dict[tuple[int, int], str]]:
    return [*map(rules_in, answers_of([evidence.history() for evidence in given]))]


def rules_in(answer: Answer) -> dict[tuple[int, int], str]:
    return {(f.partition, f.producer_id): f.rule for f in answer.findings if f.topic == TOPIC}


@pytest.fixture(scope="module")
def judged() -> list[tuple[Plot, Evidence, Answer]]:
    """Random histories, every second with a fault."""
    plots = [random_plot(f"letter 0/{n}", is_faulty=n % 2 == 1) for n in range(HISTORIES)]
    given = [plot.evidence(plot.world()) for plot in plots]
    return [*zip(plots, given, answers_of([evidence.history() for evidence in given]), strict=True)]


def by_the_letter(evidence: Evidence) -> dict[tuple[int, int], str]:
    return rules_of(evidence, SKEW_MS if evidence.clocks_ms else 0)


def test_the_judge_follows_the_letter(judged: list[tuple[Plot, Evidence, Answer]]) -> None:
    """But that a COMMIT marker speaks against the state in more cases here, which is never a verdict."""
    open_count = 0
    for plot, evidence, answer in judged:
        found, expected = rules_in(answer), by_the_letter(evidence)
        open_count += len(expected)
        differing = {place: rule for place, rule in found.items() if rule != expected.get(place)}
        assert set(found) == set(expected), plot.story()
        assert set(differing.values()) <= {"state_does_not_fit"}, (plot.story(), differing, expected)
    assert open_count > HISTORIES / 2


def test_what_was_written_while_it_was_copied_is_so_by_the_letter(judged: list[tuple[Plot, Evidence, Answer]]) -> None:
    recent_count = 0
    for plot, evidence, answer in judged:
        found = {(f.partition, f.producer_id) for f in answer.findings if f.topic == TOPIC and f.is_recent}
        expected = recent_of(evidence, SKEW_MS if evidence.clocks_ms else 0)
        recent_count += len(expected)
        assert found == expected, plot.story()
    assert recent_count


def test_what_could_not_be_decoded_hides_whom_it_excuses() -> None:
    """Nothing of its partition hangs, nor of nobody, and no other answer is firmer than with the record."""
    plots = [
        plot for n in range(HISTORIES) if (plot := random_plot(f"letter 2/{n}", is_faulty=False)).says_nothing_lost
    ]
    worlds = [plot.world() for plot in plots]
    whole = [plot.evidence(world) for plot, world in zip(plots, worlds, strict=True)]
    hidden = [with_one_hidden(evidence, plot.seed) for plot, evidence in zip(plots, whole, strict=True)]
    answers, without = (answers_of([e.history() for e in given]) for given in (hidden, whole))
    lost_count = 0
    for plot, world, given, answer, before in zip(plots, worlds, hidden, answers, without, strict=True):
        planned, possible = ({(r.partition, r.producer_id) for r in each.plan} for each in (answer, before))
        assert planned <= possible, plot.story()
        assert not truth_of(world, answer, given.logs).wrong, plot.story()
        homes = {
            None if r.transactional_id is None else world.holder(letter_of(r.transactional_id)) for r in answer.plan
        }
        assert not given.undecodable or not homes & {None, given.undecodable[0][0]}, plot.story()
        lost_count += len(possible - planned)
    assert lost_count


def with_one_hidden(evidence: Evidence, seed: str) -> Evidence:
    """One record of the state could not be decoded: its value, or its key as well."""
    source = random.Random(f"{seed}, not decoded")
    places = [(n, place) for n, rows in enumerate(evidence.states) for place, _ in enumerate(rows)]
    return replace(evidence, undecodable=((*source.choice(places), source.random() < 0.5),) if places else ())
