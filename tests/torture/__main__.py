"""`make torture`: everything that can be done to inputs, evidence and processes, in one table of figures.

Exits with 1 if any figure that must be zero is not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.kills import run_kills
from tests.hostile.canary import run_canary
from tests.hostile.corpus import run_corpus
from tests.hostile.fuzz import run_fuzz
from tests.torture.safety import run_safety

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SHOWN_PROBLEMS = 20


# In the order of the table; what each figure must be, None where any value will do.
TABLE: dict[str, int | None] = {
    "bad inputs tried": None,
    "fuzzed lines": None,
    "mutations tried": None,
    "hanging ones still found": None,
    "kills tried": None,
    "kills survived": None,
    "kills not survived": 0,
    "findings wrongly raised": 0,
    "bytes unaccounted": 0,
    "secrets planted": None,
    "secrets found": 0,
    "problems named": 0,
}


@dataclass(frozen=True)
class Part:
    """One kind of torture: its figures, what it found wrong in words, and what repeats it."""

    figures: Mapping[str, int]
    problems: Sequence[str]
    command: str


def corpus(_: argparse.Namespace) -> Part:
    """The collection of hostile inputs, each through every reader."""
    report = run_corpus()
    figures = {
        "bad inputs tried": report.inputs,
        "findings wrongly raised": report.wrongly_raised,
        "bytes unaccounted": report.unaccounted_bytes,
    }
    return Part(figures, report.problems, "python -m tests.hostile.corpus")


def fuzz(given: argparse.Namespace) -> Part:
    """Real dump lines, damaged."""
    report = run_fuzz(given.lines, given.seed)
    command = f"python -m tests.hostile.fuzz --lines {given.lines} --seed {given.seed}"
    return Part({"fuzzed lines": report.lines}, report.problems, command)


def safety(given: argparse.Namespace) -> Part:
    """Evidence taken away, mixed and handed over differently."""
    report = run_safety(given.mutations, given.seed)
    figures = {
        "mutations tried": report.mutations,
        "hanging ones still found": report.still_hanging,
        "findings wrongly raised": report.wrongly_raised,
        "bytes unaccounted": report.unaccounted_bytes,
    }
    command = f"python -m tests.torture.safety --mutations {given.mutations} --seed {given.seed}"
    return Part(figures, report.problems, command)


def canary(given: argparse.Namespace) -> Part:
    """Marked secrets, looked for in everything that an audit leaves behind."""
    with tempfile.TemporaryDirectory() as folder:
        report = run_canary(Path(folder), given.seed)
    figures = {"secrets planted": report.planted, "secrets found": len(report.found)}
    return Part(figures, report.found, f"python -m tests.hostile.canary --seed {given.seed}")


def kills(given: argparse.Namespace) -> Part:
    """Audits killed at random moments, and run again."""
    report = run_kills(given.kills, given.seed)
    figures = {
        "kills tried": report.tried,
        "kills survived": report.survived,
        "kills not survived": report.tried - report.survived,
    }
    return Part(figures, report.problems, f"python -m tests.faults.kills --count {given.kills} --seed {given.seed}")


PARTS: tuple[Callable[[argparse.Namespace], Part], ...] = (corpus, fuzz, safety, canary, kills)


def main(words: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    for name, default in (("mutations", 2000), ("lines", 100_000), ("kills", 50), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args(words)
    began = time.monotonic()
    totals: Counter[str] = Counter()
    for run in PARTS:
        part_began = time.monotonic()
        part = run(given)
        totals.update(part.figures)
        totals["problems named"] += len(part.problems)
        print(f"{time.monotonic() - part_began:6.0f} s  {part.command}", flush=True)
        for problem in part.problems[:SHOWN_PROBLEMS]:
            print(f"          {problem}", flush=True)
    wrong = [name for name, must_be in TABLE.items() if must_be is not None and totals[name] != must_be]
    for name, must_be in TABLE.items():
        print(f"{name:<28}{totals[name]:>10}{'' if must_be is None else f'   must be {must_be}'}")
    outcome = "NOT as it must be" if wrong else "all as it must be"
    print(f"seed {given.seed}, {time.monotonic() - began:.0f} s: {outcome}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
