"""The pictures of one partition, of one transactional id, and of the whole cluster.

Of a partition: offsets against time, the last stable offset, open transactions and end markers. Of an id: the
coordinator's states of it over time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.judge.outcome import Answered
from txn_analysis.report.figures import judged_idle_ms
from txn_analysis.report.pictures import (
    BOTTOM,
    DURATION_TICKS,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Drawing,
    Frame,
    Glyph,
    LogPoint,
    Scale,
    Tick,
    count_ticks,
    duration_place,
    duration_scale,
    time_ticks,
)
from txn_analysis.text import clip, count, duration, escape, iso_utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import IdTimeline, MarkerPoint, PartitionTimeline, StateChange
    from txn_analysis.tables import PartitionHealth

_HEIGHT = 240
_MOST_OPEN = 12
_LINE_HEIGHT = 14


@dataclass(frozen=True, kw_only=True)
class PartitionDrawing(Drawing):
    """Offsets of one partition against time; `hidden` is the area between last stable offset and end of the log.

    `opens` are where its open transactions begin: their lines go on to the moment of the copy.
    """

    name: str
    log: str
    stable: str
    hidden: str
    held_by: str
    labels: list[Tick]
    opens: list[Glyph]
    markers: list[Glyph]
    clock: str


def partition_drawing(
    report: AuditReport, item: PartitionHealth, timeline: PartitionTimeline
) -> PartitionDrawing | None:
    """The picture of one partition; None where no time is known of its log."""
    points = _forward(timeline.points)
    if not points:
        return None
    end_ms = max(report.run.as_of_ms or 0, points[-1].time_ms)
    # The last batches may carry no broker's time: they came before the copy.
    last = LogPoint(end_ms, item.end_offset or points[-1].end_offset, points[-1].last_stable_offset)
    low = min(points[0].last_stable_offset, points[0].end_offset)
    ticks = count_ticks(Scale(low, last.end_offset, 0, 1))
    left = 10 + LETTER * max((len(tick.label) for tick in ticks), default=1)
    x = Scale(points[0].time_ms, end_ms, left, WIDTH - RIGHT)
    y = Scale(low, last.end_offset, _HEIGHT - BOTTOM, TOP)
    log = [(x(point.time_ms), y(point.end_offset)) for point in (*points, last)]
    stable = [(x(point.time_ms), y(point.last_stable_offset)) for point in (*points, last)]
    name = escape(item.topic_partition)
    return PartitionDrawing(
        name=name,
        title=f"{name}: offsets against time",
        description=_log_in_words(item, points[0].time_ms, end_ms),
        frame=Frame(_HEIGHT, left, time_ticks(x), count_ticks(y)),
        log=_path(log),
        stable=_path(stable),
        hidden=_path([*log, *reversed(stable)]) + "Z",
        held_by=_held_by(report, item),
        labels=_labels(last, y),
        opens=_open_lines(report, item, points, x, y),
        markers=[_marker(marker, points, x, y) for marker in timeline.markers],
        clock="the brokers' clocks" if timeline.is_broker_time else "the clients' timestamps: no broker's clock speaks",
    )


def _held_by(report: AuditReport, item: PartitionHealth) -> str:
    """The verdict on what holds the last stable offset, worst first."""
    here = report.findings_on(item.topic, item.partition)
    return next((finding.verdict.value for finding in here if finding.blocks_partition), "unknown")


def _labels(last: LogPoint, y: Scale) -> list[Tick]:
    """The names of the two lines, where there is room between them."""
    end, stable = y(last.end_offset), y(last.last_stable_offset)
    if stable - end < 3 * _LINE_HEIGHT:
        return []
    return [
        Tick(end + _LINE_HEIGHT, f"end of the log {last.end_offset:,}"),
        Tick(stable - _LINE_HEIGHT / 2, f"last stable offset {last.last_stable_offset:,}"),
    ]


def _forward(points: Sequence[LogPoint]) -> list[LogPoint]:
    """Clocks of several leaders may disagree by moments; a log never goes back in time."""
    kept: list[LogPoint] = []
    for point in points:
        if not kept or point.time_ms >= kept[-1].time_ms:
            kept.append(point)
    return kept


def _log_in_words(item: PartitionHealth, start_ms: int, end_ms: int) -> str:
    hidden = item.hidden_record_count
    records = "an unknown number of records is" if hidden is None else f"{count(hidden, 'record')} hidden:"
    return (
        f"From {iso_utc(start_ms)} to {iso_utc(end_ms)} the log grows to offset {item.end_offset}, while the last "
        f"stable offset stays at {item.last_stable_offset}; {records} read_committed consumers do not see what lies "
        "between. "
        f"{count(item.open_transaction_count, 'open transaction')}."
    )


def _open_lines(
    report: AuditReport, item: PartitionHealth, points: Sequence[LogPoint], x: Scale, y: Scale
) -> list[Glyph]:
    here = report.findings_on(item.topic, item.partition)
    return [
        Glyph(
            x(_time_at(points, finding.txn_start_offset)),
            y(finding.txn_start_offset),
            finding.verdict.value,
            f"{finding.verdict.value}: producer id {finding.producer_id} has been open from offset "
            f"{finding.txn_start_offset}, idle {duration(finding.idle_ms)}",
        )
        for finding in here[:_MOST_OPEN]
    ]


def _time_at(points: Sequence[LogPoint], offset: int) -> float:
    """When the log reached an offset, between the two points around it."""
    ends = [point.end_offset for point in points]
    index = bisect_left(ends, offset)
    if index == 0 or index == len(points):
        return points[min(index, len(points) - 1)].time_ms
    before, after = points[index - 1], points[index]
    share = (offset - before.end_offset) / max(after.end_offset - before.end_offset, 1)
    return before.time_ms + share * (after.time_ms - before.time_ms)


def _marker(marker: MarkerPoint, points: Sequence[LogPoint], x: Scale, y: Scale) -> Glyph:
    more = "" if marker.count == 1 else f", the last of {marker.count} close together"
    title = f"{marker.outcome} at offset {marker.offset}, {iso_utc(marker.time_ms)}{more}"
    return Glyph(x(_time_at(points, marker.offset + 1)), y(marker.offset + 1), marker.outcome.lower(), title, r=2.5)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)


_ID_HEIGHT = 72
_MOST_CHANGES_IN_WORDS = 10
_STATE_CLASSES = {
    "Ongoing": "ongoing",
    "PrepareCommit": "prepare",
    "PrepareAbort": "prepare",
    "PrepareEpochFence": "prepare",
    "CompleteCommit": "commit",
    "CompleteAbort": "abort",
}


@dataclass(frozen=True)
class StateBar:
    """One state of a transactional id for as long as it held; `label` is empty where there is no room for it."""

    x: float
    width: float
    kind: str
    label: str
    title: str


@dataclass(frozen=True, kw_only=True)
class IdDrawing(Drawing):
    """One transactional id's states over time, and its last records in words."""

    name: str
    bars: list[StateBar]
    changes: list[StateChange]


