"""One wheel, one answer: the same tables whoever runs the tasks, and however the code got there."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.systems.spark.event_logs import PHASES, executors_of, spark_jobs
from tests.systems.spark.installed import Installed, Printed, install
from tests.systems.spark.standalone import standalone_cluster
from tests.tools.repository import CASES
from tests.tools.scene import Tables, differences, tables

# Every kind of input: one log shallow, deep and with payloads, a snapshot, a transaction index, the coordinator's state
# dumped and exported.
INPUTS = (str(CASES / "grammar/4.2.0"), str(CASES / "kafka-2.8/console"))


def by_submit_on_this_machine(installed: Installed, folder: Path) -> Printed:
    """`spark-submit` in one process, the wheel installed."""
    return installed.submit("local[*]", words(folder), folder / "events")


def on_a_local_cluster(installed: Installed, folder: Path) -> Printed:
    """The command with two executors, the wheel installed."""
    return installed.audit("local-cluster[2,1,2048]", words(folder), folder / "events")


def by_submit_to_a_standalone_cluster(installed: Installed, folder: Path) -> Printed:
    """`spark-submit` to a master with two workers; neither they nor the driver have the package but by `--py-files`."""
    with standalone_cluster(folder, installed.environment(has_package=False)) as master:
        return installed.submit(master, words(folder), folder / "events", py_files=installed.archive(folder))


pytestmark = pytest.mark.cluster
WAYS = (by_submit_on_this_machine, on_a_local_cluster, by_submit_to_a_standalone_cluster)


FEW_LINES = 20


def words(folder: Path) -> list[str]:
    own = ["--warehouse", str(folder / "warehouse"), "--transaction-state-partitions", "4", "--exit-zero"]
    return [*INPUTS, *own, "--format", "json"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {way.__name__: tmp_path_factory.mktemp(way.__name__) for way in WAYS}


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory, folders: dict[str, Path]) -> Iterator[dict[str, Future[Printed]]]:
    """All ways at once, two at a time: each waits more than it works."""
    installed = install(tmp_path_factory.mktemp("machine"))
    with ThreadPoolExecutor(2) as pool:
        yield {way.__name__: pool.submit(way, installed, folders[way.__name__]) for way in WAYS}


@pytest.fixture(scope="module")
def expected(spark: SparkSession, audits: dict[str, Future[Printed]], folders: dict[str, Path]) -> Tables:
    """The tables where all tasks run in one process."""
    way = by_submit_on_this_machine.__name__
    audits[way].result()
    found = tables(spark, folders[way] / "warehouse")
    assert all(found[name] for name in ("log_batches", "producer_snapshots", "transaction_states", "findings"))
    return found


@pytest.mark.parametrize("way", [on_a_local_cluster.__name__, by_submit_to_a_standalone_cluster.__name__])
def test_the_tables_are_those_of_one_process(
    spark: SparkSession, audits: dict[str, Future[Printed]], expected: Tables, folders: dict[str, Path], way: str
) -> None:
    audits[way].result()
    assert differences(tables(spark, folders[way] / "warehouse"), expected) == []


def test_a_job_that_is_submitted_says_little(audits: dict[str, Future[Printed]]) -> None:
    """Spark by itself writes thousands of lines; some of the few are of the time before the job begins."""
    for way in (by_submit_on_this_machine, by_submit_to_a_standalone_cluster):
        lines = audits[way.__name__].result().stderr.splitlines()
        progress = [line for line in lines if line.startswith("txn-analysis: ")]
        assert any("judging" in line for line in progress), lines
        assert len(lines) - len(progress) <= FEW_LINES


@pytest.mark.parametrize("way", WAYS)
def test_stdout_is_the_report_and_nothing_else(
    audits: dict[str, Future[Printed]], way: Callable[[Installed, Path], Printed]
) -> None:
    assert json.loads(audits[way.__name__].result().stdout)["findings"]


@pytest.mark.parametrize("way", WAYS)
def test_every_phase_runs_in_tasks_and_every_job_has_a_description(
    audits: dict[str, Future[Printed]], folders: dict[str, Path], way: Callable[[Installed, Path], Printed]
) -> None:
    audits[way.__name__].result()
    jobs = spark_jobs(folders[way.__name__] / "events")
    assert [job for job in jobs if job.description is None] == []
    assert [phase for phase in PHASES if not executors_of(jobs, phase)] == []


@pytest.mark.parametrize("way", [on_a_local_cluster, by_submit_to_a_standalone_cluster])
def test_the_tasks_of_every_phase_run_on_executors(
    audits: dict[str, Future[Printed]], folders: dict[str, Path], way: Callable[[Installed, Path], Printed]
) -> None:
    audits[way.__name__].result()
    jobs = spark_jobs(folders[way.__name__] / "events")
    ran = {phase: executors_of(jobs, phase) for phase in PHASES}
    assert all(executors and executors <= {"0", "1"} for executors in ran.values()), ran
    assert set().union(*ran.values()) == {"0", "1"}
