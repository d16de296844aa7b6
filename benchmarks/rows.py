"""The rows: what is measured, against what, and the limit of the ratio."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.captures import StateForm, Written, write_capture
from benchmarks.dumps import write_dumps
from benchmarks.log_dirs import write_log_dir
from benchmarks.processes import FailedError, Finished, read_once, run
from benchmarks.wide_history import Hanging, History, Width
from tests.systems.e2e.broker import QUIET
from tests.tools.kafka_jars import class_path, dump_tool
from tests.tools.maven_jars import FetchError
from tests.tools.repository import CASES

GIB, MIB = 2**30, 2**20
PARTITIONS = 16
BY_SPARK = ("--engine", "spark")
_TINY = tuple(CASES / "kafka-4.2-tv2/capture-1" / part for part in ("segments", "transaction-state"))
_OF_TINY = ("--transaction-state-partitions", "4", "--max-clock-skew-ms", "0")
_KAFKA = "4.3.1"
_SMALL_BATCH_BYTES = 681
_OF_STATE = "a GiB of `__transaction_state` against one of batch lines,"
_DAY_MS = 86_400_000
_FIRST_NIGHT_MS = 1_795_230_000_000
_QUESTIONS = ("report", "find-hanging", "list", "ended", "ended --by application", "verify", "captures")


class Measured(NamedTuple):
    """What was measured, and the anchor, in one unit; `figures` are by-products for the page."""

    mine: float
    other: float
    unit: str
    figures: dict[str, float]


@dataclass(frozen=True)
class Row:
    """One line of the table; `what` says in words what `measure` holds against what."""

    name: str
    what: str
    limit: float
    measure: Callable[[Bench], Measured]


@dataclass(frozen=True)
class Bench:
    """Where rows make their inputs, and which version they measure.

    Attributes:
        work: a folder; inputs in it are made once for all rounds of a row.
        version: the checkout of an earlier version; None is the one that this program is of.
        scale: of all that is many or large.
        is_by_cpu: seconds are those of processors.
    """

    work: Path
    version: Path | None
    scale: float
    is_by_cpu: bool = False

    def seconds(self, done: Finished) -> float:
        """What a process took."""
        return done.cpu_seconds if self.is_by_cpu else done.seconds

    @property
    def s(self) -> str:
        """The unit of `seconds`."""
        return "CPU s" if self.is_by_cpu else "s"

    def ask(self, *words: str | Path) -> Finished:
        """The command of the version, run to its end with the packages that are installed here."""
        return run([sys.executable, "-m", "txn_analysis", *map(str, words)], folder=self.version)

    def audit(self, paths: tuple[Path, ...] | list[Path], *words: str, kept: Path | None = None) -> Finished:
        """An audit into the folder `warehouse`, which begins empty, or with the tables of another one."""
        shutil.rmtree(self.warehouse, ignore_errors=True)
        if kept:
            shutil.copytree(kept, self.warehouse)
        read_once(paths)
        return self.ask("audit", *words, "--warehouse", self.warehouse, "--exit-zero", "--format", "json", *paths)

    @property
    def warehouse(self) -> Path:
        """Of the last audit."""
        return self.work / "warehouse"

    def made(self, name: str, make: Callable[[Path], Any]) -> tuple[Path, Any]:
        """A folder of inputs, made where it is not there yet, and what its maker said of it."""
        folder = self.work / "inputs" / name
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / "written.json").write_text(json.dumps(make(folder / "files")), encoding="utf-8")
        return folder / "files", json.loads((folder / "written.json").read_text(encoding="utf-8"))

    def empty(self) -> None:
        """Remove the inputs of a row."""
        shutil.rmtree(self.work / "inputs", ignore_errors=True)

    def dumps(self, gib: float, partitions: int = PARTITIONS, *, is_deep: bool = False) -> tuple[Path, Any]:
        """Dumps of so many GiB of text, and how much was written."""
        size_bytes = int(gib * self.scale * GIB)
        name = f"dumps-{gib}-{partitions}-{is_deep}"
        return self.made(name, lambda at: write_dumps([(at, size_bytes)], partitions, is_deep=is_deep)[0])

    def wide(self, name: str, width: Width, form: StateForm = StateForm.DUMP_JSON) -> tuple[Finished, Written]:
        """An audit of an invented cluster, by the engine that its size chooses.

        Raises:
            FailedError: what it found hanging is not what hangs.
        """
        history = History(width)
        files, written = self.made(name, lambda folder: write_capture(history, folder, form))
        words = ["--transaction-state-partitions", str(width.state_partitions), "--max-clock-skew-ms", "0"]
        complete = ["--transaction-state-complete"] if form is StateForm.CONSOLE_JSON else []
        done = self.audit([files], *words, *complete)
        hanging = {
            Hanging(row["partition"], row["producer_id"], row["txn_start_offset"], row["rule"])
            for row in json.loads(done.stdout)["findings"]
            if row["verdict"] == "hanging"
        }
        if hanging != history.hanging():
            raise FailedError(f"{name}: {len(hanging)} were said to hang, {len(history.hanging())} hang")
        return done, Written(*written)

    def many(self, count: int, least: int) -> int:
        """A count at this scale."""
        return max(least, round(count * self.scale))

    def tiny(self, *words: str) -> Finished:
        """An audit of a small real capture."""
        return self.audit(_TINY, *_OF_TINY, *words)


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _per_gib(inputs: Sequence[tuple[Path, Any]], seconds_of: Callable[[Path], float]) -> tuple[float, float]:
    """Seconds for each GiB that the second input has more than the first one, and what is left of the first one's."""
    small_gib, large_gib = (written["text_bytes"] / GIB for _, written in inputs)
    small_s, large_s = (seconds_of(folder) for folder, _ in inputs)
    if large_s <= small_s:
        raise FailedError("the large input took no longer than the small one; give a larger --scale")
    per_gib = (large_s - small_s) / (large_gib - small_gib)
    return per_gib, small_s - small_gib * per_gib


