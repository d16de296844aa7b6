"""Random histories whose copies have manifests: no plan is wrong, and what only a manifest can tell is found.

A plan is wrong where it holds an acknowledged commit, or a transaction that is live at its coordinator, and where it
destroys one when it is carried out later. Nobody gives the word that the state was copied last, but in the wrong order.
"""

from dataclasses import dataclass, field

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
class Report:
    """What so many histories come to; `proven` and `reached` count copies by what their manifests prove.

    `described` are copies with brokers' answers beside their logs, in which `described_planned` are
    planned. Of `misjudged` ones a start or a coordinator epoch is not that of the whole log.
    Of `written` open transactions without an answer, which are late by their clients' clocks alone and were written
    while they were copied, `settled` are no question; of those that are said to be so none may be older (`misdated`).
    """

    histories: int = 0
    planned: int = 0
    wrong: int = 0
    destroyed: int = 0
    proven: int = 0
    reached: int = 0
    disproved: int = 0
    hanging: int = 0
    found: int = 0
    described: int = 0
    described_planned: int = 0
    misjudged: int = 0
    written: int = 0
    settled: int = 0
    misdated: int = 0
    stories: list[str] = field(default_factory=list)


def report_of(count: int, seed: int, *, first: int = 0, kind: str | None = None, asks: bool = True) -> Report:
    """Judge so many random copies, of one kind or of all, and carry out their plans. Arguments as of `told`."""
    report = Report()
    for begin in range(first, first + count, AT_ONCE):
        numbers = range(begin, min(begin + AT_ONCE, first + count))
        given = [told(f"{seed}/{number}", kind, asks=asks) for number in numbers]
        answers = answers_of([evidence.history() for _, _, evidence in given])
        for (plot, copier, evidence), answer in zip(given, answers, strict=True):
            _note(report, plot, copier, evidence, answer)
    return report


def _note(report: Report, plot: Plot, copier: Copier, evidence: Evidence, answer: Answer) -> None:
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
        report.stories += [f"{plot.seed}: {copier.kind}: not as in the whole log: {each}" for each in wrong]
    _note_dates(report, copier, evidence, answer)
    if answer.copied is not None:
        report.proven += answer.copied.is_state_last
        report.reached += bool(answer.copied.reach_ms)
        report.disproved += answer.copied.disproof is not None
    if truth.wrong:
        report.wrong += 1
        report.stories.append(f"{plot.seed}: {copier.kind}: {'; '.join(story_of(copier.world.steps))}: {truth.wrong}")
    elif answer.plan and (moment := when_it_destroys(plot, copier.world, answer)) is not None:
        report.destroyed += 1
        report.stories.append(f"{plot.seed}: {copier.kind}: it destroys after {moment}")


def _note_dates(report: Report, copier: Copier, evidence: Evidence, answer: Answer) -> None:
    """What was written while it was copied, and what is said to be."""
    for finding in answer.findings:
        batches = open_data(evidence.logs[finding.partition], finding.producer_id)
        copied_ms = copier.copied_at_ms[finding.partition] if evidence.as_of_ms is None else evidence.as_of_ms
        is_young = bool(batches) and copied_ms - batches[0].at_ms < LATE_MS
        report.misdated += bool(finding.is_recent) and not is_young
        if is_young and finding.verdict is Verdict.INCONCLUSIVE and (finding.late_by_ms or 0) > 0:
            report.written += 1
            report.settled += bool(finding.is_recent)
