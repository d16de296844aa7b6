"""A part of the proof: what it shows, how much of it there is, and what its figures must be."""

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A number that a part found, and the bounds that it must keep; without any it says how much was tried."""

    name: str
    value: int
    least: int | None = None
    most: int | None = None

    @property
    def is_right(self) -> bool:
        """It keeps its bounds."""
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def must_be(self) -> str:
        """The bounds in words; empty where any number will do."""
        if self.least is not None and self.least == self.most:
            return f"{self.least:,}"
        least = "" if self.least is None else f"at least {self.least:,}"
        most = "" if self.most is None else f"at most {self.most:,}"
        return " and ".join(filter(None, (least, most)))


def none_of(name: str, value: int) -> Figure:
    """A figure that must be 0."""
    return Figure(name, value, 0, 0)


@dataclass(frozen=True)
class Found:
    """What one run of a part found: its figures, and what was wrong in words."""

    figures: Sequence[Figure]
    problems: Sequence[str] = ()


def counted(name: str, least: int | None = None, most: int | Callable[[Any], int] | None = None) -> Any:
    """A field of a report that counts something, and its figure's name and bounds; `most` may depend on the report."""
    return field(default=0, metadata={"figure": name, "least": least, "most": most})


def never(name: str) -> Any:
    """A field of a report that must stay 0."""
    return counted(name, 0, 0)


@dataclass
class Report:
    """What one run of a part counts: each field is a figure; `problems` say what was wrong in words."""

    problems: list[str] = field(default_factory=list, kw_only=True)

    @property
    def figures(self) -> list[Figure]:
        """In the order of the fields."""
        return [
            Figure(name, getattr(self, own.name), least, most(self) if callable(most) else most)
            for own in fields(self)
            if own.metadata
            for name, least, most in [own.metadata.values()]
        ]


Run = Callable[[int, int], Found | Report]


@dataclass(frozen=True)
class Part:
    """One kind of proof.

    Attributes:
        name: as `--only` takes it.
        proves: what holds if nothing is wrong, in one line.
        run: called with a size and a seed; what it finds depends on these two only.
        size: how much of it a whole run does, in units of the part's own.
        sample: how much of it `--sample` does; 0 where `make test` or `make cluster` does as much.
    """

    name: str
    proves: str
    run: Run
    size: int
    sample: int


@dataclass(frozen=True)
class Result:
    """One run of a part."""

    part: str
    command: str
    seconds: int
    figures: list[Figure] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Every figure keeps its bounds, and nothing else was wrong."""
        return not self.problems and all(figure.is_right for figure in self.figures)


def run_part(part: Part, size: int, seed: int) -> Result:
    """Run a part; what escapes it is a problem like others, so that the parts behind it are run."""
    command = f"python -m tests.proof --only {part.name} --size {size} --seed {seed}"
    began = time.monotonic()
    try:
        found = part.run(size, seed)
    except Exception:  # noqa: BLE001 whatever it is, it is this part's result
        found = Found((), [traceback.format_exc()])
    return Result(part.name, command, round(time.monotonic() - began), list(found.figures), list(found.problems))
