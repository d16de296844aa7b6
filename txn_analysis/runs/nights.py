"""The runs behind a run, as every question about earlier nights has them, and what the last of them told."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING

from txn_analysis.plan.since import TOLD, Night, ToldFinding, since
from txn_analysis.runs.prunes import prunes_of
from txn_analysis.tables import FINDINGS, RUNS
from txn_analysis.tables.inputs import RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.plan.since import Since
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables.finding_rows import FindingRows

MOST_NIGHTS = 30
"""So many runs behind one are looked at to count how many nights a finding is there; it says where it may be more."""
_FEW = 4  # of them are read at once, and twice as many each time


def runs_behind(warehouse: Warehouse, last: RunRecord) -> list[RunRecord]:
    """The runs before one of its cluster, oldest first, by their `as_of_ms`.

    Those whose capture came into the warehouse later are among them. Of a capture that was judged more than once, the
    last run counts. A run that does not know when its files were copied has none behind it.
    """
    runs = warehouse.records(RunRecord, RUNS, cluster=[last.cluster])
    newest = {run.capture: run for run in sorted(runs, key=attrgetter("run_number"))}
    dated = [(run.as_of_ms, run) for run in newest.values() if run.as_of_ms is not None]
    before = [(at_ms, run) for at_ms, run in dated if last.as_of_ms is not None and at_ms < last.as_of_ms]
    return [run for _, run in sorted(before, key=lambda found: found[0])]


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
    captures = {*(run.earlier_captures or ())}
    whole_from_ms = max((prune.before_ms for prune in prunes_of(warehouse, run.cluster) if prune.runs), default=None)
    behind = [
        one
        for one in reversed(runs_behind(warehouse, run))
        if one.capture in captures and one.asked is None and (one.as_of_ms or 0) >= (whole_from_ms or 0)
    ]
    shown = behind[:MOST_NIGHTS]
    if not shown:
        return None
    told = findings.of_verdict(*TOLD).told(ToldFinding)
    producers = sorted({one.producer_id for one in told})
    is_all = len(shown) == len(behind) and whole_from_ms is None
    return since(told, _nights(warehouse, shown, producers), is_all=is_all)


def _nights(warehouse: Warehouse, runs: Sequence[RunRecord], producers: Sequence[int]) -> Iterator[Night]:
    """What each run told; of the last one all of it, of earlier ones what some producers wrote."""
    start, number = 0, 1
    while start < len(runs):
        some = runs[start : start + number]
        only = {"producer_id": producers} if start else {}
        told: defaultdict[str, list[ToldFinding]] = defaultdict(list)
        ids, verdicts = [one.run_id for one in some], [verdict.value for verdict in TOLD]
        for one in warehouse.records(ToldFinding, FINDINGS, run_id=ids, verdict=verdicts, **only):
            told[one.run_id].append(one)
        for run in some:
            assert run.as_of_ms is not None
            yield Night(run.run_id, run.capture, run.as_of_ms, tuple(told[run.run_id]))
        start, number = start + number, max(_FEW, 2 * number)
