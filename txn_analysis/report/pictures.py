"""What the pictures of a report show, and what all of them share: their size, scales and axes, and small marks.

Series over time, in a bounded number of points. Scales lead from numbers, times and durations to places in an SVG. All
drawings are WIDTH units wide, so that one column of a phone and two columns of a screen show them at a size at which
their letters can be read.

The report itself says what was found; these only show how it came about. `questions.loaded_report` fills them from the
tables of one run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple


@dataclass(frozen=True)
class LogPoint:
    """A partition's log at one moment: where it ended, and the last stable offset that it had then."""

    time_ms: int
    end_offset: int
    last_stable_offset: int


@dataclass(frozen=True)
class MarkerPoint:
    """End markers that lie close together: how many of one outcome, and the last of them."""

    time_ms: int
    offset: int
    outcome: str
    count: int


@dataclass(frozen=True)
class NightPoint:
    """What one run found of one partition: how much was hidden, and its last stable offset; None is unknown."""

    as_of_ms: int | None
    hidden_record_count: int | None
    last_stable_offset: int | None


@dataclass(frozen=True)
class PartitionTimeline:
    """The newest part of one partition's log, from some time before its last stable offset on.

    `is_broker_time` says that the times are those of brokers' clocks; without any, they are the clients' timestamps.
    `nights` are the runs that saw it, from the oldest to the report's own.
    """

    topic: str
    partition: int
    is_broker_time: bool
    points: tuple[LogPoint, ...]
    markers: tuple[MarkerPoint, ...]
    nights: tuple[NightPoint, ...] = ()


@dataclass(frozen=True)
class StateChange:
    """One record of the coordinator about a transactional id; `state` is Tombstone where it removes the id."""

    time_ms: int
    state: str
    producer_id: int | None
    producer_epoch: int | None
    partition_count: int


@dataclass(frozen=True)
class IdTimeline:
    """The last records about one transactional id, oldest first."""

    transactional_id: str
    changes: tuple[StateChange, ...]


@dataclass(frozen=True)
class RunPoint:
    """What one run of the cluster found hidden; `hidden_record_count` leaves out partitions where it is unknown."""

    run_id: str
    as_of_ms: int | None
    hidden_record_count: int
    unknown_count: int
    hanging_count: int


class EndedSlice(NamedTuple):
    """Transactions, each on one partition, whose end marker came from `from_ms` to before `to_ms`, by their outcome."""

    from_ms: int
    to_ms: int
    committed_count: int
    aborted_count: int
    unknown_outcome_count: int

    @property
    def ended_count(self) -> int:
        """All of them."""
        return self.committed_count + self.aborted_count + self.unknown_outcome_count


@dataclass(frozen=True)
class Pictures:
    """The series of one report, the worst partitions and ids first; runs from the oldest to the report's own.

    `ended` are the transactions that ended, by time, oldest first.
    """

    partitions: tuple[PartitionTimeline, ...] = ()
    ids: tuple[IdTimeline, ...] = ()
    runs: tuple[RunPoint, ...] = ()
    ended: tuple[EndedSlice, ...] = ()


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


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What every drawing has: what it is called, what it shows in words, and the area it is in."""

    title: str
    description: str
    frame: Frame
