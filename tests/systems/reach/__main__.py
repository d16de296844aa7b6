"""`make reach`: whole commands from HDFS into HDFS, by YARN; a line for each says whether its tables are equal.

Hadoop's servers run on loopback. Each command is a process of its own; seconds are the wall's and the processor's.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.systems.reach.cells import CASES, KINDS, WORDS, Cells, stored
from tests.systems.reach.processes import run
from tests.systems.reach.yarn import on_yarn, packed
from tests.tools.scene import Tables


def installed(folder: Path) -> list[str]:
    """The package is on the nodes; what did not hold, a line each."""
    cells = Cells()
    on_yarn(cells, folder / "hadoop", {name: _on_disk(folder, name) for name in KINDS})
    return cells.wrong


def _on_disk(folder: Path, name: str) -> Tables:
    warehouse = str(folder / "warehouses" / name)
    run({}, "audit", *(f"{CASES}/{part}" for part in KINDS[name]), *WORDS, "--warehouse", warehouse)
    return stored(warehouse, str(CASES))


PARTS: dict[str, Callable[[Path], list[str]]] = {"installed": installed, "packed": packed}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables of some parts. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.systems.reach", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{' or '.join(PARTS)}; both by default")
    wrong = list[str]()
    print("| what | outcome | s | CPU s |\n|---|---|---:|---:|")
    for name in parser.parse_args(arguments).parts or PARTS:
        folder = Path(tempfile.mkdtemp(prefix="reach-"))
        try:
            wrong += PARTS[name](folder)
        finally:
            shutil.rmtree(folder)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
