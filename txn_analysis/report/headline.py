"""The first lines of every report: is anything hanging, how sure is that, what is in doubt, what to do now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from txn_analysis.judge.outcome import Outcome
from txn_analysis.judge.words import words_named
from txn_analysis.kafka.address import Address
from txn_analysis.plan.standing import ToldFinding
from txn_analysis.report.build import looks_like, what_to_do
from txn_analysis.report.figures import ANYBODY, age, by_damage
from txn_analysis.report.finding_text import (
    SCRIPT,
    explain_command,
    has_expired,
    name_of,
    run_option,
    topic_options,
    window_of,
)
from txn_analysis.settings import flag_name
from txn_analysis.text import clip, count, escape, iso_utc, listed, shell_option, shell_word
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from txn_analysis.report.figures import Reader
    from txn_analysis.report.model import AuditReport, EarlierFiles, PruneItem, RunItem
    from txn_analysis.tables.finding_rows import FindingRows

MOST_PLACES = 5
_TOPIC_WIDTH = 80
_MOST_ENDED = 20
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
        is_some_accepted: somebody accepted some of what hangs.
        asked: what alone was asked for; empty where all was; escaped.
    """

    word: str | None
    findings: FindingRows
    verdict: Verdict | None
    unseen: str = ""
    is_some_accepted: bool = False
    asked: str = ""

    @property
    def places(self) -> list[str]:
        """The partitions that it is about, in the order of the findings; escaped."""
        return [escape(place) for place in self.findings.topic_partitions]

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
            of = f" of {self.asked}" if self.asked else ""
            but = ", but what is accepted" if self.is_some_accepted else ""
            return f"Nothing hangs in what was read{of}{but}."
        places = f": {listed(self.places, MOST_PLACES)}" if self.findings else ""
        return f"{self.word}: {self.what}{places}"


def headline(report: AuditReport, fail_on: Verdict = Verdict.HANGING) -> Headline:
    """The first line for somebody who asks for what is at or above a verdict."""
    outcome = report.outcome_at(fail_on)
    worst, nothing = report.unaccepted.worst, report.findings[:0]
    accepted = report.findings.where_one_of("finding_id", [one.finding_id for one in report.counted_accepted])
    is_some_accepted = accepted.worst is Verdict.HANGING
    asked = _asked(report)
    if outcome is Outcome.CLEAN:
        return Headline(None, nothing, None, is_some_accepted=is_some_accepted, asked=asked)
    if outcome is Outcome.COULD_NOT_TELL and not report.doubtful:
        return Headline("COULD NOT TELL", nothing, Verdict.INCONCLUSIVE, escape(report.sight.missing or ""))
    if worst is None:
        return Headline(None, nothing, None, is_some_accepted=is_some_accepted, asked=asked)
    if outcome is Outcome.COULD_NOT_TELL or worst is Verdict.INCONCLUSIVE:
        doubtful = report.doubtful or report.unaccepted.of_verdict(worst)
        return Headline("COULD NOT TELL", by_damage(report, doubtful), Verdict.INCONCLUSIVE)
    named = by_damage(report, report.unaccepted.of_verdict(worst))
    return Headline(worst.value.upper().replace("_", " "), named, worst)


def what_settles(report: AuditReport) -> str:
    """What is missing of an answer, and the one thing that would settle most of it; escaped."""
    first, *others = report.outcome.settled_by
    number, of = first.transaction_count, report.outcome.doubtful_count
    settled = "it" if not others else f"{number} of the {of}"
    rest = "; what the others need is listed below" if others else ""
    return escape(f"Nothing is known to hang, but {first.missing}. What would settle {settled}: {first.text}{rest}.")


def how_sure(report: AuditReport) -> str:
    """What the word hanging rests on, and which assertions of the operator."""
    disproved = report.coverage.disproved
    waived = [option for name, option in _WAIVERS if report.run.parameters.get(name) and name not in disproved]
    word = f" This relies on {' and '.join(waived)}, which you asserted." if waived else ""
    is_one = len(report.hanging) == 1
    it, logs = ("it", "its log is") if is_one else ("them", "their logs are")
    return (
        f"Nobody can end {it} any more: {logs} whole to the end, and the coordinator's state reaches past {it}.{word} "
        f"The plan states {'the' if is_one else 'each'} abort's precondition: check it before you abort."
    )


