"""`make bench-wide`: what wide captures cost, as ratios within one run; its section of `benchmarks/RESULTS.md`.

`--check` holds the ratios against those that were committed in `benchmarks/wide.json`, and ends with 1 where one is
more than a quarter above. It asks for CPU seconds in place of seconds, which are alike on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import results, sizing
from benchmarks.processes import FailedError
from benchmarks.report import machine, table, today
from benchmarks.targets import NotMeasurableError
from benchmarks.versions import Version
from benchmarks.wide import model
from benchmarks.wide.cases import Bench, WrongAnswerError, cases
from benchmarks.wide.rows import ROWS, by_cpu, of_before

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.steps import Figures
    from benchmarks.wide.rows import Row

COMMITTED = Path(__file__).parents[1] / "wide.json"

_WORSE_BY = 1.25
# Below this a ratio is noise: nothing is shuffled, or no file is open.
_LEAST = 1e-3
_TEXT = """## Wide captures{rows}

Written by `python -m benchmarks.wide {words}` on {day}, on {machine}. Each capture was
made with its answer, and was audited in this process, where it fits, and by Spark's tasks; every answer is the known
one. Memory is that of all processes of an audit together."""
_WIDTH = """The scale is of {partitions:,} partitions, {ids:,} transactional ids, {hanging:,} hanging transactions,
{folders:,} folders of small segments, and {expired:,} ids that expire in one night."""


def measure(bench: Bench, rows: Sequence[Row], scale: float, repeats: int) -> tuple[Figures, dict[str, str]]:
    """The figures that the rows need, and why captures failed that did.

    Each round takes all captures: a slow minute of the machine is not one capture's.
    """
    figures: Figures = {}
    failures: dict[str, str] = {}
    needed = {name for row in rows for name in row.target.needs}
    for name, case in [item for item in cases(scale).items() if item[0] in needed] * repeats:
        if name in failures:
            continue
        began = time.monotonic()
        extras = sorted({extra for row in rows for of, extra in row.extras if of == name})
        try:
            figures = bench.measured(name, case, extras, figures)
            figures |= {f"{name}_{kind}": getattr(case.width, kind) for kind in ("partitions", "producers", "ids")}
            outcome = f"{figures[f'{name}_s']:.1f} s"
        except (FailedError, WrongAnswerError) as error:
            failures[name] = str(error).replace(f"{bench.work}/", "")
            outcome = f"not available ({failures[name]})"
        print(f"{name}: {outcome}, {time.monotonic() - began:.0f} s in all", file=sys.stderr, flush=True)
    return figures, failures


def ratios(rows: Sequence[Row], figures: Figures) -> dict[str, float]:
    """Of each row that could be measured its ratio, in CPU seconds where it is of seconds."""
    found = {}
    for row in rows:
        try:
            found[row.name] = row.target.measure(by_cpu(figures)).ratio
        except (KeyError, NotMeasurableError):
            continue
    return found


def worse(found: Mapping[str, float], committed: Mapping[str, float]) -> list[str]:
    """A line for each row that is more than a quarter above what was committed, or could not be measured any more."""
    lines = []
    for name, before in committed.items():
        if name not in found:
            lines.append(f"{name}: not available, {before:.3g} x was committed")
        elif found[name] > max(before, _LEAST) * _WORSE_BY:
            lines.append(f"{name}: {found[name]:.3g} x, {before:.3g} x was committed")
    return lines


def section(rows: Sequence[Row], figures: Figures, failures: Mapping[str, str], chosen: argparse.Namespace) -> str:
    """The section of the page."""
    own = cases(chosen.scale)
    has_before = any("_before" in name for name in figures)
    lines = []
    for row in rows:
        line = [*row.target.line(figures, failures), _ratio(row, by_cpu(figures))]
        lines.append([*line, _ratio(row, of_before(figures))] if has_before else line)
    head = _TEXT.format(
        rows=f": {', '.join(chosen.only)}" if chosen.only else "",
        words=_words(chosen),
        day=today(),
        machine=machine(),
    )
    width = _WIDTH.format(
        partitions=own["wide"].width.partitions,
        ids=own["ids_json"].width.ids,
        hanging=own["findings"].width.hanging,
        folders=own["folders"].width.partitions,
        expired=own["expired"].width.expired,
    )
    names = ["what", "target", "measured", "ratio", "in CPU seconds", *["before"] * has_before]
    text = head if chosen.only else f"{head}\n{width}"
    return f"{text}\n\n{table(names, lines)}\n\n{_captures(figures)}"


def _words(chosen: argparse.Namespace) -> str:
    repeats = f" --repeats {chosen.repeats}" if chosen.repeats > 1 else ""
    return f"--scale {chosen.scale:g}{repeats}{' --only ' if chosen.only else ''}{' '.join(chosen.only or [])}"


def _ratio(row: Row, figures: Figures) -> str:
    try:
        return f"{row.target.measure(figures).ratio:.3g} x"
    except (KeyError, NotMeasurableError):
        return ""


def _captures(figures: Figures) -> str:
    rows = [
        [
            f"`{name}`",
            *(f"{figures[f'{name}_{kind}_bytes'] / 1e6:.0f} MB" for kind in ("log", "state")),
            *(_cost(figures, f"{name}{by}") for by in ("_before", "_local", "_spark")),
        ]
        for name in (key.removesuffix("_log_bytes") for key in figures if key.endswith("_log_bytes"))
    ]
    return table(["capture", "logs", "state", "before", "in this process", "by Spark's tasks"], rows)


def _cost(figures: Figures, name: str) -> str:
    if f"{name}_s" not in figures:
        return ""
    seconds, cpu_s, memory = (figures[f"{name}_{kind}"] for kind in ("s", "cpu_s", "memory_bytes"))
    return f"{seconds:.1f} s, {cpu_s:.1f} CPU s, {memory / 2**20:.0f} MiB"


def checked_out(commit: str, folder: Path) -> Version:
    """An earlier version in a folder of its own."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], stdout=subprocess.PIPE, check=True).stdout  # noqa: S607 whoever checks out has it
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)  # noqa: S607 the same
    return Version(folder)


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.25, help="of all that is many [0.25]")
    parser.add_argument("--repeats", type=int, default=1, help="so many rounds; the fastest audit of each counts [1]")
    parser.add_argument("--before", metavar="COMMIT", help="an earlier version, which audits in turns with this one")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[row.name for row in ROWS],
        help="some rows [all that are not hidden at the scale by what Spark takes to start]",
    )
    parser.add_argument(
        "--check", action="store_true", help="hold the ratios against the committed ones, and write nothing"
    )
    parser.add_argument("--dry", action="store_true", help="print the results without writing files of the project")
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir()), help="folder for inputs and tables [$TMPDIR]"
    )
    return parser.parse_args()  # fmt: skip


