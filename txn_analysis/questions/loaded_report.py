"""The report of a finished run again, and the series behind its pictures, from the tables.

However long the logs are, only some hundred points are kept for each of some tens of partitions and transactional ids,
the worst first (`pictures.sql`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from txn_analysis.coordinator.history import History
from txn_analysis.kafka.names import INTERNAL_TOPICS
from txn_analysis.kafka.transactions import TOMBSTONE, StateRecord
from txn_analysis.plan.standing import TOLD, ToldFinding
from txn_analysis.questions.filters import Filters, check_seen
from txn_analysis.questions.stats import slices_of
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import by_damage
from txn_analysis.report.model import AuditReport
from txn_analysis.report.pictures import (
    IdTimeline,
    LogPoint,
    MarkerPoint,
    NightPoint,
    PartitionTimeline,
    Pictures,
    RunPoint,
    StateChange,
)
from txn_analysis.runs.ask import ask, is_one_of, row_values, views_in
from txn_analysis.runs.asked_states import of_ids
from txn_analysis.runs.decisions import accepted_of
from txn_analysis.runs.nights import since_last_night
from txn_analysis.runs.run_tables import RunTables, run_tables
from txn_analysis.settings import Settings
from txn_analysis.tables import FINDINGS, INPUTS, PartitionHealth
from txn_analysis.tables.finding_rows import SHOWN, FindingRows
from txn_analysis.tables.inputs import ReadInput
from txn_analysis.warehouse.delta_tables import Warehouse

MOST_PARTITIONS = 24
MOST_IDS = 24
MOST_CHANGES = 60
MOST_RUNS = 30

LOG_SLICES = 200
MARKER_SLICES = 50

_SQL = Path(__file__).with_name("pictures.sql")
_PLACE = ("topic", "partition")
Place = tuple[str, int]


class Shown(NamedTuple):
    """Which offsets of a partition are shown: from the first one to before the other."""

    from_offset: int
    to_offset: int


def load_report(
    warehouse: Warehouse, settings: Settings, run_id: str | None = None, topics: tuple[str, ...] = ()
) -> AuditReport:
    """The report of a run; of the cluster's last one where none is named; of some topics, or of all.

    Raises:
        ConfigError: the run never saw one of the topics, or the file of `accepted` was not understood.
        WarehouseError: there is no such warehouse, or no such run.
    """
    tables = run_tables(warehouse, settings.cluster, run_id)
    run = tables.run
    check_seen(tables, Filters(topics))
    inputs = warehouse.records(ReadInput, INPUTS, cluster=[run.cluster], capture=[run.capture])
    findings = FindingRows.together([*map(FindingRows.of_batch, tables.batches(FINDINGS, *SHOWN))])
    since = since_last_night(warehouse, run, findings)
    accepted, forgotten = accepted_of(warehouse, settings, run, findings), tables.forgotten_captures
    return build_report(
        run, inputs, tables.health(), findings, topics, forgotten, since=since, accepted=accepted, prunes=tables.prunes
    )


def pictures(warehouse: Warehouse, report: AuditReport) -> Pictures:
    """The series behind the pictures of a report whose run is in the tables."""
    tables = run_tables(warehouse, report.run.cluster, report.run.run_id)
    ids = _worst_ids(report)
    partitions = _partition_timelines(tables, worst_places(report), report.run.as_of_ms)
    return Pictures(partitions, _id_timelines(of_ids(tables.finished, ids), ids), run_points(tables), slices_of(tables))


def worst_places(report: AuditReport) -> dict[Place, Shown]:
    """The partitions to show, worst first, each with the offsets to show: as many before its last stable offset as
    after. Partitions with nothing but transactions in progress are not shown.
    """
    partitions = report.partitions_by_place
    verdicts = defaultdict(list)
    for one in report.findings.of_verdict(*TOLD).records(ToldFinding):
        verdicts[one.topic, one.partition].append(one.verdict.severity)
    ranked = sorted(verdicts, key=lambda place: (-max(verdicts[place]), -_hidden(partitions.get(place)), place))
    windows = {place: _window(partitions.get(place)) for place in ranked}
    return dict([(place, window) for place, window in windows.items() if window is not None][:MOST_PARTITIONS])


def _hidden(item: PartitionHealth | None) -> int:
    return 0 if item is None else item.hidden_record_count or 0


def _window(item: PartitionHealth | None) -> Shown | None:
    if item is None or item.first_offset is None or item.end_offset is None or item.last_stable_offset is None:
        return None
    stable, end = item.last_stable_offset, item.end_offset
    return Shown(max(item.first_offset, 2 * stable - end), end) if end > stable else None


def _worst_ids(report: AuditReport) -> list[str]:
    ids = by_damage(report, report.findings.of_verdict(*TOLD)).column("transactional_id").unique()
    return [name for name in ids.to_pylist() if name is not None][:MOST_IDS]


def _of(places: Mapping[Place, Shown]) -> dict[str, list[Any]]:
    return {name: sorted({place[at] for place in places}) for at, name in enumerate(_PLACE)}


def run_points(tables: RunTables) -> tuple[RunPoint, ...]:
    """One point per capture of the cluster up to this run: what its last run found hidden, and how many hung."""
    return tuple(RunPoint(**row) for row in _of_nights(tables, "run_points", RunPoint).to_pylist())


def _of_nights(tables: RunTables, view: str, kind: Any, *more: str, **places: Any) -> pa.Table:
    """The rows of a view, oldest night first: the fields of a kind of points, and more columns."""
    shown = ask(tables.finished, "SELECT run_id FROM shown_runs", views_in(_SQL, most=MOST_RUNS))
    runs = is_one_of({"run_id": shown["run_id"].to_pylist()})  # so that the files of no other run are read
    views = views_in(_SQL, most=MOST_RUNS, runs=runs, places=is_one_of(places))
    names = ", ".join((*more, *kind._fields))
    return ask(tables.finished, f"SELECT {names} FROM {view} ORDER BY coalesce(as_of_ms, 0), run_number", views)  # noqa: S608 ours


def _partition_timelines(
    tables: RunTables, places: Mapping[Place, Shown], as_of_ms: int | None
) -> tuple[PartitionTimeline, ...]:
    if not places:
        return ()
    views = series(places, as_of_ms)
    points = _by_place(ask(tables.finished, "SELECT * FROM timed_points ORDER BY end_offset", views))
    markers = _by_place(ask(tables.finished, "SELECT * FROM markers ORDER BY `offset`", views))
    nights = _by_place(_of_nights(tables, "nights", NightPoint, "topic", "`partition`", **_of(places)))
    return tuple(_timeline(place, points[place], markers[place], nights[place]) for place in places)


def series(places: Mapping[Place, Shown], as_of_ms: int | None) -> dict[str, str]:
    """The views of `pictures.sql`, for some partitions and what is shown of each.

    Args:
        places: the partitions.
        as_of_ms: when the files were copied; a later timestamp is not believed.
    """
    names = (*_PLACE, *Shown._fields, "offset_count")
    rows = ((*place, *shown, float(shown.to_offset - shown.from_offset)) for place, shown in places.items())
    views = views_in(
        _SQL,
        places=is_one_of(_of(places)),
        is_brokers=is_one_of({"b.topic": INTERNAL_TOPICS}),
        as_of_ms=as_of_ms or 0,
        slices=LOG_SLICES,
        marker_slices=MARKER_SLICES,
    )
    return {"shown": row_values(names, rows), **views}


def _by_place(rows: pa.Table) -> defaultdict[Place, list[dict[str, Any]]]:
    rows_by_place: defaultdict[Place, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.to_pylist():
        rows_by_place[row.pop("topic"), row.pop("partition")].append(row)
    return rows_by_place


def _timeline(
    place: Place, points: list[dict[str, Any]], markers: list[dict[str, Any]], nights: list[dict[str, Any]]
) -> PartitionTimeline:
    return PartitionTimeline(
        *place,
        any(row["is_broker_time"] for row in points),
        tuple(LogPoint(*(row[name] for name in LogPoint._fields)) for row in points),
        tuple(MarkerPoint(**row) for row in markers),
        tuple(NightPoint(**row) for row in nights),
    )


def _id_timelines(known: Mapping[str, History], ids: Iterable[str]) -> tuple[IdTimeline, ...]:
    timelines = (IdTimeline(name, state_changes(known.get(name, ()))) for name in ids)
    return tuple(timeline for timeline in timelines if timeline.changes)


def state_changes(history: Iterable[StateRecord]) -> tuple[StateChange, ...]:
    """The last records of one transactional id, oldest first."""
    changes = []
    for record in list(history)[-MOST_CHANGES:]:
        time_ms = record.recorded_ms if record.last_update_ms is None else record.last_update_ms
        state = TOMBSTONE if record.is_tombstone else record.state
        if time_ms is not None and state is not None:
            places = len(record.topic_partitions)
            changes.append(StateChange(time_ms, state, record.producer_id, record.producer_epoch, places))
    return tuple(changes)
