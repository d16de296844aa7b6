"""The first lines of every report: is anything hanging, how sure is that, what is in doubt, what to do now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from txn_analysis.judge.outcome import Outcome
from txn_analysis.report import nights
from txn_analysis.report.build import THIS_WAREHOUSE, forget_command, looks_like, what_to_do
from txn_analysis.report.figures import ANYBODY, Reader, age, by_damage, hidden_records
from txn_analysis.report.finding_text import has_expired
from txn_analysis.report.model import AuditReport, EarlierFiles, PruneItem, RunItem
from txn_analysis.report.upcoming import Risk
from txn_analysis.settings import flag_name
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.text import clip, count, duration, escape, iso_utc, listed
from txn_analysis.verdict import Verdict

MOST_PLACES = 5
_TOPIC_WIDTH = 80
_ID_WIDTH = 80
_MOST_GROUPS = 5
_WAIVERS = (
    ("state_copied_last", "--state-copied-last"),
    ("transaction_state_complete", "--transaction-state-complete"),
    ("no_records_lost", "--no-records-lost"),
)


class Kind(StrEnum):
    """What one of the first statements is about."""

    ANSWER = "answer"  # does something hang
    ANONYMIZED = "anonymized"
    SINCE = "since"  # against the run before
    SETTLES = "settles"  # what is missing, and what would settle it
    BLOCKED = "blocked"  # of the whole cluster
    NARROWED = "narrowed"  # which topics and partitions it is about
    ASSERTED = "asserted"  # by the operator, and the word hanging rests on it
    EXPIRED = "expired"  # it is too late for an abort
    DOUBT = "doubt"  # beside what hangs


class Statement(NamedTuple):
    """One of the first statements of every report; `verdict` is the one whose colour it has, None of most."""

    kind: Kind
    text: str
    verdict: Verdict | None = None


class Headline(NamedTuple):
    """The first line, all of it escaped: it says the same as the exit code.

    `word` is the answer, such as `HANGING`; None where nothing is to be said of any transaction. `what` says how many
    transactions on how many partitions, or what was not seen. `places` are these partitions, by damage. `verdict` is
    the one whose colour it has; None where all is well.
    """

    text: str
    word: str | None = None
    what: str = ""
    places: Sequence[str] = ()
    verdict: Verdict | None = None


def lead(report: AuditReport, reader: Reader = ANYBODY) -> Iterator[Statement]:
    """The first statements, in the order in which each form that has one says it; doubts come behind what to do."""
    first = headline(report, reader.fail_on)
    yield Statement(Kind.ANSWER, first.text, first.verdict)
    texts = {
        Kind.ANONYMIZED: report.anonymized,
        Kind.SINCE: nights.second_line(report),
        Kind.SETTLES: what_settles(report) if report.outcome.answer is Outcome.COULD_NOT_TELL else None,
        Kind.BLOCKED: _blocked(report),
        Kind.NARROWED: narrowed(report),
        Kind.ASSERTED: _asserted(report) if report.hanging else None,
        Kind.EXPIRED: expired_sentence(report, reader.now_ms),
    }
    for kind, text in texts.items():
        if text is not None:
            yield Statement(kind, text, Verdict.SUSPECT if kind is Kind.EXPIRED else None)
    yield from doubts(report)


_doubt = partial(Statement, Kind.DOUBT)


def headline(report: AuditReport, fail_on: Verdict = Verdict.HANGING) -> Headline:
    """The first line for somebody who asks for what is at or above a verdict."""
    outcome, worst = report.outcome_at(fail_on), report.unaccepted.worst
    unknown, is_unknown = "COULD NOT TELL", outcome is Outcome.COULD_NOT_TELL
    if is_unknown and not report.doubtful:
        unseen = escape(report.log_coverage.missing or "")
        return Headline(f"{unknown}: {unseen}", unknown, unseen, verdict=Verdict.INCONCLUSIVE)
    if outcome is Outcome.CLEAN or worst is None:
        accepted = report.findings.where_one_of("finding_id", [one.finding_id for one in report.counted_accepted])
        of = f" of {asked}" if (asked := _asked(report)) else ""
        but = ", but what is accepted" if accepted.worst is Verdict.HANGING else ""
        return Headline(f"Nothing hangs in what was read{of}{but}.")
    word, verdict, findings = worst.value.upper().replace("_", " "), worst, report.unaccepted.of_verdict(worst)
    if is_unknown or worst is Verdict.INCONCLUSIVE:
        word, verdict, findings = unknown, Verdict.INCONCLUSIVE, report.doubtful or findings
    places = [escape(place) for place in by_damage(report, findings).topic_partitions]
    what = f"{count(len(findings), 'transaction')} on {count(len(places), 'partition')}"
    return Headline(f"{word}: {what}: {listed(places, MOST_PLACES)}", word, what, places, verdict)


def what_settles(report: AuditReport) -> str:
    """What is missing of an answer, and the one thing that would settle most of it; escaped."""
    first, *others = report.outcome.settled_by
    number, of = first.transaction_count, report.outcome.doubtful_count
    settled = "it" if not others else f"{number} of the {of}"
    rest = "; what the others need is listed below" if others else ""
    return escape(f"Nothing is known to hang, but {first.missing}. What would settle {settled}: {first.text}{rest}.")


def _blocked(report: AuditReport) -> str | None:
    """The cluster in short: what is blocked, since when, and who waits; None where nothing is.

    What only transactions in progress hold does not count: it is released in time.
    """
    impact = report.impact
    if impact is None or not impact.partitions_blocked:
        return None
    since = "" if impact.oldest_since_ms is None else f" since {iso_utc(impact.oldest_since_ms)}"
    hanging, where = report.hanging, count(impact.partitions_blocked, "partition")
    by_hanging = len(hanging.where(hanging.column("blocks_partition")).topic_partitions)
    if hanging and by_hanging != impact.partitions_blocked:
        where += f" ({by_hanging} by hanging)"
    parts = [f"Blocked{since}: {where}, {hidden_records(impact.hidden_record_count)} hidden"]
    groups = dict.fromkeys(one.whom for one in report.upcoming if one.risk is Risk.GROUP_STUCK)
    if groups:
        parts.append(f"Waiting: {listed([clip(group, _ID_WIDTH) for group in groups], _MOST_GROUPS)}")
    if impact.days_until_full is not None:
        parts.append(f"Disk full in {impact.days_until_full:.1f} days")
    return ". ".join(parts) + "."


def _asserted(report: AuditReport) -> str | None:
    """Which assertions of the operator the word hanging rests on; None without any."""
    disproved = report.coverage.disproved
    waived = [option for name, option in _WAIVERS if report.run.parameters.get(name) and name not in disproved]
    return f"You asserted {' and '.join(waived)}." if waived else None


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
    forget = forget_command(run.cluster, run.capture)
    return (
        f"Capture {escape(run.capture)} already had {count(files.file_count, 'other file')}{when}, which are judged "
        f"here as well. If they are of another night, {forget} {THIS_WAREHOUSE}, and audit each night under a "
        "--capture of its own."
    )


def _may_lack(prune: PruneItem) -> str:
    number, before = len(prune.finding_ids), iso_utc(prune.before_ms)
    which = f"{count(number, 'open transaction')} without an answer may lack what {prune.prune_id} took"
    return f"{which} at {iso_utc(prune.pruned_ms)}: files that were copied before {before}."


def narrowed(report: AuditReport) -> str | None:
    """That a report is about some topics alone, or its run about some partitions; None where it is about all."""
    sentences = []
    if report.coverage.asked:
        sentences.append(f"This run judged only {_asked(report)}, with __transaction_state.")
    if report.topics:
        topics = listed([clip(topic, _TOPIC_WIDTH) for topic in report.topics], MOST_PLACES)
        sentences.append(f"This report shows only {topics}.")
    return " ".join(sentences) or None


def left_out(report: AuditReport) -> Iterator[str]:
    """What a report that is about some topics or partitions says nothing of."""
    if report.coverage.asked:
        yield "other partitions: nothing is said of them. To see them, audit without --topic and --partition"
        yield "their logs disproved nothing of what you assert, or of what a manifest says of the copying"
    if report.topics:
        yield "the run's other topics, and its early warnings"


def _asked(report: AuditReport) -> str:
    """The partitions that alone were asked for; empty where all were; escaped."""
    return listed([clip(str(one), _TOPIC_WIDTH) for one in report.coverage.asked], MOST_PLACES)


def doubts(report: AuditReport) -> Iterator[Statement]:
    """What the headline must not hide."""
    counts = report.unaccepted.verdict_counts
    inconclusive, suspect = (counts[verdict] for verdict in (Verdict.INCONCLUSIVE, Verdict.SUSPECT))
    if suspect:
        text = f"{count(suspect, 'open transaction')} suspect: do not abort. The list says what is wrong."
        yield _doubt(text, Verdict.SUSPECT)
    if written := len(report.being_written):
        began = f"began less than {duration(report.run.late_after_ms)} before the copy, by the brokers' clocks"
        text = f"{count(written, 'open transaction')} {began}: too young to be judged."
        yield _doubt(text, Verdict.INCONCLUSIVE)
    inconclusive -= written
    has_no_answer = report.outcome.answer is Outcome.COULD_NOT_TELL
    if inconclusive and not (has_no_answer and inconclusive <= report.outcome.doubtful_count):
        text = f"{count(inconclusive, 'open transaction')} without an answer: the list says what is missing."
        yield _doubt(text if has_no_answer else text + _settled(report), Verdict.INCONCLUSIVE)
    yield from _quiet_since(report)
    yield from _copied_before_written(report)
    clusters = report.coverage.clusters
    if clusters is not None and not has_no_answer:
        suspicion, remedy = looks_like(clusters), what_to_do(clusters, report.run)
        yield _doubt(escape(f"{suspicion[0].upper()}{suspicion[1:]}: {remedy}."), Verdict.SUSPECT)
    yield from _of_captures(report.run)
    for name, reason in sorted(report.coverage.disproved.items()):
        yield _doubt(
            f"{flag_name(name)} is ignored, because the files contradict it: {escape(reason)}.", Verdict.SUSPECT
        )
    if report.coverage.skipped_inputs or report.coverage.rejected_bytes:
        text = "Some input could not be read: the section What was read names it."
        yield _doubt(text, Verdict.SUSPECT)


def _of_captures(run: RunItem) -> Iterator[Statement]:
    """What is in its captures beside the files of this audit, and what is not there any more."""
    if run.earlier_files is not None:
        yield _doubt(_already_had(run.earlier_files, run), Verdict.INCONCLUSIVE)
    if run.forgotten_captures:
        yield _doubt(f"{rests_on_forgotten(run.forgotten_captures)}.", Verdict.SUSPECT)
    for prune in run.prunes:
        if prune.finding_ids:
            yield _doubt(_may_lack(prune), Verdict.INCONCLUSIVE)


def _quiet_since(report: AuditReport) -> Iterator[Statement]:
    """That all that is in progress may be late by now, where no broker's clock went on behind any of it.

    Whether the cluster was quiet since, or wrote more at that moment, the files do not say: so nothing is claimed.
    """
    as_of_ms, going = report.run.as_of_ms, report.unaccepted.of_verdict(Verdict.IN_PROGRESS)
    if report.run.as_of_basis != "newest_broker_timestamp" or as_of_ms is None or not going:
        return
    if any((ms or as_of_ms) < as_of_ms for ms in moments_of(going)):
        return
    as_of = iso_utc(as_of_ms)
    text = f"{count(len(going), 'transaction')} in progress as of {as_of}. If copied later: --as-of TIME."
    yield _doubt(text, Verdict.INCONCLUSIVE)


def _copied_before_written(report: AuditReport) -> Iterator[Statement]:
    """That brokers wrote into the files after the stated moment of their copy: what is in progress may be late."""
    as_of_ms, going = report.run.as_of_ms, report.unaccepted.of_verdict(Verdict.IN_PROGRESS)
    written_ms = max((ms for ms in moments_of(going) if ms is not None), default=None)
    if report.run.as_of_basis == "given" and as_of_ms is not None and written_ms is not None and written_ms > as_of_ms:
        stated, written = iso_utc(as_of_ms), iso_utc(written_ms)
        text = f"--as-of {stated} is before what brokers wrote into these files, at {written}: in progress as of then."
        yield _doubt(text, Verdict.INCONCLUSIVE)


def expired_sentence(report: AuditReport, now_ms: int | None) -> str | None:
    """That the files are too old for an abort of what hangs; None where they are not, or nothing hangs."""
    hanging = report.hanging
    if not hanging or not all(has_expired(report.run, ms, now_ms) for ms in moments_of(hanging)):
        return None
    return f"Copied at {iso_utc(report.run.as_of_ms)}, {age(report, now_ms)}: a plan from these files has expired."


def moments_of(findings: FindingRows) -> list[int | None]:
    """The brokers' moments before which their last records were appended, each once."""
    moments: list[int | None] = findings.column("appended_before_ms").unique().to_pylist()
    return moments
