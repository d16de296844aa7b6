"""What all pictures share: their size, their axes, and small marks.

All drawings are WIDTH units wide, so that one column of a phone and two columns of a screen show them at a size at
which their letters can be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txn_analysis.report.html.scales import Tick

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
