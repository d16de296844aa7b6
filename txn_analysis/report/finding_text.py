"""One finding as a person reads it: what, where, since when, why, what it blocks, what to do."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from txn_analysis.judge.applications import framework_of, stopping
from txn_analysis.judge.words import words_named
from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import TRANSACTIONS
from txn_analysis.kafka.transactions import COMPLETE_ABORT, ONGOING, PREPARED, ending_of
from txn_analysis.plan.abort_plan import window
from txn_analysis.plan.script import fence_with_kafkas_tool
from txn_analysis.report.figures import (
    blocks_sentence,
    cause_meaning,
    idle_by_brokers,
    is_contradicted,
    is_decided_by_clock,
)
from txn_analysis.report.owner import ending_sentence, stop_sentence
from txn_analysis.report.terminal import Line, labelled
from txn_analysis.text import clip, count, duration, escape, iso_utc, shell_option, shell_word, size
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.plan.abort_plan import Window
    from txn_analysis.report.figures import Reader
    from txn_analysis.report.model import AuditReport
    from txn_analysis.tables import Finding, PartitionHealth

_ID_WIDTH = 200
_NAME_WIDTH = 60
_OWNER_WIDTH = 400
_INDENT = "   "
_TEXT_FROM = 12
_MOST_MISSING = 3
SCRIPT = "plan.sh"
BEING_WRITTEN_REMEDY = "Nothing now. If a later capture still lists it from this offset, that audit judges it."


class Paragraph(NamedTuple):
    """One thing that is said of a finding, and the facts behind it; a command is to be typed as it stands."""

    label: str
    text: str
    facts: tuple[str, ...] = ()
    command: str | None = None


def paragraphs(report: AuditReport, finding: Finding, reader: Reader) -> Iterator[Paragraph]:
    """All that is said of a finding, in the order in which a person asks; escaped."""
    return shown(report, _paragraphs(report, finding, reader))


def shown(report: AuditReport, said: Iterable[Paragraph]) -> Iterator[Paragraph]:
    """Paragraphs without their commands where the report is anonymized: commands name what they are about."""
    return (one for one in said if one.command is None or report.anonymized is None)


def _paragraphs(report: AuditReport, finding: Finding, reader: Reader) -> Iterator[Paragraph]:
    yield from _evidence(report, finding)
    if finding.cause is not None:
        cause = finding.cause
        yield Paragraph("cause", f"{cause_meaning(cause)} ({cause.name}, {cause.confidence})")
    yield _blocks(report, finding)
    yield from owner_line(report, finding)
    yield from to_do(report, finding, reader)
    yield from _afterwards(report, finding)
    yield explanation(report, finding, reader)


def facts(report: AuditReport, finding: Finding) -> Iterator[Paragraph]:
    """What is known of a finding, without its cause and without what to do; escaped."""
    yield from _evidence(report, finding)
    yield _blocks(report, finding)
    yield from _afterwards(report, finding)


def lines_of(said: Iterable[Paragraph], width: int) -> Iterator[Line]:
    """Paragraphs beside their labels, of at most `width` columns but for commands."""
    for label, text, evidence, command in said:
        if command is not None:
            # Whole, however long: what is broken over two lines cannot be typed as it stands.
            yield Line((_INDENT + label).ljust(_TEXT_FROM) + command, "bold")
        yield from labelled(_INDENT + label if command is None else "", text, width, _TEXT_FROM)
        for fact in evidence:
            yield from labelled("", f"- {fact}", width, _TEXT_FROM)


def _evidence(report: AuditReport, finding: Finding) -> Iterator[Paragraph]:
    yield Paragraph("where", _where(finding))
    yield Paragraph("since", _since(report, finding))
    yield Paragraph("why", why_sentence(finding), tuple(escape(fact) for fact in finding.evidence))
    if finding.missing_evidence and not finding.is_being_written:
        missing = tuple(escape(fact) for fact in finding.missing_evidence)
        yield Paragraph("missing", "what would allow an answer", missing)


def _blocks(report: AuditReport, finding: Finding) -> Paragraph:
    return Paragraph("blocks", blocks_sentence(report, finding, partition_of(report, finding)))


def _afterwards(report: AuditReport, finding: Finding) -> Iterator[Paragraph]:
    after = then_sentence(report, finding, partition_of(report, finding))
    if after is not None and finding.verdict is Verdict.HANGING:
        yield Paragraph("then", after)
    if (ends := ends_sentence(report, finding)) is not None:
        yield Paragraph("ends", ends)


def partition_of(report: AuditReport, finding: Finding) -> PartitionHealth | None:
    """The partition of a finding, as the run saw it."""
    return report.partitions_by_place.get((finding.topic, finding.partition))


def why_sentence(finding: Finding) -> str:
    """The rule that gave the verdict, and what it means."""
    words = words_named(finding.rule)
    return f"{finding.rule}: {'see the evidence' if words is None else words.meaning}"


def explanation(report: AuditReport, finding: Finding, reader: Reader) -> Paragraph:
    """The command that prints all that is known of a finding."""
    command = explain_command(Address.of_transaction(finding), report.run.run_id, reader.options)
    return Paragraph("explain", "", command=command)


def owner_line(report: AuditReport, finding: Finding) -> Iterator[Paragraph]:
    """Whose it looks, and what of that is stopped; nothing where no id is known."""
    if finding.transactional_id is not None:
        said = stop_sentence(finding.transactional_id, report.coverage.connect_groups)
        yield Paragraph("owner", clip(said, _OWNER_WIDTH))


def to_do(report: AuditReport, finding: Finding, reader: Reader) -> Iterator[Paragraph]:
    """What you do about a finding, and when."""
    if finding.is_being_written and finding.verdict is Verdict.INCONCLUSIVE:
        yield Paragraph("do", BEING_WRITTEN_REMEDY)
        return
    if finding.verdict is not Verdict.HANGING:
        if (words := words_named(finding.rule)) is not None:
            yield Paragraph("do", words.remedy)
        return
    if has_expired(report, finding.appended_before_ms, reader.now_ms):
        yield Paragraph("do", "copy the files and audit again: a plan from these files has expired")
        return
    name = finding.transactional_id
    if finding.must_end_producer and name is not None:
        why = "it is live, and the abort destroys what it writes"
        why = why if finding.is_producer_live else "else the abort destroys what it writes next"
        yield Paragraph("do", f"First stop its application: {why}. {_before_the_fence(finding, name)}")
        if not _is_fenced(finding):
            fence = fence_with_kafkas_tool(name, report.run.max_timeout_ms)
            yield Paragraph("fence", "", command=fence.line)
        must_show = f"an epoch above {finding.producer_epoch}, and must not list {escape(finding.topic_partition)}"
        describe = f"{TRANSACTIONS} describe {shell_option('--transactional-id', name)}"
        yield Paragraph("check", f"must show {must_show}", command=describe)
    else:
        yield Paragraph("do", f"Abort it with {SCRIPT} (see Next). No producer has to be stopped first.")
    yield Paragraph("abort", send_sentence(report, finding))


def _is_fenced(finding: Finding) -> bool:
    """An abort raised the id's epoch above that of its data, and nothing is in progress: a timeout, or a fence.

    Under transaction version 2 a client that aborts raises it as well, and goes on: such an abort comes before the
    timeout. Where the record has no start any more, nothing tells them apart. The abort of the hanging data is sent
    with its recorded epoch then, which the broker refuses once a client wrote under a higher one.
    """
    now, then = finding.coordinator_producer_epoch, finding.producer_epoch
    start_ms, timeout_ms = finding.coordinator_start_ms, finding.coordinator_timeout_ms
    end_ms = finding.coordinator_update_ms
    is_early = None not in {start_ms, timeout_ms, end_ms} and (end_ms or 0) < (start_ms or 0) + (timeout_ms or 0)
    is_of_id = finding.coordinator_state == COMPLETE_ABORT and finding.coordinator_producer_id == finding.producer_id
    return is_of_id and now is not None and then is not None and now > then and not is_early


def _before_the_fence(finding: Finding, name: str) -> str:
    """What ends what is in progress, which a fence would abort; how the owner does, and when its timeout does."""
    if _is_fenced(finding):
        return f"Its id needs no fence: the coordinator has epoch {finding.coordinator_producer_epoch}."
    if finding.coordinator_state in PREPARED:
        return "What is in progress is decided: wait for its markers, then fence its id."
    if finding.coordinator_state != ONGOING:
        return "Fence its id once nothing is in progress."
    ending = ending_of(finding.coordinator_start_ms, finding.coordinator_timeout_ms)
    end_ms = ending.aborted_by_ms
    by = "never" if ending.never_times_out else "unknown" if end_ms is None else f"by {iso_utc(end_ms)}"
    costs = None if ending.never_times_out else framework_of(name)[0].costs
    loses = "" if costs is None else f" ({costs})"
    return f"What is in progress ends before the fence: {stopping(name).ends}. Its timeout: {by}{loses}."


def window_of(report: AuditReport, appended_before_ms: int | None) -> Window | None:
    """When the abort of a hanging transaction may be sent, as its plan says; None where no clock dates it.

    Args:
        report: of the run.
        appended_before_ms: the broker's moment before which its last record was appended.
    """
    run = report.run
    return window(appended_before_ms, run.as_of_ms, late_after_ms=run.late_after_ms, plan_valid_ms=run.plan_valid_ms)


def has_expired(report: AuditReport, appended_before_ms: int | None, now_ms: int | None) -> bool:
    """Whether it is too late to send the abort; never where nobody says what the time is."""
    found = window_of(report, appended_before_ms)
    return now_ms is not None and found is not None and now_ms > found.not_after_ms


def send_sentence(report: AuditReport, finding: Finding) -> str:
    """From when until when the abort may be sent."""
    found = window_of(report, finding.appended_before_ms)
    if found is None:
        return "unknown: no broker's clock dates it"
    return f"from {iso_utc(found.not_before_ms)} to {iso_utc(found.not_after_ms)}, see Next"


def ends_sentence(report: AuditReport, finding: Finding) -> str | None:
    """When the id's transaction in progress ends by itself; None without one, and for what hangs."""
    ending = finding.ending
    if ending is None:
        return None
    # Only then the rule rests on the list of the coordinator's transaction.
    is_listed = finding.verdict is Verdict.COORDINATED or finding.rule in _OF_A_LISTED_ONE
    lists = "" if is_listed else f"if the coordinator's transaction lists {escape(finding.topic_partition)}, "
    whose = framework_of(finding.transactional_id or "")[0]
    costs = "" if whose.costs is None or ending.never_times_out else f". It looks like {whose.name}: {whose.costs}"
    return lists + ending_sentence(ending, report.run.as_of_ms) + costs


