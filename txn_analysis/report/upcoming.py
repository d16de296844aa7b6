"""What will happen to whom, and by when, from the open transactions of one run.

Each moment is a sum of what the run saw, and counts from the copy of its files: nothing is judged anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.judge.applications import framework_of
from txn_analysis.judge.finding import DAY_MS
from txn_analysis.kafka.transactions import Ending
from txn_analysis.logic import plus
from txn_analysis.report.figures import costs_sentence, hidden_records, if_listed
from txn_analysis.tables import Finding, PartitionHealth
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.tables.findings import SINGLE_VALUES
from txn_analysis.text import clip, count, escape, iso_utc, listed, size
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport

MOST = 1000
_AT_ONCE = 512
_MOST_SHOWN = 6
_MOST_PLACES = 3
_ID_WIDTH = 60
TITLE = "Upcoming, unless something changed since the copy"


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


class Upcoming(NamedTuple):
    """One thing that happens because of one open transaction.

    `at_ms` is None where it has happened, or where no clock says when; `whom` is a partition or a group.
    """

    at_ms: int | None
    risk: Risk
    whom: str
    topic: str
    partition: int
    txn_start_offset: int
    transactional_id: str | None
    what: str


def upcoming_of(
    findings: FindingRows, partitions: Iterable[PartitionHealth], as_of_ms: int | None
) -> tuple[tuple[Upcoming, ...], int]:
    """What happens because of some findings, the soonest first, at most `MOST` of it, and how much more there is.

    Args:
        findings: the open transactions.
        partitions: theirs.
        as_of_ms: the moment of the copy.
    """
    places = {(one.topic, one.partition): one for one in partitions}
    number = 0

    def each() -> Iterator[Upcoming]:
        nonlocal number
        for start in range(0, len(findings), _AT_ONCE):
            for finding in findings[start : start + _AT_ONCE].records(Finding, *SINGLE_VALUES, "impact"):
                for one in _of_finding(finding, places.get((finding.topic, finding.partition)), as_of_ms):
                    number += 1
                    yield one

    soonest = nsmallest(MOST, each(), key=_soonest_first)
    return tuple(soonest), number - len(soonest)


def shown(report: AuditReport) -> list[str]:
    """What will happen after the copy as lines, escaped: a few, and how many more there are.

    What has happened by then is not among them, nor when a transaction ends by itself at no cost: the findings say it.
    """
    groups: dict[tuple[object, ...], list[Upcoming]] = {}
    for one in report.upcoming:
        if one.at_ms is not None and not _is_of_row(one):
            whose = (one.topic, one.partition) if one.transactional_id is None else one.transactional_id
            groups.setdefault((one.at_ms, one.risk, whose, one.what), []).append(one)
    lines = [_line(group) for group in list(groups.values())[:_MOST_SHOWN]]
    more = len(groups) - len(lines) + (report.upcoming_left_out_count if groups else 0)
    return [*lines, f"and {count(more, 'more thing')}: `upcoming` of --format json has them"] if more else lines


def _is_of_row(one: Upcoming) -> bool:
    """It is an end that costs nothing, or a word: the row of the finding says it, and `explain`."""
    return one.risk is Risk.LATE or (one.risk is Risk.TIMED_OUT and not costs_sentence(one.transactional_id))


def _line(group: list[Upcoming]) -> str:
    first = group[0]
    named = "" if first.transactional_id is None else f" ({clip(first.transactional_id, _ID_WIDTH)})"
    places = listed([escape(one.whom) for one in group], _MOST_PLACES)
    costs = framework_of(first.transactional_id or "")[0].costs or ""
    shortly = first.what.replace(costs, costs.partition(":")[0])
    return f"{iso_utc(first.at_ms)} {first.risk.value}: {places}{named}: {escape(shortly)}"


def _soonest_first(one: Upcoming) -> tuple[bool, int, int, str, int]:
    return one.at_ms is not None, one.at_ms or 0, _ORDER[one.risk], one.whom, one.txn_start_offset


_ORDER = {risk: place for place, risk in enumerate(Risk)}


def _of_finding(finding: Finding, place: PartitionHealth | None, as_of_ms: int | None) -> Iterator[Upcoming]:
    where, late_by_ms = finding.topic_partition, finding.late_by_ms
    if late_by_ms is not None and late_by_ms <= 0:
        text = "it is late: brokers count its partition, and the next audit judges it by its coordinator's state"
        yield _upcoming(plus(as_of_ms, -late_by_ms), Risk.LATE, where, finding, text)
    elif finding.is_being_written:
        pass  # its client's clock alone calls it late
    elif finding.blocks_partition and finding.verdict is not Verdict.IN_PROGRESS:
        at = ""
        if place is not None:
            records, size_ = hidden_records(place.hidden_record_count), size(place.hidden_bytes)
            at = f" at {place.last_stable_offset}: {records} ({size_}) hidden"
        yield _upcoming(None, Risk.PARTITION_STUCK, where, finding, f"read_committed consumers stop{at}")
        yield from _of_groups(finding)
    ending = finding.ending
    if ending is not None and ending.times_out_ms is not None:
        yield _of_ending(finding, ending, as_of_ms)
    if not finding.is_being_written:
        yield from _of_impact(finding, as_of_ms)


def _of_ending(finding: Finding, ending: Ending, as_of_ms: int | None) -> Upcoming:
    """When its time is over; or that it was, with what ends it now."""
    where = finding.topic_partition
    if ending.should_have_ended(as_of_ms):
        over = f"its time was over at {iso_utc(ending.times_out_ms)}; no record shows that the coordinator acted"
        back = framework_of(finding.transactional_id or "")[0].comes_back
        return _upcoming(None, Risk.OVERDUE, where, finding, f"{over}. Else {back}")
    aborts = f"{if_listed(finding)}its coordinator aborts it by {iso_utc(ending.aborted_by_ms)}"
    text = f"{aborts}, unless its client ends it before{costs_sentence(finding.transactional_id)}"
    return _upcoming(ending.times_out_ms, Risk.TIMED_OUT, where, finding, text)


def _of_groups(finding: Finding) -> Iterator[Upcoming]:
    impact = finding.impact
    if impact is None:
        return
    for group in impact.pending_groups or ():
        text = "nobody can fetch its offsets: its consumers retry or fail when they start. Never recreate it"
        yield _upcoming(None, Risk.GROUP_STUCK, group, finding, text)
    for group in impact.waiting_groups or ():
        text = "its offsets can be fetched; the next transaction of it that stays open there would hold them"
        yield _upcoming(None, Risk.GROUP_NEAR, group, finding, text)


def _of_impact(finding: Finding, as_of_ms: int | None) -> Iterator[Upcoming]:
    impact, where = finding.impact, finding.topic_partition
    if impact is None:
        return
    if impact.hidden_lost_at_ms is not None:
        text = "retention may delete hidden records that nobody has read"
        yield _upcoming(impact.hidden_lost_at_ms, Risk.RECORDS_LOST, where, finding, text)
    if impact.days_until_full is not None and as_of_ms is not None:
        full_ms = as_of_ms + round(impact.days_until_full * DAY_MS)
        yield _upcoming(full_ms, Risk.DISK_FULL, where, finding, "the log has grown by the free space of its disk")
    if impact.beyond_local_retention_at_ms is not None:
        text = "the local disk may hold more than the local retention asks for"
        yield _upcoming(impact.beyond_local_retention_at_ms, Risk.LOCAL_RETENTION, where, finding, text)


def _upcoming(at_ms: int | None, risk: Risk, whom: str, finding: Finding, what: str) -> Upcoming:
    place = finding.topic, finding.partition, finding.txn_start_offset, finding.transactional_id
    return Upcoming(at_ms, risk, whom, *place, what)
