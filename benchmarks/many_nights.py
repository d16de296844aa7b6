"""What questions cost in a warehouse of many nights, against one of ten: `python -m benchmarks.many_nights FOLDER`.

Then a copy of it is pruned to ninety nights: files and bytes before and after, and its questions once more.

The nights are simulated: all have the rows of two that are audited, of a real capture and of the same without one of
its logs. From the second tenth of the nights on that log is in it, so that findings come and stay.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.acceptance.captures import CASES, PARAMETERS
from txn_analysis.pipeline import steps
from txn_analysis.settings import Settings
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.storage.warehouse import commit_inputs, commit_run
from txn_analysis.tables import ABORT_PLAN, FINDINGS, INPUTS, PARTITION_HEALTH, RUNS
from txn_analysis.tables.inputs import ReadInput, RunRecord

CAPTURE = CASES / "kafka-4.2" / "capture-1"
FIRST_MS, DAY_MS = 1_795_230_000_000, 86_400_000
LATER = "orders-2"
QUESTIONS = (
    ("report",),
    ("report", "--format", "html"),
    ("report", "--format", "json"),
    ("find-hanging",),
    ("verify",),
    ("verify", "--history"),
)
FEW = 10
OF_RUNS = (FINDINGS, PARTITION_HEALTH, ABORT_PLAN)


def no_session() -> Any:
    """Nothing here needs Spark."""
    raise AssertionError("Spark was started")


def filled(folder: Path, nights: int) -> str:
    """A warehouse of so many nights: two are audited, and all others have their rows by other names."""
    files = [file for part in ("segments", "transaction-state") for file in sorted((CAPTURE / part).iterdir())]
    few = [file for file in files if LATER not in file.name]
    models = [_audited(folder, night, paths) for night, paths in ((0, few), (nights - 1, files))]
    warehouse = open_warehouse(no_session, str(folder))
    runs = {run.run_id: run for run in warehouse.records(RunRecord, RUNS)}
    rows = {(table.name, run_id): warehouse.held(table, run_id=[run_id]) for table in OF_RUNS for run_id in models}
    inputs = warehouse.records(ReadInput, INPUTS, capture=[_name(nights - 1)])
    for night in range(1, nights - 1):
        model = models[night >= nights // 10]
        run_id, behind = f"run-{night:016x}", tuple(_name(number) for number in range(night))
        commit_inputs(warehouse, [one._replace(capture=_name(night)) for one in inputs], inputs)
        for table in OF_RUNS:
            own = rows[table.name, model].drop_columns("run_id")
            named = own.append_column("run_id", pa.array([run_id] * len(own), pa.string()))
            kept = named.select(table.names).cast(table.arrow_schema)
            warehouse.replace(kept.to_batches(), table, run_id=run_id)
        of_night = runs[model]._replace(run_id=run_id, capture=_name(night), as_of_ms=FIRST_MS + night * DAY_MS)
        commit_run(warehouse, of_night._replace(earlier_captures=behind))
    last = runs[models[-1]]._replace(earlier_captures=tuple(_name(number) for number in range(nights - 1)))
    commit_run(warehouse, last)
    return str(folder)


def _audited(folder: Path, night: int, paths: list[Path]) -> str:
    known = {"warehouse": str(folder), "capture": _name(night), "as_of_ms": FIRST_MS + night * DAY_MS}
    settings = Settings.model_validate(PARAMETERS | known)
    return steps.audit(no_session, [str(path) for path in paths], settings).run.run_id


def _name(night: int) -> str:
    return f"night-{night:04}"


def cpu_s(words: tuple[str, ...], warehouse: str) -> float:
    """Seconds of processor time of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "txn_analysis", *words, "--warehouse", warehouse, "--exit-zero", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pruned(warehouse: Path) -> Path:
    """A copy of a warehouse without what is older than ninety nights; prints files and bytes before and after."""
    copy = shutil.copytree(warehouse, warehouse.with_name(f"{warehouse.name}-pruned"))
    print("| warehouse | files | of them data | MiB |\n|---|---|---|---|")
    print(_line("before", copy))
    command = [sys.executable, "-m", "txn_analysis", "prune", "--keep", "90d", "--grace", "0m"]
    for _ in range(3):  # the log of a table is cut behind the second checkpoint
        subprocess.run([*command, "--warehouse", str(copy), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    print(_line("after `prune --keep 90d`", copy), flush=True)
    return copy


def _line(name: str, folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file()]
    data = [path for path in files if path.parent.name != "_delta_log"]
    return f"| {name} | {len(files)} | {len(data)} | {sum(path.stat().st_size for path in files) / (1 << 20):.1f} |"


def main() -> None:
    """Fill two warehouses, and ask them in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nights", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    places = [(n, given.folder / f"nights-{n}") for n in (FEW, given.nights)]
    held = [str(folder) if folder.exists() else filled(folder, nights) for nights, folder in places]
    held.append(str(pruned(places[-1][1])))
    heads = f"| question | s, {FEW} nights | s, {given.nights} nights | ratio | s, pruned | ratio |"
    print(f"{heads}\n|---|---|---|---|---|---|")
    for words in QUESTIONS:
        taken = [[cpu_s(words, warehouse) for warehouse in held] for _ in range(given.repeats)]
        few, many, less = (statistics.median(column) for column in zip(*taken, strict=True))
        ratios = f"{many:.2f} | {many / few:.2f} | {less:.2f} | {less / few:.2f}"
        print(f"| `{' '.join(words)}` | {few:.2f} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