def id_drawing(timeline: IdTimeline, start_ms: int | None, as_of_ms: int | None) -> IdDrawing:
    """The picture of one id, from `start_ms` on if that is known, else from its first record on."""
    changes = sorted(timeline.changes, key=lambda change: change.time_ms)
    low = changes[0].time_ms if start_ms is None else min(start_ms, changes[-1].time_ms)
    high = max(as_of_ms or 0, changes[-1].time_ms)
    x = Scale(low, high, 4, WIDTH - 4)
    ends = [change.time_ms for change in changes[1:]] + [high]
    bars = [_bar(change, end_ms, x) for change, end_ms in zip(changes, ends, strict=True) if end_ms >= low]
    name, last = clip(timeline.transactional_id, 80), changes[-1]
    return IdDrawing(
        name=name,
        title=f"{name}: states over time",
        description=f"{clip(last.state, 24)} since {iso_utc(last.time_ms)}; "
        f"{count(len(changes), 'record')} of the coordinator.",
        frame=Frame(_ID_HEIGHT, 4, time_ticks(x), []),
        bars=bars,
        changes=list(reversed(changes[-_MOST_CHANGES_IN_WORDS:])),
    )


def _bar(change: StateChange, end_ms: int, x: Scale) -> StateBar:
    start, stop = x(change.time_ms), x(end_ms)
    # A state that held for no time at all is still seen.
    width = max(round(stop - start, 1), 1.5)
    fits = width > LETTER * len(change.state) + 8
    title = f"{clip(change.state, 24)} from {iso_utc(change.time_ms)}, epoch {change.producer_epoch}"
    return StateBar(
        min(start, x.stop - width),
        width,
        _STATE_CLASSES.get(change.state, "other"),
        escape(change.state) if fits else "",
        title,
    )