_OF_A_LISTED_ONE = frozenset({"coordinator_overdue", "stale_data_in_live_transaction"})


class _Following(NamedTuple):
    txn_start_offset: int
    producer_id: int
    transactional_id: str | None
    verdict: Verdict


def _key(one: Finding | _Following) -> tuple[int, int]:
    """What tells it from others on its partition."""
    return one.txn_start_offset, one.producer_id


def then_sentence(report: AuditReport, finding: Finding, partition: PartitionHealth | None) -> str | None:
    """How far `read_committed` consumers can read once it is aborted; None where that is not known."""
    if partition is None:
        return None
    here, own = report.findings_on(finding.topic, finding.partition).told(_Following), _key(finding)
    following = min((o for o in here if _key(o) != own), key=attrgetter("txn_start_offset"), default=None)
    if following is None:
        end = partition.end_offset if finding.blocks_partition else None  # else something unknown holds it
        return None if end is None else f"consumers reach the end of the log, offset {end}"
    verb = "reach" if finding.blocks_partition else "still wait at"
    held_by = f"held by {name_of(following)} ({following.verdict.value})"
    return f"consumers {verb} offset {following.txn_start_offset}, {held_by}"


class _Owned(Protocol):
    """As much of a finding as says whose it is."""

    @property
    def producer_id(self) -> int:
        """Its producer id."""

    @property
    def transactional_id(self) -> str | None:
        """Its transactional id, if one is known."""