def _settled(report: AuditReport) -> str:
    if not report.outcome.settled_by:
        return ""
    first = report.outcome.settled_by[0]
    return f" What would settle {first.transaction_count} of them: {escape(first.text)}."


def rests_on_believed(inputs: Mapping[str, str]) -> str:
    """What to do about a run whose version read some files too trustingly, by path with what it does; escaped."""
    path, doubt = next(iter(inputs.items()))
    others = f" and {count(len(inputs) - 1, 'other file')}" if len(inputs) > 1 else ""
    return f"This run was made by an earlier version, which {doubt}, in {escape(path)}{others}: audit its files again"


def rests_on_forgotten(captures: Sequence[str]) -> str:
    """What to do about a run whose evidence was taken out of the warehouse; escaped."""
    names = listed([escape(name) for name in captures], MOST_PLACES)
    which = "capture" if len(captures) == 1 else "captures"
    return f"This run rests on {which} {names}, forgotten since: audit its own files again to judge without it"


def _already_had(files: EarlierFiles, run: RunItem) -> str:
    """That the capture was not new, and what to do where its files are of another night; escaped."""
    when = "" if files.newest_moment_ms is None else f", copied at {iso_utc(files.newest_moment_ms)}"
    options = f"{shell_option('--cluster', run.cluster)} --capture {shell_word(run.capture)}"
    return (
        f"Capture {escape(run.capture)} already had {count(files.file_count, 'other file')}{when}, which are judged "
        f"here as well. If they are of another night, `txn-analysis forget {options}`, and audit each night under a "
        "--capture of its own."
    )


def _may_lack(prune: PruneItem) -> str:
    number, before = len(prune.finding_ids), iso_utc(prune.before_ms)
    which = f"{count(number, 'open transaction')} without an answer may lack what {prune.prune_id} took"
    return f"{which} at {iso_utc(prune.pruned_ms)}: files that were copied before {before}."


def narrowed(report: AuditReport) -> str | None:
    """That a report is about some topics alone, or its run about some partitions; None where it is about all."""
    said = []
    if report.coverage.asked:
        said.append(f"This run judged only {_asked(report)}, with __transaction_state. {_NOT_ASKED}")
    if report.topics:
        topics = listed([clip(topic, _TOPIC_WIDTH) for topic in report.topics], MOST_PLACES)
        said.append(f"This report shows only {topics}. It leaves out the run's other topics and its early warnings.")
    return " ".join(said) or None


_NOT_ASKED = (
    "It says nothing about other partitions, and their logs were not used to disprove what you assert "
    "(--state-copied-last, --no-records-lost) or what a manifest says of the copying. To use them, audit without "
    "--topic and --partition."
)


def _asked(report: AuditReport) -> str:
    """The partitions that alone were asked for; empty where all were; escaped."""
    return listed([clip(str(one), _TOPIC_WIDTH) for one in report.coverage.asked], MOST_PLACES)


def doubts(report: AuditReport) -> Iterator[Doubt]:
    """What the headline must not hide."""
    counts = report.unaccepted.verdict_counts
    inconclusive, suspect = (counts[verdict] for verdict in (Verdict.INCONCLUSIVE, Verdict.SUSPECT))
    if suspect:
        text = f"{count(suspect, 'open transaction')} suspect: do not abort. The list below says what is wrong."
        yield Doubt(text, Verdict.SUSPECT)
    if written := len(report.being_written):
        were = "transaction was" if written == 1 else "transactions were"
        text = f"{written} open {were} being written while the files were copied: nothing is known to be wrong there."
        yield Doubt(text, Verdict.INCONCLUSIVE)
    inconclusive -= written
    is_said = report.outcome.answer is Outcome.COULD_NOT_TELL and inconclusive <= report.outcome.doubtful_count
    if inconclusive and not is_said:
        text = f"{count(inconclusive, 'open transaction')} without an answer: the list below says what is missing."
        is_told = report.outcome.answer is Outcome.COULD_NOT_TELL
        yield Doubt(text if is_told else text + _settled(report), Verdict.INCONCLUSIVE)
    yield from _quiet_since(report)
    clusters = report.coverage.clusters
    if clusters is not None and report.outcome.answer is not Outcome.COULD_NOT_TELL:
        said, remedy = looks_like(clusters), what_to_do(clusters, report.run)
        yield Doubt(escape(f"{said[0].upper()}{said[1:]}: {remedy}."), Verdict.SUSPECT)
    yield from _of_captures(report.run)
    for name, reason in sorted(report.coverage.disproved.items()):
        yield Doubt(
            f"{flag_name(name)} is ignored, because the files contradict it: {escape(reason)}.", Verdict.SUSPECT
        )
    if report.coverage.skipped_inputs or report.coverage.rejected_bytes:
        text = "Some input could not be read: the section What was read names it."
        yield Doubt(text, Verdict.SUSPECT)