_ROW_HEIGHT = 34
_DOTS_PER_ROW = 48


@dataclass(frozen=True, kw_only=True)
class AgesDrawing(Drawing):
    """Open transactions by age, a row for each verdict; `bound_x` is where they begin to be late."""

    rows: list[Tick]
    dots: list[Glyph]
    bound_x: float
    bound: str


def ages_drawing(report: AuditReport) -> AgesDrawing | None:
    """The picture of all open transactions by the age that lateness is judged by; None where no age is known."""
    bound_ms = report.run.late_after_ms
    ages = [(one.verdict, judged_idle_ms(report.run, one)) for one in report.findings.told(Answered)]
    aged = [(verdict, age) for verdict, age in ages if age is not None]
    if not aged:
        return None
    verdicts = [verdict for verdict in reversed(Verdict) if any(verdict is known for known, _ in aged)]
    frame_height = _ROW_HEIGHT * len(verdicts) + TOP + BOTTOM
    left = 10 + LETTER * max(len(verdict.value) for verdict in verdicts)
    oldest_ms = max(age_ms for _, age_ms in aged)
    x = duration_scale(1000, max(oldest_ms, bound_ms) * 2, left + 8, WIDTH - RIGHT - 8)
    rows = {v: Tick(TOP + _ROW_HEIGHT * (index + 0.5), v.value) for index, v in enumerate(verdicts)}
    late = sum(age_ms > bound_ms for _, age_ms in aged)
    return AgesDrawing(
        title="Open transactions by the time since their last write, against the bound",
        description=f"{late} of {len(aged)} are idle for more than {duration(bound_ms)}, the oldest for "
        f"{duration(oldest_ms)}, by the clock that lateness is judged by: the client's, if it is credible.",
        frame=Frame(frame_height, left, _duration_ticks(x), []),
        rows=list(rows.values()),
        dots=[dot for verdict in verdicts for dot in _dots(verdict, aged, x, rows[verdict].at)],
        bound_x=duration_place(x, bound_ms),
        bound=duration(bound_ms),
    )


def _duration_ticks(x: Scale) -> list[Tick]:
    """As many as there is room for, none over another."""
    ticks: list[Tick] = []
    for duration_ms, label in DURATION_TICKS:
        at = duration_place(x, duration_ms)
        is_inside = x.low <= math.log10(duration_ms) <= x.high
        if is_inside and (not ticks or at - ticks[-1].at > LETTER * len(label) + 12):
            ticks.append(Tick(at, label))
    return ticks


def _dots(verdict: Verdict, aged: Sequence[tuple[Verdict, int]], x: Scale, y: float) -> list[Glyph]:
    """One dot for what lies close together; its area tells how many that are."""
    slices: dict[int, list[int]] = {}
    for known, age_ms in aged:
        if known is verdict:
            share = (duration_place(x, age_ms) - x.start) / (x.stop - x.start)
            slices.setdefault(round(share * _DOTS_PER_ROW), []).append(age_ms)
    return [_dot(verdict, ages, x, y) for _, ages in sorted(slices.items())]


def _dot(verdict: Verdict, ages: list[int], x: Scale, y: float) -> Glyph:
    youngest, oldest = duration(min(ages)), duration(max(ages))
    span = oldest if youngest == oldest else f"{youngest} to {oldest}"
    radius = round(min(4 + 1.5 * math.sqrt(len(ages) - 1), 15), 1)
    place = duration_place(x, sum(ages) / len(ages))
    return Glyph(place, y, verdict.value, f"{len(ages)} {verdict.value}, idle {span}", radius)
