"""The first lines of every report: is anything hanging, how sure is that, what is in doubt, what to do now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.judge.outcome import Outcome
from txn_analysis.judge.rules import rule_named
from txn_analysis.report.figures import by_damage
from txn_analysis.report.sending import Step, repair_steps
from txn_analysis.report.settling import looks_like, what_to_do
from txn_analysis.settings import flag_name
from txn_analysis.text.escape import clip, escape
from txn_analysis.text.words import count, listed
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.report.model import AuditReport, FindingItem

MOST_PLACES = 5
_TOPIC_WIDTH = 80
_WAIVERS = (
    ("state_copied_last", "--state-copied-last"),
    ("transaction_state_complete", "--transaction-state-complete"),
    ("no_records_lost", "--no-records-lost"),
)


class Doubt(NamedTuple):
    """Something beside the hanging ones that a person should know, and the verdict whose colour it has."""

    text: str
    verdict: Verdict


@dataclass(frozen=True)
class Headline:
    """The first line: it says the same as the exit code.

    Attributes:
        word: the answer, such as `HANGING`; None where nothing is to be said of any transaction.
        findings: the transactions that it is about, by damage; none where it is about what was not seen.
        verdict: whose colour it has; None where all is well.
        unseen: what was not seen, where it is about that; escaped.
    """

    word: str | None
    findings: tuple[FindingItem, ...]
    verdict: Verdict | None
    unseen: str = ""

    @property
    def places(self) -> list[str]:
        """The partitions that it is about, in the order of the findings; escaped."""
        return list(dict.fromkeys(escape(finding.topic_partition) for finding in self.findings))

    @property
    def what(self) -> str:
        """How many transactions on how many partitions; or that nothing was read that could hang."""
        if not self.findings:
            return self.unseen
        return f"{count(len(self.findings), 'transaction')} on {count(len(self.places), 'partition')}"

    @property
    def text(self) -> str:
        """The whole line."""
        if self.word is None:
            return "Nothing hangs in what was read."
        places = f": {listed(self.places, MOST_PLACES)}" if self.findings else ""
        return f"{self.word}: {self.what}{places}"


def headline(report: AuditReport, fail_on: Verdict = Verdict.HANGING) -> Headline:
    """The first line for somebody who asks for what is at or above a verdict."""
    outcome = report.outcome_at(fail_on)
    worst = max((f.verdict for f in report.findings), key=lambda verdict: verdict.severity, default=None)
    if outcome is Outcome.CLEAN:
        return Headline(None, (), None)
    if outcome is Outcome.COULD_NOT_TELL and not report.doubtful:
        return Headline("COULD NOT TELL", (), Verdict.INCONCLUSIVE, escape(report.sight.missing or ""))
    if worst is None:
        return Headline(None, (), None)
    if outcome is Outcome.COULD_NOT_TELL or worst is Verdict.INCONCLUSIVE:
        doubtful = report.doubtful or tuple(f for f in report.findings if f.verdict is worst)
        return Headline("COULD NOT TELL", tuple(by_damage(report, doubtful)), Verdict.INCONCLUSIVE)
    named = tuple(by_damage(report, (finding for finding in report.findings if finding.verdict is worst)))
    return Headline(worst.value.upper().replace("_", " "), named, worst)


def what_settles(report: AuditReport) -> str:
    """What is missing of an answer, and the one thing that would settle most of it; escaped."""
    first, *others = report.outcome.settled_by
    number, of = first.transaction_count, report.outcome.doubtful_count
    settled = "it" if not others else f"{number} of the {of}"
    rest = "; what the others need is listed below" if others else ""
    return escape(f"Nothing is known to hang, but {first.missing}. What would settle {settled}: {first.text}{rest}.")


def how_sure(report: AuditReport) -> str:
    """What the word hanging rests on, and for what the operator's word was taken."""
    disproved = report.coverage.disproved
    waived = [option for name, option in _WAIVERS if report.run.parameters.get(name) and name not in disproved]
    word = f", where your word was taken for {' and '.join(waived)}" if waived else ""
    is_one = len(report.hanging) == 1
    it, logs = ("it", "Its log is") if is_one else ("them", "Their logs are")
    return (
        f"Nobody will ever end {it}. {logs} proven whole to the end, and the coordinator's state reaches past "
        f"{it}{word}. Check {'its' if is_one else 'each'} precondition before you abort."
    )


