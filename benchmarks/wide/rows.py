"""The rows of the table: ratios within one run, each with its target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.bench import GIB
from benchmarks.targets import Measured, NotMeasurableError, Target, against
from benchmarks.wide import model

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.steps import Figures

_MIB = 2**20
_MS_PER_FINDING = 0.4  # 50,000 of them in 20 seconds
_MS_PER_FOLDER = 1.0
_MOST_MIB_OF_FINDINGS = 500
_FLAT = 1.2
# What is the same whichever version audits.
_OF_CAPTURES = ("_log_bytes", "_state_bytes", "_findings", "_partitions", "_producers", "_ids")


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        extras: what is measured beside audits, by the capture of which it is measured.
        from_scale: below it the start of Spark, which takes as long whatever is read, hides what the row is about.
    """

    name: str
    target: Target
    extras: tuple[tuple[str, str], ...] = ()
    from_scale: float = 0


def by_cpu(figures: Figures) -> Figures:
    """The figures with CPU seconds in place of seconds: what others do on the machine is not in them."""
    return figures | {f"{name.removesuffix('_cpu_s')}_s": value for name, value in figures.items() if "_cpu_s" in name}


def of_before(figures: Figures) -> Figures:
    """The figures of the earlier version, where it was measured."""
    sizes = {name: value for name, value in figures.items() if name.endswith(_OF_CAPTURES)}
    return sizes | {name.replace("_before", ""): value for name, value in figures.items() if "_before" in name}


def _row(
    name: str,
    what: str,
    limit: float,
    needs: tuple[str, ...],
    measure: Callable[[Figures], Measured],
    *extras: tuple[str, str],
    from_scale: float = 0,
) -> Row:
    return Row(name, Target(what, limit, ("tiny", *needs), measure), extras, from_scale)


def _added(figures: Figures, name: str) -> float:
    """Seconds over those of a tiny audit."""
    return figures[f"{name}_s"] - figures["tiny_s"]


def _of_added(one: str, other: str, figures: Figures) -> Measured:
    return _against(_added(figures, one), _added(figures, other), "s over a tiny audit")


def _of_seconds(one: str, other: str, figures: Figures) -> Measured:
    return _against(figures[f"{one}_s"], figures[f"{other}_s"], "s")


def _state_per_gib(name: str, other: str, figures: Figures) -> Measured:
    """Seconds for each GiB of the state, against those for each GiB of batch lines, or of another state."""
    mine = _added(figures, name) / figures[f"{name}_state_bytes"] * GIB
    kind = "log" if other == "lines" else "state"
    theirs = _added(figures, other) / figures[f"{other}_{kind}_bytes"] * GIB
    return _against(mine, theirs, "s per GiB")


def _findings(figures: Figures) -> Measured:
    count = figures["findings_findings"]
    allowed = count * _MS_PER_FINDING / 1000
    return _against(_added(figures, "findings"), allowed, f"s for {count:.0f} findings")


def _memory(one: str, other: str, figures: Figures) -> Measured:
    mine, other_mib = (figures[f"{name}_memory_bytes"] / _MIB for name in (one, other))
    return _against(mine, other_mib, "MiB")


def _memory_of_findings(engine: str, figures: Figures) -> Measured:
    large, tiny = (figures[f"{name}_{engine}_memory_bytes"] for name in ("findings", "tiny"))
    return _against((large - tiny) / _MIB, _MOST_MIB_OF_FINDINGS, "MiB over a tiny audit")


def _shuffled(name: str, figures: Figures) -> Measured:
    read = figures[f"{name}_log_bytes"] + figures[f"{name}_state_bytes"]
    return _against(figures[f"{name}_spark_shuffled_bytes"] / _MIB, read / _MIB, "MiB")


def _folders(figures: Figures) -> Measured:
    count = figures["folders_partitions"]
    ms = (figures["folders_s"] - figures["folders_few_s"]) / count * 1000
    return _against(ms, _MS_PER_FOLDER, f"ms for each of {count:.0f} folders")


def _open_files(figures: Figures) -> Measured:
    return _against(figures["folders_open_files"], figures["folders_quarter_open_files"], "files")


def _report_bytes(form: str, figures: Figures) -> Measured:
    mine, other = (figures[f"{name}_{form}_bytes"] / 1000 for name in ("findings", "findings_quarter"))
    return _against(mine, other, "kB")


def _ndjson(figures: Figures) -> Measured:
    return _against(figures["findings_findings"], figures["findings_ndjson_findings"], "findings")


