"""What all pictures share: their size, scales and axes, and small marks.

Scales lead from numbers, times and durations to places in an SVG. All drawings are WIDTH units wide, so that one column
of a phone and two columns of a screen show them at a size at which their letters can be read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

_S, _MIN, _H, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_TIME_STEPS_MS = (
    *(n * _S for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MIN for n in (1, 2, 5, 10, 15, 30)),
    *(n * _H for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 182, 364)),
)
DURATION_TICKS = (
    (_S, "1 s"),
    (10 * _S, "10 s"),
    (_MIN, "1 min"),
    (10 * _MIN, "10 min"),
    (_H, "1 h"),
    (6 * _H, "6 h"),
    (_DAY, "1 d"),
    (7 * _DAY, "7 d"),
    (30 * _DAY, "30 d"),
    (365 * _DAY, "1 y"),
)


@dataclass(frozen=True)
class Tick:
    """One mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Scale:
    """A straight line from the values `low` to `high` to the places `start` to `stop`; what lies outside is clamped."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The place of a value, to a tenth of a pixel."""
        if self.high <= self.low:
            return self.start
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return round(self.start + share * (self.stop - self.start), 1)


def duration_scale(low_ms: float, high_ms: float, start: float, stop: float) -> Scale:
    """A scale of durations by their logarithm; ask it with `math.log10` of what is at least a second."""
    return Scale(math.log10(max(low_ms, _S)), math.log10(max(high_ms, 2 * _S)), start, stop)


def duration_place(scale: Scale, duration_ms: float) -> float:
    """The place of a duration; shorter ones than a second, and negative ones, stand at a second."""
    return scale(math.log10(max(duration_ms, _S)))


def count_ticks(scale: Scale, most: int = 5) -> list[Tick]:
    """Ticks at round whole numbers (1, 2 or 5 times a power of ten)."""
    span = max(scale.high - scale.low, 1)
    power = 10 ** max(math.floor(math.log10(span / most)), 0)
    step = next(power * n for n in (1, 2, 5, 10, 20) if span / (power * n) <= most)
    first = math.ceil(scale.low / step) * step
    return [Tick(scale(value), f"{value:,}") for value in range(int(first), int(scale.high) + 1, int(step))]


def time_ticks(scale: Scale, most: int = 4) -> list[Tick]:
    """Ticks at round moments, UTC; the date stands where it is needed."""
    span = max(scale.high - scale.low, 1)
    step = next((s for s in _TIME_STEPS_MS if span / s <= most), None)
    if step is None:
        step = math.ceil(span / most / _TIME_STEPS_MS[-1]) * _TIME_STEPS_MS[-1]
    first = math.ceil(scale.low / step) * step
    moments = range(int(first), int(scale.high) + 1, step)
    return [Tick(scale(ms), _moment(ms, step)) for ms in moments]


def _moment(time_ms: int, step_ms: int) -> str:
    form = "%Y-%m-%d" if step_ms >= _DAY else "%H:%M" if step_ms >= _MIN else "%H:%M:%S"
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime(form)
    except (OverflowError, OSError, ValueError):
        return str(time_ms)


WIDTH = 440
RIGHT, TOP, BOTTOM = 12, 12, 26
LETTER = 6.6  # width of a letter of an axis, at its font size of 11


@dataclass(frozen=True)
class Frame:
    """The area of a drawing that is not axis, and the ticks around it."""

    height: int
    left: float
    x_ticks: list[Tick]
    y_ticks: list[Tick]

    @property
    def right(self) -> float:
        """Where the area ends."""
        return WIDTH - RIGHT

    @property
    def top(self) -> float:
        """Where the area begins."""
        return TOP

    @property
    def bottom(self) -> float:
        """Where the axis of the area lies."""
        return self.height - BOTTOM


@dataclass(frozen=True)
class Glyph:
    """A small mark: `kind` is its class, `r` its radius where the size tells something."""

    x: float
    y: float
    kind: str
    title: str
    r: float = 3
