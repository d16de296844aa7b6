"""What a wide cluster takes, as a sum of terms, each of which is the difference of two captures of one run.

`python -m benchmarks.wide --only goal` measures them, and holds their sum against a capture that is wide in every way
at once. At scale 1 that is a tenth of the widest clusters, of which docs/sizing.md then says what they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.bench import GIB
from benchmarks.report import table
from benchmarks.targets import Measured

if TYPE_CHECKING:
    from benchmarks.steps import Figures

NEEDS = ("lines", "lines_quarter", "ids_json", "ids_few", "narrow", "wide", "findings", "findings_quarter", "goal")
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
    ("the command itself", 1),
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


def terms(figures: Figures, kind: str = "s") -> Sizes:
    """What one of each takes, in seconds, or in bytes of memory (`memory_bytes`); nothing takes less than nothing."""

    def one(way: str, larger: str, smaller: str) -> Sizes:
        mine, other = sizes(figures, larger), sizes(figures, smaller)
        more = figures[f"{larger}_{kind}"] - figures[f"{smaller}_{kind}"]
        known = sum(term * (a - b) for term, a, b in zip(found, mine, other, strict=True))
        return found._replace(**{way: max(0.0, (more - known) / (getattr(mine, way) - getattr(other, way)))})

    found = Sizes(figures[f"tiny_{kind}"])
    found = one("log_gib", "lines", "lines_quarter")
    found = one("state_gib", "ids_few", "tiny")
    found = one("ids", "ids_json", "ids_few")
    found = one("findings", "findings", "findings_quarter")
    found = one("producers", "narrow", "lines")
    return one("partitions", "wide", "narrow")


def taken(found: Sizes, capture: Sizes) -> float:
    """What a capture takes, by its terms."""
    return sum(term * size for term, size in zip(found, capture, strict=True))


def of_goal(figures: Figures) -> Measured:
    """The capture that is wide in every way, against the sum of its terms."""
    expected, measured = taken(terms(figures), sizes(figures, "goal")), figures["goal_s"]
    return Measured(max(measured / expected, expected / measured), f"{measured:.0f} s, {expected:.0f} s were expected")


def kept(figures: Figures, scale: float) -> dict[str, Any]:
    """What the page needs of a run."""
    by_kind = {kind: terms(figures, kind) for kind in ("s", "memory_bytes")}
    return {
        "scale": scale,
        "checked": sizes(figures, "goal")._asdict(),
        **{f"{kind}_terms": found._asdict() for kind, found in by_kind.items()},
        **{f"{kind}_measured": figures[f"goal_{kind}"] for kind in by_kind},
    }


def section(found: dict[str, Any]) -> str:
    """The section of docs/sizing.md, from what was kept."""
    seconds, memory = Sizes(**found["s_terms"]), Sizes(**found["memory_bytes_terms"])
    checked = Sizes(**found["checked"])
    rows = [
        (what, f"{time * count:.3g} s", f"{size * count / 2**20:.3g} MiB")
        for (what, count), time, size in zip(_WORDS, seconds, memory, strict=True)
    ]
    captures = [
        _capture("checked here", checked, seconds, memory),
        ("measured", "", "", "", "", "", "", *_said(found["s_measured"], found["memory_bytes_measured"])),
        _capture("the widest clusters", checked.times(_TIMES_SCALE_1 / found["scale"]), seconds, memory),
    ]
    command = f"{COMMAND} --scale {found['scale']:g}"
    ways = ["batch lines", "state", "partitions", "producers", "ids", "findings", "minutes", "memory"]
    return "\n\n".join(
        (
            "What is many costs by its number as well as by its bytes. On two cores, in the command's own process:",
            table(("what", "time", "memory at most"), rows),
            f"The sum of the terms, against a capture that is wide in every way at once (`{command}`):",
            table(("capture", *ways), captures),
        )
    )


def _capture(name: str, capture: Sizes, seconds: Sizes, memory: Sizes) -> tuple[str, ...]:
    counts = (f"{count:,.0f}" for count in capture[3:])
    gib = (f"{size:.3g} GiB" for size in capture[1:3])
    return (name, *gib, *counts, *_said(taken(seconds, capture), taken(memory, capture)))


def _said(seconds: float, memory_bytes: float) -> tuple[str, str]:
    return f"{seconds / _MINUTE:,.1f}", f"{memory_bytes / GIB:.1f} GiB"
