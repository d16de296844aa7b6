"""The runs behind a run, as every question about earlier nights has them, and what the last of them told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from txn_analysis.columns.arrays import by_key, tuples_of
from txn_analysis.columns.records import records_of
from txn_analysis.plan.repair import Recommended
from txn_analysis.plan.standing import TOLD, Night, Since, ToldFinding, since
from txn_analysis.runs.prunes import prunes_of
from txn_analysis.runs.run_tables import captures
from txn_analysis.tables import FINDINGS, PARTITION_HEALTH, RUNS, AbortRecord, Finding, Prune
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.tables.findings import SINGLE_VALUES
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.verdict import Verdict
from txn_analysis.warehouse.delta_tables import Warehouse

MOST_NIGHTS = 30
"""So many runs behind one are looked at to count how many nights a finding is there; it says where it may be more."""
_FEW = 4  # of them are read at once, and twice as many each time
_MANY = 100  # runs whose findings are in memory at once
_NO_OTHER_ANSWER = (Verdict.HANGING.value, Verdict.INCONCLUSIVE.value)


def runs_behind(warehouse: Warehouse, last: RunRecord) -> list[RunRecord]:
    """The runs before one of its cluster, oldest first, by their `as_of_ms`.

    Those whose capture came into the warehouse later are among them. Of a capture that was judged more than once, the
    last run counts. A run that does not know when its files were copied has none behind it.
    """
    runs = warehouse.records(RunRecord, RUNS, cluster=[last.cluster])
    newest = {run.capture: run for run in sorted(runs, key=attrgetter("run_number"))}
    dated = [(run.as_of_ms, run) for run in newest.values() if run.as_of_ms is not None]
    before = [(at_ms, run) for at_ms, run in dated if last.as_of_ms is not None and at_ms < last.as_of_ms]
    return [run for _, run in sorted(before, key=lambda pair: pair[0])]


class _Seen(NamedTuple):
    run_id: str
    topic: str
    partition: int
    is_in_capture: bool


def withdrawn(
    warehouse: Warehouse, run: RunRecord, records: Sequence[AbortRecord | Recommended]
) -> Iterator[tuple[AbortRecord | Recommended, RunRecord]]:
    """Of the aborts that a run recommends those that a later copy speaks against, each with the run that judged it.

    There the transaction has ended, or its coordinator, or a lost commit, explains it. A later copy without an answer
    speaks against nothing, and for nothing either: what an earlier one showed stays so. A copy is later by when it was
    copied, or by its brokers' clocks, as those of a broker that was down may be copied last; and a capture with
    more files is later than it was with fewer.

    Args:
        warehouse: that holds the runs.
        run: the run.
        records: its plan, or a part of it.
    """
    if run.as_of_ms is None or not records:
        return
    moments = {one.name: one.newest_moment_ms for one in captures(warehouse, run.cluster)}
    every = warehouse.records(RunRecord, RUNS, cluster=[run.cluster])
    after = {one.run_id: one for one in sorted(every, key=attrgetter("run_number")) if _is_later(one, run, moments)}
    if not after:
        return
    topics = {record.topic for record in records}
    seen = warehouse.records(_Seen, PARTITION_HEALTH, run_id=[*after], topic=topics)
    waiting = by_key(records, attrgetter("topic", "partition"))
    ids, key = [record.finding_id for record in records], ("run_id", "finding_id")
    rows = warehouse.rows(FINDINGS, *key, run_id=[*after], finding_id=ids, verdict=_NO_OTHER_ANSWER)
    no_other = {*tuples_of(rows, key)}
    against = dict[str, RunRecord]()
    for one in sorted(seen, key=lambda one: after[one.run_id].run_number):
        for record in waiting.get((one.topic, one.partition), ()) if one.is_in_capture else ():
            if (one.run_id, record.finding_id) not in no_other:
                against[record.finding_id] = after[one.run_id]
    for record in records:
        if record.finding_id in against:
            yield record, against[record.finding_id]


def _is_later(one: RunRecord, run: RunRecord, moments: Mapping[str, int | None]) -> bool:
    if one.as_of_ms is None or run.as_of_ms is None:
        return False
    is_again = one.capture == run.capture and one.input_count > run.input_count
    moment_ms, own_ms = moments.get(one.capture), moments.get(run.capture)
    is_newer = moment_ms is not None and own_ms is not None and moment_ms > own_ms
    return is_again or is_newer or one.as_of_ms > run.as_of_ms


def since_last_night(warehouse: Warehouse, run: RunRecord, findings: FindingRows) -> Since | None:
    """What a run tells against the runs behind it; None where there is none.

    Only captures count that were behind the run when it judged, so that a report says the same whenever it is printed.
    Captures that were asked for some partitions alone are left out, and of such a run nothing is told: what is open
    elsewhere would be new or gone. Where age took nights, those that stay
    of them are not in a row, and do not count.

    Args:
        warehouse: that holds the runs.
        run: the run.
        findings: all of it.
    """
    if run.asked is not None:
        return None
    whole_from_ms = _whole_from_ms(prunes_of(warehouse, run.cluster))
    behind = [*_compared(run, reversed(runs_behind(warehouse, run)), whole_from_ms)]
    shown = behind[:MOST_NIGHTS]
    if not shown:
        return None
    findings_tonight = findings.of_verdict(*TOLD).records(ToldFinding)
    producers = sorted({one.producer_id for one in findings_tonight})
    is_all = len(shown) == len(behind) and whole_from_ms is None
    return since(findings_tonight, _nights(warehouse, shown, producers), is_all=is_all)


def _whole_from_ms(prunes: Iterable[Prune]) -> int | None:
    """From when on age took no run, by the brokers' clocks; None where it never did."""
    return max((prune.before_ms for prune in prunes if prune.runs), default=None)


