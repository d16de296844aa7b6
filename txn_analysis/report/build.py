"""From the rows of a run to its report, and what would settle the transactions of which it could not be told.

One remedy for each kind of thing that is missing, with its option or file named in full. A word of the operator is only
asked for where the finding's own missing evidence asks for it: never where the files disprove it, or where there is
nothing that it could be true of. And what is said where the files look like those of two clusters.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow.compute as pc

from txn_analysis.judge.lacks import Lack, Settling, lack_of_log
from txn_analysis.judge.outcome import LogCoverage, Outcome
from txn_analysis.judge.rules import evidence_broken
from txn_analysis.judge.sentences import MOMENT_OF_THE_COPY
from txn_analysis.judge.settling import SHALLOW_DUMP, Doubtful
from txn_analysis.judge.words import words_named
from txn_analysis.kafka.names import BINARY_GRAMMARS, CONSOLE_KINDS, LOG, STATE_TOPIC
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.log.two_logs import TwoClusters
from txn_analysis.logic import minus
from txn_analysis.plan.standing import AcceptedFinding, Since, ToldFinding
from txn_analysis.report.model import (
    AuditReport,
    ClusterImpact,
    Coverage,
    OutcomeItem,
    PruneItem,
    Remedy,
    RunItem,
    SkippedInput,
    WarningItem,
)
from txn_analysis.report.upcoming import upcoming_of
from txn_analysis.settings import EngineName
from txn_analysis.tables import Finding, Impact, PartitionHealth, Problem, Prune
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.tables.findings import MAY_BE_BEING_WRITTEN
from txn_analysis.tables.inputs import ReadInput, RunRecord
from txn_analysis.text import count, duration, listed, shell_option, shell_word
from txn_analysis.verdict import Verdict


def build_report(
    run: RunRecord,
    inputs: Iterable[ReadInput],
    health: Iterable[PartitionHealth],
    findings: Iterable[Finding],
    topics: Collection[str] = (),
    forgotten_captures: Iterable[str] = (),
    engine: EngineName | None = None,
    since: Since | None = None,
    accepted: Iterable[AcceptedFinding] = (),
    prunes: Iterable[Prune] = (),
) -> AuditReport:
    """The report of one run from its rows.

    Args:
        run: its record.
        inputs: the inputs of the captures it read.
        health: what is known of its partitions.
        findings: its findings.
        topics: those that the report is about; none for all of the run. What was read is said of the whole run.
        forgotten_captures: of the captures behind it those that are not in the warehouse any more.
        engine: what judged it; None where nobody knows any more.
        since: what is new in it; None without an earlier run.
        accepted: what people decided about its findings.
        prunes: what age took of its cluster, ever.
    """
    input_items = sorted(inputs, key=attrgetter("path"))
    finding_items = FindingRows.of(findings).worst_first()
    # As many as there are partitions at most.
    costly = finding_items.where(finding_items.column("impact").is_valid()).records(_Costly)
    impacts = {(one.topic, one.partition): one.impact for one in costly}
    partitions = sorted(
        (one._replace(impact=impacts.get((one.topic, one.partition))) for one in health),
        key=attrgetter("topic", "partition"),
    )
    of_prunes = tuple(_prune_item(one, finding_items) for one in prunes if _is_before(one, run))
    judged, coverage = run_item(run, forgotten_captures, of_prunes, engine), _coverage(run, input_items, partitions)
    if topics:
        partitions = [item for item in partitions if item.topic in topics]
        finding_items = finding_items.where_one_of("topic", topics)
        costly = [one for one in costly if one.topic in topics]
        since = since and since.of_topics(topics, finding_items.records(ToldFinding))
        judged = judged.model_copy(update={"verdict_counts": _counts(finding_items.verdict_counts)})
        finding_ids = {*finding_items.column("finding_id").to_pylist()}
        accepted = [one for one in accepted if one.finding_id in finding_ids]
    of_run = [] if topics else json.loads(run.warnings)
    upcoming, left_out_count = upcoming_of(finding_items, partitions, run.as_of_ms)
    report = AuditReport(
        run=judged,
        inputs=tuple(input_items),
        coverage=coverage,
        partitions=tuple(partitions),
        findings=finding_items,
        impact=_cluster_impact(partitions, costly),
        warnings=tuple(WarningItem.model_validate(row) for row in of_run),
        outcome=OutcomeItem(answer=Outcome.CLEAN),
        since=since,
        accepted=tuple(accepted),
        topics=tuple(sorted(topics)),
        upcoming=upcoming,
        upcoming_left_out_count=left_out_count,
    )
    return report.model_copy(update={"outcome": _outcome(report)})


class _Costly(NamedTuple):
    """A finding that holds the last stable offset of its partition."""

    topic: str
    partition: int
    verdict: Verdict
    impact: Impact | None
    is_recent: bool | None


def _outcome(report: AuditReport) -> OutcomeItem:
    """What it came out as, of all that is in it but its own outcome."""
    doubtful, answer, logs = report.doubtful, report.outcome_at(), report.log_coverage
    meant = {Outcome.FINDINGS: report.hanging, Outcome.COULD_NOT_TELL: doubtful}.get(answer, report.findings[:0])
    is_blind = bool(logs.in_the_dark) or not report.unaccepted
    remedies = _remedies(report)
    of_logs = _what_shows(logs) if is_blind and answer is Outcome.COULD_NOT_TELL else ()
    of_logs = tuple(one for one in of_logs if one.lack not in {remedy.lack for remedy in remedies})
    return OutcomeItem(
        answer=answer,
        transaction_count=len(meant),
        partitions=tuple(sorted(meant.topic_partitions)),
        doubtful_count=len(doubtful),
        doubtful_partitions=tuple(sorted(doubtful.topic_partitions)),
        settled_by=(*remedies, *of_logs),
    )


def _is_passing(one: _Costly) -> bool:
    """It blocks for as long as any healthy transaction does."""
    return one.verdict is Verdict.IN_PROGRESS or (bool(one.is_recent) and one.verdict in MAY_BE_BEING_WRITTEN)


def _cluster_impact(partitions: list[PartitionHealth], costly: Iterable[_Costly]) -> ClusterImpact:
    late = {(one.topic, one.partition) for one in costly if not _is_passing(one)}
    blocked = [item for item in partitions if (item.topic, item.partition) in late]
    since = {item: item.impact.hidden_since_ms for item in blocked if item.impact and item.impact.hidden_since_ms}
    oldest = min(since, key=lambda item: since[item] or 0, default=None)
    counted = [item for item in blocked if item.hidden_record_count is not None]
    worst = max(counted, key=lambda item: item.hidden_record_count or 0, default=None)
    days = [item.impact.days_until_full for item in blocked if item.impact and item.impact.days_until_full]
    return ClusterImpact(
        partitions_blocked=len(blocked),
        hidden_record_count=_sum(item.hidden_record_count for item in blocked),
        hidden_bytes=_sum(item.hidden_bytes for item in blocked),
        oldest_partition=None if oldest is None else oldest.topic_partition,
        oldest_since_ms=None if oldest is None else since[oldest],
        worst_partition=None if worst is None else worst.topic_partition,
        worst_hidden_record_count=None if worst is None else worst.hidden_record_count,
        # All of them fill the same space: their rates add up.
        days_until_full=1 / sum(1 / each for each in days) if days else None,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _is_before(prune: Prune, run: RunRecord) -> bool:
    """The run was judged without what it took; a run that is not written yet has no number."""
    return bool(prune.contents) and (not run.run_number or run.run_number > prune.last_run_number)


def _prune_item(prune: Prune, findings: FindingRows) -> PruneItem:
    places = {(one.topic, one.partition) for one in prune.partitions}
    has_states = any(topic == STATE_TOPIC for topic, _ in places)
    lacking = (
        finding.finding_id
        for finding in findings.of_verdict(Verdict.INCONCLUSIVE).records(ToldFinding)
        if has_states or (finding.topic, finding.partition) in places
    )
    return PruneItem(
        prune_id=prune.prune_id, pruned_ms=prune.pruned_ms, before_ms=prune.before_ms, finding_ids=tuple(lacking)
    )


def run_item(
    run: RunRecord,
    forgotten_captures: Iterable[str] = (),
    prunes: tuple[PruneItem, ...] = (),
    engine: EngineName | None = None,
) -> RunItem:
    """What a report says of its run."""
    return RunItem(
        run_id=run.run_id,
        cluster=run.cluster,
        capture=run.capture,
        earlier_captures=run.earlier_captures or (),
        forgotten_captures=tuple(forgotten_captures),
        prunes=prunes,
        as_of_ms=run.as_of_ms,
        as_of_basis=run.as_of_basis,
        parameters=json.loads(run.parameters),
        verdict_counts=_counts(run.verdict_counts or {}),
        engine=engine,
    )


def _counts(counted: Mapping[Any, int]) -> dict[str, int]:
    return {verdict.value: counted.get(verdict, 0) for verdict in Verdict}


def _coverage(run: RunRecord, inputs: list[ReadInput], partitions: list[PartitionHealth]) -> Coverage:
    return Coverage(
        transaction_state=_with_not_understood(json.loads(run.state_coverage), inputs),
        has_logs=LogCoverage.of(partitions).has_logs,
        partitions_seen=sum(item.is_in_capture for item in partitions),
        partitions_missing=tuple(item.topic_partition for item in partitions if not item.is_in_capture),
        parsed_bytes=sum(item.parsed_bytes for item in inputs),
        rejected_bytes=sum(item.rejected_bytes for item in inputs),
        skipped_inputs=tuple(
            SkippedInput(path=item.path, problem=item.problem) for item in inputs if item.problem is not None
        ),
        asked=run.asked or (),
    )


def _with_not_understood(state: dict[str, Any], inputs: Iterable[ReadInput]) -> dict[str, Any]:
    """What was seen of the state, and of what was given and not understood what it is, and the step that helps."""
    seen = {part["partition"] for part in state.get("partitions") or [] if part["is_seen"]}
    sections = [section for item in inputs for section in item.sections if section.topic == STATE_TOPIC]
    dumped = {s.partition for s in sections if s.kind == LOG and s.grammar not in BINARY_GRAMMARS} - seen
    if dumped:
        what = f"{count(len(dumped), 'partition')} of `__transaction_state` {'was' if len(dumped) == 1 else 'were'}"
        given = f"{what} given, and dumped without `--transaction-log-decoder`", _DUMP_DECODED
    elif not state.get("seen") and any(s.kind in CONSOLE_KINDS for s in sections):
        given = "an export of `__transaction_state` was given, and no record of it was understood", _EXPORT_AGAIN
    else:
        return state
    return state | {"not_understood": given}


_DUMP_DECODED = "dump `__transaction_state` again with `--transaction-log-decoder`"
_EXPORT_AGAIN = "export it again, without `2>&1`; or give the brokers' own files of `__transaction_state`"
_LOGS = "the logs of the partitions, audited together with `__transaction_state`"


def _what_shows(logs: LogCoverage) -> tuple[Remedy, ...]:
    """What would let a run see all that could hang; nothing where it did."""
    if logs.missing is None:
        return ()
    lack, text, places = Lack.NO_LOGS, _LOGS, logs.in_the_dark
    if logs.contested:
        lack, text = Lack.CONTESTED_LINES, SHALLOW_DUMP
    elif places:
        lack, text = Lack.LINES_OF_OTHERS, f"dump {listed([*places], _MOST_FOLDERS)} again, without `2>&1`"
    return (Remedy(lack=lack, missing=logs.missing, text=text, transaction_count=0, partitions=places),)


def _remedies(report: AuditReport) -> tuple[Remedy, ...]:
    """What would settle the findings that are in doubt, the remedy of most transactions first."""
    doubtful, run, coverage = report.doubtful, report.run, report.coverage
    if (clusters := coverage.clusters) is not None:
        settling = Settling(Lack.TWO_CLUSTERS, looks_like(clusters), what_to_do(clusters, run))
        return (_remedy_of(doubtful, settling),)
    state = coverage.transaction_state
    problems = {(p.topic, p.partition): p.problems for p in report.partitions}
    of_log = {place: lack_of_log(one.kind for one in its) for place, its in problems.items()}
    kinds = [
        _kind(one.rule, state, of_log.get((one.topic, one.partition), Lack.LOG_NOT_WHOLE))
        for one in doubtful.records(ToldFinding)
    ]
    of_kind = {kind: doubtful.where([kind == of_finding for of_finding in kinds]) for kind in sorted({*kinds})}
    is_vouched = bool(run.parameters.get("transaction_state_complete"))
    or_all = _OR_ALL if coverage.asked else ""
    remedies = [
        _remedy(
            rule,
            Doubtful(rows, state, run.as_of_ms, is_vouched, lack, _strange(rows, problems)),
            (_or_as_of(rows, run) if words_named(rule) else "") + or_all,
        )
        for (rule, lack), rows in of_kind.items()
    ]
    return tuple(sorted(remedies, key=lambda remedy: -remedy.transaction_count))


def _strange(findings: FindingRows, problems: Mapping[tuple[str, int], Sequence[Problem]]) -> str:
    """Where the first log of some findings has lines of others; empty where none has."""
    of_these = [one for f in findings.records(ToldFinding) for one in problems.get((f.topic, f.partition), ())]
    return next((one.reason.rpartition("; ")[0] for one in of_these if one.kind == ProblemKind.LINES_OF_OTHERS), "")


def _kind(name: str, state: Mapping[str, Any], of_log: Lack) -> tuple[str, Lack]:
    """The rule of a finding, with what its log lacks where that alone decides.

    Without any state that is what is missing, unless its own log is not even whole.
    """
    if name == evidence_broken.__name__:
        return name, of_log
    return name if state.get("seen") else _NO_STATE, Lack.LOG_NOT_WHOLE


def _or_as_of(findings: FindingRows, run: RunItem) -> str:
    """The moment of the copy, where it may show that one of them is too young to be judged."""
    # What was not even written to so lately did not begin so lately.
    is_young = pc.greater(findings.column("appended_after_ms"), minus(run.as_of_ms, run.late_after_ms))
    young = findings.where(pc.fill_null(is_young, False))
    if not any(missing.startswith(MOMENT_OF_THE_COPY) for one in young for missing in one.missing_evidence):
        return ""
    began = f"began less than {duration(run.late_after_ms)} before it, by the brokers' clocks"
    return f"; or `--as-of TIME` with the moment of the copy, for what {began}"


def _remedy(kind: str, doubtful: Doubtful, others: str) -> Remedy:
    words = words_named(kind)
    settling = (
        doubtful.not_understood or _NO_STATE_GIVEN
        if kind == _NO_STATE
        else _OF_ANOTHER_VERSION
        if words is None
        else words.settling(doubtful)
    )
    return _remedy_of(doubtful.findings, settling._replace(text=settling.text + others))


def _remedy_of(findings: FindingRows, settling: Settling) -> Remedy:
    places = tuple(sorted(findings.topic_partitions))
    return Remedy(**settling._asdict(), transaction_count=len(findings), partitions=places)


_NO_STATE = "no state"
_NO_STATE_GIVEN = Settling(
    Lack.NO_STATE,
    "no partition of `__transaction_state` was given",
    "audit them again with `__transaction_state`: all its partitions, copied after the logs, from their leaders",
)
_BY_ANOTHER = "another version judged by a rule that this one does not know"
_OF_ANOTHER_VERSION = Settling(Lack.OF_ANOTHER_VERSION, _BY_ANOTHER, "audit the same files again with this version")
_OR_ALL = "; or audit without `--topic` and `--partition`, where more counts as evidence"
_MOST_FOLDERS = 4


def looks_like(clusters: TwoClusters) -> str:
    """What was seen; without a full stop, not escaped."""
    if clusters.other_capture is not None:
        these_folders, other_folders = [f" ({_named(side)})" for side in clusters.sides] or ("", "")
        both = f"this capture{these_folders} and capture {clusters.other_capture}{other_folders} in this warehouse"
        what = f"{both} look like those of two clusters"
    else:
        number = "two" if len(clusters.sides) <= 2 else str(len(clusters.sides))
        what = f"these files look like those of {number} clusters: {' beside '.join(map(_named, clusters.sides))}"
    return f"{what} ({_why(clusters)})"


def what_to_do(clusters: TwoClusters, run: RunItem) -> str:
    """What would settle it; not escaped."""
    if clusters.other_capture is None:
        are_few = all(len(side) <= _MOST_FOLDERS for side in clusters.sides)
        apart = "" if are_few else "put the files of each cluster into a folder of its own, and "
        return f"{apart}audit these folders apart, each with its own `--cluster` or `--warehouse`"
    these, others = (forget_command(run.cluster, capture) for capture in (run.capture, clusters.other_capture))
    return (
        f"take out the one that is another cluster's, {these} or {others} {THIS_WAREHOUSE}, and audit its files with a "
        "`--cluster` of their own"
    )


THIS_WAREHOUSE = "(with the `--warehouse` of this audit)"


def forget_command(cluster: str, capture: str) -> str:
    """What takes a capture out; behind it stands `THIS_WAREHOUSE`."""
    return f"`txn-analysis forget {shell_option('--cluster', cluster)} --capture {shell_word(capture)}`"


def _named(folders: Sequence[str]) -> str:
    return listed([*folders], _MOST_FOLDERS)


def _why(clusters: TwoClusters) -> str:
    reasons = []
    if clusters.partition_count:
        counted = f"{clusters.partition_count} of the {clusters.shared_count} partitions that both have"
        reasons.append(f"they share no batch in {counted}")
    if clusters.cluster_ids:
        reasons.append(f"cluster.id {' and '.join(clusters.cluster_ids)}")
    return "; ".join(reasons)