def _of_captures(run: RunItem) -> Iterator[Doubt]:
    """What is in its captures beside the files of this audit, and what is not there any more."""
    if run.earlier_files is not None:
        yield Doubt(_already_had(run.earlier_files, run), Verdict.INCONCLUSIVE)
    if run.forgotten_captures:
        yield Doubt(f"{rests_on_forgotten(run.forgotten_captures)}.", Verdict.SUSPECT)
    for prune in run.prunes:
        if prune.finding_ids:
            yield Doubt(_may_lack(prune), Verdict.INCONCLUSIVE)


class _Going(NamedTuple):
    verdict: Verdict
    appended_before_ms: int | None


def _quiet_since(report: AuditReport) -> Iterator[Doubt]:
    """That all that is in progress may be late by now, where no broker's clock went on behind any of it.

    Whether the cluster was quiet since, or wrote more at that moment, the files do not say: so nothing is claimed.
    """
    as_of_ms, going = report.run.as_of_ms, report.unaccepted.of_verdict(Verdict.IN_PROGRESS)
    if report.run.as_of_basis != "newest_broker_timestamp" or as_of_ms is None or not going:
        return
    if any((one.appended_before_ms or as_of_ms) < as_of_ms for one in going.told(_Going)):
        return
    what = f"{count(len(going), 'open transaction')} {'is' if len(going) == 1 else 'are'} in progress"
    newest = f"{iso_utc(as_of_ms)}, the newest timestamp of a broker's clock in the files"
    text = f"{what} as of {newest}. If the files were copied later, say when with --as-of TIME."
    yield Doubt(text, Verdict.INCONCLUSIVE)


class Step(NamedTuple):
    """One thing to do, in words; the command is to be typed as it stands."""

    text: str
    command: str | None = None


def next_steps(report: AuditReport, reader: Reader = ANYBODY) -> list[Step]:
    """What to do now, in order; nothing for whoever reads an anonymized report."""
    if report.anonymized is not None:
        return []
    steps = [*_repair(report, reader), *_look(report), *_complete(report)] or [Step(_nothing_to_do(report))]
    # How one sees that a repair is done, where no plan of this run comes first.
    has_no_plan = not report.hanging or expired_sentence(report, reader.now_ms) is not None
    if has_no_plan and report.run.earlier_captures:
        verify = f"txn-analysis verify{reader.options}"
        steps.append(Step("This tells whether the aborts that earlier runs recommended worked:", verify))
    return steps


def _look(report: AuditReport) -> Iterator[Step]:
    suspects = report.unaccepted.of_verdict(Verdict.SUSPECT).column("rule").unique()
    for rule in sorted(suspects.to_pylist()):
        if (words := words_named(rule)) is not None:
            yield Step(f"Suspect, {rule}: {words.remedy}")


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
    if not report.unaccepted:
        return f"Nothing. {count(len(report.findings), 'open transaction')}, all accepted."
    number = len(report.unaccepted)
    waiting = report.unaccepted.verdict_counts[Verdict.INCONCLUSIVE]
    if written := len(report.being_written):
        waiting -= written
    if waiting:
        return f"Nothing yet. {count(waiting, 'transaction')} without an answer, and not late. Audit again later."
    if written:
        were = "transaction was" if written == 1 else "transactions were"
        return f"Nothing. {written} open {were} being written while the files were copied."
    return f"Nothing. {count(number, 'transaction')} {'is' if number == 1 else 'are'} open, and in order."


