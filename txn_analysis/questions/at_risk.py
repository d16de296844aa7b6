"""The answer of `at-risk`: what will happen to whom, and by when, from the findings of one run.

Each moment is a sum of what the run found: nothing is judged anew. What has come to pass already stands first.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.judge.applications import framework_of
from txn_analysis.judge.finding import DAY_MS
from txn_analysis.logic import plus
from txn_analysis.report.figures import hidden_records
from txn_analysis.report.formats import Answer, Column, answer_of
from txn_analysis.tables import FINDINGS, PARTITION_HEALTH, Finding
from txn_analysis.text import iso_utc, listed, size
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.kafka.transactions import Ending
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.run_tables import RunTables


class Risk(StrEnum):
    """What happens; in the order of their damage, which rows of one moment have."""

    GROUP_STUCK = "group_stuck"  # nobody can fetch its offsets
    PARTITION_STUCK = "partition_stuck"  # read_committed consumers stop at the last stable offset
    RECORDS_LOST = "records_lost"  # retention may delete hidden records that nobody read
    DISK_FULL = "disk_full"
    LOCAL_RETENTION = "local_retention_exceeded"  # of a tiered topic
    GROUP_NEAR = "group_near"  # its partition of `__consumer_offsets` is stuck, without offsets of its own
    OVERDUE = "coordinator_overdue"  # its time was over, and the coordinator has not acted
    LATE = "late"
    TIMED_OUT = "timed_out"


class AtRisk(NamedTuple):
    """One thing that happens; `at_ms` None where it has, or where no clock says when."""

    at_ms: int | None
    risk: Risk
    whom: str
    finding: Finding
    what: str

    @property
    def when(self) -> str:
        """The moment, or that it is now."""
        return "now" if self.at_ms is None else iso_utc(self.at_ms)


COLUMNS = (
    Column("When", of="when"),
    Column("Risk", of="risk.value"),
    Column("Whom", of="whom"),
    Column("StartOffset", of="finding.txn_start_offset"),
    Column("TransactionalId", of="finding.transactional_id"),
    Column("What", of="what"),
    Column("AtMs", of="at_ms"),
    Column("Topic", of="finding.topic"),
    Column("Partition", of="finding.partition"),
    Column("ProducerId", of="finding.producer_id"),
    Column("Verdict", of="finding.verdict.value"),
)
_IN_TEXT = 6
_MOST_PLACES = 3


class _Hidden(NamedTuple):
    topic: str
    partition: int
    last_stable_offset: int | None
    hidden_record_count: int | None
    hidden_bytes: int | None


def at_risk(tables: RunTables, filters: Filters, within_ms: int, limit: int) -> tuple[Answer, int]:
    """What will happen by some time after the files were copied, and how many more rows there are.

    Args:
        tables: the run.
        filters: the topics and partitions that are asked about.
        within_ms: after the moment of the copy; what has happened by then is there as well.
        limit: at most so many rows, the soonest first.
    """
    as_of_ms = tables.as_of_ms
    found = [
        each
        for finding in tables.records(Finding, FINDINGS, **filters.places)
        for each in _of_finding(finding, as_of_ms)
        if each.at_ms is None or as_of_ms is None or each.at_ms <= as_of_ms + within_ms
    ]
    hidden = {(one.topic, one.partition): one for one in tables.records(_Hidden, PARTITION_HEALTH, **filters.places)}
    told = [_with_figures(each, hidden.get((each.finding.topic, each.finding.partition))) for each in found]
    rows = sorted(told, key=_soonest_first)
    answer = answer_of(COLUMNS, rows[:limit], _IN_TEXT)
    in_text = answer_of(COLUMNS, _of_one_id(rows[:limit])).rows
    return replace(answer, text_rows=in_text), max(len(rows) - limit, 0)


def _of_one_id(rows: Sequence[AtRisk]) -> Iterator[AtRisk]:
    """What happens at one moment to several partitions of one transactional id, as one row."""
    groups: dict[tuple[object, ...], list[AtRisk]] = {}
    for one in rows:
        name = one.finding.transactional_id
        whose = one.finding.finding_id if name is None else name
        groups.setdefault((one.at_ms, one.risk, whose, one.what), []).append(one)
    for first, *others in groups.values():
        yield first._replace(whom=listed([first.whom, *(one.whom for one in others)], _MOST_PLACES))


def _soonest_first(one: AtRisk) -> tuple[bool, int, int, str, int]:
    order = list(Risk).index(one.risk)
    return one.at_ms is not None, one.at_ms or 0, order, one.whom, one.finding.txn_start_offset


def _of_finding(finding: Finding, as_of_ms: int | None) -> Iterator[AtRisk]:
    where, late_by_ms = finding.topic_partition, finding.late_by_ms
    if late_by_ms is not None and late_by_ms <= 0:
        text = "it is late: brokers count its partition, and the next audit judges it by its coordinator's state"
        yield AtRisk(plus(as_of_ms, -late_by_ms), Risk.LATE, where, finding, text)
    elif finding.is_being_written:
        pass  # its client's clock alone calls it late
    elif finding.blocks_partition and finding.verdict is not Verdict.IN_PROGRESS:
        yield AtRisk(None, Risk.PARTITION_STUCK, where, finding, "read_committed consumers stop")
        yield from _of_groups(finding)
    ending = finding.ending
    if ending is not None and ending.times_out_ms is not None:
        yield _of_ending(finding, ending, as_of_ms)
    if not finding.is_being_written:
        yield from _of_impact(finding, as_of_ms)


def _of_ending(finding: Finding, ending: Ending, as_of_ms: int | None) -> AtRisk:
    """When its time is over; or that it was, with what ends it now."""
    where, framework = finding.topic_partition, framework_of(finding.transactional_id or "")[0]
    costs = "" if framework.costs is None else f". It looks like {framework.name}: {framework.costs}"
    if ending.should_have_ended(as_of_ms):
        over = f"its time was over at {iso_utc(ending.times_out_ms)}; no record shows that the coordinator acted"
        return AtRisk(None, Risk.OVERDUE, where, finding, f"{over}. Else {framework.comes_back}")
    text = f"its coordinator aborts it by {iso_utc(ending.aborted_by_ms)}, unless its client ends it before{costs}"
    return AtRisk(ending.times_out_ms, Risk.TIMED_OUT, where, finding, text)


def _of_groups(finding: Finding) -> Iterator[AtRisk]:
    impact = finding.impact
    if impact is None:
        return
    for group in impact.pending_groups or ():
        text = "nobody can fetch its offsets: its consumers retry or fail when they start. Never recreate it"
        yield AtRisk(None, Risk.GROUP_STUCK, group, finding, text)
    for group in impact.waiting_groups or ():
        text = "its offsets can be fetched; the next transaction of it that stays open there would hold them"
        yield AtRisk(None, Risk.GROUP_NEAR, group, finding, text)


def _of_impact(finding: Finding, as_of_ms: int | None) -> Iterator[AtRisk]:
    impact, where = finding.impact, finding.topic_partition
    if impact is None:
        return
    if impact.hidden_lost_at_ms is not None:
        text = "retention may delete hidden records that nobody has read"
        yield AtRisk(impact.hidden_lost_at_ms, Risk.RECORDS_LOST, where, finding, text)
    if impact.days_until_full is not None and as_of_ms is not None:
        full_ms = as_of_ms + round(impact.days_until_full * DAY_MS)
        yield AtRisk(full_ms, Risk.DISK_FULL, where, finding, "the log has grown by the free space of its disk")
    if impact.beyond_local_retention_at_ms is not None:
        text = "the local disk may hold more than the local retention asks for"
        yield AtRisk(impact.beyond_local_retention_at_ms, Risk.LOCAL_RETENTION, where, finding, text)


def _with_figures(one: AtRisk, hidden: _Hidden | None) -> AtRisk:
    """What is stuck, with where it stops and what is hidden there."""
    if one.risk is not Risk.PARTITION_STUCK or hidden is None:
        return one
    records, size_ = hidden_records(hidden.hidden_record_count), size(hidden.hidden_bytes)
    return one._replace(what=f"{one.what} at {hidden.last_stable_offset}: {records} ({size_}) hidden")
