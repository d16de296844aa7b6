"""What is worked out of findings: in which order they are read, whose clock a duration is by, why and at what cost.

Kafka measures how long a transaction has been idle by its last timestamp, which under CreateTime is the client's word
(`ProducerStateManager.hasLateTransaction`). Where the brokers' moments around the data contradict it, the duration
says whose it is; both are told where it depends on the clock whether the transaction is late.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from txn_analysis.judge.applications import blocked_start, framework_of
from txn_analysis.judge.outcome import HasVerdict
from txn_analysis.settings import ENVIRONMENT_PREFIX, Settings
from txn_analysis.tables import Finding, Impact
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.text import clip, count, duration, iso_utc, listed, shell_word, size
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport, RunItem, WarningItem

_ID_WIDTH = 80
_MOST_GROUPS = 5
MOST_WARNINGS = 10
"""Of one report in text or on the page; it says how many more there are, and where."""
MOST_FINDINGS = 500
"""Of one page; it says how many more there are, and where."""


class Reader(NamedTuple):
    """Who reads a report, and when.

    `options` complete the commands in it, such as ` --warehouse /data/audit`. The first line says the same as the exit
    code: whether something is at or above the verdict `fail_on`. At `now_ms` it is read: a plan from old files has
    expired; None where nobody says. `shows_accepted` says that a text lists what is accepted.
    """

    options: str = ""
    fail_on: Verdict = Verdict.HANGING
    now_ms: int | None = None
    shows_accepted: bool = False


ANYBODY = Reader()


def run_options(settings: Settings, cluster: str | None) -> str:
    """What printed commands need to find the runs of the same cluster, or of all, from the same folder.

    Defaults are left out, unless the environment says otherwise: it does so to the printed command as well.
    """
    options = (("warehouse", settings.warehouse), ("cluster", cluster))
    given = ((name, value) for name, value in options if value is not None and not _is_default(name, value))
    return "".join(f" --{name} {shell_word(value)}" for name, value in given)


def _is_default(name: str, value: str) -> bool:
    return value == Settings.model_fields[name].default and f"{ENVIRONMENT_PREFIX}{name.upper()}" not in os.environ


class _Blocking(NamedTuple):
    topic: str
    partition: int
    blocks_partition: bool
    transactional_id: str | None = None


class _Times(NamedTuple):
    """By whose clock it is late: its producer's last timestamp, and the brokers' bounds of its last append."""

    last_timestamp_ms: int | None
    appended_after_ms: int | None
    appended_before_ms: int | None


def by_damage(report: AuditReport, findings: Iterable[Finding]) -> FindingRows:
    """Findings in the order of their damage; ties by topic, partition and start offset.

    Tables and JSON keep the order of the contract instead, which does not change from run to run.
    """
    rows = FindingRows.of(findings)
    # First what keeps a framework from its start.
    groups, every = report.coverage.connect_groups, rows.records(_Blocking)
    stops = [
        one.blocks_partition and blocked_start(one.transactional_id, one.topic, groups) is not None for one in every
    ]
    return rows.worst_first([*map(int, stops)], [hidden or 0 for hidden in all_hidden_by(report, rows)])


def all_hidden_by(report: AuditReport, findings: FindingRows) -> list[int | None]:
    """Of each finding what it hides; see `hidden_by`."""
    hidden_counts: list[int | None] = [0] * len(findings)
    blocking = np.flatnonzero(findings.column("blocks_partition").to_numpy(zero_copy_only=False))
    for place, one in zip(blocking.tolist(), findings.at(blocking).records(_Blocking), strict=True):
        hidden_counts[place] = hidden_by(report, one)
    return hidden_counts


def hidden_by(report: AuditReport, finding: _Blocking | Finding) -> int | None:
    """Records that `read_committed` consumers cannot read because of it; None where the files do not say.

    What an older open transaction hides counts for that one.
    """
    if not finding.blocks_partition:
        return 0
    partition = report.partitions_by_place.get((finding.topic, finding.partition))
    return None if partition is None else partition.hidden_record_count


def judged_idle_ms(run: RunItem, finding: HasVerdict) -> int | None:
    """How long it has been idle by the clock that lateness is judged by, the brokers' where the client's is not
    credible; None where no clock tells.
    """
    return None if finding.late_by_ms is None else finding.late_by_ms + run.late_after_ms


def is_contradicted(run: RunItem, finding: _Times | Finding) -> bool:
    """The brokers' clocks say that its last record was not written when its client's timestamp says so."""
    skew_ms = int(run.parameters.get("max_clock_skew_ms") or 0)
    last_ms, after_ms, before_ms = finding.last_timestamp_ms, finding.appended_after_ms, finding.appended_before_ms
    if last_ms is None:
        return False
    is_before = after_ms is not None and last_ms < after_ms - skew_ms
    return is_before or (before_ms is not None and last_ms > before_ms + skew_ms)


def idle_by_brokers(run: RunItem, finding: Finding) -> str:
    """How long it has been idle by the brokers' clocks, as close as they say, such as `56 s to 58 s`."""
    as_of_ms = run.as_of_ms
    ends = (finding.appended_before_ms, finding.appended_after_ms)
    least, most = (None if end is None or as_of_ms is None else duration(max(as_of_ms - end, 0)) for end in ends)
    if least is None or most is None:
        known = f"at least {least}" if least is not None else f"at most {most}"
        return "unknown" if least is most else known
    return least if least == most else f"{least} to {most}"


