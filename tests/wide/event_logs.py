"""What Spark wrote down about its jobs: which there were, in whose words, and where their tasks ran."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
    (log,) = (path for path in folder.iterdir() if not path.name.startswith("."))
    jobs: dict[int, SparkJob] = {}
    job_of_stage: dict[int, SparkJob] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            job = jobs[event["Job ID"]] = SparkJob(event["Properties"].get("spark.job.description"))
            for stage in event["Stage IDs"]:
                job_of_stage.setdefault(stage, job)
        elif event["Event"] == "SparkListenerTaskEnd":
            job_of_stage[event["Stage ID"]].executors.append(event["Task Info"]["Executor ID"])
    return [*jobs.values()]


def executors_of(jobs: list[SparkJob], phase: str) -> set[str]:
    """Where the tasks of a phase ran."""
    return {e for job in jobs if (job.description or "").startswith(phase) for e in job.executors}
