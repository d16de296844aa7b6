"""The report of a finished run again, and the series behind its pictures, from the tables.

However long the logs are, only some hundred points are kept for each of some tens of partitions and transactional ids,
the worst first (`log_slices`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.kafka.names import INTERNAL_TOPICS, LOG_APPEND_TIME, is_brokers_time
from txn_analysis.kafka.transactions import TOMBSTONE
from txn_analysis.plan.standing import TOLD, ToldFinding
from txn_analysis.questions.filters import Filters, check_seen
from txn_analysis.questions.log_slices import Place, Shown, flags, log_points, marker_points
from txn_analysis.questions.stats_columns import slices_of
from txn_analysis.report.build import build_report
from txn_analysis.report.figures import by_damage
from txn_analysis.report.pictures import (
    IdTimeline,
    LogPoint,
    NightPoint,
    PartitionTimeline,
    Pictures,
    RunPoint,
    StateChange,
)
from txn_analysis.runs.asked_states import of_ids
from txn_analysis.runs.decisions import accepted_of
from txn_analysis.runs.nights import since_last_night
from txn_analysis.runs.past_run import ended_batches
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.tables import FINDINGS, INPUTS, LOG_BATCHES, PARTITION_HEALTH, RUNS, TRANSACTIONS
from txn_analysis.tables.finding_rows import SHOWN, FindingRows
from txn_analysis.tables.inputs import ReadInput, RunRecord
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txn_analysis.coordinator.history import History
    from txn_analysis.kafka.transactions import StateRecord
    from txn_analysis.questions.log_slices import EndPoint
    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import MarkerPoint
    from txn_analysis.runs.past_run import Evidence
    from txn_analysis.runs.run_tables import RunTables
    from txn_analysis.settings import Settings
    from txn_analysis.storage.warehouse import Warehouse
    from txn_analysis.tables import PartitionHealth

MOST_PARTITIONS = 24
MOST_IDS = 24
MOST_CHANGES = 60
MOST_RUNS = 30

_PLACE = ("topic", "partition")
_APPENDS = (*_PLACE, "base_offset", "last_offset", "moment_ms", "timestamp_ms")
_OF_BATCHES = (*_PLACE, "base_offset", "last_offset", "max_timestamp_ms", "is_control", "timestamp_type")
_OF_TRANSACTIONS = (*_PLACE, "txn_start_offset", "end_offset", "end_timestamp_ms", "outcome")


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
    own = warehouse.records(ReadInput, INPUTS, cluster=[run.cluster], capture=[run.capture])
    findings = FindingRows.of_batches(tables.batches(FINDINGS, *SHOWN))
    since = since_last_night(warehouse, run, findings)
    accepted, forgotten = accepted_of(warehouse, settings, run, findings), tables.forgotten_captures
    return build_report(
        run, own, tables.health(), findings, topics, forgotten, since=since, accepted=accepted, prunes=tables.prunes
    )


def names_of(warehouse: Warehouse, report: AuditReport) -> Iterator[tuple[str, str]]:
    """Every topic and transactional id that the run of a report could see, each behind `topic` or `id`."""
    tables = run_tables(warehouse, report.run.cluster, report.run.run_id)
    yield from (("topic", item.topic) for item in tables.health())
    for record in tables.current_states():
        yield "id", record.transactional_id


def pictures(warehouse: Warehouse, report: AuditReport) -> Pictures:
    """The series behind the pictures of a report whose run is in the tables."""
    tables = run_tables(warehouse, report.run.cluster, report.run.run_id)
    ids = _worst_ids(report)
    partitions = _partition_timelines(tables, worst_places(report), report.run.as_of_ms)
    ended = slices_of(lambda: ended_batches(tables.finished, "end_timestamp_ms", "outcome"))
    return Pictures(partitions, _id_timelines(of_ids(tables.finished, ids), ids), run_points(tables), ended)


def worst_places(report: AuditReport) -> dict[Place, Shown]:
    """The partitions to show, worst first, each with the offsets to show: as many before its last stable offset as
    after. Partitions with nothing but transactions in progress are not shown.
    """
    partitions = report.partitions_by_place
    verdicts = defaultdict(list)
    for one in report.findings.of_verdict(*TOLD).told(ToldFinding):
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


def _batches(evidence: Evidence, places: Mapping[Place, Shown]) -> Iterator[pa.RecordBatch]:
    """Per batch: offsets, the time of a broker's clock if it has one, any other."""
    broker_written = pa.array(sorted(INTERNAL_TOPICS), pa.string())
    for batch in evidence.batches(LOG_BATCHES, *_OF_BATCHES, **_of(places)):
        by_broker = is_brokers_time(
            is_control=flags(batch["is_control"]),
            is_append_time=flags(pc.equal(batch["timestamp_type"], LOG_APPEND_TIME)),
            is_brokers_topic=flags(pc.is_in(batch["topic"], broker_written)),
        )
        timestamps = batch["max_timestamp_ms"]
        moments = pc.if_else(pa.array(by_broker), timestamps, pa.scalar(None, pa.int64()))
        columns = [*(batch[name] for name in _APPENDS[:4]), moments, timestamps]
        yield pa.RecordBatch.from_arrays(columns, names=[*_APPENDS])


