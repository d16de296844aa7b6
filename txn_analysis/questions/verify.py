"""Before and after, over the runs of one cluster: what became of every recommended abort, and since when each hung.

The runs behind a run are those of captures that were made before its own, by their `as_of_ms`; where a capture was
judged more than once, its last run counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from txn_analysis.errors import WarehouseError
from txn_analysis.kafka.transactions import PREPARED
from txn_analysis.plan.repair import After, Before, Outcome, Recommended, outcome_of
from txn_analysis.runs.asked_states import states_naming
from txn_analysis.runs.ended_transactions import ended_listed
from txn_analysis.runs.past_run import finished_run
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.tables import ABORT_PLAN, FINDINGS, PARTITION_HEALTH, RUNS
from txn_analysis.text.escape import escape
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.runs.past_run import PastRun
    from txn_analysis.storage.stored import Stored
    from txn_analysis.tables import Table

Row = dict[str, Any]

_PRODUCER = ("topic", "partition", "producer_id")
_FINDING_COLUMNS: tuple[str, ...] = (
    *("run_id", "finding_id", *_PRODUCER, "txn_start_offset", "last_offset", "verdict", "rule", "missing_evidence"),
    *("appended_before_ms", "cause"),
)
_HEALTH_COLUMNS: tuple[str, ...] = (
    *("run_id", "topic", "partition", "is_in_capture", "first_offset", "end_offset", "log_start_offset"),
    "last_stable_offset",
)
_ENDED_COLUMNS: tuple[str, ...] = (
    *(*_PRODUCER, "txn_start_offset", "last_offset", "outcome", "end_offset", "end_timestamp_ms", "producer_epoch"),
    *("end_producer_epoch", "coordinator_epoch"),
)


@dataclass(frozen=True)
class Nights:
    """The runs of one cluster up to one of them, oldest first: that one is the last."""

    warehouse: Stored
    runs: tuple[Row, ...]

    @property
    def last(self) -> Row:
        """The run from which one looks back."""
        return self.runs[-1]

    @cached_property
    def last_run(self) -> PastRun:
        """The same with the settings and the evidence that it had."""
        return finished_run(self.warehouse, self.last)

    @property
    def earlier(self) -> tuple[Row, ...]:
        """The runs before it."""
        return self.runs[:-1]

    def listed(self, table: Table, *names: str, **one_of: Collection[Any]) -> list[Row]:
        """The rows of all these runs in a result table, see `Stored.listed`."""
        return self.warehouse.listed(table, *names, run_id=[run["run_id"] for run in self.runs], **one_of)

    @cached_property
    def hanging(self) -> list[Row]:
        """Every finding, in any of the runs, of a producer and partition that one of them calls hanging."""
        ever = {_place(row) for row in self.listed(FINDINGS, *_PRODUCER, verdict=[Verdict.HANGING.value])}
        found = self.listed(FINDINGS, *_FINDING_COLUMNS, producer_id=sorted({place[-1] for place in ever}))
        return [row for row in found if _place(row) in ever]

    @cached_property
    def health(self) -> dict[tuple[str, str, int], Row]:
        """The health of the partitions of these findings, by run, topic and partition."""
        wanted = {(row["topic"], row["partition"]) for row in self.hanging}
        rows = self.listed(PARTITION_HEALTH, *_HEALTH_COLUMNS, topic=sorted({topic for topic, _ in wanted}))
        known = {(row["run_id"], row["topic"], row["partition"]): row for row in rows}
        return {key: row for key, row in known.items() if key[1:] in wanted}


def nights(warehouse: Stored, cluster: str, run_id: str | None = None) -> Nights:
    """A run, by default the cluster's last one, with the runs behind it.

    Raises:
        WarehouseError: there is no such run.
    """
    last = run_tables(warehouse, cluster, run_id).run
    runs = warehouse.listed(RUNS, cluster=[last["cluster"]])
    newest = {run["capture"]: run for run in sorted(runs, key=lambda run: int(run["run_number"]))}
    return Nights(warehouse, (*sorted(_behind(newest.values(), last), key=lambda run: int(run["as_of_ms"])), last))


def _behind(runs: Iterable[Row], last: Row) -> list[Row]:
    """Also those whose capture came into the warehouse after the last one: what they saw was earlier."""
    if last["as_of_ms"] is None:
        return []
    return [run for run in runs if run["as_of_ms"] is not None and run["as_of_ms"] < last["as_of_ms"]]


def verify(known: Nights, since: str | None = None) -> list[Outcome]:
    """What became of the recommended aborts, sorted by topic, partition and start.

    Args:
        known: the run that looks, and those behind it.
        since: the run whose plan is looked at; by default every abort that a run behind recommended, unless the newest
            of those runs saw it done already.

    Raises:
        WarehouseError: `since` is neither behind nor the run itself.
    """
    if since == known.last["run_id"]:
        return []  # no capture is later
    if since is not None and since not in {run["run_id"] for run in known.earlier}:
        run_tables(known.warehouse, known.last["cluster"], since)  # one that is not there at all is refused as such
        raise WarehouseError(
            f"run {escape(since)} is not behind run {known.last['run_id']}: a plan is verified by a later capture"
        )
    plans = [run for run in known.earlier if since in {None, run["run_id"]}]
    outcomes = _outcomes(known, plans)
    if since is None and known.earlier:
        outcomes = [outcome for outcome in outcomes if not _was_known(outcome, known.earlier[-1]["as_of_ms"])]
    return outcomes


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
    is_dated = known.last["as_of_ms"] is not None
    last = known.last["run_id"]
    if since not in {None, last}:
        return None
    runs = (
        [last] if is_dated else [run["run_id"] for run in known.warehouse.listed(RUNS, cluster=[known.last["cluster"]])]
    )
    plan = {row["finding_id"] for row in known.warehouse.listed(ABORT_PLAN, "finding_id", run_id=runs)}
    number = len(plan - {outcome.record.finding_id for outcome in outcomes})
    return Unverified(last, number, is_dated) if number else None


def _was_known(outcome: Outcome, as_of_ms: int | None) -> bool:
    if outcome.marker_ms is None or as_of_ms is None:
        return False
    return outcome.repair.is_done and outcome.marker_ms <= as_of_ms


@dataclass(frozen=True)
class Past:
    """One transaction that a run called hanging: its findings, oldest run first, and what became of it.

    `recommended_in` and `ended_in` are runs; `ended_in` is the first one, after those that saw it open, whose capture
    holds the partition.
    """

    outcome: Outcome
    findings: tuple[Row, ...]
    recommended_in: str
    ended_in: str | None
    times: int

    @property
    def cause(self) -> str | None:
        """Why it hangs, by the last run that saw it; None where that run was made before causes were told."""
        return _cause(self.findings)


def past(known: Nights) -> list[Past]:
    """Every transaction that one of the runs called hanging, sorted by topic, partition and start.

    `times` counts how many transactions of the same transactional id hung for the same cause; those without an id
    are counted by cause and partition.
    """
    order = [run["run_id"] for run in known.runs]
    found = [
        (outcome, tuple(sorted(_findings_of(outcome.record, known), key=lambda row: order.index(row["run_id"]))))
        for outcome in _outcomes(known, known.runs)
    ]
    times = Counter(_kind(outcome.record, findings) for outcome, findings in found)
    return [
        Past(
            outcome,
            findings,
            _first_hanging(findings),
            _ended_in(outcome, findings, known),
            times[_kind(outcome.record, findings)],
        )
        for outcome, findings in found
    ]


def _kind(record: Recommended, findings: Sequence[Row]) -> tuple[str, str]:
    return record.transactional_id or record.topic_partition, _cause(findings) or record.rule


def _cause(findings: Sequence[Row]) -> str | None:
    cause = findings[-1]["cause"]
    return None if cause is None else str(cause["name"])


def _findings_of(record: Recommended, known: Nights) -> list[Row]:
    return [row for row in known.hanging if row["finding_id"] == record.finding_id]


def _first_hanging(findings: Sequence[Row]) -> str:
    return next(str(row["run_id"]) for row in findings if row["verdict"] == Verdict.HANGING.value)


def _ended_in(outcome: Outcome, findings: Sequence[Row], known: Nights) -> str | None:
    if not outcome.repair.is_done:
        return None
    place = (outcome.record.topic, outcome.record.partition)
    order = [run["run_id"] for run in known.runs]
    after = order[order.index(findings[-1]["run_id"]) + 1 :]
    covering = (run_id for run_id in after if known.health.get((run_id, *place), {}).get("is_in_capture"))
    return next(covering, None)


def _outcomes(known: Nights, plans: Sequence[Row]) -> list[Outcome]:
    """What became of what some runs recommended; where several recommended the same, the last of them counts."""
    records = _recommended(known, plans)
    if not records:
        return []
    ended, history = _ended(known, records), _decisions(known, records)
    skew_ms = known.last_run.settings.max_clock_skew_ms
    return [
        outcome_of(_before(record, known), _after(record, known, ended, history, skew_ms))
        for record in sorted(records, key=lambda r: (r.topic, r.partition, r.txn_start_offset))
    ]


def _recommended(known: Nights, plans: Sequence[Row]) -> list[Recommended]:
    order = {run["run_id"]: number for number, run in enumerate(plans)}
    rows = known.warehouse.listed(ABORT_PLAN, run_id=[*order]) if order else []
    newest = {row["finding_id"]: row for row in sorted(rows, key=lambda row: order[row["run_id"]])}
    return [Recommended.of(row) for row in newest.values()]


def _ended(known: Nights, records: Iterable[Recommended]) -> list[Row]:
    places = {(record.topic, record.partition, record.producer_id) for record in records}
    wanted = {name: sorted({place[at] for place in places}) for at, name in enumerate(_PRODUCER)}
    return [row for row in ended_listed(known.last_run, *_ENDED_COLUMNS, **wanted) if _place(row) in places]


def _decisions(known: Nights, records: Iterable[Recommended]) -> list[StateRecord]:
    """The coordinator's records that say how a transaction of these producers ends."""
    wanted = {record.producer_id for record in records}
    found = states_naming(known.last_run, wanted, state=PREPARED)
    return [record for own in found.histories(wanted).values() for record in own]


def _before(record: Recommended, known: Nights) -> Before:
    run = next(run for run in known.runs if run["run_id"] == record.run_id)
    finding = next(
        row for row in known.hanging if (row["run_id"], row["finding_id"]) == (record.run_id, record.finding_id)
    )
    health = known.health[record.run_id, record.topic, record.partition]
    return Before(record, finding["last_offset"], health["last_stable_offset"], run["as_of_ms"])


def _after(record: Recommended, known: Nights, ended: list[Row], history: list[StateRecord], skew_ms: int) -> After:
    place = (record.topic, record.partition, record.producer_id)
    run_id = known.last["run_id"]
    return After(
        known.health.get((run_id, record.topic, record.partition)),
        tuple(row for row in known.hanging if row["run_id"] == run_id and _place(row) == place),
        tuple(row for row in ended if _place(row) == place),
        tuple(state for state in history if state.names(record.producer_id)),
        skew_ms,
    )


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _PRODUCER)
