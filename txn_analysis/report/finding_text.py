"""One finding as a person reads it: what, where, since when, why, what it blocks, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from txn_analysis.judge.applications import ConnectGroups, blocked_start, framework_of, is_remark, stopping
from txn_analysis.judge.causes import cause_named
from txn_analysis.judge.sentences import RENAMED
from txn_analysis.judge.words import words_named
from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import TRANSACTIONS
from txn_analysis.kafka.transactions import COMPLETE_ABORT, ONGOING, PREPARED, ending_of
from txn_analysis.plan.abort_plan import Window, shown_once_fenced, window
from txn_analysis.plan.script import fence_with_kafkas_tool
from txn_analysis.plan.standing import ToldFinding
from txn_analysis.report.figures import (
    Reader,
    consequences,
    costs_sentence,
    hidden_records,
    idle_by_brokers,
    if_listed,
    is_contradicted,
    is_decided_by_clock,
    urgent,
)
from txn_analysis.report.model import AuditReport, RunItem
from txn_analysis.report.owner import ending_sentence, stop_sentence, whose
from txn_analysis.report.terminal import Paragraph, Weight
from txn_analysis.tables import Finding, PartitionHealth
from txn_analysis.text import clip, count, duration, escape, if_known, iso_utc, shell_option, shell_word, size
from txn_analysis.verdict import Verdict

_ID_WIDTH = 200
_NAME_WIDTH = 60
_OWNER_WIDTH = 400
ENDS = "ends"
"""The label of how a transaction ends by itself."""
SCRIPT = "plan.sh"
BEING_WRITTEN_REMEDY = "Nothing now. If a later capture still lists it from this offset, that audit judges it."


class Neighbour(NamedTuple):
    """As much of an open transaction as says what another one on its partition waits for."""

    txn_start_offset: int
    producer_id: int
    transactional_id: str | None
    verdict: Verdict


@dataclass(frozen=True)
class Scene:
    """What a finding is told beside: its run, its partition as the run saw it, and all that is open there.

    Attributes:
        run: that found it.
        groups: of Kafka Connect, as the state names them.
        partition: of the finding; None where nothing is known of it.
        open_here: gives the open transactions of the partition, the finding among them.
        has_commands: nobody reads an anonymized report beside the warehouse whose run a command would name.
    """

    run: RunItem
    groups: ConnectGroups
    partition: PartitionHealth | None
    open_here: Callable[[], Iterable[Neighbour | Finding]]
    has_commands: bool = True


def scene_of(report: AuditReport, finding: Finding) -> Scene:
    """What a report knows around one of its findings."""
    return Scene(
        report.run,
        report.coverage.connect_groups,
        report.partitions_by_place.get((finding.topic, finding.partition)),
        lambda: report.findings_on(finding.topic, finding.partition).records(Neighbour),
        has_commands=report.anonymized is None,
    )


def telling(scene: Scene, finding: Finding, reader: Reader) -> Iterator[Paragraph]:
    """All that is said of a finding, in the order in which a person asks; each form takes what it needs by weight."""
    known = [*facts(scene, finding)]
    first = (one for one in known if one.weight is not Weight.EVIDENCE)
    yield from (
        one for one in chain(first, _steps(scene, finding, reader)) if one.command is None or scene.has_commands
    )
    yield from (one for one in known if one.weight is Weight.EVIDENCE)


def facts(scene: Scene, finding: Finding) -> Iterator[Paragraph]:
    """What is known of a finding, without what to do."""
    yield Paragraph("where", _where(finding), weight=Weight.EVIDENCE)
    yield Paragraph("since", _since(scene.run, finding), weight=Weight.EVIDENCE)
    yield Paragraph("blocks", _blocks(scene, finding))
    if costs := "; ".join(_costs(scene, finding)):
        yield Paragraph("costs", costs, weight=Weight.EVIDENCE)
    meaning = "see the evidence" if (words := words_named(finding.rule)) is None else words.meaning
    yield Paragraph("why", f"{finding.rule}: {meaning}", tuple(map(escape, finding.evidence)))
    yield _cause(finding)
    if finding.missing_evidence and not finding.is_being_written:
        yield Paragraph("missing", "what would allow an answer", tuple(map(escape, finding.missing_evidence)))
    if finding.verdict is Verdict.HANGING and (after := then_sentence(scene, finding)) is not None:
        yield Paragraph("then", after, weight=Weight.KNOW if " held by " in after else Weight.EVIDENCE)
    if (ends := ends_sentence(scene.run, finding)) is not None:
        yield Paragraph(ENDS, ends)


def _cause(finding: Finding) -> Paragraph:
    cause = finding.cause
    if cause is None:
        words = "not known, for no __transaction_state of these logs was given"
        return Paragraph("cause", words, weight=Weight.EVIDENCE)
    sides = {"for it": cause.evidence_for, "against it": cause.evidence_against}
    behind = [f"named {cause.name}"]
    behind += [f"{side}: {fact}" for side, facts_of in sides.items() for fact in facts_of]
    weight = Weight.EVIDENCE if cause.confidence == "unknown" else Weight.KNOW
    meaning = cause.name if (known := cause_named(cause.name)) is None else known.meaning
    return Paragraph("cause", f"{cause.confidence}: {meaning}", tuple(map(escape, behind)), weight=weight)


def _blocks(scene: Scene, finding: Finding) -> str:
    """How much is hidden, since when, and what is urgent about it."""
    partition, impact = scene.partition, finding.impact
    if partition is None:
        return "unknown: nothing else is known of the partition"
    if not finding.blocks_partition:
        at = if_known(" at {}", partition.last_stable_offset) or ""
        return f"nothing yet: another open transaction holds the last stable offset{at}"
    since_ms = None if impact is None else impact.hidden_since_ms
    since = "" if since_ms is None else f" since {iso_utc(since_ms)}"
    start = blocked_start(finding.transactional_id, finding.topic, scene.groups)
    first = [] if start is None else [f"the start of {escape(start)}"]
    hidden = f"{hidden_records(partition.hidden_record_count)} hidden from offset {finding.txn_start_offset} on{since}"
    return "; ".join([*first, hidden, *urgent(impact)])


def _costs(scene: Scene, finding: Finding) -> Iterator[str]:
    """What else follows for a partition that a finding blocks."""
    partition, impact = scene.partition, finding.impact
    if partition is None or not finding.blocks_partition:
        return
    share = "" if impact is None or impact.hidden_share is None else f", {impact.hidden_share:.1%} of the log seen"
    yield f"{size(partition.hidden_bytes)}{share} hidden from read_committed consumers"
    yield from consequences(impact)
    if blocked_start(finding.transactional_id, finding.topic, scene.groups) is None:
        yield from _short_reads(finding, partition.hidden_record_count)


def _short_reads(finding: Finding, hidden: int | None) -> Iterator[str]:
    """What readers miss that stop at the end offset which brokers give for `read_committed`: batch jobs, restores.

    Of the hidden records those of the transaction itself are not committed; of the others some may be aborted, or open
    as well, which `explain --offset` tells apart.
    """
    record_count = finding.record_count
    most = None if hidden is None or record_count is None else hidden - record_count
    if most is None or most > 0:
        missed = "what is committed above" if most is None else f"up to {count(most, 'committed record')}"
        yield f"bounded readers miss {missed} without an error"


def _steps(scene: Scene, finding: Finding, reader: Reader) -> Iterator[Paragraph]:
    """What to look at twice, whose it is, and what you do about it, and when."""
    act = partial(Paragraph, weight=Weight.ACT)
    for fact in finding.evidence:
        if is_remark(fact) or fact.endswith(RENAMED):
            yield act("caution", escape(fact))
    if finding.transactional_id is not None:
        # What hangs says whom to stop.
        weight = Weight.EVIDENCE if finding.verdict is Verdict.HANGING else Weight.ACT
        words = clip(stop_sentence(finding.transactional_id, scene.groups), _OWNER_WIDTH)
        yield Paragraph("owner", words, weight=weight)
    yield from _to_do(scene, finding, reader, act)
    command = explain_command(Address.of_transaction(finding), scene.run.run_id, reader.options)
    yield act("explain", command=command)


def _to_do(scene: Scene, finding: Finding, reader: Reader, act: Callable[..., Paragraph]) -> Iterator[Paragraph]:
    if finding.is_being_written and finding.verdict is Verdict.INCONCLUSIVE:
        yield act("do", BEING_WRITTEN_REMEDY)
        return
    if finding.verdict is not Verdict.HANGING:
        if (words := words_named(finding.rule)) is not None:
            yield act("do", words.remedy)
        return
    if has_expired(scene.run, finding.appended_before_ms, reader.now_ms):
        yield act("do", "Copy the files and audit again: a plan from these files has expired.")
        return
    name = finding.transactional_id
    if finding.must_end_producer and name is not None:
        stop = stopping(name, scene.groups).stop
        live = ". It is live" if finding.is_producer_live else ""
        yield act("do", f"{clip(f'Stop {stop}', _OWNER_WIDTH)}{live}. {_before_the_fence(finding, name)}")
        if not _is_fenced(finding):
            yield act("fence", command=fence_with_kafkas_tool(name, scene.run.max_timeout_ms).line)
        must_show = f"{shown_once_fenced(finding)}, and must not list {escape(finding.topic_partition)}"
        describe = f"{TRANSACTIONS} describe {shell_option('--transactional-id', name)}"
        yield act("check", f"must show {must_show}", command=describe)
    else:
        yield act("do", f"Abort it with {SCRIPT}. No producer has to be stopped first.")
    if (window := window_of(scene.run, finding.appended_before_ms)) is None:
        when = "unknown: no broker's clock dates it"
    else:
        when = f"from {iso_utc(window.not_before_ms)} to {iso_utc(window.not_after_ms)}"
    yield Paragraph("abort", when, weight=Weight.EVIDENCE)


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
        return "What is in progress is decided: wait for its markers, then fence the id."
    if finding.coordinator_state != ONGOING:
        return "Once nothing is in progress, fence the id."
    ending = ending_of(finding.coordinator_start_ms, finding.coordinator_timeout_ms)
    end_ms = ending.aborted_by_ms
    by = "never" if ending.never_times_out else "unknown" if end_ms is None else f"by {iso_utc(end_ms)}"
    costs = None if ending.never_times_out else framework_of(name)[0].costs
    loses = "" if costs is None else f": {costs.partition(':')[0]}"
    ways = [way[0].upper() + way[1:] for way in stopping(name).ends.split("; ")]
    return f"What is in progress ends first. {'. '.join(ways)}. Its timeout: {by}{loses}."


def window_of(run: RunItem, appended_before_ms: int | None) -> Window | None:
    """When the abort of a hanging transaction may be sent, as its plan says; None where no clock dates it.

    Args:
        run: that judged it.
        appended_before_ms: the broker's moment before which its last record was appended.
    """
    return window(appended_before_ms, run.as_of_ms, late_after_ms=run.late_after_ms, plan_valid_ms=run.plan_valid_ms)


def has_expired(run: RunItem, appended_before_ms: int | None, now_ms: int | None) -> bool:
    """Whether it is too late to send the abort; never where nobody says what the time is."""
    window = window_of(run, appended_before_ms)
    return now_ms is not None and window is not None and now_ms > window.not_after_ms


def ends_sentence(run: RunItem, finding: Finding) -> str | None:
    """When the id's transaction in progress ends by itself; None without one, and for what hangs."""
    ending = finding.ending
    if ending is None:
        return None
    costs = "" if ending.never_times_out else costs_sentence(finding.transactional_id)
    return escape(if_listed(finding)) + ending_sentence(ending, run.as_of_ms) + costs


