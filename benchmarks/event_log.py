"""What Spark wrote down about a run: its event log, one JSON object a line."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# Names of Spark's SQL metrics (PythonSQLMetrics), in milliseconds and bytes.
_PYTHON_MS = "time to execute Python code"
_FROM_PYTHON = "data returned from Python workers"
_TO_PYTHON = "data sent to Python workers"


@dataclass(frozen=True)
class Events:
    """Sums over all tasks of a run.

    Attributes:
        result_bytes: sent to the driver, a few kilobytes of Spark's own for each task included.
        python_seconds: in Python workers, all cores added.
        from_python_bytes: crossed from Python to the JVM.
        to_python_bytes: crossed from the JVM to Python.
        idle_share: of the time from the application's start to its end, that in which no task ran.
    """

    task_count: int
    task_seconds: float
    result_bytes: int
    shuffled_bytes: int
    python_seconds: float
    from_python_bytes: int
    to_python_bytes: int
    idle_share: float


def read_events(folder: Path) -> Events:
    """The sums of the one event log in a folder; the log is removed."""
    (log,) = folder.iterdir()
    sums: Counter[str] = Counter()
    tasks, application = [], []
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            if '"Event":"SparkListenerTaskEnd"' in line:
                event = json.loads(line)
                sums += _task(event)
                tasks.append((event["Task Info"]["Launch Time"], event["Task Info"]["Finish Time"]))
            elif '"Event":"SparkListenerApplication' in line:
                application.append(json.loads(line)["Timestamp"])
    log.unlink()
    return Events(
        task_count=sums["tasks"],
        task_seconds=sums["run_ms"] / 1000,
        result_bytes=sums["result_bytes"],
        shuffled_bytes=sums["shuffled_bytes"],
        python_seconds=sums[_PYTHON_MS] / 1000,
        from_python_bytes=sums[_FROM_PYTHON],
        to_python_bytes=sums[_TO_PYTHON],
        idle_share=1 - _covered_ms(tasks) / max(1, max(application) - min(application)),
    )


def _covered_ms(spans: list[tuple[int, int]]) -> int:
    """How long at least one of the spans lasts."""
    covered_ms, until_ms = 0, 0
    for start_ms, end_ms in sorted(spans):
        covered_ms += max(0, end_ms - max(start_ms, until_ms))
        until_ms = max(until_ms, end_ms)
    return covered_ms


def _task(event: Any) -> Counter[str]:
    metrics = event.get("Task Metrics") or {}  # a task that was lost has none
    shuffle = metrics.get("Shuffle Write Metrics", {})
    sums = Counter(
        tasks=1,
        run_ms=metrics.get("Executor Run Time", 0),
        result_bytes=metrics.get("Result Size", 0),
        shuffled_bytes=shuffle.get("Shuffle Bytes Written", 0),
    )
    for counted in event["Task Info"]["Accumulables"]:
        if counted.get("Metadata") == "sql":
            sums[counted["Name"]] += int(counted["Update"])
    return sums