def _repair(report: AuditReport, reader: Reader) -> Iterator[Step]:
    """How what hangs is repaired: plan, producers, script, verification; or that the files are too old for it."""
    options, now_ms = reader.options, reader.now_ms
    hanging = by_damage(report, report.hanging)
    if not len(hanging):
        return
    if (too_old := expired_sentence(report, now_ms)) is not None:
        yield Step(
            f"{too_old} Copy the files again, the logs first and `__transaction_state` last, and "
            "audit them. This explains the first finding:",
            explain_command(Address.of_transaction(hanging[0]), report.run.run_id, options),
        )
        return
    moments = [ms for ms in _moments_of(hanging) if not has_expired(report, ms, now_ms)]
    current = hanging.where_one_of("appended_before_ms", moments)
    yield Step(
        "Write the abort plan, a script. Before each abort it checks the time and the brokers, and asks you.",
        f"txn-analysis abort-plan{run_option(report)}{topic_options(report)}{options} --format commands -o {SCRIPT}",
    )
    returning = current.where(pc.or_(current.column("is_producer_live"), current.column("producer_may_return")))
    if returning:
        places = listed([f"{escape(f.topic_partition)} ({name_of(f)})" for f in returning.told(ToldFinding)], 3)
        whose, it = ("producer", "it") if len(returning) == 1 else ("producers", "they")
        yield Step(
            f"First end the {whose} of {places}: {it} may write there again, and an abort would destroy that as well. "
            "Stop the application, and let what it has in progress end: the fence asks first, and goes on only where "
            "nothing is. "
            f"Then run the command beside `fence` (Kafka's tools of 4.1 or newer), and the one "
            f"beside `check` (3.0 or newer). For older ones {SCRIPT} prints the commands. Both ask the brokers at:",
            "export BROKERS=host:9092",
        )
    yield _sending(report, returning, moments)
    yield Step(
        "When the markers are written, copy the files and audit again. This tells whether each abort worked"
        f"{'; start the applications again once it says `repaired`' if returning else ''}:",
        f"txn-analysis verify{options}",
    )


def expired_sentence(report: AuditReport, now_ms: int | None) -> str | None:
    """That the files are too old for an abort of what hangs; None where they are not, or nothing hangs."""
    hanging = report.hanging
    if not hanging or not all(has_expired(report, ms, now_ms) for ms in _moments_of(hanging)):
        return None
    return f"Copied at {iso_utc(report.run.as_of_ms)}, {age(report, now_ms)}: a plan from these files has expired."


def _moments_of(findings: FindingRows) -> list[int | None]:
    """The brokers' moments before which their last records were appended, each once."""
    moments: list[int | None] = findings.column("appended_before_ms").unique().to_pylist()
    return moments


def _sending(report: AuditReport, returning: FindingRows, moments: Iterable[int | None]) -> Step:
    """How the script is run, with the producers to end first, and the moments by which the aborts are dated."""
    ids = [name for name in returning.column("transactional_id").unique().to_pylist() if name is not None]
    windows = [found for ms in moments if (found := window_of(report, ms)) is not None]
    when = ""
    if windows and (start := max(w.not_before_ms for w in windows)) < (end := min(w.not_after_ms for w in windows)):
        when = f" All aborts may be sent from {iso_utc(start)} to {iso_utc(end)}."
    with_ids = ", with `--ended ID` for each producer that you have stopped and fenced" if ids else ""
    more = f"; the script names the other {count(len(ids) - _MOST_ENDED, 'id')}" if len(ids) > _MOST_ENDED else ""
    words = "".join(f" --ended {shell_word(name)}" for name in ids[:_MOST_ENDED])
    text = (
        f"Read the script, then run it{with_ids}{more}.{when} If a broker refuses, copy and audit again; never raise "
        "an epoch."
    )
    return Step(text, f"BROKERS=host:9092 sh {SCRIPT}{words}")
