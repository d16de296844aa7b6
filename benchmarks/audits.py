"""Audits as whole processes: the command as an operator gives it, and what it says of itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.event_log import Events, read_events
from benchmarks.processes import FailedError
from benchmarks.versions import THIS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.processes import Finished
    from benchmarks.versions import Version

_STAGE = re.compile(r"txn-analysis: (\w[\w ]*)(?:: .*)? \.\.\. ([\d.]+) s")


@dataclass(frozen=True)
class Audit:
    """One audit that ended well.

    Attributes:
        stage_seconds: of the stages on stderr, by name.
        report: the JSON report.
        events: what Spark logged; None where it was not asked to, or did not start.
    """

    process: Finished
    stage_seconds: dict[str, float]
    report: dict[str, Any]
    events: Events | None

    @property
    def seconds(self) -> float:
        """From its start to its end."""
        return self.process.seconds

    @property
    def open_transactions(self) -> int:
        """How many findings the report has."""
        return len(self.report["findings"])


def audit(
    paths: Sequence[Path], warehouse: Path, *words: str, events_to: Path | None = None, by: Version = THIS
) -> Audit:
    """Audit files into a warehouse.

    Args:
        paths: files or folders.
        warehouse: where the tables go.
        words: further options.
        events_to: a folder for Spark's event log, which is read and removed; it costs some tenths of a second.
        by: the version that audits.

    Raises:
        FailedError: it ended with an error; findings are none.
    """
    given: list[str | Path] = ["audit", *words, "--warehouse", warehouse, "--exit-zero", "--format", "json", *paths]
    process = by.run(*given, extra_env=_logging_to(events_to) if events_to else None)
    try:
        report = json.loads(process.stdout)
    except ValueError as error:
        raise FailedError(f"the report is no JSON ({error!r})") from error
    stages = {name: float(seconds) for name, seconds in _STAGE.findall(process.stderr)}
    has_events = events_to is not None and any(events_to.iterdir())
    return Audit(process, stages, report, read_events(events_to) if events_to and has_events else None)


def _logging_to(folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    options = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    words = " ".join(f"--conf {name}={value}" for name, value in options.items())
    return {"PYSPARK_SUBMIT_ARGS": f"{words} pyspark-shell"}
