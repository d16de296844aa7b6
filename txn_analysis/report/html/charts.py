"""What all pictures share: a chart is a title, words, a frame with its axes, and marks in it.

Marks are drawn at values, such as a moment and an offset; their frame knows where these are in the SVG. All charts are
WIDTH units wide, so that one column of a phone and two columns of a screen show them at a size at which their letters
can be read.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

WIDTH = 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 4, WIDTH - 12, 12, 26
LETTER = 6.6  # width of a letter of an axis, at its font size of 11
_MOST_TIMES = 4  # on one axis
_S, _MIN, _H, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_TIME_STEPS_MS = (
    *(n * _S for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MIN for n in (1, 2, 5, 10, 15, 30)),
    *(n * _H for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 182, 364)),
)
_DURATIONS_MS = {"1 s": _S, "10 s": 10 * _S, "1 min": _MIN, "10 min": 10 * _MIN, "1 h": _H, "6 h": 6 * _H}
_DURATIONS_MS |= {"1 d": _DAY, "7 d": 7 * _DAY, "30 d": 30 * _DAY, "1 y": 365 * _DAY}

Tick = tuple[float, str]
"""One mark on an axis: where, and its label."""


class Scale(NamedTuple):
    """The values of an axis, from `low` at the place `start` to `high` at `stop`; what lies outside is clamped.

    What `of` makes of a value is laid out evenly. `ticks_of` a scale are as many as there is room for.
    """

    low: float
    high: float
    ticks_of: Callable[[Scale], list[Tick]]
    of: Callable[[float], float] = operator.pos
    start: float = 0
    stop: float = 0

    def __call__(self, value: float) -> float:
        """The place of a value, to a tenth of a pixel."""
        at, low, high = map(self.of, (value, self.low, self.high))
        if high <= low:
            return self.start
        return round(self.start + min(max((at - low) / (high - low), 0.0), 1.0) * (self.stop - self.start), 1)


def times(low_ms: float, high_ms: float) -> Scale:
    """Moments, UTC; ticks are at round ones, and the date stands where it is needed."""
    return Scale(low_ms, high_ms, _time_ticks)


def counts(low: float, high: float, most: int = 5) -> Scale:
    """Whole numbers, with so many ticks at most, at round ones."""
    return Scale(low, high, partial(_count_ticks, most=most))


def durations(high_ms: float) -> Scale:
    """Durations from a second on, by their logarithm; what is shorter, or negative, stands at a second."""
    return Scale(_S, max(high_ms, 2 * _S), _duration_ticks, lambda ms: math.log10(max(ms, _S)))


def named(high: float, labels: Mapping[float, str]) -> Scale:
    """Values from 0 on, some of which have a name."""
    return Scale(0, high, lambda scale: [(scale(value), label) for value, label in labels.items()])


def _duration_ticks(scale: Scale) -> list[Tick]:
    ticks: list[Tick] = []
    for label, duration_ms in _DURATIONS_MS.items():
        at = scale(duration_ms)
        if duration_ms <= scale.high and (not ticks or at - ticks[-1][0] > LETTER * len(label) + 12):
            ticks.append((at, label))
    return ticks


def _count_ticks(scale: Scale, most: int) -> list[Tick]:
    # A round number is 1, 2 or 5 times a power of ten.
    span = max(scale.high - scale.low, 1)
    power = 10 ** max(math.floor(math.log10(span / most)), 0)
    step = next(power * n for n in (1, 2, 5, 10, 20) if span / (power * n) <= most)
    first = -(-scale.low // step) * step  # whole numbers of 64 bits, of which a quotient would lose some
    return [(scale(value), f"{value:,}") for value in range(int(first), int(scale.high) + 1, int(step))]


def _time_ticks(scale: Scale) -> list[Tick]:
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


class Mark(NamedTuple):
    """One shape of a chart, or a word at (x, y) in its place; `look` is its class, `title` what it says by itself."""

    look: str
    path: str = ""
    title: str = ""
    text: str = ""
    x: float = 0
    y: float = 0
    anchor: str = "start"


CROSS, SQUARE = "m-3 -3l6 6m0-6l-6 6", "m-4 -4h8v8h-8Z"


def disc(r: float) -> str:
    """A circle around a place, as `CROSS` and `SQUARE` are: a path from there."""
    return f"m{-r:g} 0a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0Z"


class Frame(NamedTuple):
    """The area of a chart, from `left` on, with its axes; it draws marks at values of both."""

    height: int
    left: float
    x: Scale
    y: Scale

    @classmethod
    def of(cls, height: int, x: Scale, y: Scale, margin: float = 0) -> Frame:
        """Beside the labels of y, and with a margin at both ends of x."""
        y = y._replace(start=height - _BOTTOM, stop=_TOP)
        left = max((10 + LETTER * len(label) for _, label in y.ticks_of(y)), default=_LEFT)
        return cls(height, left, x._replace(start=left + margin, stop=_RIGHT - margin), y)

    def line(self, look: str, values: Iterable[tuple[float, float]], title: str = "", end: str = "") -> Mark:
        """A line through values; an area where its end is `Z`."""
        return Mark(look, "M" + "L".join(f"{self.x(x):g} {self.y(y):g}" for x, y in values) + end, title)

    def bar(self, look: str, x: tuple[float, float], y: tuple[float, float], title: str, most: float = WIDTH) -> Mark:
        """A bar from one value to another on each axis, in their middle if it is at most so wide; it is always seen."""
        left, right, low, high = self.x(x[0]), self.x(x[1]), self.y(y[0]), self.y(y[1])
        width, height = max(min(right - left, most), 1.5), max(low - high, 1)
        begin = min(left if width < most else (left + right - most) / 2, self.x.stop - width)
        return Mark(look, f"M{begin:.6g} {low:g}v{-height:.4g}h{width:.4g}v{height:.4g}Z", title)

    def at(self, look: str, x: float, y: float, shape: str, title: str = "") -> Mark:
        """A shape at a value of each axis, as a path from there."""
        return Mark(look, f"M{self.x(x):g} {self.y(y):g}{shape}", title)

    def word(self, look: str, text: str, x: float, y: float, below: float, anchor: str = "start") -> Mark:
        """A word beside values, so far below them."""
        beside = -5 if anchor == "end" else 5
        return Mark(look, text=text, x=round(self.x(x) + beside, 1), y=round(self.y(y) + below, 1), anchor=anchor)

    @property
    def axes(self) -> Iterator[Mark]:
        """Grid, axis and labels."""
        bottom = self.height - _BOTTOM
        for at, label in self.y.ticks_of(self.y):
            yield Mark("grid", f"M{self.left:g} {at:g}H{_RIGHT}")
            yield Mark("tick", text=label, x=self.left - 6, y=at + 4, anchor="end")
        yield Mark("axis", f"M{self.left:g} {bottom}H{_RIGHT}")
        for at, label in self.x.ticks_of(self.x):
            anchor = "end" if at > _RIGHT - 25 else "start" if at < self.left + 12 else "middle"
            yield Mark("axis", f"M{at:g} {bottom}v4")
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
