"""The judge and the contract's letter, told twice by independent programs, say the same of random histories."""

from tests.core.answer import answers_of
from tests.world.evidence import SKEW_MS, TOPIC, Evidence
from tests.world.letter.rules import recent_of, rules_of
from tests.world.random_worlds import random_plot

HISTORIES = 250


def rules_of_the_judge(given: list[Evidence]) -> list[dict[tuple[int, int], str]]:
    return [
        {(f.partition, f.producer_id): f.rule for f in answer.findings if f.topic == TOPIC}
        for answer in answers_of([evidence.history() for evidence in given])
    ]


def by_the_letter(evidence: Evidence) -> dict[tuple[int, int], str]:
    return rules_of(evidence, SKEW_MS if evidence.clocks_ms else 0)


def test_the_judge_follows_the_letter() -> None:
    """But that a COMMIT marker speaks against the state in more cases here, which is never a verdict."""
    plots = [random_plot(f"letter 0/{n}", is_faulty=n % 2 == 1) for n in range(HISTORIES)]
    given = [plot.evidence(plot.world()) for plot in plots]
    open_count = 0
    for plot, evidence, found in zip(plots, given, rules_of_the_judge(given), strict=True):
        expected = by_the_letter(evidence)
        open_count += len(expected)
        differing = {place: rule for place, rule in found.items() if rule != expected.get(place)}
        assert set(found) == set(expected), plot.story()
        assert set(differing.values()) <= {"state_does_not_fit"}, (plot.story(), differing, expected)
    assert open_count > HISTORIES / 2


def test_what_was_written_while_it_was_copied_is_so_by_the_letter() -> None:
    plots = [random_plot(f"letter 1/{n}", is_faulty=False) for n in range(HISTORIES)]
    given = [plot.evidence(plot.world()) for plot in plots]
    recent_count = 0
    for plot, evidence, answer in zip(plots, given, answers_of([e.history() for e in given]), strict=True):
        found = {(f.partition, f.producer_id) for f in answer.findings if f.topic == TOPIC and f.is_recent}
        expected = recent_of(evidence, SKEW_MS if evidence.clocks_ms else 0)
        recent_count += len(expected)
        assert found == expected, plot.story()
    assert recent_count