def _compared(run: RunRecord, behind: Iterable[RunRecord], whole_from_ms: int | None) -> Iterator[RunRecord]:
    """Of runs behind one those that it is held against."""
    captures = {*(run.earlier_captures or ())}
    for one in behind:
        if one.capture in captures and one.asked is None and (one.as_of_ms or 0) >= (whole_from_ms or 0):
            yield one


class ReportedNight(NamedTuple):
    """All findings of a run, without their sentences and causes, and what it tells against the run before it."""

    run: RunRecord
    findings: tuple[Finding, ...]
    since: Since | None


def reported_nights(
    warehouse: Warehouse, runs: Sequence[RunRecord], prunes: Iterable[Prune]
) -> Iterator[ReportedNight]:
    """What each of some runs of a cluster told; see `since_last_night`.

    Args:
        warehouse: that holds them.
        runs: those of consecutive nights, oldest first. The first is held against nothing.
        prunes: of the cluster.
    """
    whole_from_ms = _whole_from_ms(prunes)
    nights: dict[str, Night] = {}
    for start in range(0, len(runs), _MANY):
        some = runs[start : start + _MANY]
        by_run: defaultdict[str, list[Finding]] = defaultdict(list)
        rows = warehouse.rows(FINDINGS, *SINGLE_VALUES, run_id=[run.run_id for run in some])
        for one in records_of(Finding, rows):
            by_run[one.run_id].append(one)
        for number, run in enumerate(some, start):
            findings = tuple(by_run[run.run_id])
            behind = _compared(run, reversed(runs[:number]), whole_from_ms) if run.asked is None else iter(())
            last = next(behind, None)
            night = None if last is None else nights.get(last.run_id)
            against = None if night is None else since(findings, iter([night]), is_all=False)
            yield ReportedNight(run, findings, against)
            reported = tuple(_reported(one) for one in findings if one.verdict in TOLD)
            nights[run.run_id] = Night(run.run_id, run.capture, run.as_of_ms or 0, reported)
            nights.pop(runs[number - _MANY].run_id if number >= _MANY else "", None)


def _reported(finding: Finding) -> ToldFinding:
    return ToldFinding(*(getattr(finding, name) for name in ToldFinding._fields))


def _nights(warehouse: Warehouse, runs: Sequence[RunRecord], producers: Sequence[int]) -> Iterator[Night]:
    """What each run told; of the last one all of it, of earlier ones what some producers wrote."""
    start, number = 0, 1
    while start < len(runs):
        some = runs[start : start + number]
        only = {"producer_id": producers} if start else {}
        by_run: defaultdict[str, list[ToldFinding]] = defaultdict(list)
        ids, verdicts = [one.run_id for one in some], [verdict.value for verdict in TOLD]
        for one in warehouse.records(ToldFinding, FINDINGS, run_id=ids, verdict=verdicts, **only):
            by_run[one.run_id].append(one)
        for run in some:
            assert run.as_of_ms is not None
            yield Night(run.run_id, run.capture, run.as_of_ms, tuple(by_run[run.run_id]))
        start, number = start + number, max(_FEW, 2 * number)