def _transactions(tables: RunTables, places: Mapping[Place, Shown]) -> Iterator[pa.RecordBatch]:
    yield from tables.batches(TRANSACTIONS, *_OF_TRANSACTIONS, outcome=["open"], **_of(places))
    yield from ended_batches(tables.finished, *_OF_TRANSACTIONS, **_of(places))


def _of(places: Mapping[Place, Shown]) -> dict[str, list[Any]]:
    return {name: sorted({place[at] for place in places}) for at, name in enumerate(_PLACE)}


class _Hidden(NamedTuple):
    """How much of a partition is hidden, as a run saw it."""

    run_id: str
    open_transaction_count: int
    hidden_record_count: int | None


def run_points(tables: RunTables) -> tuple[RunPoint, ...]:
    """One point per capture of the cluster up to this run: what its last run found hidden, and how many hung."""
    shown = _shown_runs(tables)
    warehouse, ids = tables.warehouse, [run.run_id for run in shown]
    health = warehouse.records(_Hidden, PARTITION_HEALTH, run_id=ids)
    blocked = [seen for seen in health if seen.open_transaction_count > 0]
    hidden, unknown = Counter[str](), Counter(seen.run_id for seen in blocked if seen.hidden_record_count is None)
    for seen in blocked:
        hidden[seen.run_id] += seen.hidden_record_count or 0
    found = warehouse.held(FINDINGS, "run_id", run_id=ids, verdict=[Verdict.HANGING.value])
    hanging = Counter(found["run_id"].to_pylist())
    return tuple(RunPoint(r.run_id, r.as_of_ms, hidden[r.run_id], unknown[r.run_id], hanging[r.run_id]) for r in shown)


def _shown_runs(tables: RunTables) -> list[RunRecord]:
    """The newest captures' last runs up to this one, oldest first; those without a moment of the copy before all."""
    every = tables.warehouse.records(RunRecord, RUNS, cluster=[tables.run.cluster])
    upto = sorted((run for run in every if run.run_number <= tables.run.run_number), key=attrgetter("run_number"))
    last = {run.capture: run for run in upto}.values()
    newest = sorted(last, key=lambda run: (run.as_of_ms is not None, run.as_of_ms, run.run_number), reverse=True)
    return sorted(newest[:MOST_RUNS], key=lambda run: (run.as_of_ms or 0, run.run_number))


def _partition_timelines(
    tables: RunTables, places: Mapping[Place, Shown], as_of_ms: int | None
) -> tuple[PartitionTimeline, ...]:
    if not places:
        return ()
    markers = marker_points(_transactions(tables, places), places)
    appends = _batches(tables.finished.evidence, places)
    points = log_points(appends, _transactions(tables, places), places, as_of_ms)
    nights = _nights(tables, places)
    return tuple(_timeline(place, points[place], markers[place], nights[place]) for place in places)


class _Night(NamedTuple):
    """What a run found of a partition."""

    run_id: str
    topic: str
    partition: int
    is_in_capture: bool
    hidden_record_count: int | None
    last_stable_offset: int | None


def _nights(tables: RunTables, places: Mapping[Place, Shown]) -> defaultdict[Place, list[NightPoint]]:
    """What the runs of `run_points` found of some partitions, oldest first; without those that had nothing of one."""
    runs = _shown_runs(tables)
    shown = {run.run_id: number for number, run in enumerate(runs)}
    rows = tables.warehouse.records(_Night, PARTITION_HEALTH, run_id=[*shown], **_of(places))
    nights = defaultdict(list)
    for row in sorted(rows, key=lambda row: shown[row.run_id]):
        if row.is_in_capture:
            as_of_ms = runs[shown[row.run_id]].as_of_ms
            point = NightPoint(as_of_ms, row.hidden_record_count, row.last_stable_offset)
            nights[row.topic, row.partition].append(point)
    return nights


def _timeline(
    place: Place, points: list[EndPoint], markers: list[MarkerPoint], nights: list[NightPoint]
) -> PartitionTimeline:
    is_broker_time = any(point.moment_ms is not None for point in points)
    timed = [(point.moment_ms if is_broker_time else point.timestamp_ms, point) for point in points]
    return PartitionTimeline(
        *place,
        is_broker_time,
        tuple(LogPoint(ms, point.end_offset, point.last_stable_offset) for ms, point in timed if ms is not None),
        tuple(sorted(markers, key=attrgetter("offset"))),
        tuple(nights),
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
