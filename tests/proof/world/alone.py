"""Random histories, whole and each of their partitions alone: no plan of a partition is wrong.

Where markers of other partitions make the whole audit doubt the state, one may hang alone that does not hang in the
whole. They are counted, and each truly hangs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.proof.part import Report, counted, never
from tests.proof.world.ways import AT_ONCE
from tests.tools.stories.answer import Answer, answers_of
from tests.tools.stories.history import History
from tests.tools.world.evidence import truth_of
from tests.tools.world.random_worlds import random_plot
from tests.tools.world.steps import story_of
from txn_analysis.judge.judgement import TESTED_BY_ALL_LOGS
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.tables import Finding
from txn_analysis.tables.inputs import AskedPartition, is_asked
from txn_analysis.verdict import Verdict


@dataclass
class AloneReport(Report):
    """What so many histories of several partitions come to, by their open transactions.

    A partition's plan is wrong if it holds an acknowledged commit, or a transaction that is live at its coordinator.
    """

    histories: int = counted("histories of several partitions", least=1)
    judged: int = counted("open transactions")
    hanging: int = counted("hang in the whole")
    found: int = counted("of these, hang on their partition alone", least=1)
    wrong: int = never("wrong plans of a partition alone")
    raised: int = counted("hang truly on their partition alone, where the whole audit doubts the state")


def alone(history: History, *, are_words_counted: bool = False) -> Iterator[tuple[AskedPartition, History]]:
    """Each partition of a history as a capture that is asked for it alone, judged as `pipeline.run` does.

    With `are_words_counted` somebody gives both words, whether they are true or not.
    """
    places = {(s["topic"], s["partition"]) for s in history.sections if s["topic"] and s["topic"] != STATE_TOPIC}
    settings = history.settings.model_copy(update=dict.fromkeys(TESTED_BY_ALL_LOGS, are_words_counted))
    for place in sorted(places) if len(places) > 1 else ():
        asked = AskedPartition(*place)
        sections = [s for s in history.sections if is_asked((asked,), s["topic"], s["partition"])]
        yield asked, replace(history, sections=sections, settings=settings, is_partial=not are_words_counted)


def report_of(count: int, seed: int, *, first: int = 0, are_words_counted: bool = False) -> AloneReport:
    """Judge so many random histories; those of one partition are left out."""
    report = AloneReport()
    for begin in range(first, first + count, AT_ONCE):
        given = []
        for number in range(begin, min(begin + AT_ONCE, first + count)):
            plot = random_plot(f"{seed}/{number}", is_faulty=number % 2 == 1)
            world = plot.world()
            evidence = plot.evidence(world)
            history = evidence.history()
            if parts := [*alone(history, are_words_counted=are_words_counted)]:
                given.append((world, evidence, history, parts))
        answers = iter(answers_of([own for *_, history, parts in given for own in (history, *(p for _, p in parts))]))
        for world, evidence, _, parts in given:
            report.histories += 1
            whole = next(answers)
            for asked, _ in parts:
                part = next(answers)
                _note(report, _findings(whole, asked), _findings(part, asked))
                if wrong := truth_of(world, part, evidence.logs).wrong:
                    report.wrong += 1
                    report.problems.append(f"{asked}: {'; '.join(story_of(world.steps))}: {wrong}")
    return report


def _findings(answer: Answer, asked: AskedPartition) -> dict[tuple[int, int], Finding]:
    own = (f for f in answer.findings if (f.topic, f.partition) == asked)
    return {(finding.producer_id, finding.txn_start_offset): finding for finding in own}


def _note(report: AloneReport, whole: dict[tuple[int, int], Finding], part: dict[tuple[int, int], Finding]) -> None:
    assert part.keys() == whole.keys()
    for key, finding in part.items():
        said, expected = finding.verdict, whole[key].verdict
        report.judged += 1
        report.hanging += expected is Verdict.HANGING
        report.found += said is expected is Verdict.HANGING
        report.raised += said is Verdict.HANGING and expected is not Verdict.HANGING