def _duckdb(bench: Bench, folder: Path) -> float:
    read_once([folder])
    words = ("-m", "benchmarks.duckdb_baseline", str(folder), str(bench.work / "duckdb.parquet"))
    return bench.seconds(run([sys.executable, *words]))


def dumps(sizes_gib: tuple[float, float], words: tuple[str, ...], bench: Bench) -> Measured:
    """Each added GiB of shallow dumps, every batch kept, against DuckDB keeping the same lines."""
    inputs = [bench.dumps(gib) for gib in sizes_gib]
    per_gib, start_s = _per_gib(inputs, lambda folder: bench.seconds(bench.audit([folder], *words)))
    text_bytes, batches = (inputs[1][1][name] for name in ("text_bytes", "batches"))
    figures = {
        "s_per_gib": per_gib,
        "start_s": start_s,
        "cores": os.cpu_count() or 1,
        "text_bytes_per_batch": text_bytes / batches,
        "warehouse_share": _size_bytes(bench.warehouse) / text_bytes,
    }
    return Measured(per_gib, _per_gib(inputs, partial(_duckdb, bench))[0], f"{bench.s} per added GiB", figures)


def deep(bench: Bench) -> Measured:
    """Each added GiB of deep dumps against one of shallow dumps, by Spark's tasks."""
    of_deep, of_shallow = (
        _per_gib(inputs, lambda folder: bench.seconds(bench.audit([folder], *BY_SPARK)))[0]
        for inputs in ([bench.dumps(gib, is_deep=is_deep) for gib in (1, 3)] for is_deep in (True, False))
    )
    return Measured(of_deep, of_shallow, f"{bench.s} per added GiB", {})


def memory(bench: Bench) -> Measured:
    """The most memory that all processes of an audit by Spark have, 3 GiB of dumps against 1 GiB."""
    large, small = (bench.audit([bench.dumps(gib)[0]], *BY_SPARK).peak_memory_bytes / MIB for gib in (3, 1))
    return Measured(large, small, "MiB", {})


def fixed(bench: Bench) -> Measured:
    """A tiny audit against a bare session of Spark that writes one Delta table once."""
    folder = bench.work / "bare"
    shutil.rmtree(folder, ignore_errors=True)
    return Measured(
        bench.seconds(bench.tiny()), bench.seconds(run([sys.executable, "-c", _BARE, str(folder)])), bench.s, {}
    )


