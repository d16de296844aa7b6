"""`make reach`: whole commands with their files in a bucket; a table of what each costs, and whether tables are equal.

Each cell is a process of its own. Seconds are the wall's and the processor's, of the command alone; requests and bytes
are counted by the proxy before the server.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.reach.cells import CASES, IN_BUCKET, KINDS, OTHERS, QUESTIONS, TEXTS, THERE, WORDS, Cells, stored
from tests.reach.emulators import emulators
from tests.reach.executors import executors
from tests.reach.gateway import BUCKET, build, gateway
from tests.reach.processes import Ran, run, started
from tests.reach.reading import WAYS
from tests.reach.sizes import GIB, dumps, objects, segments
from tests.reach.yarn import on_yarn, packed
from txn_analysis.stores.store import store_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.faults.scene import Tables
    from tests.reach.gateway import Counts, Gateway

_LOOK_AGAIN_S = 0.002
_LONGEST_S = 300


def reach(folder: Path) -> list[str]:
    """Every cell; what did not hold, a line each."""
    cells = Cells()
    print("| what | outcome | s | CPU s | requests | MiB read |\n|---|---|---:|---:|---:|---:|")
    with gateway(folder) as server:
        os.environ.update(server.environment)
        for path in sorted(path for path in CASES.rglob("*") if path.is_file()):
            key = f"cases/{path.relative_to(CASES)}"
            store_at(THERE).put(key, path.read_bytes())
        expected = _where_by_where(cells, server, folder)
        _questions(cells, server)
        _two_at_once(cells, server, folder)
        _killed(cells, server, folder, expected["texts"])
    _with_faults(cells, folder, expected["texts"])
    with gateway(folder) as server:
        store_at.cache_clear()
        os.environ.update(server.environment)
        _by_spark(cells, server, expected)
    on_yarn(cells, folder / "hadoop", expected)
    return cells.wrong


def _where_by_where(cells: Cells, server: Gateway, folder: Path) -> dict[str, Tables]:
    """Inputs and warehouse, here and there, in the command's own process; the tables of each kind of input."""
    expected: dict[str, Tables] = {}
    for name, parts in KINDS.items():
        for cases in (str(CASES), IN_BUCKET):
            for place in (str(folder / "warehouses"), f"{THERE}/warehouses"):
                warehouse = f"{place}/{name}-{'here' if cases == str(CASES) else 'there'}"
                ran, counts = _audit(server, cases, parts, warehouse)
                found = stored(warehouse, cases)
                first = expected.setdefault(name, found)
                what = f"{name} {_said(cases)}, warehouse {_said(warehouse)}"
                cells.row(what, ran, counts, is_right=ran.code == 0 and found == first and any(found["findings"]))
    return expected


def _by_spark(cells: Cells, server: Gateway, expected: dict[str, Tables]) -> None:
    """From the bucket into the bucket by Spark's tasks."""
    for name, parts in KINDS.items():
        warehouse = f"{THERE}/warehouses/{name}-by-spark"
        ran, counts = _audit(server, IN_BUCKET, parts, warehouse, "--engine", "spark")
        is_right = ran.code == 0 and stored(warehouse, IN_BUCKET) == expected[name]
        cells.row(f"{name} in a bucket, warehouse in a bucket, `--engine spark`", ran, counts, is_right=is_right)


def _audit(server: Gateway, cases: str, parts: Sequence[str], warehouse: str, *words: str) -> tuple[Ran, Counts]:
    server.counts()
    paths = [f"{cases}/{part}" for part in parts]
    ran = run(server.environment, "audit", *paths, *WORDS, *words, "--warehouse", warehouse)
    return ran, server.counts()


def _said(place: str) -> str:
    return "in a bucket" if "://" in place else "on a disk"


def _questions(cells: Cells, server: Gateway) -> None:
    warehouse = f"{THERE}/warehouses/texts-there"
    for words in QUESTIONS:
        server.counts()
        ran = run(server.environment, *words.split(), "--warehouse", warehouse)
        cells.row(f"`{words}` from a bucket", ran, server.counts(), is_right=ran.code in {0, 1, 3}, said="answered")


def _two_at_once(cells: Cells, server: Gateway, folder: Path) -> None:
    """Four audits of two captures begin together; their tables are those of two audits, one after another."""
    for place, at_once in ((f"{folder}/warehouses/in-turn", False), (f"{THERE}/warehouses/at-once", True)):
        commands = [
            ("audit", *(f"{IN_BUCKET}/{part}" for part in parts), *WORDS, "--capture", name, "--warehouse", place)
            for name, parts in (("one", TEXTS), ("two", OTHERS))
        ]
        server.counts()
        began = time.monotonic()
        if at_once:
            processes = [
                started(server.environment, *words, out=subprocess.DEVNULL, err=subprocess.DEVNULL)
                for words in commands * 2
            ]
            codes = [process.wait(_LONGEST_S) for process in processes]
        else:
            codes = [run(server.environment, *words).code for words in commands]
        ran, counts = Ran(max(codes), "", "", time.monotonic() - began, 0.0), server.counts()
        found = _evidence(stored(place, IN_BUCKET))
        if not at_once:
            expected = found
    cells.row("four audits of two captures at once into one bucket", ran, counts, is_right=found == expected)


