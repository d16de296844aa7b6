"""The pictures of the whole cluster: open transactions by age, and hidden records over the last runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.report.figures import judged_idle_ms
from txn_analysis.report.html.axes import (
    BOTTOM,
    DURATION_TICKS,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Frame,
    Glyph,
    Scale,
    Tick,
    count_ticks,
    duration_place,
    duration_scale,
)
from txn_analysis.text.words import count, duration, iso_utc
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import RunPoint

_ROW_HEIGHT = 34
_DOTS_PER_ROW = 48
_RUNS_HEIGHT = 200


@dataclass(frozen=True)
class AgesDrawing:
    """Open transactions by age, a row for each verdict; `bound_x` is where they begin to be late."""

    title: str
    description: str
    frame: Frame
    rows: list[Tick]
    dots: list[Glyph]
    bound_x: float
    bound: str


def ages_drawing(report: AuditReport) -> AgesDrawing | None:
    """The picture of all open transactions by the age that lateness is judged by; None where no age is known."""
    bound_ms = report.run.late_after_ms
    ages = [(finding.verdict, judged_idle_ms(report, finding)) for finding in report.findings]
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


@dataclass(frozen=True)
class RunBar:
    """Hidden records that one run found."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True)
class RunsDrawing:
    """Hidden records over the last runs."""

    title: str
    description: str
    frame: Frame
    bars: list[RunBar]


def runs_drawing(runs: Sequence[RunPoint]) -> RunsDrawing | None:
    """The picture of the last runs; None where there is but one, which has nothing to be compared with."""
    if len(runs) < 2:
        return None
    most = max(run.hidden_record_count for run in runs)
    ticks = count_ticks(Scale(0, max(most, 1), 0, 1))
    left = 10 + LETTER * max(len(tick.label) for tick in ticks)
    y = Scale(0, max(most, 1), _RUNS_HEIGHT - BOTTOM, TOP)
    step = (WIDTH - RIGHT - left) / len(runs)
    return RunsDrawing(
        title="Hidden records over the last runs",
        description=f"{len(runs)} runs; the last one found {count(runs[-1].hidden_record_count, 'hidden record')}, "
        f"the one before {count(runs[-2].hidden_record_count, 'hidden record')}.",
        frame=Frame(_RUNS_HEIGHT, left, _run_ticks(runs, left, step), count_ticks(y)),
        bars=[_run_bar(run, left + index * step, step, y) for index, run in enumerate(runs)],
    )


def _run_ticks(runs: Sequence[RunPoint], left: float, step: float) -> list[Tick]:
    shown = {0, len(runs) - 1}
    return [
        Tick(round(left + (i + 0.5) * step, 1), iso_utc(runs[i].as_of_ms)[5:16].replace("T", " "))
        for i in sorted(shown)
    ]


def _run_bar(run: RunPoint, x: float, step: float, y: Scale) -> RunBar:
    top = y(run.hidden_record_count)
    unknown = f"; unknown on {count(run.unknown_count, 'partition')}" if run.unknown_count else ""
    title = (
        f"{iso_utc(run.as_of_ms)}: {count(run.hidden_record_count, 'hidden record')}{unknown}, "
        f"{run.hanging_count} hanging"
    )
    # A run that found nothing still has its place.
    height = max(round(y.start - top, 1), 1)
    width = min(step * 0.7, 48)
    return RunBar(round(x + (step - width) / 2, 1), round(y.start - height, 1), round(width, 1), height, title)