def then_sentence(scene: Scene, finding: Finding) -> str | None:
    """How far `read_committed` consumers can read once it is aborted; None where that is not known."""
    partition = scene.partition
    if partition is None:
        return None
    itself = finding.txn_start_offset, finding.producer_id
    others = (one for one in scene.open_here() if (one.txn_start_offset, one.producer_id) != itself)
    following = min(others, key=attrgetter("txn_start_offset"), default=None)
    if following is None:
        end = partition.end_offset if finding.blocks_partition else None  # else something unknown holds it
        return None if end is None else f"consumers reach the end of the log, offset {end}"
    verb = "reach" if finding.blocks_partition else "still wait at"
    held_by = f"held by {name_of(following)} ({following.verdict.value})"
    return f"consumers {verb} offset {following.txn_start_offset}, {held_by}"


def name_of(one: Finding | Neighbour | ToldFinding, most: int = _NAME_WIDTH) -> str:
    """Whose transaction it is; escaped."""
    return f"producer id {one.producer_id}" if one.transactional_id is None else clip(one.transactional_id, most)


def explain_command(address: Address, run_id: str, options: str) -> str:
    """The command that explains one open transaction of a run."""
    return f"txn-analysis explain {address.words} --run {shell_word(run_id)}{options}"


def command_beside(report: AuditReport, reader: Reader, words: str) -> str | None:
    """A command that is typed where the warehouse is; None of an anonymized report, which is read elsewhere."""
    return None if report.anonymized else f"txn-analysis {words}{reader.options}"


