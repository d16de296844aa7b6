"""The pictures made of bars: hidden records over the last nights, and what ended when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.report.pictures import (
    BOTTOM,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Drawing,
    Frame,
    Scale,
    Tick,
    count_ticks,
    time_ticks,
)
from txn_analysis.text import count, duration, escape, iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.report.pictures import EndedSlice, NightPoint, PartitionTimeline, RunPoint

_RUNS_HEIGHT = 200
_NIGHTS_HEIGHT = 110
_ENDED_HEIGHT = 150
_WIDEST_BAR = 48
_GAP = 1  # between two bars


class NightBar(NamedTuple):
    """Hidden records that one run found; `kind` is `unknown` where the files did not say, and `run` elsewhere."""

    x: float
    y: float
    width: float
    height: float
    title: str
    kind: str = "run"


@dataclass(frozen=True, kw_only=True)
class NightsDrawing(Drawing):
    """Hidden records over the last runs."""

    bars: list[NightBar]


def runs_drawing(runs: Sequence[RunPoint]) -> NightsDrawing | None:
    """The picture of the last runs; None where there is but one, which has nothing to be compared with."""
    if len(runs) < 2:
        return None
    return _drawing(
        "Hidden records over the last runs",
        f"{len(runs)} runs; the last one found {count(runs[-1].hidden_record_count, 'hidden record')}, "
        f"the one before {count(runs[-2].hidden_record_count, 'hidden record')}.",
        _RUNS_HEIGHT,
        [(run.as_of_ms, run.hidden_record_count, _run_title(run)) for run in runs],
    )


def _run_title(run: RunPoint) -> str:
    unknown = f"; unknown on {count(run.unknown_count, 'partition')}" if run.unknown_count else ""
    hidden = count(run.hidden_record_count, "hidden record")
    return f"{iso_utc(run.as_of_ms)}: {hidden}{unknown}, {run.hanging_count} hanging"


def nights_drawing(timeline: PartitionTimeline) -> NightsDrawing | None:
    """The picture of one partition over the last nights; None where no other night saw it."""
    nights = timeline.nights
    if len(nights) < 2:
        return None
    name = escape(f"{timeline.topic}-{timeline.partition}")
    return _drawing(
        f"{name}: hidden records over the last nights",
        f"{count(len(nights), 'night')}; the last one found {_hidden(nights[-1])}, the one before "
        f"{_hidden(nights[-2])}. {_stands(nights)}{_grey(nights)}",
        _NIGHTS_HEIGHT,
        [(night.as_of_ms, night.hidden_record_count, f"{iso_utc(night.as_of_ms)}: {_seen(night)}") for night in nights],
    )


def _hidden(night: NightPoint) -> str:
    hidden = night.hidden_record_count
    return "an unknown number of hidden records" if hidden is None else count(hidden, "hidden record")


def _seen(night: NightPoint) -> str:
    stable = "unknown" if night.last_stable_offset is None else night.last_stable_offset
    return f"{_hidden(night)}, last stable offset {stable}"


def _stands(nights: Sequence[NightPoint]) -> str:
    """Since which night the last stable offset has been the one of the last night."""
    stable, since = nights[-1].last_stable_offset, nights[-1]
    for night in reversed(nights):
        if stable is None or night.last_stable_offset != stable:
            break
        since = night
    if since is nights[-1]:
        return "The last stable offset was another one in the night before." if stable is not None else ""
    shown = " or before, as it was in all that are shown" if since is nights[0] else ""
    return f"The last stable offset has been {stable} since {iso_utc(since.as_of_ms)}{shown}."


def _grey(nights: Sequence[NightPoint]) -> str:
    is_some_unknown = any(night.hidden_record_count is None for night in nights)
    return " Grey: the files did not say how many." if is_some_unknown else ""


def _drawing(
    title: str, description: str, height: float, nights: Sequence[tuple[int | None, int | None, str]]
) -> NightsDrawing:
    """Bars for time, hidden records and what is said of each night."""
    most = max(hidden or 0 for _, hidden, _ in nights)
    most_ticks = 5 if height > _NIGHTS_HEIGHT else 2
    left = 10 + LETTER * max(len(tick.label) for tick in count_ticks(Scale(0, max(most, 1), 0, 1), most_ticks))
    y = Scale(0, max(most, 1), height - BOTTOM, TOP)
    step = (WIDTH - RIGHT - left) / len(nights)
    ends = {0, len(nights) - 1}
    ticks = [Tick(round(left + (i + 0.5) * step, 1), _day(nights[i][0])) for i in sorted(ends)]
    bars = [_bar(night, left + index * step, step, y) for index, night in enumerate(nights)]
    return NightsDrawing(
        title=title, description=description, frame=Frame(int(height), left, ticks, count_ticks(y, most_ticks)),
        bars=bars,
    )  # fmt: skip


def _day(as_of_ms: int | None) -> str:
    return iso_utc(as_of_ms)[5:16].replace("T", " ")


def _bar(night: tuple[int | None, int | None, str], x: float, step: float, y: Scale) -> NightBar:
    _, hidden, title = night
    # A night that found nothing still has its place, and one that could not tell another colour over its whole height.
    height = round(y.start - y.stop, 1) if hidden is None else max(round(y.start - y(hidden), 1), 1)
    width = min(step * 0.7, _WIDEST_BAR)
    kind = "unknown" if hidden is None else "run"
    place = round(x + (step - width) / 2, 1)
    return NightBar(place, round(y.start - height, 1), round(width, 1), height, title, kind)


@dataclass(frozen=True)
class EndedBar:
    """What ended alike in one slice; `kind` is its class."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, kw_only=True)