_BARE = """
import sys
from pyspark.sql import SparkSession
from tests.tools.delta_jars import delta_options
spark = SparkSession.builder.master("local[*]").config(map=delta_options()).getOrCreate()
spark.range(1).write.format("delta").save(sys.argv[1])
"""


def again(bench: Bench) -> Measured:
    """A second audit, with 1 % of new input, less a tiny one, against the first."""
    sizes = {name: int(gib * bench.scale * GIB) for name, gib in (("old", 3), ("new", 0.03))}
    files, _ = bench.made("again", lambda at: write_dumps([(at / n, size) for n, size in sizes.items()], PARTITIONS))
    old, new = (files / name for name in sizes)
    first = bench.audit([old], *BY_SPARK)
    kept = bench.work / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    bench.warehouse.rename(kept)
    second = bench.audit([old, new], *BY_SPARK, kept=kept)
    tiny_s = bench.seconds(bench.tiny(*BY_SPARK))
    return Measured(max(0.0, bench.seconds(second) - tiny_s), bench.seconds(first), bench.s, {})


def _log_dir(bench: Bench, gib: float) -> tuple[Path, Any]:
    size_bytes = int(gib * bench.scale * GIB)
    return bench.made(f"log-dir-{gib}", lambda folder: write_log_dir(folder, size_bytes, _SMALL_BATCH_BYTES))


def log_dir(bench: Bench) -> Measured:
    """Each batch of a log directory against `kafka-dump-log` making shallow text of it."""
    (small, few), (large, many) = (_log_dir(bench, gib) for gib in (1, 3))
    small_s, large_s = (bench.seconds(bench.audit([folder], *BY_SPARK)) for folder in (small, large))
    segments = sorted(small.rglob("*.log"))
    read_once(segments)
    theirs_s = bench.seconds(_kafkas(dump_tool(_KAFKA), "--files", ",".join(map(str, segments))))
    return Measured(
        (large_s - small_s) / (many - few) * 1e6, theirs_s / few * 1e6, f"{bench.s} per million batches", {}
    )


