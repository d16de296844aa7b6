"""What a wide cluster takes by Spark's tasks, as a sum of terms, found in captures that are each wide in one way.

`python -m benchmarks.wide --only goal` measures these, and holds the sum against a capture that is wide in every way at
once. At scale 1 that is a tenth of the widest clusters, of which docs/sizing.md then says what they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.bench import GIB
from benchmarks.report import table
from benchmarks.targets import Measured

if TYPE_CHECKING:
    from benchmarks.steps import Figures

_ADDED_UP = (
    *("tiny", "narrow", "wide", "wide_quarter", "lines", "lines_quarter", "ids_json", "ids_quarter", "ids_few"),
    *("findings", "findings_quarter", "offsets_low", "offsets_high"),
)
NEEDS = (*_ADDED_UP, "goal")
COMMAND = "python -m benchmarks.wide --only goal"
_TIMES_SCALE_1 = 10
_MINUTE = 60


class Sizes(NamedTuple):
    """How large a capture is in each way; also what one of each takes."""

    fixed: float = 1
    log_gib: float = 0
    state_gib: float = 0
    partitions: float = 0
    producers: float = 0
    ids: float = 0
    findings: float = 0

    def times(self, factor: float) -> Sizes:
        """A capture that is as many times as large."""
        return Sizes(1, *(factor * size for size in self[1:]))


# Of each way its name, and of how many of it the table speaks.
_WORDS = (
    ("the command itself, and the start of Spark", 1),
    ("a GiB of batch lines", 1),
    ("a GiB of `__transaction_state`, JSON form", 1),
    ("1,000 partitions", 1000),
    ("1,000 producers in the logs", 1000),
    ("1,000 transactional ids, beside their bytes", 1000),
    ("1,000 findings", 1000),
)


def sizes(figures: Figures, name: str) -> Sizes:
    """Those of a capture."""
    gib = (figures[f"{name}_{kind}_bytes"] / GIB for kind in ("log", "state"))
    return Sizes(1, *gib, *(figures[f"{name}_{kind}"] for kind in ("partitions", "producers", "ids", "findings")))


def terms(figures: Figures) -> Sizes:
    """The seconds that one of each takes, by least squares over the captures; each counts by its own seconds."""
    ways = np.array([sizes(figures, name) for name in _ADDED_UP])
    shares = ways / np.array([[figures[f"{name}_spark_s"]] for name in _ADDED_UP])
    counted = [*range(len(Sizes._fields))]
    while True:
        found, *_ = np.linalg.lstsq(shares[:, counted], np.ones(len(shares)))
        least = int(np.argmin(found * shares[:, counted].max(axis=0)))
        if found[least] >= 0:
            return Sizes(*np.bincount(counted, found, len(Sizes._fields)).tolist())
        del counted[least]  # nothing takes less than nothing


def taken(found: Sizes, capture: Sizes) -> float:
    """What a capture takes, by its terms."""
    return sum(term * size for term, size in zip(found, capture, strict=True))


def of_goal(figures: Figures) -> Measured:
    """The capture that is wide in every way, against the sum of its terms."""
    expected, measured = taken(terms(figures), sizes(figures, "goal")), figures["goal_spark_s"]
    return Measured(max(measured / expected, expected / measured), f"{measured:.0f} s, {expected:.0f} s were expected")


def kept(figures: Figures, scale: float) -> dict[str, Any]:
    """What the page needs of a run."""
    return {
        "scale": scale,
        "checked": sizes(figures, "goal")._asdict(),
        "terms_s": terms(figures)._asdict(),
        "measured_s": figures["goal_spark_s"],
        "memory_bytes": figures["goal_spark_memory_bytes"],
    }


def section(found: dict[str, Any]) -> str:
    """The section of docs/sizing.md, from what was kept."""
    seconds, checked = Sizes(**found["terms_s"]), Sizes(**found["checked"])
    rows = [(what, f"{term * count:.3g} s") for (what, count), term in zip(_WORDS, seconds, strict=True)]
    captures = [
        (*_capture("checked here", checked), _minutes(taken(seconds, checked)), _minutes(found["measured_s"])),
        (
            *_capture("the widest clusters", widest := checked.times(_TIMES_SCALE_1 / found["scale"])),
            _minutes(taken(seconds, widest)),
            "",
        ),
    ]
    command, memory = f"{COMMAND} --scale {found['scale']:g}", f"{found['memory_bytes'] / GIB:.1f} GiB"
    ways = ["batch lines", "state", "partitions", "producers", "ids", "findings", "minutes", "measured"]
    return f"""Things cost by their number as well as by their bytes. On two cores, by Spark's tasks:

{table(("what", "time"), rows)}

The sum of these, against a capture that is wide in every way at once (`{command}`), with {memory} of memory for all
processes. For the widest clusters the minutes are a guide, and no promise.

{table(("capture", *ways), captures)}"""


def _capture(name: str, capture: Sizes) -> tuple[str, ...]:
    gib, counts = (f"{size:.3g} GiB" for size in capture[1:3]), (f"{count:,.0f}" for count in capture[3:])
    return (name, *gib, *counts)


def _minutes(seconds: float) -> str:
    return f"{seconds / _MINUTE:,.1f}"
