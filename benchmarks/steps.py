"""What the bench does, in order: each step makes its inputs, runs whole processes, and gives figures by name.

Names end in their unit. `small` and `large` are the two sizes of an input: what both cost drops out of the difference.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.audits import Audit, audit
from benchmarks.dumps import write_dumps
from benchmarks.kafka_tool import dump_log
from benchmarks.log_dirs import write_log_dir
from benchmarks.processes import Finished, fastest, in_memory, run

if TYPE_CHECKING:
    from collections.abc import Callable

Figures = dict[str, float]

GIB = 2**30
PARTITIONS = 16
SIZES = ("small", "large")
BATCH_BYTES = (681, 16384)  # of the two log directories

_NEW_SHARE = 0.01
_FIXED_REPEATS = 3
_TINY = Path(__file__).parents[1] / "data/cases/kafka-4.2-tv2/capture-1"


@dataclass(frozen=True)
class Bench:
    """Where and how large.

    Attributes:
        work: an empty folder; what a step leaves in it, later steps use.
        sizes_bytes: of the small and of the large input.
        repeats: how often each process runs; the fastest counts.
    """

    work: Path
    sizes_bytes: dict[str, int]
    repeats: int

    def audits(
        self,
        paths: list[Path],
        *words: str,
        repeats: int = 0,
        has_events: bool = False,
        kept: Path | None = None,
    ) -> Audit:
        """The fastest of some audits of the same files, each into the folder `warehouse`, empty or a copy of `kept`."""
        made = []
        with in_memory(paths):
            for _ in range(repeats or self.repeats):
                shutil.rmtree(self.warehouse, ignore_errors=True)
                if kept:
                    shutil.copytree(kept, self.warehouse)
                events_to = self.work / "events" if has_events else None
                made.append(audit(paths, self.warehouse, *words, events_to=events_to))
        return min(made, key=lambda one: one.process.seconds)

    @property
    def warehouse(self) -> Path:
        """Where audits write; a step that needs the tables of another one keeps them elsewhere."""
        return self.work / "warehouse"

    @property
    def kept_warehouse(self) -> Path:
        """The tables of the large audit of shallow dumps."""
        return self.work / "kept-warehouse"

    def shallow(self, size: str) -> Path:
        """The folder of the shallow dumps of one size."""
        return self.work / f"shallow-{size}"

    @property
    def next_segments(self) -> Path:
        """The segments that follow those of the large shallow dumps: one hundredth of their size."""
        return self.work / "shallow-next"


def shallow_inputs(bench: Bench) -> Figures:
    """Write the shallow dumps that most steps read."""
    small, large = (bench.sizes_bytes[size] for size in SIZES)
    folders = [(bench.shallow("large"), large), (bench.next_segments, int(large * _NEW_SHARE))]
    (of_small,) = write_dumps([(bench.shallow("small"), small)], PARTITIONS)
    of_large, _ = write_dumps(folders, PARTITIONS)
    return {
        "small_text_bytes": of_small.text_bytes,
        "large_text_bytes": of_large.text_bytes,
        "large_batches": of_large.batches,
        "large_log_bytes": of_large.log_bytes,
    }


def full(bench: Bench) -> Figures:
    """Audit the shallow dumps, every batch kept."""
    figures: Figures = {}
    for size in SIZES:
        made = bench.audits([bench.shallow(size)], has_events=True)
        figures |= _of_audit(f"full_{size}", made)
    assert made.events is not None
    bench.warehouse.rename(bench.kept_warehouse)
    stages = {f"full_large_stage_{name.replace(' ', '_')}_s": s for name, s in made.stage_seconds.items()}
    return (
        figures
        | stages
        | {
            "full_large_tasks": made.events.task_count,
            "full_large_task_s": made.events.task_seconds,
            "full_large_shuffled_bytes": made.events.shuffled_bytes,
            "full_large_result_bytes": made.events.result_bytes,
            "full_large_python_s": made.events.python_seconds,
            "full_large_from_python_bytes": made.events.from_python_bytes,
            "full_large_to_python_bytes": made.events.to_python_bytes,
            "full_large_warehouse_bytes": _size_bytes(bench.kept_warehouse),
            "full_large_log_batches_bytes": _size_bytes(bench.kept_warehouse / "log_batches"),
            "full_large_commits": len(list(bench.kept_warehouse.glob("*/_delta_log/*.json"))),
        }
    )


def quick(bench: Bench) -> Figures:
    """Audit the shallow dumps without keeping batches."""
    figures: Figures = {}
    for size in SIZES:
        figures |= _of_audit(f"quick_{size}", bench.audits([bench.shallow(size)], "--depth", "quick"))
    return figures | {"quick_large_warehouse_bytes": _size_bytes(bench.warehouse)}


def baseline(bench: Bench) -> Figures:
    """Ask DuckDB for the open transactions of the shallow dumps, with and without keeping the batches."""
    figures: Figures = {}
    kept = bench.work / "baseline.parquet"
    for size in SIZES:
        command = [sys.executable, "-m", "benchmarks.duckdb_baseline", str(bench.shallow(size))]
        for name, words in (("duckdb", []), ("duckdb_keep", ["--keep", str(kept)])):
            found = fastest(partial(run, [*command, *words]), bench.repeats, [bench.shallow(size)])
            figures[f"{name}_{size}_s"] = found.seconds
            figures[f"{name}_{size}_open_transactions"] = int(found.stdout)
    return figures | {"duckdb_keep_large_bytes": kept.stat().st_size}


def again(bench: Bench) -> Figures:
    """Audit the large shallow dumps and their next segments, where the former are in the warehouse already."""
    made = bench.audits([bench.shallow("large"), bench.next_segments], kept=bench.kept_warehouse)
    return _of_audit("again", made) | {"again_new_bytes": _size_bytes(bench.next_segments)}


def parts(bench: Bench) -> Figures:
    """Measure alone what the large audit spends on Parquet, on Delta's commits, and on what it hands to the JVM."""
    rows = sum(pq.read_metadata(file).num_rows for file in bench.kept_warehouse.glob("log_batches/**/*.parquet"))
    found = _isolated("writing", bench.kept_warehouse, _made(bench.work / "isolated"))
    return {"log_batches_rows": rows} | _figures_of(found)


