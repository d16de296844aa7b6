"""The captures of the bench, each wide in one way, and what is measured of them."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.audits import audit
from benchmarks.processes import FailedError, one_core, run
from benchmarks.versions import THIS
from benchmarks.wide.capture import StateForm, write_capture
from benchmarks.wide.history import LIVE, Hanging, History, Width

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.audits import Audit
    from benchmarks.steps import Figures
    from benchmarks.versions import Version

_ENGINES = ("local", "spark")
_TOO_MUCH = "--engine local:"


class WrongAnswerError(Exception):
    """An audit found other transactions hanging than those that hang."""


@dataclass(frozen=True)
class Case:
    """One capture."""

    width: Width
    form: StateForm = StateForm.DUMP_JSON

    @property
    def words(self) -> list[str]:
        """The options that are true of it."""
        words = ["--transaction-state-partitions", str(self.width.state_partitions), "--max-clock-skew-ms", "0"]
        return [*words, "--transaction-state-complete"] if self.form is StateForm.CONSOLE_JSON else words


def cases(scale: float) -> dict[str, Case]:
    """Every capture by its name.

    Args:
        scale: of everything that is many; 1 is a cluster of 5,000 partitions, 300,000 ids, 50,000 hanging transactions,
            20,000 folders, a million ids that expire.
    """

    def scaled(count: int, least: int = 1) -> int:
        return max(least, round(count * scale))

    producers, ids = scaled(20_000, 20), scaled(300_000, 40)
    wide = Width(scaled(5_000, 16), 200, producers, producers, scaled(500, 2))
    # These two have 300 MB at a quarter of the scale: of less, what a process loads once would be half of the time.
    lines = Width(16, scaled(250_000, 1_600), 200, 200, 4)
    of_ids = Width(20, 1_000, 20, ids, 4)
    binary_ids = replace(of_ids, ids=4 * ids)
    # As many records of the state, by a hundredth of the ids.
    few = replace(of_ids, ids=max(20, ids // 100), transactions_per_id=233)
    findings = Width(scaled(500, 4), 300, scaled(60_000, 20), scaled(60_000, 20), scaled(50_000, 4))
    folders = Width(scaled(20_000, 16), 4, scaled(4_000, 20), scaled(4_000, 20), scaled(100, 2))
    offsets = Width(100, scaled(2_000, 20), scaled(4_000, 40), scaled(4_000, 40), scaled(100, 2))
    goal_ids = scaled(1_000_000, 40)
    goal = Width(scaled(20_000, 16), 200, goal_ids, goal_ids, scaled(5_000, 2))
    return {
        "tiny": Case(Width()),
        "narrow": Case(replace(wide, partitions=16, batches=wide.partitions * 200 // 16)),
        "wide": Case(wide),
        "wide_quarter": Case(replace(wide, partitions=max(4, wide.partitions // 4))),
        "lines": Case(lines),
        "lines_quarter": Case(replace(lines, batches=lines.batches // 4)),
        "ids_json": Case(of_ids),
        "ids_quarter": Case(replace(of_ids, ids=max(20, ids // 4))),
        "ids_few": Case(few),
        "ids_text": Case(of_ids, StateForm.DUMP_TEXT),
        "ids_console": Case(of_ids, StateForm.CONSOLE_JSON),
        "ids_binary": Case(binary_ids, StateForm.BINARY),
        "expired": Case(replace(of_ids, ids=20, expired=scaled(1_000_000))),
        "findings": Case(findings),
        "findings_quarter": Case(replace(findings, hanging=max(2, findings.hanging // 4))),
        "folders": Case(folders, StateForm.BINARY),
        "folders_quarter": Case(replace(folders, partitions=max(4, folders.partitions // 4)), StateForm.BINARY),
        "folders_few": Case(replace(folders, partitions=16, batches=folders.partitions * 4 // 16), StateForm.BINARY),
        "offsets_low": Case(offsets),
        "offsets_high": Case(replace(offsets, first_offset=20_000_000_000)),
        "goal": Case(goal),
    }


@dataclass(frozen=True)
class Bench:
    """Where captures are measured, and by what.

    Attributes:
        work: an empty folder.
        before: a version to be measured in turns with this one.
        is_by_both: each capture is audited by the other engine as well.
    """

    work: Path
    before: Version | None = None
    is_by_both: bool = True

    def measured(self, name: str, case: Case, more: list[str], known: Figures) -> Figures:
        """The figures of one capture, whose files are gone afterwards; of what was measured before, the fastest count.

        Args:
            name: of the capture, with which the figures' names begin.
            case: the capture.
            more: names of `EXTRAS`.
            known: those of earlier rounds, after which no other engine audits it again.

        Raises:
            FailedError: an audit ended with an error.
            WrongAnswerError: one found something else than what hangs.
        """
        history, capture = History(case.width), self._emptied("capture")
        written = write_capture(history, capture, case.form)
        made = partial(self._audited, capture, case, history.hanging())
        is_first = f"{name}_s" not in known
        figures = known | {f"{name}_{key}": value for key, value in vars(written).items()}
        figures[f"{name}_findings"] = len(history.hanging()) + LIVE
        if self.before:
            figures = _fastest(figures, f"{name}_before", made(by=self.before))
        done = made()
        engine = done.report["run"]["engine"]
        for each in (name, f"{name}_{engine}"):
            figures = _fastest(figures, each, done)
        for other in _ENGINES if self.is_by_both and is_first else ():
            if other != engine:
                try:
                    figures |= _of(f"{name}_{other}", made("--engine", other))
                except FailedError as error:
                    if _TOO_MUCH not in str(error):
                        raise
        for extra in more if is_first else _AGAIN.intersection(more):
            found = EXTRAS[extra](self, name, case, made)
            if found.get(f"{extra}_s", 0) <= figures.get(f"{extra}_s", float("inf")):
                figures |= found
        shutil.rmtree(capture)
        return figures

    @property
    def warehouse(self) -> Path:
        """Of the last audit."""
        return self.work / "warehouse"

    @property
    def capture(self) -> Path:
        """The files of the capture that is being measured."""
        return self.work / "capture"

    def _audited(self, capture: Path, case: Case, hanging: set[Hanging], *words: str, by: Version = THIS) -> Audit:
        self._emptied("warehouse")
        events = self._emptied("events")
        done = audit([capture], self.warehouse, *case.words, *words, events_to=events, by=by)
        found = {
            Hanging(row["partition"], row["producer_id"], row["txn_start_offset"], row["rule"])
            for row in done.report["findings"]
            if row["verdict"] == "hanging"
        }
        if found != hanging:
            raise WrongAnswerError(
                f"{len(hanging - found)} hanging ones not found, {len(found - hanging)} found wrongly"
            )
        return done

    def _emptied(self, name: str) -> Path:
        shutil.rmtree(self.work / name, ignore_errors=True)
        (self.work / name).mkdir(parents=True)
        return self.work / name


def _of(name: str, done: Audit) -> Figures:
    figures: Figures = {
        f"{name}_s": done.seconds,
        f"{name}_cpu_s": done.process.cpu_seconds,
        f"{name}_memory_bytes": done.process.peak_memory_bytes,
        f"{name}_open_files": done.process.peak_open_files,
    }
    if done.events:
        figures[f"{name}_shuffled_bytes"] = done.events.shuffled_bytes
        figures[f"{name}_idle_share"] = done.events.idle_share
    return figures


def _fastest(figures: Figures, name: str, done: Audit) -> Figures:
    is_better = done.seconds < figures.get(f"{name}_s", float("inf"))
    return figures | _of(name, done) if is_better else figures


def duckdb(bench: Bench, *_: Any) -> Figures:
    """DuckDB reads the same lines into Parquet: those of the logs as batches, those of the state as words."""
    program = [sys.executable, "-m", "benchmarks.duckdb_baseline", str(bench.capture / "segments")]
    options = ["--keep", str(bench.work / "baseline.parquet"), "--lines", str(bench.capture / "transaction-state")]
    done = run([*program, *options])
    return {"duckdb_s": done.seconds, "duckdb_cpu_s": done.cpu_seconds}


def cores(_: Bench, name: str, __: Case, made: Callable[..., Audit]) -> Figures:
    """By Spark's tasks on one core and on two; `local[1]` alone leaves Java and Python a core each."""
    with one_core():
        one = made("--engine", "spark", "--master", "local[1]")
    two = made("--engine", "spark", "--master", "local[2]")
    return _of(f"{name}_one_core", one) | _of(f"{name}_two_cores", two)


def reports(bench: Bench, name: str, *_: Any) -> Figures:
    """What the forms of the report come to, in bytes, and how many findings the machine's form has."""
    sizes: Figures = {}
    for form in ("text", "html", "ndjson"):
        done = THIS.run("report", "--format", form, "--warehouse", bench.warehouse, "--exit-zero")
        sizes[f"{name}_{form}_bytes"] = len(done.stdout.encode())
    sizes[f"{name}_ndjson_findings"] = sum("verdict" in json.loads(line) for line in done.stdout.splitlines())
    return sizes


EXTRAS: dict[str, Callable[..., Figures]] = {"duckdb": duckdb, "cores": cores, "reports": reports}
_AGAIN = {"duckdb"}  # in each round, as the audits that it is held against