class EndedDrawing(Drawing):
    """What ended when, and the slices in which something did."""

    bars: list[EndedBar]
    slices: list[EndedSlice]


def ended_drawing(slices: Sequence[EndedSlice]) -> EndedDrawing | None:
    """The picture of what ended when; None where nothing did."""
    if not slices:
        return None
    most = max(one.ended_count for one in slices)
    left = 10 + LETTER * max(len(tick.label) for tick in count_ticks(Scale(0, most, 0, 1)))
    x = Scale(slices[0].from_ms, slices[-1].to_ms, left, WIDTH - RIGHT)
    y = Scale(0, most, _ENDED_HEIGHT - BOTTOM, TOP)
    committed, aborted = sum(one.committed_count for one in slices), sum(one.aborted_count for one in slices)
    unknown = sum(one.unknown_outcome_count for one in slices)
    not_printed = f", {unknown} of which the dump does not print how they ended" if unknown else ""
    span = f"from {iso_utc(slices[0].from_ms)} to {iso_utc(slices[-1].to_ms)}"
    step = duration(slices[0].to_ms - slices[0].from_ms)
    return EndedDrawing(
        title="Ended transactions by time",
        description=f"{committed} committed, {aborted} aborted{not_printed}, {span}; a bar is {step}.",
        frame=Frame(_ENDED_HEIGHT, left, time_ticks(x), count_ticks(y)),
        bars=[bar for one in slices for bar in _bars(one, x, y)],
        slices=[one for one in slices if one.ended_count],
    )


def _bars(one: EndedSlice, x: Scale, y: Scale) -> Iterator[EndedBar]:
    left, width = x(one.from_ms), round(max(x(one.to_ms) - x(one.from_ms) - _GAP, 1), 1)
    below = 0
    parts = (
        ("in_progress", "committed", one.committed_count),
        ("inconclusive", "aborted", one.aborted_count),
        ("suspect", "not printed how", one.unknown_outcome_count),
    )
    for kind, word, number in parts:
        if number:
            top = y(below + number)
            title = f"{iso_utc(one.from_ms)}: {count(number, 'transaction')} {word}"
            yield EndedBar(kind, left, top, width, round(y(below) - top, 1), title)
            below += number
