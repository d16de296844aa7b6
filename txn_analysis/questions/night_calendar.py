"""What the nights of a warehouse answered, for a calendar of them: of each capture what its last run says.

Only of the newest nights the findings are read: a calendar of many years costs as much as one of some months.
"""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from txn_analysis.columns.records import Counts, records_of
from txn_analysis.errors import WarehouseError
from txn_analysis.judge.outcome import Outcome, Sight, outcome_of
from txn_analysis.plan.standing import Standing, accepted_findings, unaccepted
from txn_analysis.report.night_calendar import Against, Answer, CalendarNight, ClusterNights
from txn_analysis.runs.decisions import decisions_of
from txn_analysis.runs.nights import told_nights
from txn_analysis.runs.past_run import JUDGED_BY
from txn_analysis.runs.prunes import prunes_of
from txn_analysis.runs.run_tables import captures
from txn_analysis.tables import PARTITION_HEALTH, RUNS, PartitionHealth
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.text import escape, shell_word
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from txn_analysis.runs.run_tables import Capture
    from txn_analysis.settings import Settings
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import Prune
    from txn_analysis.tables.finding_rows import FindingRows

MOST_TOLD = 120
"""Of so many nights of a cluster the findings are read; of older ones only what `runs` says."""


class _NightRun(NamedTuple):
    """A run, as far as `runs` says how it came out."""

    run_id: str
    run_number: int
    cluster: str
    capture: str
    as_of_ms: int | None
    verdict_counts: Counts | None
    outcome: str


def night_calendar(warehouse: Warehouse, settings: Settings, cluster: str | None = None) -> list[ClusterNights]:
    """The nights of a cluster, or of all, by the name of the cluster.

    Raises:
        ConfigError: the file of `accepted` was not understood.
        WarehouseError: there is no such warehouse, or no such cluster in it.
    """
    held = {(one.cluster, one.name): one for one in captures(warehouse, cluster)}
    if cluster is not None and not held:
        others = sorted({one.cluster for one in captures(warehouse)})
        there = f"give --cluster {' or '.join(map(shell_word, others))}, or " if others else ""
        what = f"cluster {escape(cluster)} has no capture yet"
        raise WarehouseError(f"{warehouse.root}: {what}: {there}audit its files first")
    of_cluster = {} if cluster is None else {"cluster": [cluster]}
    runs = sorted(warehouse.records(_NightRun, RUNS, **of_cluster), key=attrgetter("run_number"))
    last = {(run.cluster, run.capture): run for run in runs}
    nights: defaultdict[str, list[CalendarNight]] = defaultdict(list)
    for place in dict.fromkeys((*held, *last)):  # age leaves some runs without the files of their captures
        nights[place[0]].append(_judged(last[place]) if place in last else _not_judged(held[place]))
    prunes = prunes_of(warehouse, cluster)
    return [_of_cluster(warehouse, settings, name, own, prunes) for name, own in sorted(nights.items())]


def _of_cluster(
    warehouse: Warehouse,
    settings: Settings,
    cluster: str,
    found: Iterable[CalendarNight],
    prunes: Iterable[Prune],
) -> ClusterNights:
    own = [prune for prune in prunes if prune.cluster == cluster]
    nights = sorted(found, key=lambda night: (night.copied_ms is not None, night.copied_ms or 0, night.capture))
    dated = [night.run_id for night in nights if night.run_id is not None and night.copied_ms is not None]
    newest = dated[-MOST_TOLD:]
    told = _told(warehouse, settings, cluster, newest, own)
    shown = tuple(told.get(night.run_id or "", night) for night in nights)
    is_cut = len(newest) < len(dated)
    taken = [prune for prune in own if prune.runs]
    return ClusterNights(
        cluster,
        shown,
        told[newest[0]].copied_ms if is_cut else None,
        sum(len(prune.runs) for prune in taken),
        max((prune.before_ms for prune in taken), default=None),
    )


def _not_judged(capture: Capture) -> CalendarNight:
    return CalendarNight(capture.name, capture.newest_moment_ms, None, Answer.NOT_JUDGED)


def _judged(run: _NightRun) -> CalendarNight:
    """A night by what `runs` says alone."""
    answer, number = _answer(Outcome(run.outcome), run.verdict_counts or {})
    return CalendarNight(run.capture, run.as_of_ms, run.run_id, answer, number)


def _answer(outcome: Outcome, verdicts: Mapping[str, int] | Mapping[Verdict, int]) -> tuple[Answer, int]:
    if hanging := verdicts.get(Verdict.HANGING, 0):
        return Answer.HANGING, hanging
    if outcome is Outcome.COULD_NOT_TELL:
        return Answer.COULD_NOT_TELL, 0
    suspect = verdicts.get(Verdict.SUSPECT, 0)
    return (Answer.SUSPECT, suspect) if suspect else (Answer.CLEAN, 0)


def _told(
    warehouse: Warehouse, settings: Settings, cluster: str, run_ids: Sequence[str], prunes: Iterable[Prune]
) -> dict[str, CalendarNight]:
    """By their runs, nights with what is new, gone, still there and accepted."""
    if not run_ids:
        return {}
    rows = {run.run_id: run for run in warehouse.records(RunRecord, RUNS, run_id=run_ids)}
    decided = decisions_of(warehouse, settings, cluster)
    found: dict[str, CalendarNight] = {}
    unsure: dict[str, FindingRows] = {}
    for night in told_nights(warehouse, [rows[run_id] for run_id in run_ids], prunes):
        run = night.run
        accepted = accepted_findings(night.findings, decided, run.as_of_ms)
        counted = {one.finding_id for one in accepted if one.standing is Standing.ACCEPTED}
        opened, outcome = unaccepted(night.findings, accepted), Outcome(run.outcome)
        if counted and outcome is not Outcome.CLEAN:
            outcome = outcome_of(opened, has_state=_has_state(run))
            if outcome is Outcome.CLEAN:
                unsure[run.run_id] = opened
        since = None if night.since is None else night.since.without(counted)
        against = None if since is None else Against(len(since.new), len(since.gone), len(since.still))
        found[run.run_id] = CalendarNight(
            run.capture, run.as_of_ms, run.run_id, *_answer(outcome, opened.verdict_counts), against, len(counted)
        )
    for run_id, sight in _sights(warehouse, [*unsure]).items():
        outcome = outcome_of(unsure[run_id], has_state=_has_state(rows[run_id]), sight=sight)
        answer, number = _answer(outcome, unsure[run_id].verdict_counts)
        found[run_id] = found[run_id]._replace(answer=answer, number=number)
    return found


def _has_state(run: RunRecord) -> bool:
    return bool(run.coverage.get("seen"))


def _sights(warehouse: Warehouse, run_ids: Sequence[str]) -> dict[str, Sight]:
    """Of each run whether it looked at all that could hang."""
    if not run_ids:
        return {}
    rows = warehouse.held(PARTITION_HEALTH, "run_id", *JUDGED_BY, run_id=run_ids)
    own = ((run_id, rows.filter(pc.equal(rows["run_id"], run_id))) for run_id in run_ids)
    return {run_id: Sight.of(records_of(PartitionHealth, logs)) for run_id, logs in own}