def report_command(report: AuditReport, reader: Reader) -> str | None:
    """How the same report is asked for again; None as of `command_beside`."""
    return command_beside(report, reader, f"report{run_option(report)}{topic_options(report)}")


def run_option(report: AuditReport) -> str:
    """The option that names the run of a report."""
    return f" --run {shell_word(report.run.run_id)}"


def topic_options(report: AuditReport) -> str:
    """The options that narrow another command to the topics of a report; nothing where it is about all of its run."""
    return "".join(f" {shell_option('--topic', topic)}" for topic in report.topics)


def what(finding: Finding, groups: ConnectGroups) -> str:
    """Which transaction it is, and whose, in one line."""
    name = finding.transactional_id
    named = f"transactional id {clip(name, _ID_WIDTH)}" if name else "no transactional id"
    epoch = "" if finding.producer_epoch is None else f", epoch {finding.producer_epoch}"
    address = Address.of_transaction(finding).words
    return f"{address}: producer id {finding.producer_id}{epoch}, {named}{whose(name, groups)}"


def _where(finding: Finding) -> str:
    last = "?" if finding.last_offset is None else finding.last_offset
    records = "record count unknown" if finding.record_count is None else count(finding.record_count, "record")
    exact = "" if finding.is_txn_start_exact else "; it may have begun earlier, in files that are gone"
    return f"offsets {finding.txn_start_offset} to {last}, {records}, {size(finding.size_bytes)}{exact}"


def _since(run: RunItem, finding: Finding) -> str:
    basis = " (judged by the brokers' clocks)" if finding.lateness_basis == "broker_clock" else ""
    whose = " by its client's clock" if is_contradicted(run, finding) else ""
    theirs = f", idle {idle_by_brokers(run, finding)}" if is_decided_by_clock(run, finding) else ""
    last_ms, after_ms, before_ms = finding.last_timestamp_ms, finding.appended_after_ms, finding.appended_before_ms
    if last_ms is not None and last_ms == after_ms == before_ms:
        return f"last write {iso_utc(last_ms)} by the broker's clock, idle {duration(finding.idle_ms)}"
    bounds = " and ".join(
        f"{side} {iso_utc(bound_ms)}" for side, bound_ms in (("after", after_ms), ("before", before_ms)) if bound_ms
    )
    last = f"last write {iso_utc(last_ms)}, idle {duration(finding.idle_ms)}{whose}{basis}"
    return f"{last}; by the brokers' clocks {bounds or 'unknown'}{theirs}"
