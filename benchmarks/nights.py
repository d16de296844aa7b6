"""What a night costs now and with an earlier version, in turns: a small capture, the night after it, a large one.

`python -m benchmarks.nights --before FOLDER`, where that version is checked out, writes its section of
`benchmarks/RESULTS.md`.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import results
from benchmarks.audits import audit
from benchmarks.bench import GIB
from benchmarks.dumps import write_dumps
from benchmarks.processes import in_memory, run
from benchmarks.report import machine, table, today
from benchmarks.steps import OF_TINY, PARTITIONS, TINY, isolated
from benchmarks.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.audits import Audit
    from benchmarks.processes import Finished

_TEXT = """## A night, now and before

Written by `python -m benchmarks.nights --pairs {pairs} --gib {gib:g} --before …` on {day}, with {before} before,
on {machine}: medians of {pairs} rounds, in each of which all of these ran once."""


@dataclass(frozen=True)
class Night:
    """What was run in one round: audits by both versions, and a bare session that writes one table."""

    first: Audit
    second: Audit
    large: Audit
    first_before: Audit
    large_before: Audit
    bare: Finished


def round_of(folder: Path, dumps: Path, before: Version) -> Night:
    """Run everything once."""
    for used in folder.glob("round-*"):
        shutil.rmtree(used)
    small = partial(audit, TINY, folder / "round-now", *OF_TINY)
    return Night(
        first_before=audit(TINY, folder / "round-before", *OF_TINY, "0", by=before),
        first=small("0"),
        second=small("1"),  # another run of the same files, in tables that are there
        bare=isolated("session", folder / "round-bare"),
        large_before=audit([dumps], folder / "round-before-large", by=before),
        large=audit([dumps], folder / "round-now-large"),
    )


def section(rounds: Sequence[Night], gib: float, before: str) -> str:
    """The section of the page."""

    def median(of: Callable[[Night], float]) -> float:
        return statistics.median(map(of, rounds))

    first, second = median(lambda n: n.first.seconds), median(lambda n: n.second.seconds)
    bare, first_before = median(lambda n: n.bare.seconds), median(lambda n: n.first_before.seconds)
    large, large_before = median(lambda n: n.large.seconds), median(lambda n: n.large_before.seconds)
    of_bare, of_first, of_before = first / bare, second / first, large / large_before
    rows = [
        ("small capture", f"{first_before:.2f} s", f"{first:.2f} s", f"{of_bare:.2f} x of a bare session (≤ 0.75)"),
        ("a bare Spark session with one Delta write", "", f"{bare:.2f} s", ""),
        ("the next night in the same tables", "", f"{second:.2f} s", f"{of_first:.2f} x of the first (≤ 1)"),
        (f"{gib:g} GiB of dumps", f"{large_before:.2f} s", f"{large:.2f} s", f"{of_before:.2f} x of before (≤ 1.05)"),
        *_stages(rounds),
    ]
    head = _TEXT.format(pairs=len(rounds), gib=gib, day=today(), before=before, machine=machine())
    return f"{head}\n\n{table(('what', 'before', 'now', 'ratio'), rows)}"


def _stages(rounds: Sequence[Night]) -> list[tuple[str, str, str, str]]:
    names = dict.fromkeys(name for n in rounds for one in (n.first_before, n.first) for name in one.stage_seconds)
    return [
        (
            f"small capture, stage `{name}`",
            _stage([n.first_before for n in rounds], name),
            _stage([n.first for n in rounds], name),
            "",
        )
        for name in names
    ]


def _stage(audits: Sequence[Audit], name: str) -> str:
    seconds = [one.stage_seconds[name] for one in audits if name in one.stage_seconds]
    return f"{statistics.median(seconds):.1f} s" if seconds else ""


def main() -> None:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nights", description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="folder with a checkout of an earlier version")
    parser.add_argument("--pairs", type=int, default=5, help="rounds [5]")
    parser.add_argument("--gib", type=float, default=0.25, help="of the large dumps [0.25]")
    chosen = parser.parse_args()
    told = run(["git", "-C", str(chosen.before), "log", "-1", "--format=%h, %as"]).stdout.strip()
    with tempfile.TemporaryDirectory() as work:
        folder, dumps = Path(work), Path(work, "dumps")
        write_dumps([(dumps, int(chosen.gib * GIB))], PARTITIONS)
        with in_memory([*TINY, dumps]):
            rounds = [round_of(folder, dumps, Version(chosen.before)) for _ in range(chosen.pairs)]
    found = section(rounds, chosen.gib, told)
    print(found)
    results.write(found)


if __name__ == "__main__":
    main()