def partitions(bench: Bench) -> Measured:
    """Many partitions against the same batches in 16; both without what a tiny audit takes."""
    producers, count = bench.many(20_000, 20), bench.many(5_000, 16)
    wide = Width(count, 200, producers, producers, bench.many(500, 2))
    narrow = replace(wide, partitions=PARTITIONS, batches=count * 200 // PARTITIONS)
    taken_s = [bench.seconds(bench.wide(name, width)[0]) for name, width in (("wide", wide), ("narrow", narrow))]
    tiny_s = bench.seconds(bench.tiny())
    return Measured(taken_s[0] - tiny_s, taken_s[1] - tiny_s, f"{bench.s} over a tiny audit", {})


def state(form: StateForm, bench: Bench) -> Measured:
    """A GiB of `__transaction_state` against a GiB of batch lines; both without what a tiny audit takes."""
    ids = bench.many(300_000 * (4 if form is StateForm.BINARY else 1), 40)
    of_ids, of_state = bench.wide(f"ids-{form}", Width(20, 1_000, 20, ids, 4), form)
    lines, of_lines = bench.wide("lines", Width(PARTITIONS, bench.many(250_000, 1_600), 200, 200, 4))
    tiny_s = bench.seconds(bench.tiny())
    mine = (bench.seconds(of_ids) - tiny_s) / of_state.state_bytes * GIB
    return Measured(mine, (bench.seconds(lines) - tiny_s) / of_lines.log_bytes * GIB, f"{bench.s} per GiB", {})


def findings(bench: Bench) -> Measured:
    """Findings against 0.4 ms for each, without what a tiny audit takes."""
    taken_s = bench.seconds(_findings(bench)) - bench.seconds(bench.tiny())
    return Measured(taken_s * 1000 / bench.many(50_000, 4), 0.4, "ms for each", {})


def findings_memory(bench: Bench) -> Measured:
    """Memory of findings over that of a tiny audit, against 500 MiB."""
    return Measured((_findings(bench).peak_memory_bytes - bench.tiny().peak_memory_bytes) / MIB, 500, "MiB", {})


def _findings(bench: Bench) -> Finished:
    producers = bench.many(60_000, 20)
    return bench.wide("findings", Width(bench.many(500, 4), 300, producers, producers, bench.many(50_000, 4)))[0]


def folders(bench: Bench) -> Measured:
    """Log directories, for each folder over reading the same bytes in 16, against 1 ms."""
    count, producers = bench.many(20_000, 32), bench.many(4_000, 20)
    many = Width(count, 4, producers, producers, bench.many(100, 2))
    few = replace(many, partitions=PARTITIONS, batches=count * 4 // PARTITIONS)
    many_s, few_s = (
        bench.seconds(bench.wide(name, width, StateForm.BINARY)[0]) for name, width in (("many", many), ("few", few))
    )
    return Measured((many_s - few_s) / count * 1000, 1.0, "ms for each folder", {})


def _kafkas(tool: str, *words: str) -> Finished:
    """A tool of Kafka's, with Java's options as `kafka-run-class.sh` gives them."""
    try:
        jars = class_path(_KAFKA)
    except FetchError as error:
        raise FailedError(str(error)) from error
    return run(["java", "-Xmx256M", "-server", "-XX:+UseG1GC", *QUIET, "-cp", jars, tool, *words])


def questions(bench: Bench) -> Measured:
    """The median question about a small run, against 0.6 s."""
    bench.tiny()
    return Measured(statistics.median(_asked(bench, bench.warehouse)), 0.6, bench.s, {})


def nights(bench: Bench) -> Measured:
    """The slowest question in a warehouse of 400 nights, against one of ten."""
    many, few = (
        bench.made(f"{count}-nights", partial(_nights, bench, count))[0] for count in (bench.many(400, 12), 10)
    )
    return Measured(max(_asked(bench, many)), max(_asked(bench, few)), bench.s, {})


def _nights(bench: Bench, count: int, warehouse: Path) -> int:
    for night in range(count):
        of_night = ("--capture", f"night-{night:04}", "--now", str(_FIRST_NIGHT_MS + night * _DAY_MS))
        bench.ask("audit", *_OF_TINY, *of_night, "--quiet", "--exit-zero", "--warehouse", warehouse, *_TINY)
    return count


def _asked(bench: Bench, warehouse: Path) -> list[float]:
    words = ("--exit-zero", "--quiet", "--warehouse", warehouse)
    return [bench.seconds(bench.ask(*question.split(), *words)) for question in _QUESTIONS]


# A limit is the target, or where that is missed (deep 1.0, binary state 2.0, findings 1.0) what holds with a margin.
ROWS = (
    Row("dumps-spark", "shallow dumps by Spark, against DuckDB keeping them", 1.0, partial(dumps, (1, 3), BY_SPARK)),
    Row("dumps", "the same in the command's own process", 1.25, partial(dumps, (0.3, 0.9), ("--engine", "local"))),
    Row("deep", "deep dumps against shallow ones, for the same bytes", 1.7, deep),
    Row("memory", "peak memory, 3 GiB of dumps against 1 GiB", 1.2, memory),
    Row("fixed", "a tiny audit against a bare session and one Delta write", 0.75, fixed),
    Row("again", "a second audit with 1 % new input against the first", 0.1, again),
    Row("log-dir", "a log directory against `kafka-dump-log` making text of it", 0.2, log_dir),
    Row("partitions", "5,000 partitions against the same batches in 16", 1.5, partitions),
    Row("state-text", f"{_OF_STATE} as a dump's text", 4.0, partial(state, StateForm.DUMP_TEXT)),
    Row("state-json", f"{_OF_STATE} as a dump's JSON", 4.0, partial(state, StateForm.DUMP_JSON)),
    Row("state-console", f"{_OF_STATE} as a console's JSON", 4.0, partial(state, StateForm.CONSOLE_JSON)),
    Row("state-binary", f"{_OF_STATE} as log directories", 5.1, partial(state, StateForm.BINARY)),
    Row("findings", "50,000 findings, against 0.4 ms for each", 1.3, findings),
    Row("findings-memory", "their memory, against 500 MiB", 1.0, findings_memory),
    Row("folders", "20,000 folders, against 1 ms for each", 1.0, folders),
    Row("questions", "the median question about a small run, against 0.6 s", 1.0, questions),
    Row("nights", "the slowest question in 400 nights, against ten", 1.5, nights),
)
