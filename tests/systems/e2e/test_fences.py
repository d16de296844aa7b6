"""A fence beside a prepared transaction, on a broker: what a checkpoint holds is committed, then the same line fences.

Flink's sink flushes a transaction before its checkpoint completes, and commits it afterwards. A job that is killed in
between is restored with the same producer id and epoch, and commits (`FlinkKafkaInternalProducer.resumeTransaction`).
The requests on the wire are the same here; the job is not run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.systems.e2e.broker import Cluster
from tests.systems.e2e.captures import ASSURANCES, PARAMETERS, wait_for_high_watermarks
from tests.systems.e2e.driver import Driver
from tests.systems.e2e.executor import put_tool
from tests.systems.e2e.hangs import now_ms
from tests.systems.e2e.raw_client import Producer
from tests.systems.e2e.stage import Stage, on_node, staged
from tests.systems.e2e.test_plan_script import Done, Operator
from tests.tools.processes import wait_until
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.plan.repair import Repair
from txn_analysis.plan.script import fence_with_kafkas_tool
from txn_analysis.questions.verify import nights, verify
from txn_analysis.report.text_report import text_report
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.settings import Settings
from txn_analysis.warehouse.opening import open_warehouse

pytestmark = pytest.mark.e2e

VERSION = "4.3.1"
TOPIC, ID = "pay", "pay-sink-0-6"
HUNG, PREPARED = 0, 1


@dataclass
class Told:
    """What was typed, and what came of it; offsets are those that `read_committed` consumers see."""

    report: str = ""
    typed: dict[str, Done] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    state_after_the_lines: str = ""
    state_after_the_fence: str = ""
    epochs: list[int] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("fences")
    with staged(Cluster(VERSION, folder / "broker"), {TOPIC: on_node(2)}) as stage:
        put_tool(folder / "bin", VERSION)
        yield _tell(stage, spark, folder)


def _tell(stage: Stage, spark: SparkSession, folder: Path) -> Told:
    told, cluster, driver, raw = Told(), stage.cluster, stage.driver, stage.raw
    hang = stage.hanger.late_write_after_the_abort(ID, (TOPIC, HUNG))
    sink = Producer(ID, hang.producer_id, hang.producer_epoch)
    # Nothing is in progress at the copy.
    driver.transact("witness", [(TOPIC, HUNG), (TOPIC, PREPARED)])
    wait_until(lambda: [*driver.open_in((TOPIC, HUNG))] == [hang.producer_id], "the markers of the witness")
    wait_for_high_watermarks(cluster)
    warehouse = str(folder / "warehouse")
    run_id, told.report = _audit(cluster, spark, folder / "copy-1", warehouse)
    (record,) = run_tables(open_warehouse(spark, warehouse), "default", run_id).abort_plan()
    operator = Operator({HUNG: record}, cluster, folder / "bin")
    # Later a checkpoint holds a transaction of the same producer; the job is killed before its commit.
    raw.add_partition(sink, (TOPIC, PREPARED))
    first = raw.write(sink, (TOPIC, PREPARED), 0, at_ms=now_ms())
    told.written = [first, first + 1]
    (fence,) = (line for line in told.report.splitlines() if line.startswith("   fence "))
    fence = fence.removeprefix("   fence").strip()
    told.typed["fence, prepared"] = operator.types(fence)
    told.typed["script, prepared"] = operator.runs(HUNG, "--yes", "--ended", ID)
    told.typed["script, not said"] = refused = operator.runs(HUNG, "--yes")
    told.typed["its line, prepared"] = operator.types_what_it_prints(refused, "kafka-transactions.sh")
    told.typed["owner gone, prepared"] = operator.runs(HUNG, "--yes", "--owner-gone", ID, "--dry-run")
    told.state_after_the_lines = _state(driver)
    raw.end(sink, commit=True)
    wait_until(lambda: _state(driver) == "CompleteCommit", "the markers of the restored job's commit")
    told.typed["fence"] = operator.types(fence)
    told.state_after_the_fence = _state(driver)
    told.typed["script"] = operator.runs(HUNG, "--yes", "--ended", ID)
    told.committed = driver.consume((TOPIC, PREPARED), 3000)["offsets"]
    wait_for_high_watermarks(cluster)
    _audit(cluster, spark, folder / "copy-2", warehouse, capture="after")
    after = open_warehouse(spark, warehouse)
    told.repairs = [outcome.repair for outcome in verify(nights(after, "default", None), run_id)]
    return told


def _audit(
    cluster: Cluster, spark: SparkSession, copy: Path, warehouse: str, capture: str = "before"
) -> tuple[str, str]:
    settings: dict[str, Any] = {**PARAMETERS, **ASSURANCES, "warehouse": warehouse, "capture": capture}
    report = pipeline.audit(spark, [str(cluster.copy_logs(copy))], Settings.model_validate(settings))
    return report.run.run_id, text_report(report)


def _state(driver: Driver) -> str:
    return str(driver.described(ID)["state"])


def test_neither_report_nor_script_prints_a_line_that_ends_what_a_checkpoint_holds(told: Told) -> None:
    assert told.typed["fence, prepared"].returncode != 0
    assert "Ongoing" in told.typed["fence, prepared"].stdout
    assert told.typed["its line, prepared"].returncode != 0
    assert told.state_after_the_lines == "Ongoing"


def test_ended_is_refused_while_the_checkpoints_transaction_is_in_progress(told: Told) -> None:
    refused = told.typed["script, prepared"]
    assert refused.returncode == 1
    assert "its id has a transaction in progress: producer id" in refused.stderr
    assert f"{TOPIC}-{PREPARED}" in refused.stderr


def test_owner_gone_names_what_its_fence_would_abort(told: Told) -> None:
    gone = told.typed["owner gone, prepared"]
    assert f"on {TOPIC}-{PREPARED}. The fence aborts it" in gone.stderr


def test_nothing_that_the_checkpoint_held_is_lost(told: Told) -> None:
    assert set(told.written) <= set(told.committed)


def test_once_nothing_is_in_progress_the_same_line_fences_and_the_hang_is_repaired(told: Told) -> None:
    assert told.typed["fence"].returncode == 0, told.typed["fence"].stderr
    assert told.state_after_the_fence == "Empty"
    assert "sent: " in told.typed["script"].stderr
    assert told.repairs == [Repair.REPAIRED]


def test_brokers_that_refuse_the_tools_own_timeout_take_the_line_for_their_maximum(tmp_path: Path) -> None:
    """The tool asks for 30,000 ms."""
    with staged(Cluster(VERSION, tmp_path / "broker", properties={"transaction.max.timeout.ms": 20_000})) as stage:
        cluster, raw = stage.cluster, stage.raw
        before = raw.init_producer_id(ID, 10_000)
        put_tool(tmp_path / "bin", VERSION)
        operator = Operator({}, cluster, tmp_path / "bin")
        refused = operator.types(fence_with_kafkas_tool(ID).line)
        assert refused.returncode != 0
        assert "InitProducerId" in refused.stdout + refused.stderr
        # The line writes a configuration beside it.
        done = operator.types(f"cd {tmp_path} && {fence_with_kafkas_tool(ID, 20_000).line}")
        assert done.returncode == 0, done.stderr
        after = raw.init_producer_id(ID, 10_000)
        assert after.producer_epoch >= before.producer_epoch + 2
