"""An audit in somebody's own Spark session beside the command line's, alternately.

`python -m benchmarks.own_session` audits the demo's capture, each time in a new process and a new warehouse, and prints
a table: seconds of the call itself, which begins with a session that is there, and of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CAPTURE = ROOT / "data/cases/kafka-4.2/capture-1"
MOST_TIMES = 1.3  # what a session of one's own may take for each second of the command line

_OF_THE_COMMAND = """
from txn_analysis.spark.session import session
spark = session()
"""
_OF_ONES_OWN = """
import os
from pyspark.sql import SparkSession
own = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
spark = SparkSession.builder.master("local[*]").config(map=own).getOrCreate()
"""
_AUDIT = """
import json, sys, time
from txn_analysis import Settings, audit
capture, warehouse = sys.argv[1:]
settings = Settings(warehouse=warehouse, transaction_state_partitions=4, max_clock_skew_ms=0)
seconds = []
for number in range(2):
    began = time.perf_counter()
    report = audit(spark, [f"{capture}/segments", f"{capture}/transaction-state"], settings)
    seconds.append(time.perf_counter() - began)
assert len(report.hanging) == 4
print(json.dumps(seconds))
"""


class Times(NamedTuple):
    """Seconds of the first and the second call of a process, and of the process."""

    first: float
    second: float
    whole: float


def run(name: str, program: str) -> Times:
    """One process of its own, which begins with a program that makes a session."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", program + _AUDIT, CAPTURE, f"{folder}/warehouse"],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        whole = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    first, second = json.loads(done.stdout.splitlines()[-1])
    return Times(first, second, whole)


def table(measured: dict[str, list[Times]]) -> str:
    """In Markdown: the medians of each way, and how they stand to the first way's."""
    lines = ["| session | first call, s | second call, s | process, s |", "|---|---|---|---|"]
    (_, base), *_ = measured.items()
    for name, runs in measured.items():
        cells = [_cell([run[k] for run in runs], [run[k] for run in base]) for k in range(len(Times._fields))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(seconds: list[float], base: list[float]) -> str:
    median = statistics.median(seconds)
    return f"{median:.1f} ({median / statistics.median(base):.2f})"


def main() -> None:
    """Print the table; ends with 1 where a call in a session of one's own takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    ways = {"the command line's": _OF_THE_COMMAND, "one's own": _OF_ONES_OWN}
    measured: dict[str, list[Times]] = {name: [] for name in ways}
    for _ in range(given.rounds):
        for name, program in ways.items():
            measured[name].append(run(name, program))
    print(table(measured))
    base, *others = ([statistics.median(r.first for r in runs)] for runs in measured.values())
    sys.exit(int(max(others)[0] > MOST_TIMES * base[0]))


if __name__ == "__main__":
    main()
