"""The first lines of every report: is anything hanging, how sure is that, what is in doubt, what to do now."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.config import flag_name
from txn_analysis.judge.rules import rule_named
from txn_analysis.judge.rules.commit_may_be_missing import COMMIT_MAY_BE_MISSING
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.report.escape import clip, escape, shell_word
from txn_analysis.report.words import count, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.report.model import AuditReport, FindingItem

MOST_PLACES = 5
_WAIVERS = (
    ("state_copied_last", "--state-copied-last"),
    ("transaction_state_complete", "--transaction-state-complete"),
    ("no_records_lost", "--no-records-lost"),
)


class Doubt(NamedTuple):
    """Something beside the hanging ones that a person should know, and the verdict whose colour it has."""

    text: str
    verdict: Verdict


def hanging_places(report: AuditReport) -> list[str]:
    """The partitions on which transactions hang; escaped."""
    return sorted({escape(finding.topic_partition) for finding in report.hanging})


def how_many_hang(report: AuditReport) -> str:
    """How many transactions hang on how many partitions."""
    return f"{count(len(report.hanging), 'transaction')} on {count(len(hanging_places(report)), 'partition')}"


def what_hangs(report: AuditReport) -> str:
    """How many transactions hang, and where; escaped."""
    return f"{how_many_hang(report)}: {listed(hanging_places(report), MOST_PLACES)}"


def how_sure(report: AuditReport) -> str:
    """What the word hanging rests on, and for what the operator's word was taken."""
    disproved = report.coverage.disproved
    waived = [option for name, option in _WAIVERS if report.run.parameters.get(name) and name not in disproved]
    word = f", where your word was taken for {' and '.join(waived)}" if waived else ""
    return (
        "Nobody will ever end them. Their logs are proven whole to the end, and the coordinator's state reaches past "
        f"them{word}. Check each precondition before you abort."
    )


def _settled_by_a_word(report: AuditReport) -> str:
    """How many of them one assurance would settle, if it is true."""
    settled = sum(finding.rule == COMMIT_MAY_BE_MISSING.name for finding in report.findings)
    return f" {settled} of them would be settled by --no-records-lost, if that is true." if settled else ""


def doubts(report: AuditReport) -> Iterator[Doubt]:
    """What the headline must not hide."""
    counts = report.run.verdict_counts
    inconclusive, suspect = (counts.get(verdict, 0) for verdict in (Verdict.INCONCLUSIVE, Verdict.SUSPECT))
    if suspect:
        text = f"{count(suspect, 'open transaction')} suspect: look at the list below; an abort is not the remedy."
        yield Doubt(text, Verdict.SUSPECT)
    if inconclusive:
        text = f"{count(inconclusive, 'open transaction')} without an answer: what is missing is listed below."
        yield Doubt(text + _settled_by_a_word(report), Verdict.INCONCLUSIVE)
    for name, reason in sorted(report.coverage.disproved.items()):
        yield Doubt(f"{flag_name(name)} is not true, and counts nowhere: {escape(reason)}.", Verdict.SUSPECT)
    if report.coverage.skipped_inputs or report.coverage.rejected_bytes:
        text = "Not everything could be read; see the end of this report for what was skipped."
        yield Doubt(text, Verdict.SUSPECT)


class Step(NamedTuple):
    """One thing to do, in words; the command is to be typed as it stands."""

    text: str
    command: str | None = None


def next_steps(report: AuditReport, options: str) -> list[Step]:
    """What to do now, in order; `options` complete the commands, such as ` --warehouse /data/audit`."""
    steps = [*_repair(report, options), *_look(report), *_complete(report)]
    return steps or [Step(_nothing_to_do(report))]


def _repair(report: AuditReport, options: str) -> Iterator[Step]:
    if not report.hanging:
        return
    yield Step(
        "Print the abort plan: a script that checks the time and the brokers, and asks, before each abort.",
        f"txn-analysis abort-plan --run {shell_word(report.run.run_id)}{options} --format commands",
    )
    returning = [f"{escape(f.topic_partition)} ({_name_of(f)})" for f in report.hanging if f.must_end_producer]
    if returning:
        yield Step(
            f"First end the producer of {listed(returning, 3)}: it may write there again, and an abort would destroy "
            "that as well."
        )
    yield Step(
        "When the markers are written, copy the files again and audit once more. This says what became of each abort:",
        f"txn-analysis verify{options}",
    )


def _name_of(finding: FindingItem) -> str:
    if finding.transactional_id is None:
        return f"producer id {finding.producer_id}"
    return clip(finding.transactional_id, 60)


def _look(report: AuditReport) -> Iterator[Step]:
    suspects = {f.rule for f in report.findings if f.verdict is Verdict.SUSPECT}
    for rule in filter(None, map(rule_named, sorted(suspects))):
        yield Step(f"Suspect, {rule.name}: {rule.remedy}")


def _complete(report: AuditReport) -> Iterator[Step]:
    open_questions = Counter(f.rule for f in report.findings if f.verdict is Verdict.INCONCLUSIVE)
    for name, number in sorted(open_questions.items()):
        rule = rule_named(name)
        if rule is not None:
            yield Step(f"For {count(number, 'transaction')} without an answer ({name}): {rule.remedy}")


def _nothing_to_do(report: AuditReport) -> str:
    if not report.findings:
        return "Nothing. No transaction is open in what was read."
    number = len(report.findings)
    return f"Nothing. {count(number, 'transaction')} {'is' if number == 1 else 'are'} open, and in order."
