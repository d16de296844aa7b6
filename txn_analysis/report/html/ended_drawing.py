"""The picture of what ended when: for each slice of time a bar of committed transactions, aborted ones above them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txn_analysis.report.pictures import (
    BOTTOM,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Drawing,
    Frame,
    Scale,
    count_ticks,
    time_ticks,
)
from txn_analysis.text.words import count, duration, iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.report.ended_slices import EndedSlice

_HEIGHT = 150
_GAP = 1  # between two bars


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
    y = Scale(0, most, _HEIGHT - BOTTOM, TOP)
    committed, aborted = sum(one.committed_count for one in slices), sum(one.aborted_count for one in slices)
    unknown = sum(one.unknown_outcome_count for one in slices)
    not_printed = f", {unknown} of which the dump does not print how they ended" if unknown else ""
    span = f"from {iso_utc(slices[0].from_ms)} to {iso_utc(slices[-1].to_ms)}"
    step = duration(slices[0].to_ms - slices[0].from_ms)
    return EndedDrawing(
        title="Ended transactions by time",
        description=f"{committed} committed, {aborted} aborted{not_printed}, {span}; a bar is {step}.",
        frame=Frame(_HEIGHT, left, time_ticks(x), count_ticks(y)),
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
