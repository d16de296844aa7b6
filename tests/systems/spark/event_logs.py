"""What Spark wrote down about its jobs: in whose words they are, where their tasks ran, which executors there were."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PHASES = ("ingest: recognise", "ingest: read", "reconstruct: replay", "judge: join", "judge: give")
"""How the descriptions begin of jobs that every audit by Spark's tasks has; the last one plans the aborts as well."""


@dataclass
class SparkJob:
    """One job of an application.

    Attributes:
        description: of the job; None where it has none.
        executors: where its tasks ran, one for each task.
    """

    description: str | None
    executors: list[str] = field(default_factory=list)


def event_log_options(folder: Path) -> dict[str, str]:
    """Settings with which Spark writes one plain file for each application into a folder, which is made here."""
    folder.mkdir(exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def spark_jobs(folder: Path) -> list[SparkJob]:
    """The jobs of the one application whose event log is in a folder."""
    jobs: dict[int, SparkJob] = {}
    job_of_stage: dict[int, SparkJob] = {}
    for event in _events(folder):
        if event["Event"] == "SparkListenerJobStart":
            job = jobs[event["Job ID"]] = SparkJob(event["Properties"].get("spark.job.description"))
            for stage in event["Stage IDs"]:
                job_of_stage.setdefault(stage, job)
        elif event["Event"] == "SparkListenerTaskEnd":
            job_of_stage[event["Stage ID"]].executors.append(event["Task Info"]["Executor ID"])
    return [*jobs.values()]


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    (log,) = (path for path in folder.iterdir() if not path.name.startswith("."))
    with open(log, encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def executors_added(folder: Path) -> dict[str, int]:
    """The executors that the one application had at any time, and the cores of each."""
    added = (event for event in _events(folder) if event["Event"] == "SparkListenerExecutorAdded")
    return {event["Executor ID"]: event["Executor Info"]["Total Cores"] for event in added}


def executors_of(jobs: list[SparkJob], phase: str) -> set[str]:
    """Where the tasks of a phase ran."""
    return {e for job in jobs if (job.description or "").startswith(phase) for e in job.executors}


def wrong_in_phases(folder: Path) -> list[str]:
    """What the event log says against an audit by executors: a job without description, a phase without their tasks."""
    jobs, executors = spark_jobs(folder), executors_added(folder).keys()
    ran = {phase: executors_of(jobs, phase) for phase in PHASES}
    elsewhere = [
        f"{phase}: tasks on {sorted(on)}, of executors {sorted(executors)}"
        for phase, on in ran.items()
        if not on or not on <= executors
    ]
    return ["a job has no description", *elsewhere] if any(job.description is None for job in jobs) else elsewhere
