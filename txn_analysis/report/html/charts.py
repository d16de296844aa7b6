"""What all pictures share: a chart is a title, words, a frame with its axes, and marks in it; and their scales.

Scales lead from numbers, times and durations to places in an SVG. All charts are WIDTH units wide, so that one column
of a phone and two columns of a screen show them at a size at which their letters can be read.
"""

from __future__ import annotations

import math
import operator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WIDTH = 440
RIGHT, TOP, BOTTOM = 12, 12, 26
LETTER = 6.6  # width of a letter of an axis, at its font size of 11
_MOST_TIMES = 4  # on one axis
_S, _MIN, _H, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_TIME_STEPS_MS = (
    *(n * _S for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MIN for n in (1, 2, 5, 10, 15, 30)),
    *(n * _H for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 182, 364)),
)
_DURATIONS_MS = (_S, 10 * _S, _MIN, 10 * _MIN, _H, 6 * _H, _DAY, 7 * _DAY, 30 * _DAY, 365 * _DAY)
_DURATIONS = dict(
    zip(_DURATIONS_MS, ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d", "7 d", "30 d", "1 y"], strict=True)
)


class Mark(NamedTuple):
    """One shape of a chart, or a word at (x, y) in its place; `look` is its class, `title` what it says by itself."""

    look: str
    path: str = ""
    title: str = ""
    text: str = ""
    x: float = 0
    y: float = 0
    anchor: str = "start"


def line(look: str, *places: tuple[float, float], title: str = "", is_closed: bool = False) -> Mark:
    """A line through places; an area where it is closed."""
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in places)
    return Mark(look, path + ("Z" if is_closed else ""), title)


def bar(look: str, x: float, y: float, width: float, height: float, title: str = "") -> Mark:
    """A bar, by its upper left corner."""
    return Mark(look, f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}Z", title)


def dot(look: str, x: float, y: float, r: float, title: str = "") -> Mark:
    """A circle around a place."""
    return Mark(look, f"M{x - r:g} {y:g}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0Z", title)


def cross(look: str, x: float, y: float, title: str = "") -> Mark:
    """A small cross at a place."""
    return Mark(look, f"M{x - 3:g} {y - 3:g}l6 6m0-6l-6 6", title)


Tick = tuple[float, str]
"""One mark on an axis: where, and its label."""


class Scale(NamedTuple):
    """A line from the values `low` to `high` to the places `start` to `stop`; what lies outside is clamped.

    What `of` makes of a value is laid out evenly.
    """

    low: float
    high: float
    start: float
    stop: float
    of: Callable[[float], float] = operator.pos

    def __call__(self, value: float) -> float:
        """The place of a value, to a tenth of a pixel."""
        at, low, high = map(self.of, (value, self.low, self.high))
        if high <= low:
            return self.start
        return round(self.start + min(max((at - low) / (high - low), 0.0), 1.0) * (self.stop - self.start), 1)


def duration_scale(high_ms: float, start: float, stop: float) -> Scale:
    """Of durations from a second on, by their logarithm; what is shorter, or negative, stands at a second."""
    return Scale(_S, max(high_ms, 2 * _S), start, stop, lambda ms: math.log10(max(ms, _S)))


def duration_ticks(scale: Scale) -> list[Tick]:
    """As many as there is room for, none over another."""
    ticks: list[Tick] = []
    for duration_ms, label in _DURATIONS.items():
        at = scale(duration_ms)
        if duration_ms <= scale.high and (not ticks or at - ticks[-1][0] > LETTER * len(label) + 12):
            ticks.append((at, label))
    return ticks


def count_ticks(scale: Scale, most: int = 5) -> list[Tick]:
    """Ticks at round whole numbers (1, 2 or 5 times a power of ten)."""
    span = max(scale.high - scale.low, 1)
    power = 10 ** max(math.floor(math.log10(span / most)), 0)
    step = next(power * n for n in (1, 2, 5, 10, 20) if span / (power * n) <= most)
    first = math.ceil(scale.low / step) * step
    return [(scale(value), f"{value:,}") for value in range(int(first), int(scale.high) + 1, int(step))]


def time_ticks(scale: Scale) -> list[Tick]:
    """Ticks at round moments, UTC; the date stands where it is needed."""
    span = max(scale.high - scale.low, 1)
    longer = math.ceil(span / _MOST_TIMES / _TIME_STEPS_MS[-1]) * _TIME_STEPS_MS[-1]
    step = next((s for s in _TIME_STEPS_MS if span / s <= _MOST_TIMES), longer)
    moments = range(math.ceil(scale.low / step) * step, int(scale.high) + 1, step)
    return [(scale(ms), _moment(ms, step)) for ms in moments]


def _moment(time_ms: int, step_ms: int) -> str:
    form = "%Y-%m-%d" if step_ms >= _DAY else "%H:%M" if step_ms >= _MIN else "%H:%M:%S"
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime(form)
    except (OverflowError, OSError, ValueError):
        return str(time_ms)


def left_of(labels: Sequence[str]) -> float:
    """Where the area begins whose axis has these labels at its left."""
    return 10 + LETTER * max(map(len, labels), default=1)


def count_scale(low: float, high: float, height: int, most: int = 5) -> tuple[Scale, float]:
    """A scale of whole numbers upwards, and where the area beside its labels begins."""
    scale = Scale(low, high, height - BOTTOM, TOP)
    return scale, left_of([label for _, label in count_ticks(scale, most)])


class Frame(NamedTuple):
    """The area of a chart, from `left` to WIDTH - RIGHT, and the ticks below it and beside it."""

    height: int
    left: float
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick] = ()

    @property
    def axes(self) -> Iterator[Mark]:
        """Grid, axis and labels."""
        right, bottom = WIDTH - RIGHT, self.height - BOTTOM
        for at, label in self.y_ticks:
            yield line("grid", (self.left, at), (right, at))
            yield Mark("tick", text=label, x=self.left - 6, y=at + 4, anchor="end")
        yield line("axis", (self.left, bottom), (right, bottom))
        for at, label in self.x_ticks:
            anchor = "end" if at > right - 25 else "start" if at < self.left + 12 else "middle"
            yield line("axis", (at, bottom), (at, bottom + 4))
            yield Mark("tick", text=label, x=at, y=bottom + 17, anchor=anchor)


class Table(NamedTuple):
    """What a chart shows, or more of it, in cells; numbers are set to the right."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]


class Chart(NamedTuple):
    """One picture: what it is called, what it shows in words, its frame, and the marks in it. All words are escaped.

    `partition` is the one whose findings lead to it.
    """

    title: str
    words: str
    frame: Frame
    marks: Sequence[Mark]
    note: str = ""
    table: Table | None = None
    partition: str | None = None


class Section(NamedTuple):
    """The pictures of one kind, and what their marks mean."""

    name: str
    title: str
    charts: Sequence[Chart]
    legend: Sequence[tuple[Mark, str]] = ()
    note: str = ""
