"""Where executors are allocated dynamically Spark asks for as many as the bytes are worth: tasks wait for each."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.captures import StateForm, write_capture
from benchmarks.wide_history import History, Width
from tests.systems.spark.event_logs import executors_added, executors_of, spark_jobs
from tests.systems.spark.installed import install
from tests.systems.spark.standalone import standalone_cluster
from txn_analysis.spark.workers import cores_of

DECLARED_CORES = 12
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.executor.cores": "4",
    "spark.executor.memory": "1g",
}
MIB = 1 << 20
OF_200_MIB = Width(partitions=16, batches=34_500, producers=2_000, ids=2_000, hanging=60)
TASKS_OF_FEWEST_CORES = 8  # Spark says two cores where no executor has come yet


class OfSession:
    """Of a session what says how many cores it has: two, as where no executor has come yet."""

    def __init__(self, *, is_dynamic: bool) -> None:
        self.sparkContext = self.conf = self
        self.defaultParallelism = 2
        self._enabled = "true" if is_dynamic else "false"

    def get(self, _name: str, _default: str) -> str:
        return self._enabled


@pytest.mark.parametrize(("is_dynamic", "cores"), [(True, 22), (False, 2)])
def test_with_dynamic_allocation_the_bytes_count_and_not_the_cores_of_the_moment(is_dynamic: bool, cores: int) -> None:
    session: Any = OfSession(is_dynamic=is_dynamic)
    assert cores_of(session, 1434 * MIB) == cores


def test_little_work_has_the_cores_that_are_there() -> None:
    session: Any = OfSession(is_dynamic=True)
    assert cores_of(session, MIB) == session.defaultParallelism


@pytest.mark.cluster
def test_all_executors_of_twelve_declared_cores_are_asked_for(tmp_path: Path) -> None:
    installed = install(tmp_path / "machine")
    environment, events = installed.environment(has_package=True), tmp_path / "events"
    write_capture(History(OF_200_MIB), tmp_path / "capture", StateForm.DUMP_JSON)
    words = [str(tmp_path / "capture"), "--warehouse", str(tmp_path / "warehouse")]
    with standalone_cluster(tmp_path, environment, workers=1, cores=DECLARED_CORES, memory="3g") as master:
        installed.submit(master, words, events, conf=DYNAMIC, job="ingest")
    added, jobs = executors_added(events), spark_jobs(events)
    recognised = [job for job in jobs if (job.description or "").startswith("ingest: recognise")]
    assert sum(len(job.executors) for job in recognised) > TASKS_OF_FEWEST_CORES
    assert sum(added.values()) == DECLARED_CORES
    assert executors_of(jobs, "ingest: recognise") <= added.keys()
