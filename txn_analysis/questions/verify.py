"""Before and after, over the runs of one cluster: what became of every recommended abort, and since when each hung.

The runs behind a run are those of `runs.nights`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from txn_analysis.columns.records import records_of
from txn_analysis.errors import WarehouseError
from txn_analysis.kafka.transactions import PREPARED, StateRecord
from txn_analysis.plan.repair import (
    After,
    Before,
    Outcome,
    ProducerPlace,
    Recommended,
    SeenEnded,
    SeenPartition,
    outcome_of,
)
from txn_analysis.plan.standing import Standing
from txn_analysis.runs.ask import ask, is_one_of
from txn_analysis.runs.asked_states import states_naming
from txn_analysis.runs.decisions import accepted_of
from txn_analysis.runs.nights import runs_behind
from txn_analysis.runs.run_tables import RunTables, run_tables
from txn_analysis.settings import Settings
from txn_analysis.tables import ABORT_PLAN, FINDINGS, PARTITION_HEALTH, RUNS, Finding
from txn_analysis.tables.findings import SINGLE_VALUES
from txn_analysis.tables.inputs import RunRecord
from txn_analysis.text import escape
from txn_analysis.verdict import Verdict
from txn_analysis.warehouse.delta_tables import Warehouse

_PRODUCER = ("topic", "partition", "producer_id")
_WHY = ("missing_evidence", "cause")
_PlaceInRun = tuple[str, str, int]


@dataclass(frozen=True)
class Nights:
    """One run of a cluster, from which one looks back, and the runs behind it, oldest first."""

    tables: RunTables
    earlier: tuple[RunRecord, ...]

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """All of them, oldest first: the one that looks is the last."""
        return (*self.earlier, self.tables.run)

    @cached_property
    def order(self) -> dict[str, int]:
        """The place of each run, by its id."""
        return {run.run_id: number for number, run in enumerate(self.runs)}

    @cached_property
    def hanging(self) -> list[Finding]:
        """Every finding, in any of the runs, of a producer and partition that one of them calls hanging."""
        hung = self.tables.warehouse.rows(FINDINGS, *_PRODUCER, run_id=[*self.order], verdict=[Verdict.HANGING.value])
        return self.findings_of([*self.order], set(zip(*(column.to_pylist() for column in hung.columns), strict=True)))

    def findings_of(self, runs: Sequence[str], places: Collection[ProducerPlace]) -> list[Finding]:
        """The findings, in some of the runs, of some producers on their partitions."""
        names, producers = (*SINGLE_VALUES, *_WHY), sorted({producer_id for *_, producer_id in places})
        rows = self.tables.warehouse.rows(FINDINGS, *names, run_id=runs, producer_id=producers)
        return [finding for finding in records_of(Finding, rows) if finding.producer_place in places]

    def health_of(
        self, runs: Sequence[str], findings: Iterable[Finding | Recommended]
    ) -> dict[_PlaceInRun, SeenPartition]:
        """The health of the partitions of some findings in some of the runs, by run, topic and partition."""
        wanted = {(finding.topic, finding.partition) for finding in findings}
        topics = sorted({topic for topic, _ in wanted})
        known = self.tables.warehouse.records(SeenPartition, PARTITION_HEALTH, run_id=runs, topic=topics)
        return {(p.run_id, p.topic, p.partition): p for p in known if (p.topic, p.partition) in wanted}

    def last_plans(self, plans: Sequence[RunRecord]) -> list[Recommended]:
        """Of some runs' recommended aborts each once, as the last of these runs recommended it.

        The runs themselves name what they planned, so that the plans of those few are read that are the last of any.
        """
        warehouse, last = self.tables.warehouse, dict[str, str]()
        long = {run.run_id for run in plans if run.planned is None}
        names = warehouse.rows(ABORT_PLAN, "run_id", "finding_id", run_id=sorted(long)).to_pylist() if long else []
        of_long: defaultdict[str, list[str]] = defaultdict(list)
        for row in names:
            of_long[row["run_id"]].append(row["finding_id"])
        for run in plans:
            last |= dict.fromkeys(of_long[run.run_id] if run.planned is None else run.planned, run.run_id)
        runs = sorted(set(last.values()))
        every = warehouse.records(Recommended, ABORT_PLAN, run_id=runs) if runs else []
        return [one for one in every if last.get(one.finding_id) == one.run_id]


@dataclass(frozen=True)
class Seen:
    """What some runs saw of the producers and partitions of recommended aborts.

    `health` is by run, topic and partition.
    """

    findings: list[Finding]
    health: dict[_PlaceInRun, SeenPartition]


def nights(warehouse: Warehouse, cluster: str, run_id: str | None = None) -> Nights:
    """A run, by default the cluster's last one, with the runs behind it.

    Raises:
        WarehouseError: there is no such run.
    """
    tables = run_tables(warehouse, cluster, run_id)
    return Nights(tables, tuple(runs_behind(warehouse, tables.run)))


def verify(known: Nights, since: str | None = None) -> list[Outcome]:
    """What became of the recommended aborts, sorted by topic, partition and start.

    Args:
        known: the run that looks, and those behind it.
        since: the run whose plan is looked at; by default every abort that a run behind recommended, unless one of
            those runs saw it done already.

    Raises:
        WarehouseError: `since` is neither behind nor the run itself.
    """
    if since == known.tables.run.run_id:
        return []  # no capture is later
    if since is not None and since not in {run.run_id for run in known.earlier}:
        known.tables.of(since)  # one that is not there at all is refused as such
        raise WarehouseError(
            f"run {escape(since)} is not behind run {known.tables.run.run_id}: a plan is verified by a later capture"
        )
    plans = [run for run in known.earlier if since in {None, run.run_id}]
    outcomes = _outcomes(known, plans)
    seen = _seen_done(known, outcomes) if since is None else set()
    return [outcome for outcome in outcomes if outcome.record.finding_id not in seen]


def _seen_done(known: Nights, outcomes: Iterable[Outcome]) -> set[str]:
    """The findings of outcomes that are done, and that a run behind saw done, after the one that recommended it."""
    waiting = [(one.record, one.marker_ms) for one in outcomes if one.repair.is_done and one.marker_ms is not None]
    seen = set[str]()
    for run in reversed(known.earlier):  # the newest one saw most
        copied_ms, number = run.as_of_ms or 0, known.order[run.run_id]
        waiting = [one for one in waiting if one[1] <= copied_ms and known.order[one[0].run_id] < number]
        if not waiting:
            break
        health = known.health_of([run.run_id], [record for record, _ in waiting])
        covered = {(one.topic, one.partition) for one in health.values() if one.is_in_capture}
        seen |= {record.finding_id for record, _ in waiting if (record.topic, record.partition) in covered}
        waiting = [one for one in waiting if one[0].finding_id not in seen]
    return seen


def unaccepted(known: Nights, outcomes: Iterable[Outcome], settings: Settings) -> list[Outcome]:
    """The outcomes without those that are not done, and whose finding in the run that looks somebody accepted."""
    run, findings = known.tables.run, known.tables.findings()
    decisions = accepted_of(known.tables.warehouse, settings, run, findings)
    accepted = {one.finding_id for one in decisions if one.standing is Standing.ACCEPTED}
    return [one for one in outcomes if one.repair.is_done or one.record.finding_id not in accepted]


@dataclass(frozen=True)
class Unverified:
    """Aborts that a run recommends and that no later capture of the warehouse can tell anything of."""

    run_id: str
    count: int
    is_dated: bool


def unverified(known: Nights, outcomes: Iterable[Outcome], since: str | None = None) -> Unverified | None:
    """What cannot be verified yet: the last run's own plan, as no capture is later; None where that is empty.

    Without a moment of the copy no run is known to be behind another, and any plan of the cluster is as open.

    Args:
        known: the run that looks, and those behind it.
        outcomes: what it sees of earlier plans.
        since: the run whose plan is asked about; by default all of them.
    """
    last, warehouse, runs = known.tables.run, known.tables.warehouse, [known.tables.run.run_id]
    if since not in {None, last.run_id}:
        return None
    if last.as_of_ms is None:
        runs = [run.run_id for run in warehouse.records(RunRecord, RUNS, cluster=[last.cluster])]
    plan = warehouse.rows(ABORT_PLAN, "finding_id", run_id=runs)["finding_id"].to_pylist()
    number = len({*plan} - {outcome.record.finding_id for outcome in outcomes})
    return Unverified(last.run_id, number, last.as_of_ms is not None) if number else None


@dataclass(frozen=True)
class Past:
    """One transaction that a run called hanging: its findings, oldest run first, and what became of it.

    `ended_in` is the first run, after those that saw it open, whose capture holds the partition; None where it is not
    done. `times` counts how many transactions of the same transactional id hung for the same cause; those without an id
    are counted by cause and partition.
    """

    outcome: Outcome
    findings: tuple[Finding, ...]
    ended_in: str | None
    times: int = 0

    @property
    def cause(self) -> str | None:
        """Why it hangs, by the last run that saw it; None where that run was made before causes were told."""
        last = self.findings[-1].cause
        return None if last is None else last.name

    @property
    def recommended_in(self) -> str:
        """The first run that called it hanging."""
        return next(finding.run_id for finding in self.findings if finding.verdict is Verdict.HANGING)

    @property
    def kind(self) -> tuple[str, str]:
        """Whose it is, and why it hangs."""
        record = self.outcome.record
        return record.transactional_id or record.topic_partition, self.cause or record.rule


def past(known: Nights) -> list[Past]:
    """Every transaction that one of the runs called hanging, sorted by topic, partition and start."""
    hung_transactions = []
    seen = Seen(known.hanging, known.health_of([*known.order], known.hanging))
    of_finding: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in known.hanging:
        of_finding[finding.finding_id].append(finding)
    for outcome in _outcomes(known, known.runs, seen):
        findings_of_id = of_finding[outcome.record.finding_id]
        findings = tuple(sorted(findings_of_id, key=lambda finding: known.order[finding.run_id]))
        hung_transactions.append(Past(outcome, findings, _ended_in(outcome, findings, known, seen)))
    times = Counter(one.kind for one in hung_transactions)
    return [replace(one, times=times[one.kind]) for one in hung_transactions]


def _ended_in(outcome: Outcome, findings: Sequence[Finding], known: Nights, seen: Seen) -> str | None:
    if not outcome.repair.is_done:
        return None
    place = (outcome.record.topic, outcome.record.partition)
    for run in known.runs[known.order[findings[-1].run_id] + 1 :]:
        health = seen.health.get((run.run_id, *place))
        if health is not None and health.is_in_capture:
            return run.run_id
    return None


def _outcomes(known: Nights, plans: Sequence[RunRecord], seen: Seen | None = None) -> list[Outcome]:
    """What became of what some runs recommended; where several recommended the same, the last of them counts.

    Args:
        known: the run that looks, and those behind it.
        plans: those of them whose plans are looked at.
        seen: what the runs saw, where that is known already.
    """
    records = known.last_plans(plans)
    if not records:
        return []
    if seen is None:
        runs = sorted({known.tables.run.run_id, *(record.run_id for record in records)})
        findings = known.findings_of(runs, {record.place for record in records})
        seen = Seen(findings, known.health_of(runs, findings))
    ended = _ended(known, records)
    # The coordinator's records that say how a transaction of these producers ends.
    history = states_naming(known.tables.finished, {record.producer_id for record in records}, state=PREPARED)
    return [
        outcome_of(_before(record, known, seen), _after(record, known, seen, ended, history))
        for record in sorted(records, key=lambda r: (r.topic, r.partition, r.txn_start_offset))
    ]


def _ended(known: Nights, records: Iterable[Recommended]) -> list[SeenEnded]:
    places = {record.place for record in records}
    wanted = is_one_of({name: {place[at] for place in places} for at, name in enumerate(_PRODUCER)})
    columns = ", ".join(SeenEnded._fields)
    rows = ask(known.tables.finished, f"SELECT {columns} FROM ended_transactions WHERE {wanted}")  # noqa: S608 ours
    return [ended for ended in records_of(SeenEnded, rows) if ended.place in places]


def _before(record: Recommended, known: Nights, seen: Seen) -> Before:
    run = known.runs[known.order[record.run_id]]
    finding = next(f for f in seen.findings if (f.run_id, f.finding_id) == (record.run_id, record.finding_id))
    health = seen.health[record.run_id, record.topic, record.partition]
    return Before(record, finding.last_offset, health.last_stable_offset, run.as_of_ms)


def _after(record: Recommended, known: Nights, seen: Seen, ended: list[SeenEnded], history: list[StateRecord]) -> After:
    run_id = known.tables.run.run_id
    return After(
        seen.health.get((run_id, record.topic, record.partition)),
        tuple(f for f in seen.findings if f.run_id == run_id and f.producer_place == record.place),
        tuple(e for e in ended if e.place == record.place),
        tuple(state for state in history if state.names(record.producer_id)),
        known.tables.finished.settings.max_clock_skew_ms,
    )