def name_of(finding: _Owned) -> str:
    """Whose transaction it is; escaped."""
    if finding.transactional_id is None:
        return f"producer id {finding.producer_id}"
    return clip(finding.transactional_id, _NAME_WIDTH)


def explain_command(address: Address, run_id: str, options: str) -> str:
    """The command that explains one open transaction of a run."""
    return f"txn-analysis explain {address.words} --run {shell_word(run_id)}{options}"


def report_command(report: AuditReport, reader: Reader) -> str:
    """How the same report is asked for again."""
    return f"txn-analysis report{run_option(report)}{topic_options(report)}{reader.options}"


def run_option(report: AuditReport) -> str:
    """The option that names the run of a report."""
    return f" --run {shell_word(report.run.run_id)}"


def topic_options(report: AuditReport) -> str:
    """The options that narrow another command to the topics of a report; nothing where it is about all of its run."""
    return "".join(f" {shell_option('--topic', topic)}" for topic in report.topics)


def why_line(finding: Finding) -> str:
    """What is missing where the verdict is inconclusive, else why it was given; for a line or two of a table."""
    if not finding.missing_evidence or finding.is_being_written:
        return escape("; ".join(finding.evidence)) or "-"
    shown, more = finding.missing_evidence[:_MOST_MISSING], len(finding.missing_evidence) - _MOST_MISSING
    rest = f"; and {more} more, which `--format json` lists" if more > 0 else ""
    return "missing: " + escape("; ".join(shown)) + rest


