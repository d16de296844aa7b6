"""What questions cost in a warehouse of many nights, against one of ten: `python -m benchmarks.many_nights FOLDER`.

A copy of it is pruned to ninety nights: files and bytes before and after, and its questions once more. All of it is
a section of `benchmarks/RESULTS.md`.

The nights are simulated, ten by ten. On the first three of ten nights a log of a real capture is missing; with it comes
a hanging transaction, which stays. On the last four nights another one is repaired: they have the rows of the real
capture that was made after its abort. On the next night that one returns. What came with the log is accepted until
three nights before the last one, and then returns as well. One night of each kind is audited, and so is the last one;
all others have the rows of such a night by other names.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from benchmarks import results
from benchmarks.report import machine, table, today
from tests.tools.captures import PARAMETERS
from tests.tools.repository import CASES
from txn_analysis.pipeline import steps
from txn_analysis.plan.standing import decision_about
from txn_analysis.runs.decisions import keep, wanted_findings
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.settings import Settings
from txn_analysis.storage.commits import commit_inputs, commit_run
from txn_analysis.storage.opening import open_warehouse
from txn_analysis.tables import ABORT_PLAN, FINDINGS, INPUTS, PARTITION_HEALTH, RUNS
from txn_analysis.tables.inputs import ReadInput, RunRecord

BEFORE, AFTER = (CASES / "kafka-4.2" / f"capture-{number}" for number in (1, 3))
FIRST_MS, DAY_MS = 1_795_230_000_000, 86_400_000
LATER, ACCEPTED = "orders-2", "orders-2@155"
CYCLE = 10
BEGINS = (0, 3, 6)  # of ten nights those from which on the rows are others
ACCEPTED_UNTIL = 3  # nights before the last one
QUESTIONS = (
    ("report",),
    ("report", "--format", "html"),
    ("report", "--format", "json"),
    ("find-hanging",),
    ("verify",),
    ("verify", "--history"),
    ("ended", "--by", "application"),
    ("captures",),
    ("captures", "--format", "html"),
)
FEW = 10
OF_RUNS = (FINDINGS, PARTITION_HEALTH, ABORT_PLAN)


def no_session() -> Any:
    """Nothing here needs Spark."""
    raise AssertionError("Spark was started")


class Model(NamedTuple):
    """A night that was audited: its run, its files, and its rows by table."""

    run: RunRecord
    inputs: list[ReadInput]
    rows: dict[str, pa.Table]


def filled(folder: Path, nights: int) -> str:
    """A warehouse of so many nights, in their order."""
    models: dict[int, Model] = {}
    for night in range(nights):
        begins = max(begin for begin in BEGINS if begin <= night % CYCLE)
        if begins not in models:
            models[begins] = _audited(folder, night, _files(begins))
        elif night == nights - 1:
            _audited(folder, night, _files(begins))
        else:
            _copied(folder, night, models[begins])
    last = models[BEGINS[-1]].run
    tables = run_tables(open_warehouse(no_session, str(folder)), last.cluster, last.run_id)
    until_ms = FIRST_MS + (nights - ACCEPTED_UNTIL) * DAY_MS
    (found,) = wanted_findings(tables.findings(), [ACCEPTED], last.run_id)
    keep(
        Settings(warehouse=str(folder)),
        [decision_about(found, last.cluster, until_ms, "the topic goes", "a benchmark")],
    )
    return str(folder)


def _files(begins: int) -> list[Path]:
    capture = AFTER if begins == BEGINS[-1] else BEFORE
    files = [file for part in ("segments", "transaction-state") for file in sorted((capture / part).iterdir())]
    return [file for file in files if begins or LATER not in file.name]


def _audited(folder: Path, night: int, paths: list[Path]) -> Model:
    known = {"warehouse": str(folder), "capture": _name(night), "as_of_ms": FIRST_MS + night * DAY_MS}
    settings = Settings.model_validate(PARAMETERS | known)
    run_id = steps.audit(no_session, [str(path) for path in paths], settings).run.run_id
    warehouse = open_warehouse(no_session, str(folder))
    (run,) = warehouse.records(RunRecord, RUNS, run_id=[run_id])
    rows = {table.name: warehouse.held(table, run_id=[run_id]) for table in OF_RUNS}
    return Model(run, warehouse.records(ReadInput, INPUTS, capture=[_name(night)]), rows)


def _copied(folder: Path, night: int, model: Model) -> None:
    """One night more, with the rows of one that was audited."""
    warehouse, run_id = open_warehouse(no_session, str(folder)), f"run-{night:016x}"
    commit_inputs(warehouse, [one._replace(capture=_name(night)) for one in model.inputs], model.inputs)
    for each in OF_RUNS:
        own = model.rows[each.name].drop_columns("run_id")
        named = own.append_column("run_id", pa.array([run_id] * len(own), pa.string()))
        warehouse.replace(named.select(each.names).cast(each.arrow_schema).to_batches(), each, run_id=run_id)
    behind = tuple(_name(number) for number in range(night))
    of_night = model.run._replace(run_id=run_id, capture=_name(night), as_of_ms=FIRST_MS + night * DAY_MS)
    commit_run(warehouse, of_night._replace(earlier_captures=behind))


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
    """A copy of a warehouse without what is older than ninety nights."""
    copy = shutil.copytree(warehouse, warehouse.with_name(f"{warehouse.name}-pruned"))
    command = [sys.executable, "-m", "txn_analysis", "forget", "--older-than", "90d", "--grace", "0m"]
    for _ in range(3):  # the log of a table is cut behind the second checkpoint
        subprocess.run([*command, "--warehouse", str(copy), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return copy


def _sized(name: str, folder: Path) -> tuple[str, ...]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    data = [path for path in files if path.parent.name != "_delta_log"]
    size_mib = sum(path.stat().st_size for path in files) / (1 << 20)
    return name, str(len(files)), str(len(data)), f"{size_mib:.1f}"


def _asked(words: tuple[str, ...], warehouses: list[str], repeats: int) -> tuple[str, ...]:
    """One question in all warehouses, in turns."""
    taken = [[cpu_s(words, warehouse) for warehouse in warehouses] for _ in range(repeats)]
    few, many, less = (statistics.median(column) for column in zip(*taken, strict=True))
    figures = (few, many, many / few, less, less / few)
    print(" ".join(words), *(f"{figure:.2f}" for figure in figures), flush=True)
    return f"`{' '.join(words)}`", *(f"{figure:.2f}" for figure in figures)


_TEXT = """## Many nights

