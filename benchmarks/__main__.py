"""`make bench`: print the targets with what was measured; write `benchmarks/RESULTS.md` and `docs/sizing.md`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import results
from benchmarks.bench import GIB, Bench
from benchmarks.processes import FailedError
from benchmarks.report import results_page, today
from benchmarks.sizing import FIGURES, PAGE, page
from benchmarks.steps import STEPS, Figures, answers_differ, run_step


def measure(bench: Bench) -> tuple[Figures, dict[str, str]]:
    """All figures, and why the steps failed that did."""
    figures: Figures = {"cores": os.cpu_count() or 1}
    failures: dict[str, str] = {}
    for name in STEPS:
        began = time.monotonic()
        try:
            figures |= run_step(bench, name)
            outcome = "done"
        except FailedError as error:
            failures[name] = str(error).replace(f"{bench.work}/", "")  # the page is for other machines as well
            outcome = f"not available ({failures[name]})"
        print(f"{name}: {outcome}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return figures, failures


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--small", type=float, default=1, metavar="GIB", help="the smaller size of each input [1]")
    parser.add_argument("--large", type=float, default=4, metavar="GIB", help="the larger size of each input [4]")
    parser.add_argument("--repeats", type=int, default=1, help="run each process so often; the fastest counts [1]")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir(), "txn-analysis-bench"),
        help="folder for inputs and tables, three times the larger size; emptied [in $TMPDIR]",
    )
    parser.add_argument("--dry", action="store_true", help="print the results without writing files of the project")
    chosen = parser.parse_args()
    if not 0 < chosen.small < chosen.large:
        parser.error("--large must be larger than --small")
    return chosen


def main() -> int:
    """Measure, print and write; 1 where two programs gave different answers to the same question."""
    chosen = options()
    sizes_bytes = {"small": int(chosen.small * GIB), "large": int(chosen.large * GIB)}
    chosen.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.work, prefix="run-") as work:
        bench = Bench(Path(work), sizes_bytes, chosen.repeats)
        figures, failures = measure(bench)
    command = f"python -m benchmarks --small {chosen.small:g} --large {chosen.large:g} --repeats {chosen.repeats}"
    found = results_page(figures, failures, command, today())
    print(found)
    if not chosen.dry:
        results.write(found)
        FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        PAGE.write_text(page(), encoding="utf-8")
    if answers_differ(figures):
        print("error: the programs found different open transactions in the same files", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
