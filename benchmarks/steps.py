"""What the bench does, in order: each step makes its inputs, runs whole processes, and gives figures by name.

Names end in their unit. `small` and `large` are the two sizes of an input: what both cost drops out of the difference.
"""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.bench import GIB, SIZES
from benchmarks.dumps import write_dumps
from benchmarks.kafka_tool import dump_log
from benchmarks.log_dirs import write_log_dir
from benchmarks.processes import fastest, in_memory, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.audits import Audit
    from benchmarks.bench import Bench
    from benchmarks.processes import Finished

Figures = dict[str, float]

PARTITIONS = 16
BATCH_BYTES = (681, 16384)  # of the two log directories
BY_SPARK = ("--engine", "spark")  # also what this process could hold: what both sizes cost alike drops out

_NEW_SHARE = 0.01
_MOST_LOCAL_BYTES = GIB * 9 // 10  # the command's own process judges up to 1 GiB
_FIXED_REPEATS = 3
_CAPTURE = Path(__file__).parents[1] / "data/cases/kafka-4.2-tv2/capture-1"
TINY = (_CAPTURE / "segments", _CAPTURE / "transaction-state")
OF_TINY = ("--transaction-state-partitions", "4", "--max-clock-skew-ms")


def shallow_inputs(bench: Bench) -> Figures:
    """Write the shallow dumps that most steps read."""
    small, large = (bench.sizes_bytes[size] for size in SIZES)
    folders = [(bench.shallow("large"), large), (bench.next_segments, int(large * _NEW_SHARE))]
    (of_small,) = write_dumps([(bench.shallow("small"), small)], PARTITIONS)
    most = min(large, _MOST_LOCAL_BYTES)
    of_local = {
        size: write_dumps([(bench.shallow(f"local_{size}"), of_bytes)], PARTITIONS)[0]
        for size, of_bytes in zip(SIZES, (most // 3, most), strict=True)
    }
    of_large, _ = write_dumps(folders, PARTITIONS)
    return {
        "small_text_bytes": of_small.text_bytes,
        "large_text_bytes": of_large.text_bytes,
        **{f"local_{size}_text_bytes": written.text_bytes for size, written in of_local.items()},
        "large_batches": of_large.batches,
        "large_log_bytes": of_large.log_bytes,
    }


def full(bench: Bench) -> Figures:
    """Audit the shallow dumps, every batch kept, in the command's own process and by Spark's tasks."""
    local = bench.audits({name: [bench.shallow(name)] for name in map("local_{}".format, SIZES)}, "--engine", "local")
    made = bench.audits({f"full_{size}": [bench.shallow(size)] for size in SIZES}, *BY_SPARK, has_events=True)
    large = made["full_large"]
    assert large.events is not None
    bench.warehouse.rename(bench.kept_warehouse)
    stages = {f"full_large_stage_{name.replace(' ', '_')}_s": s for name, s in large.stage_seconds.items()}
    return (
        _of_audits(local | made)
        | stages
        | {
            "full_large_tasks": large.events.task_count,
            "full_large_task_s": large.events.task_seconds,
            "full_large_shuffled_bytes": large.events.shuffled_bytes,
            "full_large_result_bytes": large.events.result_bytes,
            "full_large_python_s": large.events.python_seconds,
            "full_large_from_python_bytes": large.events.from_python_bytes,
            "full_large_to_python_bytes": large.events.to_python_bytes,
            "full_large_warehouse_bytes": _size_bytes(bench.kept_warehouse),
            "full_large_log_batches_bytes": _size_bytes(bench.kept_warehouse / "log_batches"),
            "full_large_commits": len(list(bench.kept_warehouse.glob("*/_delta_log/*.json"))),
        }
    )


def baseline(bench: Bench) -> Figures:
    """Ask DuckDB for the open transactions of the shallow dumps, with and without keeping the batches."""
    figures: Figures = {}
    kept = bench.work / "baseline.parquet"
    program = [sys.executable, "-m", "benchmarks.duckdb_baseline"]
    commands = {
        f"{name}_{size}": partial(run, [*program, str(bench.shallow(size)), *words])
        for name, words in (("duckdb", []), ("duckdb_keep", ["--keep", str(kept)]))
        for size in SIZES
    }
    with in_memory(bench.shallow(size) for size in SIZES):
        for name, found in fastest(commands, bench.repeats).items():
            figures[f"{name}_s"] = found.seconds
            figures[f"{name}_open_transactions"] = int(found.stdout)
    return figures | {"duckdb_keep_large_bytes": kept.stat().st_size}


def again(bench: Bench) -> Figures:
    """Audit the large shallow dumps and their next segments, where the former are in the warehouse already."""
    made = bench.audits({"again": [bench.shallow("large"), bench.next_segments]}, *BY_SPARK, kept=bench.kept_warehouse)
    return _of_audits(made) | {"again_new_bytes": _size_bytes(bench.next_segments)}


def parts(bench: Bench) -> Figures:
    """Measure alone what the large audit spends on Parquet, on Delta's commits, and on what it hands to the JVM."""
    rows = sum(pq.read_metadata(file).num_rows for file in bench.kept_warehouse.glob("log_batches/**/*.parquet"))
    found = isolated("writing", bench.kept_warehouse, _made(bench.work / "isolated"))
    return {"log_batches_rows": rows} | _figures_of(found)


def one_partition(bench: Bench) -> Figures:
    """Audit as many bytes of shallow dump in one file."""
    folder = bench.work / "one-partition"
    write_dumps([(folder, bench.sizes_bytes["large"])], 1)
    return _of_audits(bench.audits({"one_partition": [folder]}, *BY_SPARK))


def deep(bench: Bench) -> Figures:
    """Audit deep dumps of the same sizes."""
    figures: Figures = {}
    inputs = {}
    for size in SIZES:
        name, folder = f"deep_{size}", bench.work / f"deep-{size}"
        (written,) = write_dumps([(folder, bench.sizes_bytes[size])], PARTITIONS, is_deep=True)
        figures[f"{name}_text_bytes"] = written.text_bytes
        inputs[name] = [folder]
    return figures | _of_audits(bench.audits(inputs, *BY_SPARK))


def fixed(bench: Bench) -> Figures:
    """Audit a tiny capture by both engines, and start a bare Spark session that writes one Delta table once."""
    repeats = max(bench.repeats, _FIXED_REPEATS)
    tiny = bench.audits({"tiny": [*TINY]}, *OF_TINY, "0", repeats=repeats)
    tiny |= bench.audits({"tiny_spark": [*TINY]}, *OF_TINY, "0", *BY_SPARK, repeats=repeats)
    bare = fastest({"bare_session": lambda: isolated("session", _made(bench.work / "isolated"))}, repeats)
    return _of_audits(tiny) | _seconds(bare)


def log_dir(batch_bytes: int) -> Callable[[Bench], Figures]:
    """A step that audits log directories whose data batches have a certain size."""

    def step(bench: Bench) -> Figures:
        figures: Figures = {}
        inputs = {}
        for size in SIZES:
            name, folder = f"log_dir_{batch_bytes}_{size}", bench.work / f"log-dir-{size}"
            figures[f"{name}_batches"] = write_log_dir(folder, bench.sizes_bytes[size], batch_bytes)
            figures[f"{name}_bytes"] = sum(file.stat().st_size for file in folder.rglob("*.log"))
            inputs[name] = [folder]
        return figures | _of_audits(bench.audits(inputs, *BY_SPARK))

    return step


def kafka_dump_log(bench: Bench) -> Figures:
    """Dump the small log directory with small batches by Kafka's own tool."""
    folder, text = bench.work / "log-dir-dumped", bench.work / "dumped.txt"
    batches = write_log_dir(folder, bench.sizes_bytes["small"], BATCH_BYTES[0])
    segments = sorted(folder.rglob("*.log"))
    with in_memory(segments):
        found = fastest({"kafka_dump_log": lambda: dump_log(segments, text)}, bench.repeats)
    return {"kafka_dump_log_batches": batches} | _seconds(found)


STEPS: dict[str, Callable[[Bench], Figures]] = {
    "shallow inputs": shallow_inputs,
    "audit": full,
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
    "shallow-local_small": "audit",
    "shallow-local_large": "audit",
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


def _of_audits(made: Mapping[str, Audit]) -> Figures:
    figures: Figures = {}
    for name, one in made.items():
        figures |= {
            f"{name}_s": one.seconds,
            f"{name}_cpu_s": one.process.cpu_seconds,
            f"{name}_memory_bytes": one.process.peak_memory_bytes,
            f"{name}_read_bytes": one.process.read_bytes,
            f"{name}_open_transactions": one.open_transactions,
        }
    return figures


def _seconds(done: Mapping[str, Finished]) -> Figures:
    return {f"{name}_s": one.seconds for name, one in done.items()}


def _figures_of(done: Finished) -> Figures:
    """The figures that a measurement printed on its last line."""
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def isolated(*words: str | Path) -> Finished:
    """One of the measurements of `benchmarks.isolated`, as a process."""
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
        for names in [[f"{mode}_{size}_open_transactions" for mode in ("full", "duckdb", "duckdb_keep")]]
    )