def _idle(figures: Figures) -> Measured:
    share = figures["narrow_two_cores_idle_share"]
    return Measured(share, f"{share:.1%} of the time")


def _against(mine: float, other: float, unit: str) -> Measured:
    if other <= 0:
        raise NotMeasurableError("what it is held against took no longer than a tiny audit; give a larger SCALE")
    return against(mine, other, unit)


_STATES = (
    ("text", "dump text", 4.0),
    ("json", "JSON form of a dump", 4.0),
    ("console", "console JSON", 4.0),
    ("binary", "log directories", 2.0),
)
_REPORTS = (("findings", "reports"), ("findings_quarter", "reports"))

ROWS = (
    _row(
        "partitions",
        "many partitions against the same batches in 16",
        1.5,
        ("wide", "narrow"),
        partial(_of_added, "wide", "narrow"),
    ),
    _row(
        "duckdb",
        "the capture of 16 partitions, against DuckDB reading the same lines into Parquet",
        2.0,
        ("narrow",),
        partial(_of_seconds, "narrow", "duckdb"),
        ("narrow", "duckdb"),
    ),
    *[
        _row(
            f"state-{form}",
            f"a GiB of `__transaction_state` against a GiB of batch lines: {what}",
            limit,
            (f"ids_{form}", "lines"),
            partial(_state_per_gib, f"ids_{form}", "lines"),
        )
        for form, what, limit in _STATES
    ],
    _row(
        "expired",
        "the same where all ids expired in one night",
        4.0,
        ("expired", "lines"),
        partial(_state_per_gib, "expired", "lines"),
    ),
    _row(
        "ids",
        "many ids against a hundredth of them in as many bytes",
        1.3,
        ("ids_json", "ids_few"),
        partial(_state_per_gib, "ids_json", "ids_few"),
    ),
    _row("findings", "findings, against 0.4 ms for each", 1.0, ("findings",), _findings),
    *[
        _row(
            f"findings-memory-{engine}",
            f"memory of findings, `--engine {engine}`, against 500 MiB",
            1.0,
            ("findings",),
            partial(_memory_of_findings, engine),
        )
        for engine in ("local", "spark")
    ],
    *[
        _row(
            f"report-{form}",
            f"the report of four times the findings, {form}",
            _FLAT,
            ("findings", "findings_quarter"),
            partial(_report_bytes, form),
            *_REPORTS,
        )
        for form in ("text", "html")
    ],
    _row(
        "report-ndjson",
        "findings, against those of `report --format ndjson`",
        1.0,
        ("findings", "findings_quarter"),
        _ndjson,
        *_REPORTS,
    ),
    *[
        _row(
            f"memory-{name}",
            f"peak memory, {what} against a quarter of them",
            _FLAT,
            (name, f"{name}_quarter"),
            partial(_memory, name, f"{name}_quarter"),
        )
        for name, what in (("lines", "batches"), ("wide", "partitions"), ("folders", "folders"))
    ],
    _row(
        "memory-ids",
        "peak memory, ids against a quarter of them",
        _FLAT,
        ("ids_json", "ids_quarter"),
        partial(_memory, "ids_json", "ids_quarter"),
    ),
    *[
        _row(f"shuffle-{name}", f"bytes shuffled against bytes read, {what}", 0.01, (name,), partial(_shuffled, name))
        for name, what in (("wide", "many partitions"), ("ids_json", "many ids"), ("findings", "many findings"))
    ],
    _row("folders", "log directories, for each folder over reading it", 1.0, ("folders", "folders_few"), _folders),
    _row(
        "open-files",
        "open files, folders against a quarter of them",
        _FLAT,
        ("folders", "folders_quarter"),
        _open_files,
    ),
    _row(
        "offsets",
        "offsets of 2 x 10^10 against the same from 0",
        1.1,
        ("offsets_high", "offsets_low"),
        partial(_of_added, "offsets_high", "offsets_low"),
    ),
    _row(
        "cores",
        "two cores against one, by Spark's tasks (1.7 times as fast)",
        1 / 1.7,
        ("narrow",),
        partial(_of_seconds, "narrow_two_cores", "narrow_one_core"),
        ("narrow", "cores"),
        from_scale=10,
    ),
    _row(
        "goal", "all that is many at once, against the sum of its terms", 1.25, model.NEEDS, model.of_goal, from_scale=1
    ),
    _row(
        "idle", "time in which no task runs, of the whole", 0.05, ("narrow",), _idle, ("narrow", "cores"), from_scale=10
    ),
)