def _evidence(found: Tables) -> Tables:
    """What is read of files; which audit saw the other's capture is chance."""
    names = ("inputs", "log_batches", "log_pieces", "transaction_states", "ended_transactions", "producer_snapshots")
    return {name: sorted({_without_ingest(row) for row in found[name]}) for name in names}


def _without_ingest(row: str) -> str:
    values = json.loads(row)
    values.pop("ingest_id")
    return json.dumps(values, sort_keys=True)


def _killed(cells: Cells, server: Gateway, folder: Path, expected: Tables) -> None:
    """Killed when the first data file of a table is there, which no commit names yet; then the same command again."""
    for table in ("log_batches", "findings"):
        warehouse = f"{THERE}/warehouses/killed-{table}"
        words = ("audit", *(f"{IN_BUCKET}/{part}" for part in TEXTS), *WORDS, "--warehouse", warehouse)
        process = started(server.environment, *words, out=subprocess.DEVNULL, err=subprocess.DEVNULL)
        here = folder / "objects" / BUCKET / "warehouses" / f"killed-{table}" / table
        while process.poll() is None and next(here.rglob("part-*"), None) is None:
            time.sleep(_LOOK_AGAIN_S)
        process.kill()
        was_killed = process.wait() < 0
        is_committed = (here / "_delta_log" / f"{1:020}.json").exists()
        server.counts()
        ran = run(server.environment, *words)
        is_right = was_killed and stored(warehouse, IN_BUCKET) == expected
        when = "after" if is_committed else "before"
        cells.row(f"killed {when} the commit of `{table}`, and again", ran, server.counts(), is_right=is_right)


def _with_faults(cells: Cells, folder: Path, expected: Tables) -> None:
    words = ("audit", *(f"{IN_BUCKET}/{part}" for part in TEXTS), *WORDS, "--warehouse")
    for number, faults in enumerate((("-fail", "5"), ("-cut", "3"), ("-delay", "100ms"))):
        with gateway(folder, 7090, *faults) as server:
            store_at.cache_clear()
            os.environ.update(server.environment)
            warehouse = f"{THERE}/warehouses/faults-{number}"
            ran = run(server.environment, *words, warehouse)
            counts = server.counts()
        with gateway(folder, 7090) as server:
            is_right = ran.code == 0 and stored(warehouse, IN_BUCKET) == expected
        cells.row(f"a store with `{' '.join(faults)}`", ran, counts, is_right=is_right)
    for only, place in (
        ("cases", str(folder / "warehouses/refused")),
        ("warehouses/refused", f"{THERE}/warehouses/refused"),
    ):
        for status in ("403", "503"):
            with gateway(folder, 7090, "-fail", "1", "-status", status, "-only", only) as server:
                ran = run(server.environment, *words, place)
                lines = [line for line in ran.err.splitlines() if line.startswith("error: ")]
                counts = server.counts()
            is_right = ran.code == 2 and 0 < len(lines) <= len(TEXTS) and status in lines[0]  # one for each path
            is_right = is_right and "Traceback" not in ran.err
            cells.row(f"`{status}` for {only}", ran, counts, is_right=is_right, said=lines[0] if lines else "no line")


class Part(NamedTuple):
    """A table of its own; `make` gives lines of what did not hold.

    Attributes:
        size: how much it takes by default, in units.
        unit: bytes, or objects.
        of_what: what that is.
    """

    size: float
    unit: int
    of_what: str
    make: Callable[[Path, int], Iterable[str]]


PARTS = {
    "cells": Part(1, 1, "table of whole commands, by where files and warehouse are", lambda folder, _: reach(folder)),
    "segments": Part(0.125, GIB, "GiB of segments, by headers alone and whole", segments),
    "dumps": Part(0.125, GIB, "GiB of dumps, from a disk and from the bucket", dumps),
    "objects": Part(2000, 1, "tiny objects: listed, surveyed, read", objects),
    "executors": Part(1, 1, "table of audits whose executors fail", executors),
    "packed": Part(1, 1, "table of whole commands, with Python and all packages brought along to YARN", packed),
    "emulators": Part(1, 1, "table of whole commands, with emulators of Azure's store and Google's", emulators),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables of some parts. Returns the exit code."""
    lines = [f"{name}: {part.size:g} {part.of_what}" for name, part in PARTS.items()]
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m tests.reach", description="\n".join(["Parts, and their sizes:", *lines]), formatter_class=form
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="all of them by default")
    parser.add_argument("--size", type=float, help="instead of that of each part")
    parser.add_argument("--way", choices=[*WAYS], action="append", help="of `segments`; all by default")
    given = parser.parse_args(arguments)
    build()
    wrong = list[str]()
    for name in given.parts or PARTS:
        part = PARTS[name]
        folder = Path(tempfile.mkdtemp(prefix="reach-"))
        try:
            make = partial(segments, ways=given.way) if name == "segments" and given.way else part.make
            wrong += make(folder, int((given.size or part.size) * part.unit))
        finally:
            shutil.rmtree(folder)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
