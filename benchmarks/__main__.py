"""What audits cost, as ratios that one run on one machine gave: `python -m benchmarks` (`make bench`).

Each row of `benchmarks.rows` holds a cost against an anchor: DuckDB, Kafka's own tool, a bare session, or a smaller
input. The median of some rounds counts. Results go to `benchmarks/results.json`, and the page docs/sizing.md is made of
them. A row beyond its limit ends the command with 1.

`--before COMMIT` measures an earlier version in turns with this one, and prints the ratio of both; nothing is written.
"""

from __future__ import annotations

import argparse
import compileall
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.page import PAGE, RESULTS, Result, machine, page
from benchmarks.processes import FailedError
from benchmarks.rows import ROWS, Bench, Row


def measured(row: Row, benches: Sequence[Bench], repeats: int) -> list[Result]:
    """One row by each version, in turns: the round whose ratio is the median.

    Raises:
        FailedError: a process failed, or an answer was not the known one.
    """
    rounds = [[row.measure(bench) for bench in benches] for _ in range(repeats)]
    by_version = [sorted(column, key=lambda one: one.mine / one.other) for column in zip(*rounds, strict=True)]
    return [Result(row.name, row.limit, *column[(len(column) - 1) // 2]) for column in by_version]


def checked_out(commit: str, folder: Path) -> Path:
    """An earlier version in a folder of its own."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[row.name for row in ROWS], help="some rows [all]")
    parser.add_argument("--scale", type=float, default=1, help="of all that is many or large [1]")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of each row; the median counts [3]")
    parser.add_argument("--before", metavar="COMMIT", help="an earlier version, measured in turns; writes nothing")
    parser.add_argument("--cpu", action="store_true", help="seconds of processor time, where others use the machine")
    return parser.parse_args()


def main() -> int:
    """Measure, print and write; 1 where a row is beyond its limit or could not be measured."""
    chosen = options()
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    has_failed = False
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        versions = [None, checked_out(chosen.before, Path(work, "before"))] if chosen.before else [None]
        for version in versions:  # as pip does; to compile the modules anew takes a question 0.2 s
            compileall.compile_dir((version or Path.cwd()) / "txn_analysis", quiet=1)
        for row in ROWS:
            if chosen.only and row.name not in chosen.only:
                continue
            benches = [Bench(Path(work), version, chosen.scale, is_by_cpu=chosen.cpu) for version in versions]
            try:
                results = measured(row, benches, chosen.repeats)
            except FailedError as error:
                print(f"{row.name}: not available: {error}", file=sys.stderr, flush=True)
                has_failed = True
                continue
            print(" | before: ".join(map(str, results)), flush=True)
            has_failed |= results[0].is_missed and not chosen.before
            kept |= {"machine": machine(), row.name: results[0].kept(chosen.scale)}
            benches[0].empty()
            if not chosen.before:
                RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
                PAGE.write_text(page(kept), encoding="utf-8")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