def main() -> int:
    """Measure, print and write; 1 where an answer is wrong, or a ratio worse than it was."""
    chosen = options()
    rows = [row for row in ROWS if (row.name in chosen.only if chosen.only else row.from_scale <= chosen.scale)]
    scale = f"{chosen.scale:g}"
    with tempfile.TemporaryDirectory(dir=chosen.work, prefix="bench-wide-") as work:
        before = checked_out(chosen.before, Path(work, "before")) if chosen.before else None
        bench = Bench(Path(work), before, is_by_both=not chosen.check)
        figures, failures = measure(bench, rows, chosen.scale, chosen.repeats)
    found = ratios(rows, figures)
    page = section(rows, figures, failures, chosen)
    print(page)
    kept = json.loads(COMMITTED.read_text(encoding="utf-8")) if COMMITTED.exists() else {}
    if chosen.check:
        committed = kept.get(scale, {})
        problems = worse(found, {row.name: committed[row.name] for row in rows if row.name in committed})
        if not committed:
            problems.append(f"nothing is committed at scale {scale}")
    else:
        problems = [f"{name}: {why}" for name, why in failures.items()]
        if not chosen.dry:
            results.write(page)
            kept[scale] = (kept.get(scale, {}) if chosen.only else {}) | found
            if "goal" in found:
                kept["model"] = model.kept(figures, chosen.scale)
            COMMITTED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            sizing.PAGE.write_text(sizing.page(), encoding="utf-8")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