Seconds of processor time of one command in a warehouse of {nights} simulated nights against one of {few}, and in the
same after `forget --older-than 90d`. Findings come, stay, are repaired, accepted, and return. `verify --history` tells
of every night, and reads every night.

`{command}` on {day}: {machine}; medians of {repeats} runs, in turns."""


def section(nights: int, repeats: int, asked: list[tuple[str, ...]], sized: list[tuple[str, ...]]) -> str:
    """The section of the page."""
    command = f"python -m benchmarks.many_nights FOLDER --nights {nights} --repeats {repeats}"
    head = _TEXT.format(nights=nights, few=FEW, command=command, day=today(), machine=machine(), repeats=repeats)
    questions = table(["question", f"{FEW} nights", f"{nights} nights", "ratio", "pruned", "ratio"], asked)
    return "\n\n".join((head, questions, table([f"{nights} nights", "files", "of them data", "MiB"], sized)))


def main() -> None:
    """Fill two warehouses, ask them in turns, and write the section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_nights", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nights", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    places = [(n, given.folder / f"nights-{n}") for n in (FEW, given.nights)]
    held = [str(folder) if folder.exists() else filled(folder, nights) for nights, folder in places]
    held.append(str(pruned(places[-1][1])))
    sized = [_sized("before", places[-1][1]), _sized("after `forget --older-than 90d`", Path(held[-1]))]
    found = section(given.nights, given.repeats, [_asked(words, held, given.repeats) for words in QUESTIONS], sized)
    print(found)
    results.write(found)


if __name__ == "__main__":
    main()
