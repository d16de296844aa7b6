"""The results as Markdown: the table of targets, where the time goes, and all raw figures."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.kafka_tool import KAFKA_VERSION
from benchmarks.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.steps import Figures

_TELLING_BYTES = 2**30
_PROVISIONAL = (
    "**Provisional: so few bytes take less time than two runs differ by, so what is said per GiB, and all that follows"
    " from it, is noise. `make bench` measures enough of them.**"
)
_HELD = "Inputs were in the page cache."
_PACKAGES = ("pyspark", "delta-spark", "pyarrow", "numpy", "duckdb")


def results_page(figures: Figures, failures: Mapping[str, str], command: str, day: str) -> str:
    """The sections that `make bench` writes.

    Args:
        figures: what the steps measured, by name.
        failures: why steps failed, by step.
        command: what was run.
        day: when, as a date.
    """
    paragraphs = [
        "# What an audit costs",
        f"Written by `{command}` on {day}; each figure is of this one run on {machine()}. {versions()}. {_HELD}",
        *caveats(figures),
        targets_table(figures, failures),
        "## Where the time goes",
        "The large audit of shallow dumps, every batch kept. Stages as it says them itself; they follow each other.",
        parts_table(figures) if {"audit", "parts"}.isdisjoint(failures) else "not available",
        "## Raw figures",
        table(("figure", "value"), [(f"`{name}`", f"{value:.6g}") for name, value in figures.items()]),
        *[f"Step `{step}` is not available: {why}" for step, why in failures.items()],
    ]
    return "\n\n".join(paragraphs) + "\n"


def caveats(figures: Figures) -> list[str]:
    """What must be known before the figures are believed, as paragraphs."""
    if figures["large_text_bytes"] >= _TELLING_BYTES:
        return []
    return [_PROVISIONAL]


def targets_table(figures: Figures, failures: Mapping[str, str]) -> str:
    """Target, measured and ratio of everything that has a target."""
    return table(("what", "target", "measured", "ratio"), [target.line(figures, failures) for target in TARGETS])


def parts_table(figures: Figures) -> str:
    """Where the large audit spent its time: by its own stages, by Spark's event log, and by isolated measurements."""
    stages = re.compile(r"full_large_stage_(.+)_s")
    named = {found[1].replace("_", " "): s for name, s in figures.items() if (found := stages.fullmatch(name))}
    named.pop("starting Spark", None)
    start_up = figures["full_large_s"] - sum(named.values())
    from_python_gb, to_jvm = figures["full_large_from_python_bytes"] / 1e9, figures["to_jvm_s_per_gb"]
    batches_gb = figures["log_batches_rows"] * figures["arrow_bytes_per_batch"] / 1e9
    parquet = figures["parquet_core_s_per_gb"]
    commits = figures["full_large_commits"]
    rows = [
        ("start-up", f"{start_up:.1f} s", "everything outside the other stages: Python, Java, Spark, the end"),
        *[(f"stage `{name}`", f"{seconds:.1f} s", "the audit's own line") for name, seconds in named.items()],
        ("parsing", f"{figures['full_large_python_s']:.1f} core-s", "in Python workers, by the event log; all stages"),
        (
            "crossing to the JVM",
            f"{from_python_gb * to_jvm:.1f} s",
            f"{from_python_gb:.2f} GB by the event log, at {to_jvm:.2f} s per GB measured alone, all cores",
        ),
        (
            "Parquet writing",
            f"{batches_gb * parquet:.1f} core-s",
            f"in the same workers: {batches_gb:.2f} GB of batches at {parquet:.2f} core-s per GB, measured alone",
        ),
        (
            "Delta commit",
            f"{commits * figures['delta_commit_s']:.1f} s",
            f"{commits:.0f} commits at {figures['delta_commit_s']:.2f} s, measured alone; some at the same time",
        ),
    ]
    return table(("part", "took", "from"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def today() -> str:
    """The date that stands behind a measurement."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def machine() -> str:
    """This machine in words, without its name."""
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*: (.+)", cpus)
    memory_gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return (
        f"{os.cpu_count()} cores ({model[1].strip() if model else platform.machine()}),"
        f" {memory_gib:.0f} GiB of memory, {platform.system()}"
    )


def versions() -> str:
    """What was measured, and with what."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)  # noqa: S607 as Spark does
    quoted = re.search(r'"(.+?)"', java.stderr)
    parts = [f"Python {platform.python_version()}", f"Java {quoted[1] if quoted else 'unknown'}"]
    parts += [f"{name} {_version(name)}" for name in _PACKAGES]
    return ", ".join([*parts, f"kafka-dump-log {KAFKA_VERSION}"])


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
