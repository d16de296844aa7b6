"""A capture of gigabytes on a standalone master, whose event log says where the tasks of every phase ran.

`python -m tests.wide.at_size workers` has two workers of one core, and brings the package along by `--py-files`.
`python -m tests.wide.at_size allocation` has 12 declared cores, and no executor until Spark asks for one. Both print a
table, find exactly what hangs in the capture that `benchmarks.wide` makes, and compare all tables with those of this
process alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.wide.capture import StateForm, write_capture
from benchmarks.wide.history import Hanging, History, Width
from tests.delta_jars import session_with_delta
from tests.faults.scene import MAY_DIFFER
from tests.table_rows import committed
from tests.wide.event_logs import PHASES, executors_added, spark_jobs, wrong_in_phases
from tests.wide.installed import Printed, install
from tests.wide.standalone import standalone_cluster
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.tables import ALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from tests.wide.installed import Installed

DECLARED_CORES, CORES_OF_EXECUTOR = 12, 4
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.executor.cores": str(CORES_OF_EXECUTOR),
    "spark.executor.memory": "1g",
}
_WIDTH = Width(partitions=16, producers=2_000, ids=2_000, hanging=60)
_BYTES_OF_BATCH = 360  # of text, end markers included
_STATE_BYTES = 11_000_000
_IN_THIS_PROCESS = """
from txn_analysis.storage import opening
from txn_analysis.__main__ import main
opening.MEMORY_BYTES = 1 << 40
main()
"""
"""The command line as a program, which does by itself what it would leave to Spark."""


def by_workers(installed: Installed, folder: Path, words: Sequence[str]) -> Printed:
    """By two workers of one core, which have the package by `--py-files` alone."""
    with standalone_cluster(folder, installed.environment(has_package=False)) as master:
        return installed.submit(master, words, folder / "events", py_files=installed.archive(folder))


def by_allocation(installed: Installed, folder: Path, words: Sequence[str]) -> Printed:
    """By executors that Spark asks for one after another, of 12 declared cores."""
    environment = installed.environment(has_package=True)
    with standalone_cluster(folder, environment, workers=1, cores=DECLARED_CORES, memory="3g") as master:
        return installed.submit(master, words, folder / "events", conf=DYNAMIC)


WAYS = {"workers": by_workers, "allocation": by_allocation}


def written(folder: Path, size_bytes: int) -> History:
    """Dumps and a state of about so many bytes; what happened there."""
    batches = max(200, (size_bytes - _STATE_BYTES) // _BYTES_OF_BATCH // _WIDTH.partitions)
    history = History(replace(_WIDTH, batches=batches))
    wrote = write_capture(history, folder, StateForm.DUMP_JSON)
    print(f"{wrote.log_bytes + wrote.state_bytes:,} bytes, {wrote.batches:,} batches", flush=True)
    return history


def table_of(events: Path) -> list[str]:
    """What the event log says: by phase the jobs, the tasks, and how many tasks each executor ran."""
    jobs, cores = spark_jobs(events), executors_added(events)
    lines = ["| phase | jobs | tasks | by executor |", "|---|---:|---:|---|"]
    for phase in (*PHASES, ""):
        own = [job for job in jobs if (job.description or "").startswith(phase)]
        ran = [executor for job in own for executor in job.executors]
        each = ", ".join(f"{name}: {ran.count(name)}" for name in cores)
        lines.append(f"| {phase or 'all'} | {len(own)} | {len(ran)} | {each} |")
    return [*lines, f"executors: {len(cores)}, with {sum(cores.values())} cores"]


def digests(spark: SparkSession, warehouse: Path) -> dict[str, tuple[int, int]]:
    """By table, how many committed rows it has, and a number that the rows have in whatever order."""
    stored, found = open_warehouse(spark, str(warehouse)), {}
    for table in ALL_TABLES:
        rows = committed(stored, table).drop(*MAY_DIFFER.get(table.name, ()))
        hashed = F.xxhash64(F.to_json(F.struct("*"), {"ignoreNullFields": "false"})).cast("decimal(38)")
        ((count, total),) = rows.select(F.count("*"), F.coalesce(F.sum(hashed), F.lit(0))).collect()
        found[table.name] = (count, int(total))
    return found


def by_spark(way: str, folder: Path, size_bytes: int) -> list[str]:
    """Audit such a capture on a cluster, print what its event log says, and return what does not hold."""
    installed = install(folder / "machine")
    history = written(folder / "capture", size_bytes)
    (folder / "cluster").mkdir()
    began = time.monotonic()
    printed = WAYS[way](installed, folder / "cluster", _words(folder, "by-spark"))
    print(f"audited in {time.monotonic() - began:.0f} s, with the start of the cluster", flush=True)
    print("\n".join(table_of(folder / "cluster/events")), flush=True)
    hanging = {
        Hanging(one["partition"], one["producer_id"], one["txn_start_offset"], one["rule"])
        for one in json.loads(printed.stdout)["findings"]
        if one["verdict"] == "hanging"
    }
    print(f"{len(hanging & history.hanging())} of {len(history.hanging())} hanging ones are found", flush=True)
    wrong = wrong_in_phases(folder / "cluster/events")
    return wrong if hanging == history.hanging() else [*wrong, "what hangs is not what it found"]


def by_this_process(folder: Path) -> list[str]:
    """Audit the same capture without Spark; the tables that differ."""
    here = [sys.executable, "-c", _IN_THIS_PROCESS, "audit", "--engine", "local", *_words(folder, "here")]
    subprocess.run(here, check=True, stdout=subprocess.DEVNULL)
    spark = session_with_delta("local[2]")
    first, second = digests(spark, folder / "by-spark"), digests(spark, folder / "here")
    spark.stop()
    print(f"{sum(count for count, _ in second.values()):,} rows of all tables", flush=True)
    return [f"{name}: other rows" for name, own in second.items() if first[name] != own]


def _words(folder: Path, warehouse: str) -> list[str]:
    own = ["--transaction-state-partitions", str(_WIDTH.state_partitions), "--max-clock-skew-ms", "0", "--exit-zero"]
    return [str(folder / "capture"), *own, "--format", "json", "--warehouse", str(folder / warehouse)]


def main() -> int:
    """Called with a way, and how large the capture is. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.wide.at_size", description=__doc__)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--gib", type=float, default=1.4, help="of dumps and state; %(default)s by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="at-size-") as folder:
        lines = by_spark(given.way, Path(folder), int(given.gib * (1 << 30))) + by_this_process(Path(folder))
    print("\n".join(lines) or "all tables are equal")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