def what(finding: Finding) -> str:
    """Which transaction it is, in one line."""
    transactional_id = finding.transactional_id
    shown = "" if transactional_id is None else clip(transactional_id, _ID_WIDTH)
    named = f"transactional id {shown}" if shown else "no transactional id"
    epoch = "" if finding.producer_epoch is None else f", epoch {finding.producer_epoch}"
    return f"{escape(finding.topic_partition)}: producer id {finding.producer_id}{epoch}, {named}"


def _where(finding: Finding) -> str:
    last = "?" if finding.last_offset is None else finding.last_offset
    records = "record count unknown" if finding.record_count is None else count(finding.record_count, "record")
    exact = "" if finding.is_txn_start_exact else "; it may have begun earlier, in files that are gone"
    return f"offsets {finding.txn_start_offset} to {last}, {records}, {size(finding.size_bytes)}{exact}"


def _since(report: AuditReport, finding: Finding) -> str:
    basis = " (judged by the brokers' clocks)" if finding.lateness_basis == "broker_clock" else ""
    whose = " by its client's clock" if is_contradicted(report, finding) else ""
    theirs = f", idle {idle_by_brokers(report, finding)}" if is_decided_by_clock(report, finding) else ""
    last_ms, after_ms, before_ms = finding.last_timestamp_ms, finding.appended_after_ms, finding.appended_before_ms
    if last_ms is not None and last_ms == after_ms == before_ms:
        return f"last write {iso_utc(last_ms)} by the broker's clock, idle {duration(finding.idle_ms)}"
    bounds = " and ".join(
        f"{side} {iso_utc(bound_ms)}" for side, bound_ms in (("after", after_ms), ("before", before_ms)) if bound_ms
    )
    last = f"last write {iso_utc(last_ms)}, idle {duration(finding.idle_ms)}{whose}{basis}"
    return f"{last}; by the brokers' clocks {bounds or 'unknown'}{theirs}"