def is_decided_by_clock(run: RunItem, finding: _Times | Finding) -> bool:
    """Whether it is late depends on whose clock is asked, or may do: the brokers' do not clearly say what the client's
    says.
    """
    as_of_ms, bound_ms = run.as_of_ms, run.late_after_ms
    if not is_contradicted(run, finding) or as_of_ms is None or finding.last_timestamp_ms is None:
        return False
    if as_of_ms - finding.last_timestamp_ms > bound_ms:
        return finding.appended_before_ms is None or as_of_ms - finding.appended_before_ms <= bound_ms
    return finding.appended_after_ms is None or as_of_ms - finding.appended_after_ms > bound_ms


def clock_line(run: RunItem, finding: Finding) -> str | None:
    """Both durations with their clocks, where it depends on the clock whether it is late."""
    if not is_decided_by_clock(run, finding):
        return None
    by_client, by_brokers = duration(finding.idle_ms), idle_by_brokers(run, finding)
    return f"idle {by_client} by its client's clock, {by_brokers} by the brokers'"


def clock_sentence(report: AuditReport) -> str | None:
    """That it depends on the clock what is late; None where it does not, or where nothing asks for anything."""
    counts = report.findings.verdict_counts
    if not any(counts[verdict] for verdict in (Verdict.HANGING, Verdict.SUSPECT, Verdict.INCONCLUSIVE)):
        return None
    number = sum(is_decided_by_clock(report.run, one) for one in report.findings.records(_Times))
    if not number:
        return None
    of = len(report.findings)
    return f"{number} of {of} late by one clock alone, a client's or the brokers'; abort once both agree"


def age(report: AuditReport, now_ms: int | None) -> str | None:
    """How long ago the files were copied, such as `2 d 4 h ago`; None where that is not known, or lies ahead."""
    as_of_ms = report.run.as_of_ms
    if now_ms is None or as_of_ms is None or now_ms < as_of_ms:
        return None
    return f"{duration(now_ms - as_of_ms)} ago"


def hidden_records(record_count: int | None) -> str:
    """How many records consumers cannot read, in words; None where the files do not say."""
    return "an unknown number of records" if record_count is None else count(record_count, "record")


def all_hidden_records(of_partitions: Sequence[int | None]) -> str:
    """The same of some partitions together, and of how many of them the files do not say it."""
    unknown = of_partitions.count(None)
    doubt = f", and an unknown number on {count(unknown, 'partition')}" if unknown else ""
    return f"{count(sum(number or 0 for number in of_partitions), 'record')} hidden{doubt}"


def consequences(impact: Impact | None) -> Iterator[str]:
    """What follows for a blocked partition, beside what is urgent."""
    if impact is None or impact.is_compaction_stopped is not False:
        # Of topics that are not known to be compacted it is said as well: it is what fills disks.
        yield "compaction stops there"
    if impact is None:
        return
    if impact.is_tiering_stopped:
        yield "tiered storage copies nothing from there on, and what is not copied stays on the local disk"
    if impact.is_tiering_stopped and impact.beyond_local_retention_at_ms is not None:
        yield f"it may hold more than the local retention from {iso_utc(impact.beyond_local_retention_at_ms)} on"
    if impact.log_growth_bytes_per_day is not None:
        grown, over = size(impact.log_growth_bytes_per_day), duration(impact.log_growth_measured_ms)
        yield f"the log grows by {grown} a day, as measured over {over}"


def urgent(impact: Impact | None) -> Iterator[str]:
    """What makes a blocked partition urgent: data that is lost, a disk that fills, groups that wait."""
    if impact is None:
        return
    if impact.hidden_lost_at_ms is not None:
        yield f"retention may delete them unread from {iso_utc(impact.hidden_lost_at_ms)} on"
    if impact.days_until_full is not None:
        yield f"the disk is full in {impact.days_until_full:.1f} days at this rate"
    for groups, what in ((impact.pending_groups, "wait for offsets in it"), (impact.waiting_groups, "share it")):
        if groups:
            yield f"groups that {what}: {listed([clip(g, _ID_WIDTH) for g in groups], _MOST_GROUPS)}"


def soonest_warnings(report: AuditReport) -> list[WarningItem]:
    """The early warnings that are shown: what happens soonest first, then those without a moment, in their order."""
    in_order = sorted(report.warnings, key=lambda item: (item.at_ms is None, item.at_ms or 0))
    return in_order[:MOST_WARNINGS]


def warnings_left_out(report: AuditReport) -> str | None:
    """How many early warnings are not shown, by kind; None where all are."""
    kinds = Counter(item.kind for item in report.warnings) - Counter(i.kind for i in soonest_warnings(report))
    if not kinds:
        return None
    by_kind = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    return f"{count(kinds.total(), 'more early warning')} not shown: {by_kind}. All are in `warnings` of:"


def warning_subject(item: WarningItem) -> str:
    """Whom a warning is about, and how many ids it stands for."""
    more = f" and {count(item.count - 1, 'other id')}" if item.count > 1 else ""
    is_same = item.example is None or item.example == item.subject
    example = "" if is_same else f", id {clip(item.example or '', _ID_WIDTH)}"
    return f"{clip(item.subject, _ID_WIDTH)}{example}{more}"


def costs_sentence(transactional_id: str | None) -> str:
    """What a timeout costs an id's framework, behind the words of its end; nothing where it costs nothing."""
    whose = framework_of(transactional_id or "")[0]
    return "" if whose.costs is None else f". It looks like {whose.name}: {whose.costs}"


def if_listed(finding: Finding) -> str:
    """Under which condition the end of its id's transaction reaches it; nothing where its rule rests on that list."""
    if finding.verdict is Verdict.COORDINATED or finding.rule in _OF_A_LISTED_ONE:
        return ""
    return f"if the coordinator's transaction lists {finding.topic_partition}, "


_OF_A_LISTED_ONE = frozenset({"coordinator_overdue", "stale_data_in_live_transaction"})
