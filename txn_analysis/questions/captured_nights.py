"""What the captures of a warehouse are, and what the last run of each answers.

Only of the newest captures the findings are read: many years cost as much as some months.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import pyarrow.compute as pc

from txn_analysis.columns.records import records_of
from txn_analysis.errors import WarehouseError
from txn_analysis.judge.outcome import LogCoverage, Outcome, outcome_of
from txn_analysis.plan.standing import Standing, accepted_findings, unaccepted
from txn_analysis.report.formats import Answer, Column, answer_of
from txn_analysis.runs.decisions import decisions_of
from txn_analysis.runs.nights import reported_nights
from txn_analysis.runs.past_run import JUDGED_BY
from txn_analysis.runs.prunes import prunes_of
from txn_analysis.runs.run_tables import Capture, captures
from txn_analysis.settings import Settings
from txn_analysis.tables import PARTITION_HEALTH, RUNS, PartitionHealth
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.text import escape, shell_word, utc
from txn_analysis.verdict import Verdict
from txn_analysis.warehouse.delta_tables import Warehouse

MOST_TOLD = 120
"""Of so many captures of a cluster the findings are read; of older ones only what `runs` says."""


class CapturedNight(NamedTuple):
    """One capture, and what the last run that judged it answers.

    Attributes:
        capture: what it holds; age leaves some runs without the files of their captures.
        copied_ms: when its files were copied, by the brokers' clocks; None where that is not known.
        answer: such as `4 hanging` or `could not tell`.
        against: what is new, gone and still there against the run before; None where it is held against none.
        accepted: how many findings people accepted, which the other figures leave out; None where nothing is counted.
    """

    capture: Capture
    copied_ms: int | None
    answer: str
    against: Against | None = None
    accepted: int | None = None


class Against(NamedTuple):
    """How many open transactions are new, gone and still there against the run before."""

    new: int
    gone: int
    still: int


def _counted(name: str) -> Callable[[CapturedNight], int | None]:
    return lambda night: getattr(night.against, name, None)


COLUMNS = (
    Column("Cluster", of="capture.cluster"),
    Column("Capture", of="capture.name"),
    Column("CopiedAt", of=lambda night: utc(night.copied_ms)),
    Column("Inputs", of="capture.input_count"),
    Column("Runs", of=lambda night: len(night.capture.runs)),
    Column("LastRun", of=lambda night: night.capture.runs[-1] if night.capture.runs else None),
    Column("Answer", of="answer"),
    *(Column(name, of=_counted(name.lower())) for name in ("New", "Gone", "Still")),
    Column("Accepted", of="accepted"),
    Column("NewestMomentMs", of="copied_ms"),
    Column("SizeBytes", of="capture.size_bytes"),
    Column("RunIds", of=lambda night: list(night.capture.runs)),
)
"""One row per capture."""
_IN_TEXT = 11


def captures_answer(nights: Iterable[CapturedNight]) -> Answer:
    """One row per capture."""
    return answer_of(COLUMNS, nights, _IN_TEXT)


def captured_nights(warehouse: Warehouse, settings: Settings, cluster: str | None = None) -> list[CapturedNight]:
    """The captures of a cluster, or of all; by cluster, oldest first.

    Raises:
        ConfigError: the file of `accepted` was not understood.
        WarehouseError: there is no such warehouse, or no such cluster in it.
    """
    captures_by_place = {(one.cluster, one.name): one for one in captures(warehouse, cluster)}
    if cluster is not None and not captures_by_place:
        others = sorted({one.cluster for one in captures(warehouse)})
        there = f"give --cluster {' or '.join(map(shell_word, others))}, or " if others else ""
        what = f"cluster {escape(cluster)} has no capture yet"
        raise WarehouseError(f"{warehouse.root}: {what}: {there}audit its files first")
    of_cluster = {} if cluster is None else {"cluster": [cluster]}
    runs = defaultdict[tuple[str, str], list[RunRecord]](list)
    for run in sorted(warehouse.records(RunRecord, RUNS, **of_cluster), key=attrgetter("run_number")):
        runs[run.cluster, run.capture].append(run)
    last = {place: of_place[-1] for place, of_place in runs.items()}
    answers = _answers_of_clusters(warehouse, settings, last.values())
    nights = []
    for place in {*captures_by_place, *last}:
        ids = tuple(run.run_id for run in runs[place])
        capture = captures_by_place.get(place) or Capture(*place, last[place].as_of_ms, 0, 0, ids)
        nights.append(_night(capture, last.get(place), answers))
    return sorted(nights, key=_order)


def _order(night: CapturedNight) -> tuple[str, bool, int, str]:
    return night.capture.cluster, night.copied_ms is not None, night.copied_ms or 0, night.capture.name


def _night(capture: Capture, run: RunRecord | None, answers: Mapping[str, _Told]) -> CapturedNight:
    if run is None:
        return CapturedNight(capture, capture.newest_moment_ms, "not judged")
    by_itself = _Told(_answer(Outcome(run.outcome), run.verdict_counts or {}))
    return CapturedNight(capture, run.as_of_ms, *answers.get(run.run_id, by_itself))


class _Told(NamedTuple):
    answer: str
    against: Against | None = None
    accepted: int | None = None


def _answers_of_clusters(warehouse: Warehouse, settings: Settings, runs: Iterable[RunRecord]) -> dict[str, _Told]:
    """By their ids, what the newest runs of each cluster tell."""
    dated = defaultdict[str, list[tuple[int, str, RunRecord]]](list)
    for run in runs:
        if run.as_of_ms is not None:
            dated[run.cluster].append((run.as_of_ms, run.run_id, run))
    answers: dict[str, _Told] = {}
    for cluster, dated_runs in dated.items():
        answers |= _answers_in(warehouse, settings, cluster, [run for *_, run in sorted(dated_runs)][-MOST_TOLD:])
    return answers


def _answer(outcome: Outcome, verdicts: Mapping[str, int] | Mapping[Verdict, int]) -> str:
    if hanging := verdicts.get(Verdict.HANGING, 0):
        return f"{hanging} hanging"
    if outcome is Outcome.COULD_NOT_TELL:
        return "could not tell"
    suspect = verdicts.get(Verdict.SUSPECT, 0)
    return f"{suspect} suspect" if suspect else "nothing hangs"


def _answers_in(warehouse: Warehouse, settings: Settings, cluster: str, runs: Sequence[RunRecord]) -> dict[str, _Told]:
    """By their runs, the answer, and what is new, gone, still there and accepted."""
    decided = decisions_of(warehouse, settings, cluster)
    answers: dict[str, _Told] = {}
    unsure: dict[str, tuple[RunRecord, FindingRows]] = {}
    for night in reported_nights(warehouse, runs, prunes_of(warehouse, cluster)):
        run = night.run
        accepted = accepted_findings(night.findings, decided, run.as_of_ms)
        counted = {one.finding_id for one in accepted if one.standing is Standing.ACCEPTED}
        opened, outcome = unaccepted(night.findings, accepted), Outcome(run.outcome)
        if counted and outcome is not Outcome.CLEAN:
            outcome = outcome_of(opened, has_state=_has_state(run))
            if outcome is Outcome.CLEAN:
                unsure[run.run_id] = run, opened
        since = None if night.since is None else night.since.without(counted)
        against = None if since is None else Against(len(since.new), len(since.gone), len(since.still))
        answers[run.run_id] = _Told(_answer(outcome, opened.verdict_counts), against, len(counted))
    for run_id, logs in _log_coverages(warehouse, [*unsure]).items():
        run, opened = unsure[run_id]
        outcome = outcome_of(opened, has_state=_has_state(run), logs=logs)
        answers[run_id] = answers[run_id]._replace(answer=_answer(outcome, opened.verdict_counts))
    return answers


def _has_state(run: RunRecord) -> bool:
    return bool(run.coverage.get("seen"))


def _log_coverages(warehouse: Warehouse, run_ids: Sequence[str]) -> dict[str, LogCoverage]:
    """Of each run whether it looked at all that could hang."""
    if not run_ids:
        return {}
    rows = warehouse.rows(PARTITION_HEALTH, "run_id", *JUDGED_BY, run_id=run_ids)
    rows_of_runs = ((run_id, rows.filter(pc.equal(rows["run_id"], run_id))) for run_id in run_ids)
    return {run_id: LogCoverage.of(records_of(PartitionHealth, logs)) for run_id, logs in rows_of_runs}