def one_partition(bench: Bench) -> Figures:
    """Audit as many bytes of shallow dump in one file."""
    folder = bench.work / "one-partition"
    write_dumps([(folder, bench.sizes_bytes["large"])], 1)
    return _of_audit("one_partition", bench.audits([folder]))


def deep(bench: Bench) -> Figures:
    """Audit deep dumps of the same sizes."""
    figures: Figures = {}
    for size in SIZES:
        folder = bench.work / f"deep-{size}"
        (written,) = write_dumps([(folder, bench.sizes_bytes[size])], PARTITIONS, is_deep=True)
        figures |= {f"deep_{size}_text_bytes": written.text_bytes}
        figures |= _of_audit(f"deep_{size}", bench.audits([folder]))
    return figures


def fixed(bench: Bench) -> Figures:
    """Audit a tiny capture, and start a bare Spark session that writes one Delta table once."""
    repeats = max(bench.repeats, _FIXED_REPEATS)
    words = ("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0")
    tiny = bench.audits([_TINY / "segments", _TINY / "transaction-state"], *words, repeats=repeats)
    bare = fastest(lambda: _isolated("session", _made(bench.work / "isolated")), repeats)
    return _of_audit("tiny", tiny) | {"bare_session_s": bare.seconds}


def log_dir(batch_bytes: int) -> Callable[[Bench], Figures]:
    """A step that audits log directories whose data batches have a certain size."""

    def step(bench: Bench) -> Figures:
        figures: Figures = {}
        for size in SIZES:
            folder = bench.work / f"log-dir-{size}"
            name = f"log_dir_{batch_bytes}_{size}"
            figures[f"{name}_batches"] = write_log_dir(folder, bench.sizes_bytes[size], batch_bytes)
            figures[f"{name}_bytes"] = sum(file.stat().st_size for file in folder.rglob("*.log"))
            figures |= _of_audit(name, bench.audits([folder]))
        return figures

    return step


def kafka_dump_log(bench: Bench) -> Figures:
    """Dump the small log directory with small batches by Kafka's own tool."""
    folder, text = bench.work / "log-dir-dumped", bench.work / "dumped.txt"
    batches = write_log_dir(folder, bench.sizes_bytes["small"], BATCH_BYTES[0])
    segments = sorted(folder.rglob("*.log"))
    found = fastest(lambda: dump_log(segments, text), bench.repeats, segments)
    return {"kafka_dump_log_batches": batches, "kafka_dump_log_s": found.seconds}


STEPS: dict[str, Callable[[Bench], Figures]] = {
    "shallow inputs": shallow_inputs,
    "audit": full,
    "audit --depth quick": quick,
    "duckdb": baseline,
    "second audit": again,
    "parts": parts,
    "one partition": one_partition,
    "deep": deep,
    "fixed cost": fixed,
    "log_dir, small batches": log_dir(BATCH_BYTES[0]),
    "log_dir, large batches": log_dir(BATCH_BYTES[1]),
    "kafka-dump-log": kafka_dump_log,
}
# What a step leaves for later ones, by the last of them.
_NEEDED_UNTIL = {
    "shallow-small": "duckdb",
    "shallow-large": "second audit",
    "shallow-next": "second audit",
    "kept-warehouse": "parts",
}


def run_step(bench: Bench, name: str) -> Figures:
    """Run one step, and remove what no later one needs.

    Raises:
        FailedError: a process of it failed; the steps after it can run all the same.
    """
    try:
        return STEPS[name](bench)
    finally:
        order = list(STEPS)
        for left in bench.work.iterdir():
            if order.index(_NEEDED_UNTIL.get(left.name, order[0])) <= order.index(name):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _of_audit(name: str, made: Audit) -> Figures:
    return {
        f"{name}_s": made.process.seconds,
        f"{name}_cpu_s": made.process.cpu_seconds,
        f"{name}_memory_bytes": made.process.peak_memory_bytes,
        f"{name}_read_bytes": made.process.read_bytes,
        f"{name}_open_transactions": made.open_transactions,
    }


def _figures_of(done: Finished) -> Figures:
    """The figures that a measurement printed on its last line."""
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _isolated(*words: str | Path) -> Finished:
    return run([sys.executable, "-m", "benchmarks.isolated", *map(str, words)])


def _made(folder: Path) -> Path:
    """The folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def answers_differ(figures: Figures) -> bool:
    """Whether two programs found different open transactions in the same files: then their times say nothing."""
    return any(
        len({figures[name] for name in names if name in figures}) > 1
        for size in SIZES
        for names in [[f"{mode}_{size}_open_transactions" for mode in ("full", "quick", "duckdb", "duckdb_keep")]]
    )