def _settled(report: AuditReport) -> str:
    """What would settle most of them."""
    if not report.outcome.settled_by:
        return ""
    first = report.outcome.settled_by[0]
    return f" What would settle {first.transaction_count} of them: {escape(first.text)}."


def rests_on_forgotten(captures: Sequence[str]) -> str:
    """What to do about a run whose evidence was taken out of the warehouse; escaped."""
    names = listed([escape(name) for name in captures], MOST_PLACES)
    which = "capture" if len(captures) == 1 else "captures"
    return f"This run rests on {which} {names}, forgotten since: audit its own files again to judge without it"


def narrowed(report: AuditReport) -> str | None:
    """That a report is about some topics alone; None where it is about all of its run."""
    if not report.topics:
        return None
    topics = listed([clip(topic, _TOPIC_WIDTH) for topic in report.topics], MOST_PLACES)
    return f"Shown: {topics} alone. Other topics of the run, and its early warnings, are left out."


def doubts(report: AuditReport) -> Iterator[Doubt]:
    """What the headline must not hide."""
    counts = report.run.verdict_counts
    inconclusive, suspect = (counts.get(verdict, 0) for verdict in (Verdict.INCONCLUSIVE, Verdict.SUSPECT))
    if suspect:
        text = f"{count(suspect, 'open transaction')} suspect: look at the list below; an abort is not the remedy."
        yield Doubt(text, Verdict.SUSPECT)
    is_said = report.outcome.answer is Outcome.COULD_NOT_TELL and inconclusive <= report.outcome.doubtful_count
    if inconclusive and not is_said:
        text = f"{count(inconclusive, 'open transaction')} without an answer: what is missing is listed below."
        yield Doubt(text + _settled(report), Verdict.INCONCLUSIVE)
    clusters = report.coverage.clusters
    if clusters is not None and report.outcome.answer is not Outcome.COULD_NOT_TELL:
        said, remedy = looks_like(clusters), what_to_do(clusters, report.run)
        yield Doubt(escape(f"{said[0].upper()}{said[1:]}: {remedy}."), Verdict.SUSPECT)
    if report.run.forgotten_captures:
        yield Doubt(f"{rests_on_forgotten(report.run.forgotten_captures)}.", Verdict.SUSPECT)
    for name, reason in sorted(report.coverage.disproved.items()):
        yield Doubt(f"{flag_name(name)} is not true, and counts nowhere: {escape(reason)}.", Verdict.SUSPECT)
    if report.coverage.skipped_inputs or report.coverage.rejected_bytes:
        text = "Not everything could be read; see the end of this report for what was skipped."
        yield Doubt(text, Verdict.SUSPECT)


def next_steps(report: AuditReport, options: str, now_ms: int | None = None) -> list[Step]:
    """What to do now, in order.

    Args:
        report: what was found.
        options: complete the commands, such as ` --warehouse /data/audit`.
        now_ms: the time at which this is read; None where nobody says.
    """
    steps = [*repair_steps(report, options, now_ms), *_look(report), *_complete(report)]
    return [*(steps or [Step(_nothing_to_do(report))]), *_verified(report, options)]


def _verified(report: AuditReport, options: str) -> Iterator[Step]:
    """How one sees that a repair is done, once nothing hangs any more."""
    if not report.hanging and report.run.earlier_captures:
        yield Step("What became of the aborts that earlier runs recommended:", f"txn-analysis verify{options}")


def _look(report: AuditReport) -> Iterator[Step]:
    suspects = {f.rule for f in report.findings if f.verdict is Verdict.SUSPECT}
    for rule in filter(None, map(rule_named, sorted(suspects))):
        yield Step(f"Suspect, {rule.name}: {rule.remedy}")


def _complete(report: AuditReport) -> Iterator[Step]:
    for remedy in report.outcome.settled_by:
        if not remedy.transaction_count:
            yield Step(escape(f"Since {remedy.missing}, give {remedy.text}."))
            continue
        number = count(remedy.transaction_count, "transaction")
        yield Step(escape(f"For {number} without an answer, since {remedy.missing}: {remedy.text}."))


def _nothing_to_do(report: AuditReport) -> str:
    if not report.findings:
        return "Nothing. No transaction is open in what was read."
    number = len(report.findings)
    waiting = report.run.verdict_counts.get(Verdict.INCONCLUSIVE, 0)
    if waiting:
        return f"Nothing yet. {count(waiting, 'transaction')} without an answer, and not late. Audit again later."
    return f"Nothing. {count(number, 'transaction')} {'is' if number == 1 else 'are'} open, and in order."
