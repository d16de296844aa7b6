"""Random histories whose copies have manifests: no plan is wrong, and what only a manifest can tell is found.

A plan is wrong where it holds an acknowledged commit, or a transaction that is live at its coordinator, and where it
destroys one when it is carried out later. Nobody gives the word that the state was copied last, but in the wrong order.
"""

from dataclasses import dataclass

from tests.proof.part import Report, counted, never
from tests.proof.world.ways import AT_ONCE, when_it_destroys
from tests.tools.stories.answer import Answer, answers_of
from tests.tools.world.copying import Copier
from tests.tools.world.described import misjudged
from tests.tools.world.evidence import LATE_MS, Evidence, open_data, truth_of
from tests.tools.world.random_copies import told
from tests.tools.world.random_worlds import Plot
from tests.tools.world.steps import story_of
from txn_analysis.verdict import Verdict


@dataclass
class CopiesReport(Report):
    """What so many histories come to."""

    histories: int = counted("copies judged")
    planned: int = counted("transactions planned")
    wrong: int = never("copies with a wrong plan")
    destroyed: int = never("plans that destroy when carried out later")
    proven: int = counted("copies whose order is proven", least=1)
    disproved: int = counted("copies whose order is disproved", least=1)
    reached: int = counted("copies with a log that is proven whole at a moment", least=1)
    described: int = counted("copies fetched beside brokers' answers to DescribeProducers", least=1)
    described_planned: int = counted("transactions planned of these", least=1)
    misjudged: int = never("starts and coordinator epochs of these that are not those of the whole log")
    hanging: int = counted("true hangs")
    found: int = counted("true hangs found", least=1)
    written: int = counted("late by event time and written while they were copied, without an answer", least=1)
    settled: int = counted("of these, no question", least=1)
    misdated: int = never("open transactions wrongly said to be such")


def report_of(count: int, seed: int, *, first: int = 0, kind: str | None = None, asks: bool = True) -> CopiesReport:
    """Judge so many random copies, of one kind or of all, and carry out their plans. Arguments as of `told`."""
    report = CopiesReport()
    for begin in range(first, first + count, AT_ONCE):
        numbers = range(begin, min(begin + AT_ONCE, first + count))
        given = [told(f"{seed}/{number}", kind, asks=asks) for number in numbers]
        answers = answers_of([evidence.history() for _, _, evidence in given])
        for (plot, copier, evidence), answer in zip(given, answers, strict=True):
            _note(report, plot, copier, evidence, answer)
    return report


def _note(report: CopiesReport, plot: Plot, copier: Copier, evidence: Evidence, answer: Answer) -> None:
    truth = truth_of(copier.world, answer, evidence.logs)
    report.histories += 1
    report.planned += len(answer.plan)
    report.hanging += len(truth.hanging)
    report.found += len(truth.found)
    if evidence.described:
        report.described += 1
        report.described_planned += len(answer.plan)
        wrong = misjudged(answer.findings, copier.whole_logs, copier.described)
        report.misjudged += len(wrong)
        report.problems += [f"{plot.seed}: {copier.kind}: not as in the whole log: {each}" for each in wrong]
    _note_dates(report, copier, evidence, answer)
    if answer.copied is not None:
        report.proven += answer.copied.is_state_last
        report.reached += bool(answer.copied.reach_ms)
        report.disproved += answer.copied.disproof is not None
    if truth.wrong:
        report.wrong += 1
        report.problems.append(f"{plot.seed}: {copier.kind}: {'; '.join(story_of(copier.world.steps))}: {truth.wrong}")
    elif answer.plan and (moment := when_it_destroys(plot, copier.world, answer)) is not None:
        report.destroyed += 1
        report.problems.append(f"{plot.seed}: {copier.kind}: it destroys after {moment}")


def _note_dates(report: CopiesReport, copier: Copier, evidence: Evidence, answer: Answer) -> None:
    """What was written while it was copied, and what is said to be."""
    for finding in answer.findings:
        batches = open_data(evidence.logs[finding.partition], finding.producer_id)
        copied_ms = copier.copied_at_ms[finding.partition] if evidence.as_of_ms is None else evidence.as_of_ms
        is_young = bool(batches) and copied_ms - batches[0].at_ms < LATE_MS
        report.misdated += bool(finding.is_recent) and not is_young
        if is_young and finding.verdict is Verdict.INCONCLUSIVE and (finding.late_by_ms or 0) > 0:
            report.written += 1
            report.settled += bool(finding.is_recent)
